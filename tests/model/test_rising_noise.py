"""Noise that grows away from the target is found where it is there, and changes nothing where it is not."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from boca import Boca, Float, Optimizer, Problem, Space, Surrogate, problems, targets
from boca.gp import fit as gp_fit
from boca.model.dataset import Dataset, TrainingData
from boca.model.fit_record import last_fit
from boca.strategies.boca_information import information_gain

unwarped = partial(Surrogate, warp=False, fidelity_axis="as_declared")

PROBLEM = Problem(Space(x=Float(0.0, 1.0)), Space(z=Float(0.0, 1.0)), cost=lambda z: 0.05 + 0.95 * z["z"])


def brought(problem, deviation, *, n=60, seed=0):
    """Return an optimizer with results whose noise has this deviation, a function of how far z is from the target."""
    rng = np.random.default_rng(seed)
    optimizer = Optimizer(problem, budget=targets(40), seed=seed)
    for k in range(n):
        x, z = {"x": float(rng.random())}, {"z": 1.0 if k % 3 == 0 else float(rng.random())}
        noise = deviation(1.0 - z["z"]) * float(rng.standard_normal())
        optimizer.add(x, z, math.sin(6.0 * x["x"]) + 0.1 * (1.0 - z["z"]) + noise)
    return optimizer


def model_of(optimizer, **how):
    return unwarped(**how).model(optimizer.problem, optimizer.history, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_is_found_with_about_its_size(seed):
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away), seed=seed)
    numbers = model_of(optimizer, guard=None).hyperparameters()
    assert 0.2 < numbers["noise_rise"] < 1.8
    flat = model_of(optimizer, guard=None, rising_noise=False).hyperparameters()
    assert "noise_rise" not in flat
    assert numbers["eta2"] < 0.5 * flat["eta2"]  # the target is no longer taken for as noisy as the rest


@pytest.mark.parametrize("seed", range(4))
def test_where_noise_is_the_same_everywhere_the_model_is_too(seed):
    optimizer = brought(PROBLEM, lambda away: 0.2, seed=seed)
    model = model_of(optimizer)
    assert model.fit.rise is None
    assert model.fit == model_of(optimizer, rising_noise=False).fit


@pytest.mark.parametrize(
    ("deviation", "fits"), [(lambda away: 0.2 - 0.1 * away, 1), (lambda away: 0.2 + 0.5 * away, 2)]
)
def test_one_look_at_the_slope_refuses_a_rise_that_nothing_speaks_for(deviation, fits, monkeypatch):
    optimizer = brought(PROBLEM, deviation)
    calls, fit_theta = [], gp_fit.fit_theta
    monkeypatch.setattr(gp_fit, "fit_theta", lambda *a, **k: calls.append(a) or fit_theta(*a, **k))
    model_of(optimizer, guard=None)
    assert len(calls) == fits


def test_the_model_adds_it_to_every_result_and_to_every_query():
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away))
    model = model_of(optimizer, guard=None)
    plain = Dataset.from_history(PROBLEM, optimizer.history).encoded(model.encoding, model.standard)
    away = np.array([1.0 - t.z["z"] for t in optimizer.history])
    assert plain.noise is None
    np.testing.assert_allclose(model.data.noise, model.fit.rise * away, rtol=1e-12)
    np.testing.assert_allclose(model.noise(plain.X), model.gp.eta2 + model.fit.rise * away, rtol=1e-12)


def test_noisy_queries_tell_less():
    quiet = information_gain(np.array([0.5]), 1.0, np.array([1.0]), 0.01)
    loud = information_gain(np.array([0.5]), 1.0, np.array([1.0]), np.array([0.5]))
    assert loud[0] < quiet[0]


def test_with_many_results_it_is_tried_at_every_fourth_refit_and_kept_while_it_is_likelier():
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away), n=120)
    rng, surrogate = np.random.default_rng(0), unwarped()
    dataset = Dataset.from_history(PROBLEM, optimizer.history)
    first = surrogate.fit(dataset, rng, None)
    assert first.rise > 0.0
    assert surrogate.fit(dataset, rng, first).rise > 0.0
    without = replace(first, rise=None)
    assert surrogate.fit(dataset, rng, without).rise is None  # the second refit does not try
    assert surrogate.fit(dataset, rng, replace(without, count=3)).rise > 0.0


def test_the_paper_and_a_problem_without_fidelities_have_none():
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away))
    assert Surrogate.paper().model(PROBLEM, optimizer.history, np.random.default_rng(0)).fit.rise is None
    single = Optimizer(Problem(PROBLEM.space), budget=targets(9), seed=0)
    for x in np.linspace(0.0, 1.0, 9):
        single.add({"x": float(x)}, {}, math.sin(6.0 * x))
    assert model_of(single).fit.rise is None


def test_what_is_out_will_come_with_it_too():
    """A query far from the target takes as much variance away as a result there would, not more."""
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away))
    optimizer.enqueue({"x": 0.31}, {"z": 0.0})
    optimizer.ask()
    model = model_of(optimizer, guard=None)
    assert model.fit.rise > 0.0
    assert len(model.data.pending) == 1
    data = model.data
    told = TrainingData(
        np.vstack([data.U, [[0.31]]]),
        np.vstack([data.X, data.pending]),
        np.append(data.y, 0.0),
        np.append(data.noise, model.fit.rise),
        np.append(data.is_target, False),
        data.pending[:0],
        data.is_pending_target[:0],
    )
    U = np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_allclose(model.moments(U)[1], replace(model, data=told).moments(U)[1], rtol=1e-7)


def test_it_can_be_given_back_as_a_number_that_is_known():
    optimizer = brought(PROBLEM, lambda away: math.sqrt(0.0025 + 0.6 * away))
    for surrogate in (
        unwarped(kernel="se"),
        unwarped(kernel="se", fidelity_kernel=lambda a, b: 1.0 + a["z"] * b["z"]),
    ):
        model = surrogate.model(PROBLEM, optimizer.history, np.random.default_rng(0))
        numbers = model.hyperparameters()
        assert numbers["noise_rise"] > 0.0
        assert_same_model(surrogate.known(Dataset.from_history(PROBLEM, optimizer.history), numbers), model)


def assert_same_model(known, learned):
    """Whether both say the same of f, in the user's units."""
    U = np.linspace(0.0, 1.0, 11)[:, None]
    (mean, deviation), (location, scale) = learned.moments(U), (learned.standard.location, learned.standard.scale)
    np.testing.assert_allclose(known.moments(U)[0], location + scale * mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(known.moments(U)[1], scale * deviation, rtol=1e-6)


def test_a_run_with_it_is_replayed_to_the_bit():
    def run(told):
        optimizer = Optimizer(PROBLEM, budget=targets(12), seed=4)
        rng = np.random.default_rng(4)
        while (trial := optimizer.ask()) is not None and len(optimizer.history) <= told:
            noise = math.sqrt(0.0025 + 0.6 * (1.0 - trial.z["z"])) * float(rng.standard_normal())
            optimizer.tell(trial, math.sin(6.0 * trial.x["x"]) + noise)
        return [(t.x, t.z) for t in optimizer.history], last_fit(optimizer.history)

    first, record = run(40)
    assert run(40)[0] == first
    assert record is not None


@pytest.mark.parametrize("name", ["branin", "currin"])
def test_a_problem_with_one_noise_is_searched_as_without_it(name):
    bench = problems.get(name, seed=0)

    def asked(surrogate):
        strategy = Boca(surrogate=surrogate, start_spread=False, probe_until=None)
        optimizer = Optimizer(bench.problem, budget=targets(12), strategy=strategy, seed=0)
        rng = np.random.default_rng(0)
        while (trial := optimizer.ask()) is not None:
            optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
        return [(t.x, t.z) for t in optimizer.history]

    assert asked(unwarped()) == asked(unwarped(rising_noise=False))
