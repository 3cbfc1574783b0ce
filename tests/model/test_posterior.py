"""The posterior of f after a history, against the textbook and in the units of the user."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import boca
from boca.model import posterior
from boca.model.dataset import Dataset
from boca.model.posterior import leading_count
from boca.model.surrogate import Surrogate

unwarped = partial(Surrogate, warp=False, fidelity_axis="as_declared")

SPACE = boca.Space(a=boca.Float(0.0, 2.0), b=boca.Float(0.0, 1.0))
FIDELITY = boca.Space(z=boca.Float(0.0, 1.0))
KNOWN = {"kappa0": 4.0, "eta2": 0.1, "mean": 1.0, "h_x": [0.4, 0.6], "h_z": [0.8]}


def study(n=12, *, direction="maximize", running=0):
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["z"], direction=direction)
    optimizer = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    rng = np.random.default_rng(1)
    for k in range(n):
        x, z = SPACE.from_unit(rng.random(2)), {"z": 1.0 if k % 3 == 0 else float(rng.random())}
        optimizer.add(x, z, math.sin(3.0 * x["a"]) + x["b"] - 0.5 * z["z"])
    if running:
        optimizer.ask(running)
    return optimizer


def known(optimizer, numbers=KNOWN):
    return unwarped().known(Dataset.from_history(optimizer.problem, optimizer.history), numbers)


def textbook(history, U, numbers=KNOWN, chosen=lambda t: True):
    """Return mean and deviation at the target by the explicit inverse."""
    told = [t for t in history.complete if chosen(t)]
    X = np.hstack([SPACE.to_unit([t.x for t in told]), FIDELITY.to_unit([t.z for t in told])])
    h = np.array([*numbers["h_x"], *numbers["h_z"]])
    A = np.hstack([U, np.ones((len(U), 1))])

    def k(P, Q):
        return numbers["kappa0"] * np.exp(-0.5 * (((P[:, None] - Q[None]) / h) ** 2).sum(axis=2))

    inverse = np.linalg.inv(k(X, X) + numbers["eta2"] * np.eye(len(X)))
    mean = numbers["mean"] + k(A, X) @ inverse @ (np.array([t.value for t in told]) - numbers["mean"])
    return mean, np.sqrt(numbers["kappa0"] - np.einsum("ij,jk,ik->i", k(A, X), inverse, k(A, X)))


def somewhere(m=9):
    return np.random.default_rng(5).random((m, 2))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_moments_are_those_of_the_textbook_in_the_users_units(direction):
    optimizer = study(direction=direction)
    model, U = known(optimizer), somewhere()
    mean, deviation = textbook(optimizer.history, U)
    mu, sigma = model.moments(U)
    np.testing.assert_allclose([model.value_as_told(m) for m in mu], mean, rtol=1e-9)
    np.testing.assert_allclose(
        [model.interval_as_told(m, s) for m, s in zip(mu, sigma, strict=True)], deviation, rtol=1e-8
    )
    np.testing.assert_allclose(model.means(U), mu, rtol=1e-12)


def test_a_fitted_model_has_the_moments_of_the_numbers_that_it_shows():
    optimizer, U = study(), somewhere()
    surrogate = unwarped(kernel="se", guard=None, rising_noise=False)
    model = surrogate.model(optimizer.problem, optimizer.history, np.random.default_rng(0))
    mean, deviation = textbook(optimizer.history, U, model.hyperparameters())
    mu, sigma = model.moments(U)
    np.testing.assert_allclose([model.value_as_told(m) for m in mu], mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        [model.interval_as_told(m, s) for m, s in zip(mu, sigma, strict=True)], deviation, rtol=1e-6
    )


def test_given_hyperparameters_are_shown_as_they_were_given():
    assert known(study()).hyperparameters() == KNOWN
    assert known(study(direction="minimize")).hyperparameters() == KNOWN


def test_running_trials_take_variance_away_and_leave_the_mean():
    without, with_running = (known(study(running=running)) for running in (0, 3))
    U = np.vstack([somewhere(), SPACE.to_unit([t.x for t in study(running=3).running])])
    np.testing.assert_allclose(with_running.moments(U)[0], without.moments(U)[0], rtol=1e-8)
    assert np.all(with_running.moments(U)[1][-3:] < without.moments(U)[1][-3:])


def test_shrinking_divides_the_length_scales_of_the_domain_alone():
    optimizer, U = study(), somewhere()
    model = known(optimizer).shrunk(2.5)
    mean, deviation = textbook(optimizer.history, U, KNOWN | {"h_x": [0.16, 0.24]})
    np.testing.assert_allclose(model.moments(U), [mean, deviation], rtol=1e-8)
    assert model.shrink == 2.5
    assert model.shrunk(1.0) is model
    assert model.diameter() == pytest.approx(1 / 0.16 + 1 / 0.24)


def test_the_model_of_the_target_alone_knows_only_its_results():
    optimizer, U = study(), somewhere()
    own = float(np.median([t.value for t in optimizer.history if t.z["z"] == 1.0]))  # their own mean
    at_target = textbook(optimizer.history, U, KNOWN | {"mean": own}, chosen=lambda t: t.z["z"] == 1.0)
    np.testing.assert_allclose(known(optimizer).at_target().moments(U), at_target, rtol=1e-8)
    assert not np.allclose(known(optimizer).moments(U), at_target, rtol=1e-2)  # a negative control


def test_the_queried_x_are_distinct_and_in_order():
    optimizer = study(3)
    optimizer.add(optimizer.history[1].x, {"z": 1.0}, 7.0)
    expected = SPACE.to_unit([t.x for t in list(optimizer.history)[:3]])
    np.testing.assert_array_equal(known(optimizer).queried, expected)


def test_anchors_are_the_queried_x_with_the_highest_means():
    model = known(study(30))
    means = model.means(model.queried)
    np.testing.assert_array_equal(model.anchors(4), model.queried[np.argsort(-means, kind="stable")[:4]])


def test_draws_have_the_moments_of_the_posterior():
    model, U = known(study()), somewhere(3)
    _, values = model.given_draws(U, np.random.default_rng(0).standard_normal((3, 20_000)))
    mu, sigma = model.moments(U)
    np.testing.assert_allclose(values.mean(axis=1), mu, atol=0.05)
    np.testing.assert_allclose(values.std(axis=1), sigma, rtol=0.05)


def test_given_draws_the_posterior_goes_through_them():
    model, U = known(study()), somewhere(3)
    given, values = model.given_draws(U, np.random.default_rng(0).standard_normal((3, 5)))
    mean, variance = given.moments(U)
    np.testing.assert_allclose(mean, values, atol=1e-2)
    assert np.all(variance < 1e-3)


def test_the_noise_of_a_query_grows_with_its_distance_if_it_is_given_to():
    model = known(study(), KNOWN | {"noise_rise": 0.3})
    queries = model.at(np.array([0.5, 0.5]), np.array([[1.0], [0.5], [0.0]]))
    np.testing.assert_allclose(model.noise(queries), [0.1, 0.25, 0.4], rtol=1e-12)


def test_bounds_are_used_from_the_number_of_results_that_the_module_says(monkeypatch):
    monkeypatch.setattr(posterior, "ALL_VALUED_UP_TO", 10)
    monkeypatch.setattr(posterior, "LEADING_RESULTS", 8)
    counts = {n: leading_count(known(study(n)).target_slice) for n in (10, 11, 16, 17)}
    assert counts == {10: None, 11: 11, 16: 16, 17: 8}


def test_approximate_moments_are_upper_bounds_and_exact_where_asked(monkeypatch):
    monkeypatch.setattr(posterior, "ALL_VALUED_UP_TO", 10)
    monkeypatch.setattr(posterior, "LEADING_RESULTS", 8)
    model, U = known(study(40)), somewhere(50)
    mu, sigma = model.moments(U)
    rough_mu, rough = model.approximate_moments(U, exact=5)
    assert np.all(rough_mu + rough >= mu + sigma - 1e-6)
    assert 5 <= np.sum(np.isclose(rough, sigma, rtol=1e-12)) < 50
    np.testing.assert_allclose(model.approximate_moments(U, exact=50), (mu, sigma), rtol=1e-12)


def test_a_fit_is_told_by_the_model_that_made_it_only():
    optimizer = study()
    surrogate, rng = unwarped(), np.random.default_rng(0)
    model = surrogate.model(optimizer.problem, optimizer.history, rng)
    assert model.learned() == {"fit": model.fit.to_json()}
    assert replace(model, fit=None).learned() == {}


# Trials that begin later ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [12, 40])
def test_a_model_that_trials_joined_is_the_model_with_them_running(n, monkeypatch):
    monkeypatch.setattr(posterior, "ACTIVE_RESULTS", 16)
    opt = study(n, running=2)
    before = known(opt)
    before = replace(before, exact_results=20)
    opt.ask(3)
    later = before.joined(opt.running[2:])
    anew = replace(known(opt), exact_results=20)
    U = somewhere(40)
    for ours, theirs in zip(later.moments(U), anew.moments(U), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(later.moments(U)[0], before.moments(U)[0], rtol=1e-9)
    assert np.all(later.moments(U)[1] < before.moments(U)[1])
    np.testing.assert_allclose(later.anchors(), anew.anchors())


def test_trials_that_joined_are_there_in_every_model_made_of_it():
    opt = study(running=1)
    before = known(opt)
    opt.ask(2)
    later, anew = before.joined(opt.running[1:]), known(opt)
    U = somewhere(40)
    for ours, theirs in ((later.shrunk(2.0), anew.shrunk(2.0)), (later.at_target(), anew.at_target())):
        np.testing.assert_allclose(ours.moments(U), theirs.moments(U), rtol=1e-9)
    assert before.joined([]) is before


def test_below_the_target_no_trial_joins_a_model_without_cheaper_fidelities():
    opt = study()
    at_target = replace(known(opt).at_target(), guard=3.0)
    opt.enqueue({"a": 1.0, "b": 0.5}, {"z": 0.5})
    opt.enqueue({"a": 1.2, "b": 0.5})
    cheap, full = opt.ask(), opt.ask()
    U = somewhere(40)
    np.testing.assert_array_equal(at_target.joined([cheap]).moments(U), at_target.moments(U))
    both, one = at_target.joined([cheap, full]), at_target.joined([full])
    np.testing.assert_array_equal(both.moments(U), one.moments(U))
    assert np.all(one.moments(U)[1] < at_target.moments(U)[1])
