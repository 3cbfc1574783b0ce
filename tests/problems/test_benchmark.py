"""A benchmark gives values and observations of valid points, and travels to another process."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from boca import problems
from boca.domain.errors import InvalidInput
from problems.names import NAMES, xs, zs


@pytest.mark.parametrize("name", NAMES)
def test_without_z_the_value_is_the_one_at_the_target(name):
    bench = problems.get(name, seed=4)
    x = bench.problem.space.from_unit(np.full(len(bench.problem.space), 0.37))
    assert bench.value(x) == bench.value(x, bench.problem.target)
    assert bench.value(x) != bench.value(x, bench.problem.fidelity.from_unit(np.zeros(len(bench.problem.fidelity))))
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
