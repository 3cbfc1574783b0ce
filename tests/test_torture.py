"""Nasty results in, sane suggestions out: whatever is told, every ask is a valid point with finite reasons.

Warnings are errors here, so a division by zero or an overflow on the way fails a test as well.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import boca

STRATEGIES = {
    "boca": boca.Boca(),
    "paper": boca.Boca.paper(maximizer="sobol"),
    "gp_ucb": boca.GPUCB(maximizer="sobol"),
    "gp_ei": boca.GPEI(maximizer="sobol"),
}
EVERY = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)

NASTY = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.0 + 1e-15,
    0.1,
    1e300,
    -1e300,
    1.7e308,
    -1.7e308,
    1e-300,
    -1e-300,
    2.2250738585072014e-308,
]
values = st.one_of(st.sampled_from(NASTY), st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))


def torture(examples):
    """Return settings for slow, repeatable examples; a failure is reported as it was found."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


SPACE = boca.Space(x=boca.Float(-3.0, 5.0), y=boca.Float(1e-4, 1e2, log=True))
FIDELITY = boca.Space(z=boca.Float(0.0, 1.0))
MIXED = boca.Space(kind=boca.Choice(["u", "v"]), n=boca.Int(0, 6), x=boca.Float(0.0, 1.0))
SOURCES = boca.Space(s=boca.Choice(["a", "b"]), N=boca.Int(1, 50))


def plain(direction="maximize"):
    return boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["z"], direction=direction)


def mixed(direction="maximize"):
    return boca.Problem(
        MIXED, SOURCES, cost=lambda z: z["N"] * (0.5 if z["s"] == "a" else 1.0), target={"s": "b"}, direction=direction
    )


def alone(direction="maximize"):
    return boca.Problem(SPACE, direction=direction)


PROBLEMS = [plain, mixed, alone]


def check(problem, trial):
    """Whether a suggestion is a point of the problem with finite, storable reasons."""
    assert problem.space.validate(trial.x, "x") == trial.x
    assert problem.fidelity.validate(trial.z, "z") == trial.z
    assert 0.0 < trial.cost < math.inf
    json.dumps(trial.why, allow_nan=False)
    assert trial.why["reason"]
    if trial.phase in ("model", "final"):
        assert trial.why["std"] >= 0.0
        assert problem.cost(trial.z) <= problem.cost(problem.target)


def point(space, u):
    return space.from_unit(space.snap(np.array(u)[None, :])[0])


def ask_after(problem, strategy, results, *, asks=2, seed=0):
    """Bring results, enough to end the start, ask some more, tell the same values to them."""
    optimizer = boca.Optimizer(problem, budget=boca.targets(20), strategy=strategy, seed=seed)
    for x, z, value in results:
        optimizer.add(x, z, value, cost=3.0 * problem.target_cost)
    for i in range(asks):
        trial = optimizer.ask()
        assert trial is not None
        check(problem, trial)
        if len(results) >= 2:
            assert trial.phase in ("model", "final")
        if i < asks - 1:
            optimizer.tell(trial, results[i % len(results)][2])
    recommendation = optimizer.recommend()
    assert math.isfinite(recommendation.mean)
    assert math.isfinite(recommendation.std)
    return optimizer


@EVERY
@torture(20)
@given(
    make=st.sampled_from(PROBLEMS),
    direction=st.sampled_from(["maximize", "minimize"]),
    told=st.lists(values, min_size=2, max_size=7),
    seed=st.integers(0, 5),
)
def test_any_finite_values_at_scattered_points(strategy, make, direction, told, seed):
    problem = make(direction)
    rng = np.random.default_rng(seed)
    d, p = len(problem.space), len(problem.fidelity)
    results = [(point(problem.space, rng.random(d)), point(problem.fidelity, rng.random(p)), value) for value in told]
    ask_after(problem, strategy, results, seed=seed)


@EVERY
@torture(12)
@given(told=st.lists(values, min_size=2, max_size=8), make=st.sampled_from(PROBLEMS))
def test_one_point_only_told_again_and_again(strategy, told, make):
    problem = make()
    x, z = point(problem.space, [0.3] * len(problem.space)), dict(problem.target)
    ask_after(problem, strategy, [(x, z, value) for value in told])


@EVERY
@torture(10)
@given(value=values, count=st.integers(1, 9), make=st.sampled_from(PROBLEMS))
def test_a_constant_function(strategy, value, count, make):
    problem = make()
    rng = np.random.default_rng(count)
    results = [
        (
            point(problem.space, rng.random(len(problem.space))),
            point(problem.fidelity, rng.random(len(problem.fidelity))),
            value,
        )
        for _ in range(count)
    ]
    ask_after(problem, strategy, results)


@EVERY
@torture(12)
@given(
    told=st.lists(values, min_size=3, max_size=7),
    gap=st.sampled_from([0.0, 1e-16, 1e-12, 1e-9]),
    direction=st.sampled_from(["maximize", "minimize"]),
)
def test_points_that_lie_almost_on_each_other(strategy, told, gap, direction):
    problem = plain(direction)
    results = [({"x": 1.0 + i * gap, "y": 0.5}, {"z": 0.5 + i * gap}, value) for i, value in enumerate(told)]
    ask_after(problem, strategy, results)


@EVERY
@torture(8)
@given(told=st.lists(values, min_size=2, max_size=6), seed=st.integers(0, 5))
def test_twenty_dimensions_and_few_points(strategy, told, seed):
    space = boca.Space({f"x{i}": boca.Float(0.0, 1.0) for i in range(20)})
    problem = boca.Problem(space, FIDELITY, cost=lambda z: 0.1 + z["z"])
    rng = np.random.default_rng(seed)
    results = [(point(space, rng.random(20)), {"z": float(rng.random())}, value) for value in told]
    ask_after(problem, strategy, results)


