"""The staircases of several studies."""

from __future__ import annotations

import pytest

from boca import AtMost, Float, Int, Problem, Space
from boca.dashboard.comparing import curve
from dashboard.conftest import begin, run

FIDELITY = Space(n=Int(1, 10))


def shown(page_of, url, name="bowl"):
    return page_of(url).watcher.world.studies[name]


def test_only_better_results_at_the_target_are_steps(url, page_of):
    problem = Problem(Space(a=Float(0, 1)), FIDELITY, cost=lambda z: z["n"], direction="minimize")
    opt = begin(url, problem=problem)
    for z, value in ((10, 3.0), (1, 0.5), (10, 4.0), (10, 2.0), (5, 0.1)):
        opt.enqueue({"a": 0.5}, {"n": z})
        opt.tell(opt.ask(), value)
    found = curve(shown(page_of, url))
    assert found["direction"] == "minimize"
    assert found["unit"] == "cost"
    assert found["target"] == 10
    assert found["x"] == [10, 31, 36]
    assert found["y"] == [3.0, 2.0, 2.0]


def test_a_study_without_a_result_at_the_target_has_no_steps(url, page_of):
    opt = begin(url)
    opt.enqueue({"a": 0.5, "kind": "flat"}, {"n": 1, "m": 0.5})
    opt.tell(opt.ask(), 1.0)
    assert curve(shown(page_of, url))["x"] == []


def test_what_is_not_within_its_limits_is_no_step(url, page_of):
    problem = Problem(Space(a=Float(0, 1)), subject_to={"size": AtMost(1.0)})
    opt = begin(url, problem=problem, strategy=None)
    for value, size in ((3.0, 2.0), (1.0, 0.5)):
        opt.tell(opt.ask(), {"value": value, "size": size})
    assert curve(shown(page_of, url))["y"] == [1.0, 1.0]


def test_the_last_step_is_the_best_of_the_study(url, page_of):
    opt = run(begin(url), 12)
    found = curve(shown(page_of, url))
    if opt.best is not None:
        assert found["y"][-1] == opt.best.value
    assert found["x"][-1:] == [pytest.approx(opt.spent)] or not found["x"]
