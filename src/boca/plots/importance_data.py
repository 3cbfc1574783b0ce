"""Which parameters matter, as numbers: Sobol indices of what the model believes of f, at the target and below it.

The model is uncertain, so every index is that of many draws from its posterior: a median and an interval.  A draw is
exact at `_ANCHORS` points and the conditional mean between them, which takes no covariance of the whole design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray, IntArray, Point
from boca.domain.words import point
from boca.model.posterior import Model, Posterior
from boca.plots import sobol
from boca.plots.axis import Note
from boca.plots.study import StudyView

INTERVAL = 0.9  # of the draws lie in the interval of an index
_DRAWS = 64
_ANCHORS = 256  # points at which a draw is exact; a power of two
MAX_VIEWS = 4  # of the function: at the target, and at the cheap ends of some fidelities


@dataclass(frozen=True)
class Share:
    """One index of every parameter: its median over the draws, and the ends of its interval."""

    middle: FloatArray  # (d,)
    low: FloatArray  # (d,)
    high: FloatArray  # (d,)


@dataclass(frozen=True)
class View:
    """The indices of the function at one fidelity."""

    words: str
    z: Point
    first: Share
    total: Share


@dataclass(frozen=True)
class Importance:
    """Which parameters matter; those that matter most at the target come first."""

    names: tuple[str, ...]
    views: tuple[View, ...]
    """The one at the target comes first."""
    has_interval: bool
    """Whether the model can be drawn from; without draws, the indices are those of its mean."""
    is_warped: bool
    """Whether the indices are those of warped values, as the model sees them."""


def importance(study: StudyView) -> Importance | Note:
    space, model = study.problem.space, study.model
    if model is None:
        return Note(study.why_no_model)
    if space.is_list:
        return Note("The points are a list, so the parameters are not independent and have no importance of their own.")
    views = [_view(words, z, _functions(model, z), len(space)) for words, z in _fidelities(study, model)]
    order = np.argsort(-views[0].total.middle, kind="stable")
    names = list(space)
    return Importance(
        tuple(names[j] for j in order),
        tuple(View(v.words, v.z, _ordered(v.first, order), _ordered(v.total, order)) for v in views),
        isinstance(model, Model),
        isinstance(model, Model) and model.warp is not None,
    )


def _ordered(share: Share, order: IntArray) -> Share:
    return Share(share.middle[order], share.low[order], share.high[order])


def _fidelities(study: StudyView, model: Posterior) -> Iterator[tuple[str, Point]]:
    """Yield the target, and the target with one fidelity at its other end, if the model knows of fidelities."""
    target = study.problem.target
    yield "at the target", target
    if not isinstance(model, Model) or model.guard is not None:
        return
    others = [
        (name, value)
        for name, parameter in study.problem.fidelity.items()
        for value in parameter.options or (_far_end(parameter.ends or (), target[name]),)
        if value != target[name]
    ]
    for name, value in others[: MAX_VIEWS - 1]:
        yield f"at {point({name: value})}", {**target, name: value}


def _far_end(ends: tuple[float, ...], target: object) -> float:
    """Return the end of a range that is not the target; the low one if neither is."""
    low, high = ends
    return high if target == low else low


def _view(words: str, z: Point, functions: sobol.Functions, d: int) -> View:
    found = sobol.indices(functions, d)
    return View(words, z, _share(found.first), _share(found.total))


def _share(drawn: FloatArray) -> Share:  # (d, k)
    low, middle, high = np.quantile(drawn, [0.5 - 0.5 * INTERVAL, 0.5, 0.5 + 0.5 * INTERVAL], axis=1)
    return Share(middle, low, high)


# Draws ------------------------------------------------------------------------------------------------------------


def _functions(model: Posterior, z: Point) -> sobol.Functions:
    """Return draws of the function at a fidelity, on the unit cube; a point is moved to the nearest that exists."""
    space = model.problem.space
    if not isinstance(model, Model):
        return lambda U: model.moments(space.snap(U))[0][:, None]
    Z = model.problem.fidelity.to_unit([z])

    def features(U: FloatArray) -> FloatArray:  # (m, d) -> (m, D)
        exists = space.snap(U)
        return np.hstack([model.encoding.x_features(exists), np.repeat(model.encoding.z_features(Z), len(U), axis=0)])

    anchors = np.unique(space.snap(sobol.points(_ANCHORS, len(space), seed=1)), axis=0)
    normal = np.random.default_rng(0).standard_normal((len(anchors), _DRAWS))
    gp, _ = model.gp.given_draws(features(anchors), normal)
    return lambda U: gp.m + gp.kappa0 * gp.kernel.value(gp.h, features(U), gp.X) @ gp.alpha
