"""How many points are ranked by a function."""

from __future__ import annotations

import numpy as np
import pytest

from boca.search.objective import SCREENING_BATCH, merged, ranked, screened


class Bowl:
    """A bowl with bounds that are a little above its values, which counts how many values it returned."""

    def __init__(self, gap=0.01):
        self.valued, self.gap = 0, gap

    def value(self, U):
        self.valued += len(U)
        return -np.square(U - 0.3).sum(axis=1)

    def value_and_gradient(self, U):
        return self.value(U), -2.0 * (U - 0.3)

    def bound(self, U):
        return -np.square(U - 0.3).sum(axis=1) + self.gap


def test_rows_come_best_first_and_equal_ones_in_their_order():
    U = np.array([[0.9], [0.3], [0.1], [0.5]])
    points, values = ranked(Bowl(), U)
    assert points[:, 0].tolist() in ([0.3, 0.1, 0.5, 0.9], [0.3, 0.5, 0.1, 0.9])
    assert list(values) == sorted(values, reverse=True)


@pytest.mark.parametrize("count", [1, 4, 50])
def test_screening_keeps_the_best_and_spares_the_others(count):
    U = np.random.default_rng(0).random((2000, 3))
    bowl = Bowl()
    points, values = screened(bowl, U, count)
    assert np.array_equal(points[:count], ranked(Bowl(), U)[0][:count])
    assert SCREENING_BATCH <= bowl.valued == len(values) < 1000


def test_groups_are_merged_by_value():
    groups = [(np.array([[1.0], [2.0]]), np.array([5.0, 1.0])), (np.array([[3.0]]), np.array([5.0]))]
    assert merged(groups)[:, 0].tolist() == [1.0, 3.0, 2.0]
