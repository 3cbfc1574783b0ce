"""What every problem declares: its size, budget, domain and cost; and which names there are."""

from __future__ import annotations

import numpy as np
import pytest

from boca import problems
from boca.domain.budget import targets
from boca.domain.errors import InvalidInput
from boca.domain.space import Float
from problems.names import NAMES, SYNTHETIC, zs


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
def test_sizes_budget_and_noise(name, d, p, budget, noise_variance):
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


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_seed_changes_nothing_where_nothing_is_drawn(name):
    first, second = problems.get(name, seed=0), problems.get(name, seed=7)
    x = first.problem.space.from_unit(np.full(len(first.problem.space), 0.3))
    assert first.value(x) == second.value(x)
    assert (first.seed, second.seed) == (0, 7)
    assert first.hyperparameters is None


@pytest.mark.parametrize("name", ["Branin", "", "rosenbrock", None, ["branin"]])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(InvalidInput, match="gp-smooth, gp-rough, currin, hartmann3, hartmann6, borehole, branin"):
        problems.get(name)


@pytest.mark.parametrize("seed", [-1, 0.5, "1", None, True])
def test_a_seed_that_is_not_a_natural_number_is_refused(seed):
    with pytest.raises(InvalidInput, match="seed"):
        problems.get("branin", seed=seed)
