"""Local maxima from many starts at once: quasi-Newton steps (BFGS) in the unit cube.

    symbol   shape      meaning
    x        (k, d)     where the search from each start is
    g        (k, d)     gradient there; zero in frozen coordinates
    H        (k, d, d)  inverse of the Hessian of -value, estimated from the steps
    p        (k, d)     the next step at full length
    t        (k,)       the share of it to try, smaller after a failure

One round evaluates one point of every search that is still going on, in one call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from boca.domain.space import BoolArray, FloatArray

MOST_ROUNDS = 60  # a guard against slow progress: searches usually end much earlier
_FIRST_STEP = 0.1  # of the side of the cube, while the curvature is unknown: a slope alone says nothing of distance
_SUFFICIENT_RISE = 1e-4  # of the rise that the slope predicts: the usual constant of Armijo's rule
_SHORTEST_STEP = 1e-4  # of the full step; a search that needs shorter ones is at a kink
_LEAST_RISE = 1e-6  # in units of the value: a smaller predicted rise is not worth a step
_RISES_TO_CATCH_UP = 5.0  # times its predicted rise: a search that even this would not bring to the best ends
_TWIN_DISTANCE = 0.02  # from the best: a search that is nearer is on its way to the same maximum, and ends
_LEAST_CURVATURE = 1e-10  # of |s| |y|: less is rounding
_ROUNDS_BEFORE_GIVING_UP = 4  # the first slopes mislead


def ascend(
    value_and_gradient: Callable[[FloatArray], tuple[FloatArray, FloatArray]], starts: FloatArray, frozen: BoolArray
) -> FloatArray:  # (k, d), frozen (d,) or (k, d) -> (k, d)
    """Return the local maxima that the starts lead to; frozen coordinates do not move.

    A search that can no longer become the best, or that is close to the best, may end before its maximum.
    """
    k, d = starts.shape
    frozen = np.broadcast_to(frozen, starts.shape)
    low, high = np.where(frozen, starts, 0.0), np.where(frozen, starts, 1.0)
    reach = np.where(frozen, 0.0, _TWIN_DISTANCE)
    x = starts.copy()
    value, gradient = value_and_gradient(x)
    steepest = float(np.max(np.abs(gradient), where=np.isfinite(gradient), initial=0.0))
    unit = max(1.0, 1e-100 * steepest)  # squares of 1e300 are not floats
    value, g = value / unit, np.where(frozen, 0.0, gradient / unit)
    H = np.tile(np.eye(d), (k, 1, 1))
    is_new = np.ones(k, dtype=bool)  # the curvature is still unknown
    t = np.ones(k)
    p = _step(H, g, x, low, high, is_new)
    active = np.flatnonzero(_dot(p, g) > 0.0)
    for round_ in range(MOST_ROUNDS):
        if not len(active):
            break
        tried = np.clip(x[active] + t[active, None] * p[active], low[active], high[active])
        found, gradient = value_and_gradient(tried)
        found, gradient = found / unit, np.where(frozen[active], 0.0, gradient / unit)
        move = tried - x[active]
        rise, predicted = found - value[active], _dot(move, g[active])
        rises = rise >= np.maximum(_SUFFICIENT_RISE * predicted, 0.0)  # never so for nan
        short = 0.5 * predicted[~rises] / np.maximum(predicted[~rises] - rise[~rises], 1e-300)  # the parabola's top
        t[active[~rises]] *= np.fmin(np.fmax(short, 0.1), 0.5)  # a tenth for nan

        on = active[rises]
        H[on], is_new[on] = _updated(H[on], is_new[on], move[rises], g[on] - gradient[rises])
        x[on], value[on], g[on], t[on] = tried[rises], found[rises], gradient[rises], 1.0
        p[on] = _step(H[on], g[on], x[on], low[on], high[on], is_new[on])

        slope = _dot(p[active], g[active])
        is_done = (slope <= _LEAST_RISE) | (t[active] < _SHORTEST_STEP)
        if round_ >= _ROUNDS_BEFORE_GIVING_UP:
            best = np.argmax(np.fmax(value, -np.inf))  # nan never is
            is_done |= value[active] + _RISES_TO_CATCH_UP * slope < value[best]
            is_done |= (np.abs(x[active] - x[best]) <= reach[active]).all(axis=1) & (active != best)
        active = active[~is_done]
    return x


def _step(
    H: FloatArray, g: FloatArray, x: FloatArray, low: FloatArray, high: FloatArray, is_new: BoolArray
) -> FloatArray:  # (k, d)
    """Return the quasi-Newton step in the coordinates that are not held by a bound."""
    held = ((x <= low) & (g < 0.0)) | ((x >= high) & (g > 0.0))
    p = np.where(held, 0.0, np.einsum("kij,kj->ki", H, np.where(held, 0.0, g)))
    longest = np.max(np.abs(p), axis=1)
    return p * np.where(is_new & (longest > _FIRST_STEP), _FIRST_STEP / np.maximum(longest, 1e-300), 1.0)[:, None]


def _updated(
    H: FloatArray, is_new: BoolArray, s: FloatArray, y: FloatArray
) -> tuple[FloatArray, BoolArray]:  # H (k, d, d), s and y (k, d)
    """Return H after steps s that changed the gradient of -value by y, and which curvatures are still unknown."""
    sy, yy = _dot(s, y), _dot(y, y)
    is_curved = sy > _LEAST_CURVATURE * np.sqrt(yy * _dot(s, s))
    r = np.where(is_curved, 1.0 / np.where(is_curved, sy, 1.0), 0.0)
    scale = np.where(is_new & is_curved, sy / np.where(is_curved, yy, 1.0), 1.0)
    H = H * scale[:, None, None]
    Hy = np.einsum("kij,kj->ki", H, y)
    along = (r * (1.0 + r * _dot(y, Hy)))[:, None, None] * (s[:, :, None] * s[:, None, :])
    mixed = r[:, None, None] * Hy[:, :, None] * s[:, None, :]
    return H + along - mixed - mixed.transpose(0, 2, 1), is_new & ~is_curved


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:  # (k, d), (k, d) -> (k,)
    return np.asarray(np.einsum("ij,ij->i", a, b))
