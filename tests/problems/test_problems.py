"""The problems against values found apart from them: by hand, from the literature, or by a second formula."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

from boca import problems
from boca.domain.budget import targets
from boca.domain.errors import InvalidInput
from boca.domain.space import Float

NAMES = ("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole", "branin")
SYNTHETIC = NAMES[2:]
SAMPLES = NAMES[:2]

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


def point(prefix, *values):
    return {f"{prefix}{i}": value for i, value in enumerate(values, start=1)}


def xs(*values):
    return point("x", *values)


def zs(*values):
    return point("z", *values)


def hartmann(x, A, P, heights=ALPHA):
    """Sum the bumps one by one, in plain Python."""
    total = 0.0
    for height, widths, centre in zip(heights, A, P, strict=True):
        distance = sum(a / 100 * (v - c / 10_000) ** 2 for v, a, c in zip(x, widths, centre, strict=True))
        total += height * math.exp(-distance)
    return total


def bump(x, widths, centre):
    return hartmann(x, (widths,), (centre,), (1.0,))


# --- what every problem declares ----------------------------------------------------------------------------


def test_the_problems_are_there_in_the_order_of_the_paper():
    assert problems.names() == (*NAMES, "supernova", "newsgroups", "newsgroups-small")


@pytest.mark.parametrize(
    ("name", "d", "p", "budget", "noise_variance"),
    [
        ("gp-smooth", 1, 1, 30, 0.05),
        ("gp-rough", 1, 1, 30, 0.05),
        ("currin", 2, 1, 50, 0.5),
        ("hartmann3", 3, 2, 100, 0.01),
        ("hartmann6", 6, 4, 200, 0.05),
        ("borehole", 8, 1, 200, 5.0),
        ("branin", 2, 3, 50, 0.05),
    ],
)
def test_sizes_capital_and_noise(name, d, p, budget, noise_variance):
    bench = problems.get(name)
    assert bench.name == name
    assert bench.seed == 0
    assert list(bench.problem.space) == [f"x{j}" for j in range(1, d + 1)]
    assert dict(bench.problem.fidelity) == {f"z{i}": Float(0.0, 1.0) for i in range(1, p + 1)}
    assert bench.problem.target == zs(*[1.0] * p)
    assert bench.problem.direction == "maximize"
    assert bench.budget == targets(budget)
    assert bench.noise_variance == noise_variance


@pytest.mark.parametrize("name", ["gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6"])
def test_domains_that_are_unit_cubes(name):
    assert set(problems.get(name).problem.space.values()) == {Float(0.0, 1.0)}


def test_domains_in_the_units_of_the_paper():
    assert list(problems.get("branin").problem.space.values()) == [Float(-5, 10), Float(0, 15)]
    assert list(problems.get("borehole").problem.space.values()) == [
        Float(0.05, 0.15),
        Float(100, 50e3),
        Float(63.07e3, 115.6e3),
        Float(990, 1110),
        Float(63.1, 116),
        Float(700, 820),
        Float(1120, 1680),
        Float(9855, 12045),
    ]


@pytest.mark.parametrize(
    ("name", "z", "expected"),
    [
        ("gp-smooth", (0.5,), 1.7),
        ("gp-smooth", (1.0,), 6.2),
        ("gp-rough", (0.0,), 0.2),
        ("gp-rough", (0.5,), 1.7),
        ("currin", (0.0,), 0.1),
        ("currin", (0.5,), 0.35),
        ("currin", (1.0,), 1.1),
        ("hartmann3", (0.0, 1.0), 0.05),
        ("hartmann3", (0.5, 1.0), 0.05 + 0.95 / 8),
        ("hartmann3", (1.0, 0.5), 0.05 + 0.95 / 4),
        ("hartmann3", (1.0, 1.0), 1.0),
        ("hartmann6", (0.25, 1.0, 1.0, 1.0), 0.05 + 0.95 / 64),
        ("hartmann6", (1.0, 0.25, 1.0, 1.0), 0.05 + 0.95 / 16),
        ("hartmann6", (1.0, 1.0, 0.25, 1.0), 0.05 + 0.95 / 8),
        ("hartmann6", (1.0, 1.0, 1.0, 0.25), 0.05 + 0.95 / 4),
        ("hartmann6", (0.5, 0.5, 0.25, 0.5), 0.05 + 0.95 / 512),
        ("hartmann6", (1.0, 1.0, 1.0, 1.0), 1.0),
        ("borehole", (0.0,), 0.1),
        ("borehole", (0.25,), 0.225),
        ("borehole", (1.0,), 1.1),
        ("branin", (0.25, 1.0, 1.0), 0.05 + 1 / 64),
        ("branin", (1.0, 0.25, 1.0), 0.05 + 1 / 16),
        ("branin", (1.0, 1.0, 0.25), 0.05 + 1 / 8),
        ("branin", (1.0, 1.0, 1.0), 1.05),
    ],
)
def test_costs(name, z, expected):
    assert problems.get(name).problem.cost(zs(*z)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_without_z_the_value_is_the_one_at_the_target(name):
    bench = problems.get(name, seed=4)
    x = bench.problem.space.from_unit(np.full(len(bench.problem.space), 0.37))
    assert bench.value(x) == bench.value(x, bench.problem.target)
    assert bench.value(x) != bench.value(x, bench.problem.fidelity.from_unit(np.zeros(9)))
    assert type(bench.value(x)) is float


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_names_in_a_point_does_not_matter(name):
    bench = problems.get(name)
    x = bench.problem.space.from_unit(np.linspace(0.2, 0.8, len(bench.problem.space)))
    z = bench.problem.fidelity.from_unit(np.linspace(0.1, 0.7, len(bench.problem.fidelity)))
    turned = dict(reversed(x.items())), dict(reversed(z.items()))
    assert bench.value(*turned) == bench.value(x, z)
    assert bench.problem.cost(turned[1]) == bench.problem.cost(z)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_travels_to_another_process(name):
    bench = problems.get(name, seed=2)
    copy = pickle.loads(pickle.dumps(bench))
    assert copy.value(bench.maximizer) == bench.value(bench.maximizer)
    assert copy.problem.target_cost == bench.problem.target_cost


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_seed_changes_nothing_where_nothing_is_drawn(name):
    first, second = problems.get(name, seed=0), problems.get(name, seed=7)
    x = first.problem.space.from_unit(np.full(len(first.problem.space), 0.3))
    assert first.value(x) == second.value(x)
    assert (first.seed, second.seed) == (0, 7)
    assert first.hyperparameters is None


# --- values -------------------------------------------------------------------------------------------------


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


# --- optima -------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", SAMPLES)
def test_the_optimum_of_a_sample_is_the_largest_value_on_a_fine_grid_refined(name):
    from scipy.optimize import minimize_scalar

    at_ends = 0
    for seed in range(12):
        bench = problems.get(name, seed=seed)
        grid = np.linspace(0.0, 1.0, 1001)
        values = [bench.value(xs(x)) for x in grid]
        top = int(np.argmax(values))
        inner = minimize_scalar(
            lambda x, bench=bench: -bench.value(xs(x)),
            bounds=(grid[max(top - 1, 0)], grid[min(top + 1, 1000)]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert bench.optimum == pytest.approx(max(max(values), -inner.fun), abs=1e-12)
        at_ends += bench.maximizer["x1"] in (0.0, 1.0)
    assert at_ends > 0  # otherwise this seed range would not show that the ends are looked at


# --- noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_observations_scatter_about_the_value_with_the_declared_variance(name):
    bench = problems.get(name)
    x = bench.problem.space.from_unit(np.full(len(bench.problem.space), 0.6))
    z = bench.problem.fidelity.from_unit(np.full(len(bench.problem.fidelity), 0.4))
    rng = np.random.default_rng(11)
    n, variance = 10_000, bench.noise_variance
    errors = np.array([bench.observe(x, z, rng) for _ in range(n)]) - bench.value(x, z)
    assert abs(errors.mean()) < 5 * math.sqrt(variance / n)
    assert abs(errors.var() - variance) < 5 * variance * math.sqrt(2 / n)


def test_an_observation_is_the_value_plus_one_normal_number():
    bench = problems.get("currin")
    x, z = xs(0.3, 0.4), zs(0.7)
    noise = math.sqrt(0.5) * np.random.default_rng(3).standard_normal()
    assert bench.observe(x, z, np.random.default_rng(3)) == bench.value(x, z) + noise
    assert bench.observe(x, None, np.random.default_rng(3)) == bench.value(x) + noise
    with pytest.raises(InvalidInput, match="rng must be a Generator; got None"):
        bench.observe(x, z, None)


# --- draws from the process ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draws():
    """Many draws of either kind."""
    return {name: [problems.get(name, seed=seed) for seed in range(400)] for name in SAMPLES}


def table(benches, z, at):  # (seeds, points)
    return np.array([[bench.value(xs(x), zs(z)) for x in at] for bench in benches])


APART = (0.0, 17 / 49, 34 / 49, 1.0)  # nodes whose values are independent: at most exp(-6) between neighbours


@pytest.mark.parametrize("name", SAMPLES)
def test_draws_have_mean_zero_variance_one_and_the_kernel_in_x(draws, name):
    values = table(draws[name], 1.0, APART)
    n = values.size
    assert abs(values.mean()) < 5 / math.sqrt(n)
    assert abs((values**2).mean() - 1) < 5 * math.sqrt(2 / n)
    for steps in (3, 5, 8):
        beside = table(draws[name], 1.0, [abs(x - steps / 49) for x in APART])
        expected = math.exp(-((steps / 4.9) ** 2) / 2)  # h_x = 0.1 is 4.9 nodes
        assert abs((values * beside).mean() - expected) < 5 * math.sqrt((1 + expected**2) / n)


def test_fidelities_of_smooth_draws_agree_and_those_of_rough_draws_do_not(draws):
    def correlation(name, z):
        target, other = table(draws[name], 1.0, APART), table(draws[name], z, APART)
        return np.corrcoef(target.ravel(), other.ravel())[0, 1]

    s_e = 1 / math.sqrt(4 * 400)
    assert correlation("gp-smooth", 0.9) > 0.99  # exp(-0.005) = 0.995
    assert correlation("gp-smooth", 0.0) == pytest.approx(math.exp(-0.5), abs=5 * s_e)
    assert abs(correlation("gp-rough", 0.9)) < 5 * s_e
    assert correlation("gp-rough", 48 / 49) == pytest.approx(math.exp(-((100 / 49) ** 2) / 2), abs=5 * s_e)


@pytest.mark.parametrize("name", SAMPLES)
def test_between_the_nodes_a_draw_is_the_bicubic_spline(name):
    from scipy.interpolate import CubicSpline

    bench = problems.get(name, seed=5)
    nodes = np.linspace(0.0, 1.0, 50)
    G = np.array([[bench.value(xs(x), zs(z)) for x in nodes] for z in nodes])
    for z, x in np.random.default_rng(0).random((20, 2)):
        expected = CubicSpline(nodes, CubicSpline(nodes, G, axis=1)(x))(z)  # first along x, then along z
        assert bench.value(xs(x), zs(z)) == pytest.approx(float(expected), abs=1e-10)


@pytest.mark.parametrize(("name", "h_z"), [("gp-smooth", 1.0), ("gp-rough", 0.01)])
def test_the_process_is_told(name, h_z):
    expected = {"kappa0": 1.0, "eta2": 0.05, "mean": 0.0, "h_x": [0.1], "h_z": [h_z]}
    assert problems.get(name, seed=3).hyperparameters == expected


def test_a_seed_is_a_draw():
    x, z = xs(0.123), zs(0.456)
    for name in SAMPLES:
        again = [problems.get(name, seed=seed).value(x, z) for seed in (0, 1, 0, 1)]
        assert again[:2] == again[2:]
        assert again[0] != again[1]


def test_smooth_and_rough_of_one_seed_are_different_draws(draws):
    smooth, rough = (table(draws[name], 1.0, APART).ravel() for name in SAMPLES)
    assert abs(np.corrcoef(smooth, rough)[0, 1]) < 5 / math.sqrt(len(smooth))


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Branin", "", "rosenbrock", None, ["branin"]])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(InvalidInput, match="gp-smooth, gp-rough, currin, hartmann3, hartmann6, borehole, branin"):
        problems.get(name)


@pytest.mark.parametrize("seed", [-1, 0.5, "1", None, True])
def test_a_seed_that_is_not_a_natural_number_is_refused(seed):
    with pytest.raises(InvalidInput, match="seed"):
        problems.get("branin", seed=seed)


@pytest.mark.parametrize(
    ("x", "z"),
    [
        ({"x1": 0.0}, None),
        ({"x1": 0.0, "x2": 0.0, "x3": 0.0}, None),
        ((0.0, 0.0), None),
        (xs(0.0, 15.1), None),
        (xs(math.nan, 0.0), None),
        (xs("0", 0.0), None),
        (xs(0.0, 0.0), zs(1.0, 1.0)),
        (xs(0.0, 0.0), zs(1.0, 1.0, 1.1)),
        (xs(0.0, 0.0), {}),
        (xs(0.0, 0.0), (1.0, 1.0, 1.0)),
    ],
)
def test_points_outside_the_problem_are_refused(x, z):
    bench = problems.get("branin")
    with pytest.raises(InvalidInput):
        bench.value(x, z)
    with pytest.raises(InvalidInput):
        bench.observe(x, z, np.random.default_rng(0))


def test_a_benchmark_cannot_be_changed():
    with pytest.raises(AttributeError):
        problems.get("branin").optimum = 0.0


def test_the_spline_code_is_loaded_only_for_a_draw():
    code = "import sys, boca.problems; boca.problems.get('branin'); print('scipy.interpolate' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
