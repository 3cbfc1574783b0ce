"""Climb from many starts at once: quasi-Newton steps within the unit cube, every start with a curvature of its own.

    symbol   shape      meaning
    x        (k, d)     where each start has got to
    g        (k, d)     gradient there; zero where a coordinate is frozen
    H        (k, d, d)  inverse of the curvature, learned from the steps (BFGS, for -value)
    p        (k, d)     the next step at full length
    t        (k,)       the share of it to try, shorter after a failure

One round evaluates one point of every start that is still climbing, in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.space import FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]

ROUNDS = 60
_FIRST_STEP = 0.1  # of the cube, before any curvature is known
_SUFFICIENT = 1e-4  # of the rise that the slope promises
_SHORTEST_STEP = 1e-4  # as a share of the full step; a start that needs less stands on a kink
_FLAT = 1e-6  # rise that is not worth a step
_HOPE = 5.0  # times its promised rise: a start that even this would not bring to the best is given up
_TWIN_DISTANCE = 0.02  # from the best start: one that is nearer climbs the same top, and is given up
_ROUNDS_BEFORE_GIVING_UP = 4  # no start is given up earlier: the first slopes mislead


def climb(
    value_and_gradient: Callable[[FloatArray], tuple[FloatArray, FloatArray]], starts: FloatArray, frozen: BoolArray
) -> FloatArray:  # (k, d), frozen (d,) -> (k, d)
    """Return the local maxima above the starts.

    A start that cannot become the best any more, or is on the way to where the best is, may stop on its way.
    """
    k, d = starts.shape
    low, high = np.where(frozen, starts, 0.0), np.where(frozen, starts, 1.0)
    reach = np.where(frozen, 0.0, _TWIN_DISTANCE)
    x = starts.copy()
    value, gradient = value_and_gradient(x)
    steepest = float(np.max(np.abs(gradient), where=np.isfinite(gradient), initial=0.0))
    unit = max(1.0, 1e-100 * steepest)  # squares of 1e300 are no floats
    value, g = value / unit, np.where(frozen, 0.0, gradient / unit)
    H = np.tile(np.eye(d), (k, 1, 1))
    is_new = np.ones(k, dtype=bool)  # no curvature is known yet
    t = np.ones(k)
    p = _step(H, g, x, low, high, is_new)
    climbing = np.flatnonzero(_dot(p, g) > 0.0)
    for round_ in range(ROUNDS):
        if not len(climbing):
            break
        tried = np.clip(x[climbing] + t[climbing, None] * p[climbing], low[climbing], high[climbing])
        found, gradient = value_and_gradient(tried)
        found, gradient = found / unit, np.where(frozen, 0.0, gradient / unit)
        move = tried - x[climbing]
        rise, promised = found - value[climbing], _dot(move, g[climbing])
        rises = rise >= np.maximum(_SUFFICIENT * promised, 0.0)  # never so for nan
        short = 0.5 * promised[~rises] / np.maximum(promised[~rises] - rise[~rises], 1e-300)  # the parabola's top
        t[climbing[~rises]] *= np.fmin(np.fmax(short, 0.1), 0.5)  # a tenth for nan

        on = climbing[rises]
        H[on], is_new[on] = _learned(H[on], is_new[on], move[rises], g[on] - gradient[rises])
        x[on], value[on], g[on], t[on] = tried[rises], found[rises], gradient[rises], 1.0
        p[on] = _step(H[on], g[on], x[on], low[on], high[on], is_new[on])

        slope = _dot(p[climbing], g[climbing])
        is_done = (slope <= _FLAT) | (t[climbing] < _SHORTEST_STEP)
        if round_ >= _ROUNDS_BEFORE_GIVING_UP:
            best = np.argmax(np.fmax(value, -np.inf))  # of numbers
            is_done |= value[climbing] + _HOPE * slope < value[best]
            is_done |= (np.abs(x[climbing] - x[best]) <= reach).all(axis=1) & (climbing != best)
        climbing = climbing[~is_done]
    return x


def _step(
    H: FloatArray, g: FloatArray, x: FloatArray, low: FloatArray, high: FloatArray, is_new: BoolArray
) -> FloatArray:  # (k, d)
    """Return the quasi-Newton step in the coordinates that no bound holds."""
    held = ((x <= low) & (g < 0.0)) | ((x >= high) & (g > 0.0))
    p = np.where(held, 0.0, np.einsum("kij,kj->ki", H, np.where(held, 0.0, g)))
    longest = np.max(np.abs(p), axis=1)
    return p * np.where(is_new & (longest > _FIRST_STEP), _FIRST_STEP / np.maximum(longest, 1e-300), 1.0)[:, None]


def _learned(
    H: FloatArray, is_new: BoolArray, s: FloatArray, y: FloatArray
) -> tuple[FloatArray, BoolArray]:  # H (k, d, d), s and y (k, d)
    """Return H after steps s that changed the gradient of -value by y, and which still know no curvature."""
    sy, yy = _dot(s, y), _dot(y, y)
    is_curved = sy > 1e-10 * np.sqrt(yy * _dot(s, s))
    r = np.where(is_curved, 1.0 / np.where(is_curved, sy, 1.0), 0.0)
    scale = np.where(is_new & is_curved, sy / np.where(is_curved, yy, 1.0), 1.0)
    H = H * scale[:, None, None]
    Hy = np.einsum("kij,kj->ki", H, y)
    along = (r * (1.0 + r * _dot(y, Hy)))[:, None, None] * (s[:, :, None] * s[:, None, :])
    mixed = r[:, None, None] * Hy[:, :, None] * s[:, None, :]
    return H + along - mixed - mixed.transpose(0, 2, 1), is_new & ~is_curved


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:  # (k, d), (k, d) -> (k,)
    return np.asarray(np.einsum("ij,ij->i", a, b))
