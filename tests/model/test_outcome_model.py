"""The probability that one outcome is within its limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from boca import Float, Optimizer, Problem, Space, Surrogate
from boca.model.outcome_model import OutcomeModel


@pytest.fixture(scope="module")
def outcome() -> OutcomeModel:
    problem = Problem(Space(a=Float(0.0, 1.0)))
    opt = Optimizer(problem, budget=None, seed=0)
    for a in np.linspace(0.0, 1.0, 6).tolist():
        opt.add({"a": a}, None, 2.0 * a)
    model = Surrogate(warp=False).model(problem, opt.history, np.random.default_rng(0))
    return OutcomeModel("c", model, bound=0.2, tells_below=True, noise=0.3)


def test_it_is_that_of_a_normal_variable_with_noise(outcome):
    U = np.array([[0.1], [0.55], [0.9]])
    mu, sigma = outcome.model.moments(U)
    expected = stats.norm.sf(0.2, loc=mu, scale=np.sqrt(sigma**2 + 0.3))
    np.testing.assert_allclose(outcome.probability(U), expected)


def test_a_mean_above_the_highest_counts_as_the_highest(outcome):
    capped = replace(outcome, highest=0.5)
    mu, sigma = outcome.model.moments(np.array([[1.0]]))
    assert mu[0] > 0.5
    assert capped.probability(np.array([[1.0]]))[0] == pytest.approx(
        stats.norm.sf(0.2, 0.5, np.sqrt(sigma[0] ** 2 + 0.3))
    )


def test_without_fidelities_any_query_tells_it(outcome):
    assert outcome.is_everywhere_alike
