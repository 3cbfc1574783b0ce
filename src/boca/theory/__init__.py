"""The theory of the BOCA paper as something to compute: gaps, gains, the good set, the sets of the proof, the bounds.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.  The tags name its equations; `docs/paper.md` has a row for each.  No strategy needs any of this.
"""

from boca.strategies.boca import Theorem, theorem_beta
from boca.theory.bounds import (
    boca_bound,
    boca_rate,
    c_1,
    cumulative_regret,
    gp_ucb_beta,
    gp_ucb_bound,
    gp_ucb_rate,
    rho_0,
    simple_regret,
    target_queries,
)
from boca.theory.cover import cells, expensive_outside, informative_region, safe_fidelities, theta
from boca.theory.gain import GreedyGain, greedy_gain, information_gain, information_gain_by_variances
from boca.theory.gap import information_gap
from boca.theory.good_set import GoodSet, dilation, dilation_radius, good_set, in_good_set
from boca.theory.lemmas import (
    covering_diameter,
    covering_size,
    deviation_bound,
    discretization_size,
    exceedance_bound,
    gaussian_tail_bound,
    least_beta,
    plays_bound,
    point_variance_bound,
    region_variance_bound,
    slope_tail,
    term_bound,
    union_bound,
    variance_sum_bound,
)

__all__ = [
    "GoodSet",
    "GreedyGain",
    "Theorem",
    "boca_bound",
    "boca_rate",
    "c_1",
    "cells",
    "covering_diameter",
    "covering_size",
    "cumulative_regret",
    "deviation_bound",
    "dilation",
    "dilation_radius",
    "discretization_size",
    "exceedance_bound",
    "expensive_outside",
    "gaussian_tail_bound",
    "good_set",
    "gp_ucb_beta",
    "gp_ucb_bound",
    "gp_ucb_rate",
    "greedy_gain",
    "in_good_set",
    "information_gain",
    "information_gain_by_variances",
    "information_gap",
    "informative_region",
    "least_beta",
    "plays_bound",
    "point_variance_bound",
    "region_variance_bound",
    "rho_0",
    "safe_fidelities",
    "simple_regret",
    "slope_tail",
    "target_queries",
    "term_bound",
    "theorem_beta",
    "theta",
    "union_bound",
    "variance_sum_bound",
]
