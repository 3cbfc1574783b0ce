"""The sets of the proof against their definitions, one point and one fidelity at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca import theory
from boca.domain.errors import InvalidInput

RNG = np.random.default_rng(1)
U = RNG.random((150, 2))
SHORT = 4.0 * np.linalg.norm(U - [0.3, 0.6], axis=1) ** 2
Z = np.linspace(0.0, 1.0, 11)
XI = theory.information_gap("se", 1.0 - Z, h=2.5)
COST = 0.1 + Z**2
RHO, KAPPA0, BETA, ALPHA = 2.1, 0.4, 2.5, 0.6


def near(i, j, radius):
    return math.dist(U[i], U[j]) <= radius


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.2])
def test_h_n_is_its_definition(radius):
    found = theory.informative_region(U, SHORT, XI, rho=RHO, kappa0=KAPPA0, beta=BETA, radius=radius)
    for k, xi in enumerate(XI):
        inner = [s < 2.0 * RHO * math.sqrt(BETA) * math.sqrt(KAPPA0) * xi for s in SHORT]
        for i in range(len(U)):
            expected = xi > max(XI) / math.sqrt(BETA) and any(inner[j] and near(i, j, radius) for j in range(len(U)))
            assert found[k, i] == expected
    assert found.any()
    assert not found.all()


def test_q_and_theta_are_their_definitions():
    seen = set()
    for rows in (range(5), range(40, 60), [int(np.argmin(SHORT))], np.argsort(SHORT)[-20:]):
        A = SHORT[list(rows)]
        safe = theory.safe_fidelities(A, XI, rho=RHO, kappa0=KAPPA0, beta=BETA)
        by_hand = [all(s >= 2.0 * RHO * math.sqrt(BETA * KAPPA0) * xi for s in A) for xi in XI]
        assert safe.tolist() == by_hand
        cheapest = min((k for k in range(len(Z)) if by_hand[k]), key=lambda k: COST[k])
        assert theory.theta(safe, COST) == cheapest
        seen.add(cheapest)
    assert len(seen) > 1
    with pytest.raises(InvalidInput, match="empty"):
        theory.theta(np.zeros(11, dtype=bool), COST)


@pytest.mark.parametrize("n", [1, 50, 1000, 10**6])
def test_the_cells_are_a_partition_whose_points_are_as_close_as_the_cover_demands(n):
    cell = theory.cells(U, n=n, alpha=ALPHA)
    per_side = math.ceil(n ** (ALPHA / 4.0))
    assert 0 <= cell.min() <= cell.max() < per_side**2
    for label in np.unique(cell):
        inside = U[cell == label]
        center = (np.floor(inside[0] * per_side) + 0.5) / per_side
        assert np.max(np.linalg.norm(inside - center, axis=1)) <= math.sqrt(2.0) / (2.0 * n ** (ALPHA / 4.0)) + 1e-12


def test_f_n_is_its_definition():
    n, settings = 400, {"rho": RHO, "kappa0": KAPPA0, "beta": BETA}
    xi_far = float(max(XI))
    inside = theory.in_good_set(SHORT, rho=RHO, kappa0=KAPPA0, xi_far=xi_far / math.sqrt(BETA) * 0.3)
    dilated = theory.dilation(U, inside, theory.dilation_radius(n, d=2, alpha=ALPHA) / 8.0)
    cell = theory.cells(U, n=n, alpha=ALPHA)
    found = theory.expensive_outside(SHORT, cell, dilated, XI, COST, **settings)
    for i in range(len(U)):
        A = cell == cell[i]
        if dilated[A].any():
            assert not found[:, i].any()
            continue
        cheapest = theory.theta(theory.safe_fidelities(SHORT[A], XI, **settings), COST)
        assert found[:, i].tolist() == [bool(c > COST[cheapest]) for c in COST]
    assert found.any()
