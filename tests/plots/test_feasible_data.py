"""The numbers of the map of feasibility."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.plots.axis import Note
from boca.plots.feasible_data import FeasibleMap, feasible_map
from boca.plots.study import study
from plots.failing import SPACE, failing


@pytest.fixture(scope="module")
def seen():
    return study(failing())


def test_it_tells_where_trials_fail_and_limits_break(seen):
    found = feasible_map(seen)
    assert isinstance(found, FeasibleMap)
    assert {found.x.name, found.y.name} == {"a", "b"}  # c tells nothing
    p = feasible_map(seen, "a", "b").probability
    low, high = slice(0, 15), slice(33, 41)
    assert p[low, low].min() > 0.7  # feasible
    assert p[low, high].max() < 0.3  # fails
    assert p[high, low][3:].max() < 0.3  # beyond the limit
    assert p.shape == (41, 41)


def test_marks_tell_failed_from_infeasible_trials(seen):
    found = feasible_map(seen)
    trials = found.marks.trials
    assert [t.number for t in trials] == list(range(30))
    np.testing.assert_array_equal(found.marks.failed, [t.x["a"] > 0.7 for t in trials])
    np.testing.assert_array_equal(found.infeasible, [t.x["a"] <= 0.7 and t.x["b"] > 0.8 for t in trials])


def test_the_same_study_has_the_same_map(seen):
    np.testing.assert_array_equal(feasible_map(seen).probability, feasible_map(seen).probability)


def test_what_cannot_be_drawn_is_said():
    calm = boca.minimize(lambda x: x["a"], SPACE, budget=boca.targets(3), seed=0)
    assert "every point is feasible" in feasible_map(study(calm)).words
    lone = boca.Space(a=boca.Float(0, 1))
    limited = {"size": boca.AtMost(1.0)}
    one = boca.minimize(lambda x: {"l": x["a"], "size": x["a"]}, lone, budget=boca.targets(3), subject_to=limited)
    assert "only one parameter" in feasible_map(study(one)).words
    new = boca.Optimizer(boca.Problem(SPACE, subject_to=limited), budget=boca.targets(3))
    assert isinstance(feasible_map(study(new)), Note)
    with pytest.raises(InvalidInput, match="'d'"):
        feasible_map(study(new), "d")
