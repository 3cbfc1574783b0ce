"""Pictures of a study, in Matplotlib.

Every function takes an `Optimizer`, a `Result` or what `load(url, name)` returns, and an optional `ax=`; it draws there
and returns the Axes.  Looking at a study never changes what it suggests.
"""

from boca.plots.draw import (
    fidelities,
    hyperparameters,
    information_gap,
    map2d,
    parallel_coordinates,
    progress,
    regret,
    slices,
)
from boca.plots.study import StudyView, load

__all__ = [
    "StudyView",
    "fidelities",
    "hyperparameters",
    "information_gap",
    "load",
    "map2d",
    "parallel_coordinates",
    "progress",
    "regret",
    "slices",
]
