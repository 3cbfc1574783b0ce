"""The test functions against values by hand, from the literature, or by a second formula."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boca import problems
from problems.names import NAMES, SYNTHETIC, xs, zs

# The Hartmann constants as integers, so that a slip in the library's decimals shows: A in 1e-2, P in 1e-4.
ALPHA = (1.0, 1.2, 3.0, 3.2)
A3 = ((300, 1000, 3000), (10, 1000, 3500), (300, 1000, 3000), (10, 1000, 3500))
P3 = ((3689, 1170, 2673), (4699, 4387, 7470), (1091, 8732, 5547), (381, 5743, 8828))
A6 = (
    (1000, 300, 1700, 350, 170, 800),
    (5, 1000, 1700, 10, 800, 1400),
    (300, 350, 170, 1000, 1700, 800),
    (1700, 800, 5, 1000, 10, 1400),
)
P6 = (
    (1312, 1696, 5569, 124, 8283, 5886),
    (2329, 4135, 8307, 3736, 1004, 9991),
    (2348, 1451, 3522, 2883, 3047, 6650),
    (4047, 8828, 8732, 5743, 1091, 381),
)


def hartmann(x, A, P, heights=ALPHA):
    """Sum the bumps one by one, in plain Python."""
    total = 0.0
    for height, widths, centre in zip(heights, A, P, strict=True):
        distance = sum(a / 100 * (v - c / 10_000) ** 2 for v, a, c in zip(x, widths, centre, strict=True))
        total += height * math.exp(-distance)
    return total


def bump(x, widths, centre):
    return hartmann(x, (widths,), (centre,), (1.0,))


@pytest.mark.parametrize(
    ("x", "z", "expected"),
    [
        ((0.0, 0.0), 1.0, 3.0),  # 60 / 20
        ((0.0, 0.0), 0.0, 3.0),  # on the edge x2 = 0 the fidelity has no say
        ((1.0, 0.5), 1.0, 6352 / 624 * (1 - math.exp(-1))),
        ((1.0, 0.5), 0.5, 6352 / 624 * (1 - 0.95 * math.exp(-1))),
        ((1.0, 0.5), 0.0, 6352 / 624 * (1 - 0.9 * math.exp(-1))),
        ((0.5, 1.0), 1.0, 1868.5 / 159.5 * (1 - math.exp(-0.5))),
        ((0.5, 1.0), 0.2, 1868.5 / 159.5 * (1 - 0.92 * math.exp(-0.5))),
        ((0.0, 5e-324), 1.0, 3.0),  # the smallest positive double
        ((0.0, -0.0), 1.0, 3.0),
    ],
)
def test_currin_by_hand(x, z, expected):
    assert problems.get("currin").value(xs(*x), zs(z)) == pytest.approx(expected, rel=1e-14)


def test_currin_at_the_maximum_that_the_literature_prints():
    bench = problems.get("currin")
    assert bench.optimum == pytest.approx(13.7987, abs=5e-5)
    assert bench.value(xs(0.2167, 0.0228)) == pytest.approx(13.7987, abs=5e-5)
    assert bench.maximizer["x1"] == pytest.approx(0.2167, abs=5e-5)


@pytest.mark.parametrize(("name", "A", "P"), [("hartmann3", A3, P3), ("hartmann6", A6, P6)])
def test_hartmann_is_the_textbook_function_at_the_target(name, A, P):
    bench = problems.get(name)
    for x in np.random.default_rng(0).random((20, len(A[0]))):
        assert bench.value(xs(*x)) == pytest.approx(hartmann(x, A, P), rel=1e-13)


def test_hartmann_at_the_maxima_that_the_literature_prints():
    three = problems.get("hartmann3").value(xs(0.114614, 0.555649, 0.852547))
    six = problems.get("hartmann6").value(xs(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573))
    assert three == pytest.approx(3.86278, abs=5e-6)
    assert six == pytest.approx(3.32237, abs=5e-6)


@pytest.mark.parametrize(("name", "A", "P", "p"), [("hartmann3", A3, P3, 2), ("hartmann6", A6, P6, 4)])
def test_hartmann_loses_a_tenth_of_a_bump_for_each_fidelity(name, A, P, p):
    bench = problems.get(name)
    for i in range(p):
        centre = [c / 10_000 for c in P[i]]
        z = [1.0] * p
        z[i] = 0.0  # at the centre of bump i its exponential is one
        assert bench.value(xs(*centre)) - bench.value(xs(*centre), zs(*z)) == pytest.approx(0.1, rel=1e-12)


def test_hartmann_between_the_fidelities():
    x3, x6 = (0.2, 0.5, 0.7), (0.2, 0.1, 0.5, 0.3, 0.4, 0.6)
    three = problems.get("hartmann3").value(xs(*x3), zs(0.5, 0.2))
    six = problems.get("hartmann6").value(xs(*x6), zs(0.9, 0.0, 0.5, 0.25))
    lost3 = sum(a * bump(x3, A3[i], P3[i]) for i, a in enumerate((0.05, 0.08)))
    lost6 = sum(a * bump(x6, A6[i], P6[i]) for i, a in enumerate((0.01, 0.1, 0.05, 0.075)))
    assert three == pytest.approx(hartmann(x3, A3, P3) - lost3, rel=1e-13)
    assert six == pytest.approx(hartmann(x6, A6, P6) - lost6, rel=1e-13)


def test_borehole_by_hand():
    # log(x2/x1) = 8, 2 x7 x3/(8 x1^2 x8) = 350,000, x3/x5 = 1,000, x3 (x4 - x6) = 3e7
    x = xs(0.1, 0.1 * math.exp(8), 1e5, 1050.0, 100.0, 750.0, 1400.0, 1e4)
    high = 6e7 * math.pi / (8 * 351_001)
    low = 15e7 / (8 * 351_001.5)
    bench = problems.get("borehole")
    assert bench.value(x) == pytest.approx(high, rel=1e-13)
    assert bench.value(x, zs(0.0)) == pytest.approx(low, rel=1e-13)
    assert bench.value(x, zs(0.25)) == pytest.approx(0.25 * high + 0.75 * low, rel=1e-13)


def test_borehole_is_the_textbook_function_at_the_target():
    bench = problems.get("borehole")
    for u in np.random.default_rng(0).random((20, 8)):
        x = bench.problem.space.from_unit(u)
        rw, r, Tu, Hu, Tl, Hl, L, Kw = x.values()
        resistance = math.log(r / rw) * (1 / Tu + 1 / Tl) + 2 * L / (rw * rw * Kw)
        assert bench.value(x) == pytest.approx(2 * math.pi * (Hu - Hl) / resistance, rel=1e-12)


@pytest.mark.parametrize(
    ("x", "z", "expected"),
    [
        ((0.0, 0.0), (1, 1, 1), 1.25 / math.pi - 56),  # g = 36 + 10 (1 - 1/(8 pi)) + 10
        ((0.0, 6.0), (1, 1, 1), 1.25 / math.pi - 20),
        ((-math.pi, 12.275), (1, 1, 1), -1.25 / math.pi),
        ((3 * math.pi, 2.475), (1, 1, 1), -1.25 / math.pi),
        ((math.pi, 2.275), (0, 1, 1), -1.25 / math.pi - (0.01 * math.pi**2) ** 2),
        ((math.pi, 2.275), (1, 0, 1), -1.25 / math.pi - (0.1 * math.pi) ** 2),
        ((math.pi, 2.275), (1, 1, 0), -1.25 / math.pi - 0.5),
        ((0.0, 6.0), (1, 1, 0), 1.25 / math.pi - 20 + 0.5),
        (
            (math.pi, 2.0),
            (0.5, 0.25, 0.8),
            -((-0.275 + 0.005 * math.pi**2 - 0.075 * math.pi) ** 2) - 1.25 / math.pi - 0.1,
        ),
    ],
)
def test_branin_by_hand(x, z, expected):
    assert problems.get("branin").value(xs(*x), zs(*z)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_maximizer_attains_the_optimum(name, seed):
    bench = problems.get(name, seed=seed)
    assert abs(bench.value(bench.maximizer) - bench.optimum) <= 1e-9 * max(1.0, abs(bench.optimum))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_no_search_finds_more_than_the_optimum_and_one_finds_it(name):
    from scipy.optimize import differential_evolution, minimize

    bench = problems.get(name)
    space = bench.problem.space
    box = [(0.0, 1.0)] * len(space)

    def loss(u):
        return -bench.value(space.from_unit(u))

    starts = np.random.default_rng(1).random((40, len(space)))
    found = [-minimize(loss, u, bounds=box, method="L-BFGS-B").fun for u in starts]
    found.append(-differential_evolution(loss, box, seed=0, maxiter=60, popsize=8).fun)
    assert max(found) <= bench.optimum + 1e-9
    assert max(found) == pytest.approx(bench.optimum, abs=1e-5)


def test_the_corner_of_borehole_is_the_best_of_all_corners():
    bench = problems.get("borehole")
    corners = itertools.product(*((p.low, p.high) for p in bench.problem.space.values()))
    best = max(corners, key=lambda corner: bench.value(xs(*corner)))
    assert bench.maximizer == xs(*best)


def test_every_maximizer_of_branin_attains_its_optimum():
    bench = problems.get("branin")
    assert bench.optimum == pytest.approx(-0.397887, abs=5e-7)
    for x in (-math.pi, 12.275), (math.pi, 2.275), (3 * math.pi, 2.475):
        assert bench.value(xs(*x)) == pytest.approx(bench.optimum, abs=1e-12)
