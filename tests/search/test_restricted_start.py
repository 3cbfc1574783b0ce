"""The first points of a space that is no box."""

from __future__ import annotations

import numpy as np

import boca
from boca import Float, Int, Problem, Space, targets
from boca.search.restricted_start import INDEX
from support.spaces import PIPELINE, is_exact
from support.strategies import EARLIER

BAND = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)).where(
    lambda x: abs(x["a"] + x["b"] - 1.0) < 5e-5, "a thin band", example={"a": 0.5, "b": 0.5}
)


def start(space, count=8, **more):
    optimizer = boca.Optimizer(Problem(space), budget=targets(10 * count), seed=0, **more)
    return [optimizer.ask() for _ in range(count)]


def test_the_start_takes_the_next_feasible_point_of_the_sequence():
    space = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)).where("a <= 0.25")
    trials = start(space, strategy=EARLIER)
    indices = [t.why[INDEX] for t in trials]
    assert indices == sorted(set(indices))
    assert indices[-1] > 8
    from scipy.stats import qmc

    seed = trials[0].why["sobol"]
    every = qmc.Sobol(2, scramble=True, rng=np.random.default_rng(seed)).random_base2(10)
    assert indices == np.flatnonzero(every[:, 0] <= 0.25)[:8].tolist()
    assert [t.x["b"] for t in trials] == every[indices, 1].tolist()


def test_a_thin_set_is_reached_by_a_chain():
    trials = start(BAND)
    assert all(abs(t.x["a"] + t.x["b"] - 1.0) < 5e-5 for t in trials)
    assert len({t.x["a"] for t in trials}) == 8
    assert any(INDEX not in t.why for t in trials)


def test_random_search_draws_feasible_points():
    for space in (BAND, PIPELINE, PIPELINE.where("gamma * C <= 1")):
        trials = start(space, strategy=boca.RandomSearch())
        assert all(is_exact(space, t.x) and space.violated(t.x) is None for t in trials)
        assert len({tuple(t.x.items()) for t in trials}) == 8


def test_points_of_a_small_space_are_not_repeated_while_they_run():
    space = Space(a=Int(0, 20), b=Int(0, 20)).where("a + b == 7")
    trials = start(space, strategy=boca.RandomSearch())
    assert sorted(t.x["a"] for t in trials) == list(range(8))


def test_a_box_has_no_index():
    assert INDEX not in start(Space(a=Float(0.0, 1.0)), 1)[0].why
