"""Probes: queries that would explore at the target, made at about an eighth of its cost early in a run.

Half of the turns at the target exploit, and half explore.  While a budget is young, a point that is explored at the
target costs as much as eight that are explored below it.  A probe also tests the verdict that no cheaper fidelity tells
enough: a model that gave them up after a few results of the cheapest would never look again.
"""

from __future__ import annotations

import math

import numpy as np

from boca.domain.space import FloatArray

_COST = 1.0 / 8.0  # of the target, about: cheap, and seldom useless
_FROM, _TO = 1.0 / 12.0, 1.0 / 4.0  # of the target's cost: cheaper ones tell too little, costlier ones save too little
_ALIKE = 1.5  # ratio of costs to an eighth: the fidelities within it are preferred


def probe_index(cost_ratio: FloatArray, xi: FloatArray) -> int | None:  # (m,), (m,)
    """Return the fidelity of a probe: the smallest gap at about an eighth of the cost; None if there is none near it.

    Args:
        cost_ratio: the cost of every fidelity as a share of the target's.
        xi: the information gap of every fidelity.
    """
    near = np.flatnonzero((cost_ratio >= _FROM) & (cost_ratio <= _TO))
    if not len(near):
        return None
    is_far = np.abs(np.log(cost_ratio[near] / _COST)) > math.log(_ALIKE)
    return int(near[np.lexsort((near, xi[near], is_far))[0]])
