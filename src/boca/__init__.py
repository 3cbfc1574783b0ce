"""Multi-fidelity Bayesian optimisation with continuous approximations.

import boca

result = boca.maximize(objective, space, fidelity, cost=cost, budget=boca.targets(30))
"""

from types import ModuleType

from boca.errors import BocaError
from boca.optimizer import Optimizer
from boca.problem import Budget, Problem, seconds, targets
from boca.recommendation import Recommendation
from boca.run import Result, maximize, minimize
from boca.space import Choice, Float, Int, Space
from boca.strategies import GPEI, GPUCB, MFGPUCB, MFSKO, Boca, RandomSearch, Strategy
from boca.surrogate import Surrogate
from boca.trial import History, Suggestion, Trial

__version__ = "0.1.0"

__all__ = [
    "GPEI",
    "GPUCB",
    "MFGPUCB",
    "MFSKO",
    "Boca",
    "BocaError",
    "Budget",
    "Choice",
    "Float",
    "History",
    "Int",
    "Optimizer",
    "Problem",
    "RandomSearch",
    "Recommendation",
    "Result",
    "Space",
    "Strategy",
    "Suggestion",
    "Surrogate",
    "Trial",
    "maximize",
    "minimize",
    "problems",
    "seconds",
    "targets",
]


def __getattr__(name: str) -> ModuleType:
    """Import what not every program needs when somebody looks at it."""
    if name in ("callbacks", "executors", "plots", "problems", "report", "testing"):
        import importlib

        return importlib.import_module(f"boca.{name}")
    raise AttributeError(f"module 'boca' has no attribute {name!r}")
