"""The strategies by name: in study files, in benchmarks and in stored studies.

To add one, enter it here; a stored study keeps the name, so a name stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boca.model.surrogate import Surrogate
from boca.strategies.base import Strategy
from boca.strategies.boca import Boca, Theorem
from boca.strategies.gp_ei import GPEI
from boca.strategies.gp_ucb import GPUCB
from boca.strategies.mf_gp_ucb import MFGPUCB
from boca.strategies.mf_sko import MFSKO
from boca.strategies.random import RandomSearch

STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "boca": Boca,
    "boca-paper": Boca.paper,
    "gp-ucb": GPUCB,
    "gp-ei": GPEI,
    "mf-gp-ucb": MFGPUCB,
    "mf-sko": MFSKO,
    "random": RandomSearch,
}
"""What a name makes: a strategy with its defaults, or one with the settings of a paper."""

_PARTS = {"surrogate": Surrogate, "theorem": Theorem}

CLASSES: Mapping[str, type] = {
    name: made for name, made in (*STRATEGIES.items(), *_PARTS.items()) if isinstance(made, type)
}
"""The classes in a stored study by name; a class that is not here is stored by its import path."""

NAMES: Mapping[type, str] = {made: name for name, made in CLASSES.items()}