@EVERY
@torture(10)
@given(
    failures=st.integers(1, 6),
    told=st.lists(values, min_size=1, max_size=4),
    make=st.sampled_from(PROBLEMS),
    late=st.booleans(),
)
def test_all_failed_and_then_fine(strategy, failures, told, make, late):
    problem = make()
    optimizer = boca.Optimizer(problem, budget=boca.targets(30), strategy=strategy, seed=failures)
    for _ in range(failures):
        trial = optimizer.ask()
        check(problem, trial)
        optimizer.fail(trial, "no luck")
    for value in told:
        trial = optimizer.ask()
        check(problem, trial)
        optimizer.tell(trial, value)
    for _ in range(3):
        trial = optimizer.ask()
        check(problem, trial)
        if late:
            optimizer.fail(trial, "no luck again")
        else:
            optimizer.tell(trial, told[0])


@EVERY
@torture(12)
@given(
    events=st.lists(
        st.tuples(st.sampled_from(["tell", "fail", "hold", "noise"]), values, st.sampled_from([0.0, 1e-12, 1.0, 1e6])),
        min_size=4,
        max_size=10,
    ),
    make=st.sampled_from(PROBLEMS),
)
def test_any_order_of_tells_failures_and_trials_held_back(strategy, events, make):
    problem = make()
    optimizer = boca.Optimizer(problem, budget=boca.targets(8), strategy=strategy, seed=len(events))
    held = []
    for event, value, noise in events:
        trial = optimizer.ask()
        if trial is None:
            break
        check(problem, trial)
        held.append(trial)
        if event == "hold":
            continue
        for out in reversed(held):
            if event == "fail":
                optimizer.fail(out, "no luck")
            else:
                optimizer.tell(out, value, noise=noise if event == "noise" else None)
        held = []


@EVERY
@pytest.mark.parametrize("far", [1e20, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("near", [1.0, 1e-300])
def test_a_result_far_beyond_all_that_the_last_fit_has_seen(strategy, far, near):
    """Between two fits, results are standardised as at the last one: one from another world must not overflow."""
    problem = plain()
    optimizer = boca.Optimizer(problem, budget=boca.targets(30), strategy=strategy, seed=0)
    for i in range(18):
        optimizer.add({"x": i * 0.4 - 3.0, "y": 10.0 ** (i % 5 - 3)}, {"z": 0.5}, near * (i % 2), cost=3.0)
    for i in range(4):
        trial = optimizer.ask()
        check(problem, trial)
        optimizer.tell(trial, far if i % 2 else -far)


@EVERY
@torture(10)
@given(told=st.lists(values, min_size=2, max_size=5), noise=st.sampled_from([1e-300, 1e-3, 1.0, 1e300]))
def test_a_known_variance_of_any_size_beside_values_of_any_size(strategy, told, noise):
    problem = plain()
    optimizer = boca.Optimizer(problem, budget=boca.targets(20), strategy=strategy, seed=0)
    rng = np.random.default_rng(len(told))
    for i, value in enumerate(told):
        x, z = point(SPACE, rng.random(2)), point(FIDELITY, rng.random(1))
        optimizer.add(x, z, value, cost=3.0, noise=noise if i % 2 else None)
    trial = optimizer.ask()
    assert trial.phase == "model"
    check(problem, trial)


@pytest.mark.parametrize("eta2", [0.0, 1e-12, 0.1])
@pytest.mark.parametrize("make", [boca.Boca, boca.Boca.paper, boca.GPUCB, boca.GPEI], ids=list(STRATEGIES))
@torture(8)
@given(told=st.lists(st.sampled_from([0.0, 1.0, -3.0, 1e6, 1e-9]), min_size=2, max_size=5), seed=st.integers(0, 3))
def test_a_known_process_with_little_or_no_noise_and_trials_out_on_few_points(make, eta2, told, seed):
    """Four points in all: asks repeat what was told, and what is out repeats what is known."""
    problem = boca.Problem(boca.Space(n=boca.Int(0, 1), c=boca.Choice(["u", "v"])))
    known = {"kappa0": 1.0, "eta2": eta2, "mean": 0.0, "h_x": [0.5, 0.5]}
    strategy = make(maximizer="sobol", hyperparameters=known)
    optimizer = boca.Optimizer(problem, budget=boca.targets(40), strategy=strategy, seed=seed)
    for i, value in enumerate(told):
        optimizer.add({"n": i % 2, "c": "uv"[i // 2 % 2]}, {}, value, cost=5.0)
    for _ in range(6):
        trial = optimizer.ask()
        check(problem, trial)


@EVERY
@torture(10)
@given(told=st.lists(st.floats(-5, 5), min_size=3, max_size=6), count=st.integers(2, 6))
def test_a_batch_has_no_two_equal_trials_and_each_counts_the_others(strategy, told, count):
    problem = mixed()
    optimizer = boca.Optimizer(problem, budget=boca.targets(40), strategy=strategy, seed=count)
    rng = np.random.default_rng(count)
    for value in told:
        optimizer.add(point(MIXED, rng.random(3)), point(SOURCES, rng.random(2)), value, cost=100.0)
    batch = optimizer.ask(count)
    assert len(batch) == count
    for i, trial in enumerate(batch):
        check(problem, trial)
        assert trial.why["pending"] == [t.number for t in batch[:i]]
    assert len({json.dumps([t.x, t.z]) for t in batch}) == count
