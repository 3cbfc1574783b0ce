"""Plots of a study, with Matplotlib.

Every function takes an `Optimizer`, a `Result` or what `load(url, name)` returns, and an optional `ax=`; it draws there
and returns the Axes.  Plotting a study never changes what it suggests.
"""

from boca.plots.draw_decision import decision
from boca.plots.draw_feasible import feasibility
from boca.plots.draw_front import front, hypervolume
from boca.plots.draw_good_set import good_set
from boca.plots.draw_importance import importance
from boca.plots.draw_model import hyperparameters, information_gap, map2d, slices
from boca.plots.draw_timeline import timeline
from boca.plots.draw_trials import fidelities, parallel_coordinates, progress, regret
from boca.plots.study import StudyView, load

__all__ = [
    "StudyView",
    "decision",
    "feasibility",
    "fidelities",
    "front",
    "good_set",
    "hyperparameters",
    "hypervolume",
    "importance",
    "information_gap",
    "load",
    "map2d",
    "parallel_coordinates",
    "progress",
    "regret",
    "slices",
    "timeline",
]
