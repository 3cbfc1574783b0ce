"""Multi-fidelity Bayesian optimization with continuous approximations.

import boca

result = boca.maximize(objective, space, fidelity, cost=cost, budget=boca.targets(30))
"""

from types import ModuleType

from boca.domain.budget import Budget, seconds, targets
from boca.domain.candidates import Candidates
from boca.domain.errors import BocaError
from boca.domain.outcomes import AtLeast, AtMost
from boca.domain.problem import Problem
from boca.domain.runs import Verdict
from boca.domain.space import Choice, Float, Int, Space
from boca.domain.steps import Steps
from boca.domain.trial import History, Suggestion, Trial
from boca.domain.version import VERSION
from boca.execution.executors.handle import Run
from boca.execution.optimize import optimize
from boca.execution.result import Result
from boca.execution.run import maximize, minimize
from boca.model.surrogate import Surrogate
from boca.strategies import GPEI, GPUCB, MFGPUCB, MFSKO, Boca, RandomSearch, Strategy
from boca.study.front import FrontRecommendation
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation

__version__ = VERSION

__all__ = [
    "GPEI",
    "GPUCB",
    "MFGPUCB",
    "MFSKO",
    "AtLeast",
    "AtMost",
    "Boca",
    "BocaError",
    "Budget",
    "Candidates",
    "Choice",
    "Float",
    "FrontRecommendation",
    "History",
    "Int",
    "Optimizer",
    "Problem",
    "RandomSearch",
    "Recommendation",
    "Result",
    "Run",
    "Space",
    "Steps",
    "Strategy",
    "Suggestion",
    "Surrogate",
    "Trial",
    "Verdict",
    "maximize",
    "minimize",
    "optimize",
    "problems",
    "seconds",
    "stopping",
    "targets",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module that most programs do not need when it is first looked at."""
    if name in ("callbacks", "errors", "executors", "plots", "problems", "report", "stopping", "testing", "theory"):
        import importlib

        return importlib.import_module(f"boca.{name}")
    raise AttributeError(f"module 'boca' has no attribute {name!r}")
