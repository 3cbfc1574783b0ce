"""The indices are those of functions whose indices are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca.plots import sobol


def ishigami(U):
    x = math.pi * (2.0 * U - 1.0)
    return (np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))[:, None]


def test_the_indices_of_the_ishigami_function_are_those_of_its_closed_form():
    a, b = 7.0, 0.1
    alone = 0.5 * (1.0 + b * math.pi**4 / 5.0) ** 2, a**2 / 8.0, 0.0
    together = b**2 * math.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    V = sum(alone) + together
    found = sobol.indices(ishigami, 3)
    first = [part / V for part in alone]
    assert found.first[:, 0] == pytest.approx(first, abs=0.02)
    assert found.total[:, 0] == pytest.approx([first[0] + together / V, first[1], together / V], abs=0.02)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_in_an_additive_function_both_indices_are_the_shares_of_the_variance(d):
    weights = np.arange(1.0, d + 1.0)
    found = sobol.indices(lambda U: (1e6 + U @ weights)[:, None], d)
    expected = weights**2 / np.sum(weights**2)
    assert found.first[:, 0] == pytest.approx(expected, abs=0.02)
    assert found.total[:, 0] == pytest.approx(expected, abs=0.02)


def test_a_product_is_interaction_alone():
    found = sobol.indices(lambda U: np.prod(U - 0.5, axis=1, keepdims=True), 2)
    assert found.first[:, 0] == pytest.approx([0.0, 0.0], abs=0.03)
    assert found.total[:, 0] == pytest.approx([1.0, 1.0], abs=0.03)


def test_functions_have_indices_of_their_own_and_a_constant_has_none():
    found = sobol.indices(lambda U: np.column_stack([U[:, 0], U[:, 1], np.full(len(U), 3.0)]), 2)
    assert found.total == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), abs=0.02)


def test_a_design_grows_and_shrinks_within_limits():
    assert sobol.rows_for(2) == 2048
    assert sobol.rows_for(20) == 512
    assert sobol.rows_for(5000) == 128
