"""Where trials fail, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import BoolArray, Parameter
from boca.domain.trial import History
from boca.domain.words import option, text

_LEAST_FAILURES = 3  # fewer lie on one side of something by chance
_NEARLY_ALL = 0.9  # of the failures, inside of what is named
_LEAST_RATE = 0.5  # of failures inside: a side of which most trials complete says little
_RATE_RATIO = 4.0  # by which failures are more frequent inside than outside, so that it is worth naming


@dataclass(frozen=True)
class _Side:
    """One side of a parameter, in words, and which trials lie on it."""

    words: str
    inside: BoolArray  # (n,)


def where_trials_fail(problem: Problem, history: History) -> str | None:
    """Return where nearly all failures lie, if one parameter or fidelity says so; None if none does."""
    finished = history.finished
    failed = np.array([t.state == "failed" for t in finished], dtype=bool)
    if failed.sum() < _LEAST_FAILURES or failed.all():
        return None
    best: tuple[float, _Side] | None = None
    for side in _sides(problem, history):
        caught = float(failed[side.inside].sum()) / float(failed.sum())
        rate = float(failed[side.inside].mean()) if side.inside.any() else 0.0
        outside = float(failed[~side.inside].mean()) if (~side.inside).any() else rate
        # the rate inside says how well a side tells failures from results
        is_telling = caught >= _NEARLY_ALL and rate >= max(_LEAST_RATE, _RATE_RATIO * outside)
        if is_telling and (best is None or rate > best[0]):
            best = rate, side
    if best is None:
        return None
    share, (rate, side) = float(failed.mean()), best
    return (
        f"{100 * share:.0f} % of the trials failed, nearly all of them where {side.words}: "
        f"there, {100 * rate:.0f} % did."
    )


def _sides(problem: Problem, history: History) -> Iterator[_Side]:
    """Yield both sides of every value at which a trial failed, and every option."""
    for part, space in (("x", problem.space), ("planned", problem.fidelity)):
        for name, parameter in space.items():
            values = [getattr(t, part)[name] for t in history.finished]
            if parameter.ends is None:
                for value in dict.fromkeys(values):
                    yield _Side(f"{text(name)} is {option(value)}", np.array([v == value for v in values], dtype=bool))
            else:
                yield from _thresholds(name, parameter, np.array(values, dtype=float), history)


def _thresholds(name: str, parameter: Parameter, values: np.ndarray, history: History) -> Iterator[_Side]:
    failed = np.array([t.state == "failed" for t in history.finished], dtype=bool)
    for value in np.unique(values[failed]):
        yield _Side(f"{text(name)} >= {value:.3g}", values >= value)
        yield _Side(f"{text(name)} <= {value:.3g}", values <= value)
