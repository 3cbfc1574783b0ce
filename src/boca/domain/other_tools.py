"""Arguments that users of Optuna, scikit-learn and others expect, and what takes their place here.

`names_ours` wraps a function of the public interface.  It refuses an argument that the function does not have with a
message that names the right one, where Python would say no more than "unexpected keyword argument".
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from boca.domain.errors import UnknownArgument

P = ParamSpec("P")
R = TypeVar("R")

_NUMBER_OF_TRIALS = "Type budget=boca.targets({value}) for the cost of so many evaluations at the target."
_WORKERS = "Type executor={value} for as many worker processes."
_PROGRESS = "A progress line is shown in terminals and notebooks; type progress=False for none, progress=True for one."
_LIMITED = (
    "Type subject_to={{'latency': boca.AtMost(20.0)}} for a limit on an outcome, and "
    "space.where(lambda x: x['a'] + x['b'] <= 1, 'a + b <= 1') for a condition on the parameters."
)
_SEVERAL = "Type outcomes={{'loss': 'minimize', 'size': 'minimize'}} for several objectives, by name."
_UNLIMITED = "Limits are an argument of boca.Problem, boca.maximize and boca.minimize: type subject_to= there."

_HINTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("n_trials", "n_iter", "n_calls", "n_iterations", "max_evals", "max_iter", "num_samples", "maxiter"),
        ("budget", _NUMBER_OF_TRIALS),
    ),
    **dict.fromkeys(("n_jobs", "n_workers", "workers", "max_workers"), ("executor", _WORKERS)),
    **dict.fromkeys(
        ("timeout", "time_limit", "max_time", "walltime_limit"),
        ("budget", "Type budget=boca.seconds({value}) for a limit of the whole study."),
    ),
    **dict.fromkeys(("verbose", "verbosity", "show_progress_bar", "show_progress"), ("progress", _PROGRESS)),
    **dict.fromkeys(("constraints_func", "constraints", "constraint"), ("subject_to", _LIMITED)),
    **dict.fromkeys(("random_state", "rng", "random_seed"), ("seed", "Type seed={value}.")),
    **dict.fromkeys(("study_name", "experiment_name"), ("name", "Type name={value}.")),
    **dict.fromkeys(
        ("search_space", "param_distributions", "param_grid", "bounds", "dimensions", "param_space"),
        ("space", "Type space=boca.Space(lr=(1e-4, 1.0, 'log'), depth=(1, 8), kind=['a', 'b'])."),
    ),
    **dict.fromkeys(("sampler", "pruner", "algo", "search_alg"), ("strategy", "Type strategy=boca.Boca().")),
    "load_if_exists": ("name", "Leave it out: a study that the storage has under this name is resumed."),
    **dict.fromkeys(("directions", "objectives"), ("outcomes", _SEVERAL)),
    **dict.fromkeys(("ref_point", "reference_point"), ("reference", "Type reference={{'loss': 1.0}}, by name.")),
}
"""By the name in another tool: the argument that ours must have for the hint to be of use, and the hint."""

_OTHERWISE: dict[str, str] = {
    "subject_to": _UNLIMITED,
    "progress": "Nothing is printed here; leave it out.",
    "executor": "Trials are evaluated by your own code here: call ask() once per worker, or ask({value}).",
    "outcomes": "Several objectives, or objectives and limits by name, are for boca.optimize: type "
    "boca.optimize(f, space, outcomes={{'loss': 'minimize', 'size': 'minimize'}}).",
    "reference": "It belongs to several objectives: type boca.optimize(f, space, outcomes=..., reference=...).",
    "direction": "boca.maximize maximizes, and boca.minimize minimizes: leave it out.",
}
"""By the argument that is missing in ours: what to do without it."""


def names_ours(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of the names of its arguments."""
    known = inspect.signature(function).parameters
    called = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        unknown = {name: value for name, value in named.items() if name not in known}
        if unknown:
            name, value = next(iter(unknown.items()))
            raise UnknownArgument(f"boca.{called} has no argument {name!r}. {hint(name, value, known)}")
        return function(*given, **named)

    return checked


def hint(name: str, value: object, known: Collection[str] | Mapping[str, object]) -> str:
    """Return what to type in place of an argument that a function with these arguments does not have."""
    ours, words = _HINTS.get(name, (name, ""))
    if words and ours in known:
        return words.format(value=repr(value))
    if ours in _OTHERWISE:
        return _OTHERWISE[ours].format(value=repr(value))
    own = [one for one in known if one not in ("self", "cls")]
    near = difflib.get_close_matches(name, own, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(own)}."
