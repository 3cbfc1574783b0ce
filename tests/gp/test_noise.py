"""Components of the noise beside its constant variance."""

from __future__ import annotations

import numpy as np
import pytest

from boca.gp.fit import log_likelihood
from boca.gp.kernels import Kernel, Radial
from boca.gp.noise import NO_NOISE, Noise, RisingNoise

X = np.array([[0.0], [0.25], [1.0]])


def distance(X):
    return np.abs(1.0 - X[:, 0])


def squared(X):
    return distance(X) ** 2


def test_rising_noise_is_proportional_to_the_distance():
    np.testing.assert_array_equal(RisingNoise(distance).shape(X), [1.0, 0.75, 0.0])
    np.testing.assert_allclose(Noise.from_strengths([RisingNoise(distance)], [0.4]).variance(X), [0.4, 0.3, 0.0])


def test_a_strength_is_zero_unless_the_data_support_it():
    block = RisingNoise(distance).block
    assert (block.name, block.low, block.is_strength) == ("noise_rise", 0.0, True)


def test_variances_of_components_add_up():
    noise = Noise.from_strengths([RisingNoise(distance), RisingNoise(squared)], [0.4, 2.0])
    np.testing.assert_allclose(noise.variance(X), 0.4 * distance(X) + 2.0 * squared(X), rtol=1e-15)


def test_components_of_strength_zero_are_left_out():
    terms = [RisingNoise(distance), RisingNoise(squared)]
    noise = Noise.from_strengths(terms, [0.0, 2.0])
    assert noise == Noise((terms[1],), (2.0,))
    assert Noise.from_strengths(terms, [0.0, 0.0]) == NO_NOISE


def test_every_component_needs_a_strength():
    with pytest.raises(ValueError, match="shorter"):
        Noise.from_strengths([RisingNoise(distance), RisingNoise(squared)], [1.0])


def test_known_variances_stay_and_components_are_added():
    noise, known = Noise.from_strengths([RisingNoise(distance)], [0.4]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(noise.added_to(known, X), [1.4, 2.3, 3.0], rtol=1e-15)
    np.testing.assert_allclose(noise.added_to(None, X), noise.variance(X), rtol=1e-15)
    assert NO_NOISE.added_to(known, X) is known
    assert NO_NOISE.added_to(None, X) is None


def test_a_strength_in_theta_is_the_same_as_its_variance_on_the_diagonal():
    kernel, y, theta = Kernel((Radial("se", (0,), (0,)),)), np.array([0.3, -1.0, 0.8]), np.log([1.0, 0.5, 0.1])
    noise = RisingNoise(distance)
    value, _ = log_likelihood(np.append(theta, 0.7), kernel, X, y, np.zeros(3), mean=0.0, shapes=[noise.shape(X)])
    expected, _ = log_likelihood(theta, kernel, X, y, 0.7 * distance(X), mean=0.0)
    assert value == pytest.approx(expected, rel=1e-14)
