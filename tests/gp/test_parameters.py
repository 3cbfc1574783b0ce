"""Blocks and the prior that follows from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from boca.gp.parameters import Block, Prior, strength


def finite_differences(function, theta, step=1e-5):
    steps = step * np.eye(len(theta))
    return np.array([(function(theta + s) - function(theta - s)) / (2.0 * step) for s in steps])


@pytest.fixture
def prior():
    return Prior(
        mean=np.log([1.0, 0.5, 0.5, 1.0, 0.01]),
        deviation=np.array([1.5, 1.0, 1.0, 1.0, 2.0]),
        low=np.log([1e-2, 0.01, 0.01, 0.01, 1e-6]),
        high=np.log([1e3, 10.0, 10.0, 10.0, 2.0]),
    )


def flat(prior):
    return Prior(prior.mean, np.full(5, np.inf), prior.low, prior.high)


def test_the_prior_is_a_product_of_normal_densities_up_to_a_constant(prior):
    a, b = np.array([0.3, -0.2, 1.0, 0.0, -3.0]), np.array([-1.0, 0.4, -2.0, 2.0, -6.0])
    difference = norm(prior.mean, prior.deviation).logpdf(a).sum() - norm(prior.mean, prior.deviation).logpdf(b).sum()
    assert prior.log_density(a)[0] - prior.log_density(b)[0] == pytest.approx(difference, rel=1e-12)
    assert prior.log_density(prior.mean)[0] == 0.0


def test_the_gradient_of_the_prior_is_its_finite_difference(prior):
    theta = np.array([0.3, -0.2, 1.0, 0.0, -3.0])
    expected = finite_differences(lambda t: prior.log_density(t)[0], theta)
    np.testing.assert_allclose(prior.log_density(theta)[1], expected, rtol=1e-7, atol=1e-9)


def test_an_infinite_deviation_is_no_prior_at_all(prior):
    value, slope = flat(prior).log_density(np.array([0.3, -0.2, 1.0, 0.0, -3.0]))
    assert value == 0.0
    np.testing.assert_array_equal(slope, np.zeros(5))


@pytest.mark.parametrize("informative", [True, False])
def test_starts_are_drawn_inside_the_box_and_apart_from_each_other(prior, informative):
    prior = prior if informative else flat(prior)
    rng = np.random.default_rng(0)
    draws = np.array([prior.draw(rng) for _ in range(400)])
    assert np.all(draws >= prior.low)
    assert np.all(draws <= prior.high)
    assert np.all(np.std(draws, axis=0) > 0.5)
    np.testing.assert_allclose(np.median(draws, axis=0), prior.mean, atol=0.3)


def test_theta_is_clipped_to_the_box(prior):
    np.testing.assert_array_equal(prior.clip(np.full(5, 100.0)), prior.high)
    np.testing.assert_array_equal(prior.clip(np.full(5, -100.0)), prior.low)


# Blocks ---------------------------------------------------------------------------------------------------------------

BLOCKS = [
    Block("kappa0", deviation=1.5, low=-4.0, high=4.0),
    Block("h", 2, mean=-1.0, deviation=1.0, low=-5.0, high=2.0),
    strength("jump", high=20.0, rate=2.0),
]


def test_a_prior_has_one_entry_per_number_of_its_blocks():
    prior = Prior.from_blocks(BLOCKS)
    np.testing.assert_array_equal(prior.mean, [0.0, -1.0, -1.0, 0.0])
    np.testing.assert_array_equal(prior.deviation, [1.5, 1.0, 1.0, math.inf])
    np.testing.assert_array_equal(prior.low, [-4.0, -5.0, -5.0, 0.0])
    np.testing.assert_array_equal(prior.high, [4.0, 2.0, 2.0, 20.0])
    np.testing.assert_array_equal(prior.rate, [0.0, 0.0, 0.0, 2.0])


def test_without_informative_priors_only_strengths_have_one():
    prior = Prior.from_blocks(BLOCKS, informative=False)
    value, slope = prior.log_density(np.array([3.0, -4.0, 1.0, 0.5]))
    assert value == pytest.approx(-1.0)  # -2 times 0.5, of the exponential one
    np.testing.assert_array_equal(slope, [0.0, 0.0, 0.0, -2.0])


def test_only_a_block_with_a_rate_is_a_strength():
    assert [block.is_strength for block in BLOCKS] == [False, False, True]


def test_a_posterior_is_curved_if_every_entry_has_a_prior():
    assert Prior.from_blocks(BLOCKS).is_curved
    assert not Prior.from_blocks(BLOCKS, informative=False).is_curved
    assert Prior.from_blocks(BLOCKS[2:], informative=False).is_curved
