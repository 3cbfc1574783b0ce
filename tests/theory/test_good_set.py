"""The good set of a study, against its definition, and the paper's central claim on a real run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca import theory
from boca.domain.errors import InvalidInput

KNOWN = {"kappa0": 1.0, "eta2": 0.05, "mean": 0.0, "h_x": [0.1], "h_z": [1.0]}


@pytest.fixture(scope="module")
def run():
    """A short run of the paper's algorithm on a sample of a known GP, and the benchmark."""
    bench = boca.problems.get("gp-smooth", seed=1)
    strategy = boca.Boca.paper(maximizer="sobol", hyperparameters=bench.hyperparameters)
    optimizer = boca.Optimizer(bench.problem, budget=boca.targets(15), strategy=strategy, seed=1)
    rng = np.random.default_rng(0)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
    return bench, optimizer


def test_a_point_is_in_the_good_set_up_to_its_width():
    short = np.array([0.0, 0.5, 1.2, 1.2000001, 3.0])
    found = theory.in_good_set(short, rho=2.0, kappa0=4.0, xi_far=0.15)
    assert found.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_dilation_has_the_points_with_a_member_within_its_radius(d):
    U = np.random.default_rng(d).random((200, d))
    inside = np.linalg.norm(U - 0.5, axis=1) < 0.2
    radius = theory.dilation_radius(500, d=d, alpha=0.5)
    assert radius == pytest.approx(math.sqrt(d) * 500 ** (-0.25 / d))
    for r in (0.0, 0.1, radius):
        by_hand = [any(math.dist(u, v) <= r for v in U[inside]) for u in U]
        assert theory.dilation(U, inside, r).tolist() == by_hand
    assert not theory.dilation(U, np.zeros(200, bool), radius).any()


def test_the_good_set_of_a_study_is_computed_from_its_kernel_and_the_true_function(run):
    bench, optimizer = run
    found = theory.good_set(optimizer, bench.value, rho=3.0, alpha=0.5, points=512)
    far = math.sqrt(1.0 - math.exp(-1.0))  # phi(1) = exp(-1/2)
    assert found.xi_far == pytest.approx(far)
    assert found.width == pytest.approx(2.0 * 3.0 * far)
    f = np.array([bench.value(bench.problem.space.from_unit(u)) for u in found.U])
    best = max(f.max(), max(bench.value(t.x) for t in optimizer.history if bench.problem.is_target(t.z)))
    np.testing.assert_allclose(found.short, best - f, atol=1e-12)
    np.testing.assert_array_equal(found.inside, best - f <= found.width)
    assert found.volume == np.mean(found.inside)
    assert found.radius == pytest.approx(theory.dilation_radius(len(optimizer.history), d=1, alpha=0.5))
    chosen = [t for t in optimizer.history if t.phase == "model" and bench.problem.is_target(t.z)]
    assert len(found.queries) == len(chosen) > 0
    inside = [best - bench.value(t.x) <= found.width for t in chosen]
    assert found.queries_inside.tolist() == inside
    assert found.share_inside == np.mean(inside)
    assert found.dilated_volume >= found.volume


def test_without_the_true_function_the_mean_stands_in(run):
    bench, optimizer = run
    found = theory.good_set(optimizer, points=64)
    model = optimizer.strategy.posterior(bench.problem, optimizer.history)
    everywhere = np.vstack([found.U, found.queries])
    mean = np.array([model.value_as_told(m) for m in model.means(everywhere)])
    np.testing.assert_allclose(found.short, mean.max() - mean[:64])


def test_a_minimized_problem_has_the_same_good_set(run):
    bench, optimizer = run
    mirrored = boca.Problem(bench.problem.space, bench.problem.fidelity, cost=bench.problem.cost, direction="minimize")
    strategy = boca.Boca.paper(maximizer="sobol", hyperparameters=bench.hyperparameters)
    other = boca.Optimizer(mirrored, budget=None, strategy=strategy, seed=1)
    for trial in optimizer.history:
        other.add(trial.x, trial.z, -trial.value)
    found = theory.good_set(other, lambda x: -bench.value(x), points=256)
    same = theory.good_set(optimizer, bench.value, points=256)
    assert found.width == pytest.approx(same.width)
    np.testing.assert_array_equal(found.inside[found.short > 0], same.inside[found.short > 0])


def test_what_has_no_good_set_is_refused(run):
    bench, optimizer = run
    with pytest.raises(InvalidInput, match="rho_0"):
        theory.good_set(optimizer, rho=1.9)
    for strategy, problem in ((boca.Boca(), bench.problem), (boca.Boca(), boca.Problem(bench.problem.space))):
        with pytest.raises(InvalidInput, match="must have results"):
            theory.good_set(boca.Optimizer(problem, budget=boca.targets(5), strategy=strategy, seed=0))


def test_most_target_queries_of_the_paper_on_currin_are_in_a_small_good_set():
    """The claim behind the theorem, with a fixed GP like the one learned: most are in a small part of the domain."""
    bench = boca.problems.get("currin")
    gp = {"kappa0": 30.0, "eta2": 0.5, "mean": 8.0, "h_x": [0.35, 0.5], "h_z": [10.0]}
    strategy = boca.Boca.paper(maximizer="sobol", hyperparameters=gp)
    optimizer = boca.Optimizer(bench.problem, budget=bench.budget, strategy=strategy, seed=0)
    rng = np.random.default_rng(0)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
    found = theory.good_set(optimizer, bench.value, points=2048)
    assert found.volume < 0.2
    assert found.share_inside > 0.8
    assert len(found.queries) >= 10
