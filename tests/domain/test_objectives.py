"""Several objectives: what may be typed, what must be returned, and which trials are on the front."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca import AtLeast, AtMost, Float, History, Optimizer, Problem, RandomSearch, Space
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.objectives import best_of_several, is_told, reference_point, scores

SPACE, FIDELITY = Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0))
TWO = {"loss": "minimize", "speed": "maximize"}


def problem(**more):
    return Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], **({"outcomes": TWO} | more))


def history(rows, of=None):
    """Return a history of results at the target: (loss, speed, *others) each."""
    of = of or problem()
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    for k, row in enumerate(rows):
        opt.add({"a": k / len(rows)}, None, dict(zip(of.outcomes, row, strict=True)))
    return opt.history


def test_several_objectives_have_no_direction():
    of = problem(outcomes={"loss": "min", "recall": AtLeast(0.9), "speed": "maximise"})
    assert (of.direction, of.objective) == (None, None)
    assert dict(of.objectives) == TWO
    assert of.subject_to == {"recall": AtLeast(0.9)}
    assert [*of.outcomes] == ["loss", "speed", "recall"]
    assert of.aims == "minimize loss, maximize speed"
    assert "outcomes={'loss': 'minimize', 'speed': 'maximize'}" in repr(of)


def test_one_objective_is_the_problem_that_names_it():
    of = problem(outcomes={"loss": "minimize", "recall": AtLeast(0.9)})
    assert (of.direction, of.objective, dict(of.objectives)) == ("minimize", "loss", {})
    assert of.subject_to == {"recall": AtLeast(0.9)}


def test_limits_may_stand_in_subject_to():
    assert problem(subject_to={"recall": AtLeast(0.9)}).subject_to == {"recall": AtLeast(0.9)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"outcomes": {}}, "must map names"),
        ({"outcomes": ["loss"]}, "must map names"),
        ({"outcomes": {"loss": "smaller"}}, r"outcomes\['loss'\] is 'smaller'"),
        ({"outcomes": {"loss": AtMost(1)}}, "0 objectives"),
        ({"outcomes": dict.fromkeys("abcde", "min")}, r"5 objectives.*from 1 to 4.*boca.AtMost"),
        ({"outcomes": {"value": "min", "b": "min"}}, "outcomes has the name 'value'"),
        ({"outcomes": {"success": "min", "b": "min"}}, "'success'"),
        ({"outcomes": TWO, "direction": "minimize"}, "direction='minimize' and outcomes are both given"),
        ({"outcomes": TWO, "objective": "loss"}, "objective='loss' and outcomes are both given"),
        ({"outcomes": TWO, "subject_to": {"loss": AtMost(1)}}, r"subject_to has \['loss'\], which outcomes has too"),
        ({"outcomes": TWO, "reference": {"size": 1.0}}, "reference is"),
        ({"outcomes": TWO, "reference": {"loss": math.nan}}, r"reference\['loss'\]"),
        ({"outcomes": TWO, "reference": 1.0}, "must map names of objectives"),
        ({"outcomes": None, "reference": {"loss": 1.0}}, "only several objectives have one"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        problem(**given)


def test_every_objective_must_be_returned():
    of = problem(outcomes={**TWO, "recall": AtLeast(0.9)})
    whole = of.returned({"loss": 1, "speed": 2.0, "recall": 0.95, "epoch": 3}, of.target)
    assert (dict(whole.values), dict(whole.notes)) == ({"loss": 1.0, "speed": 2.0, "recall": 0.95}, {"epoch": 3})
    assert dict(of.returned({"loss": 1, "speed": None}, {"n": 0.5}).values) == {"loss": 1.0}
    assert dict(of.returned({"speed": 1}, None).values) == {"speed": 1.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (1.0, "must be a mapping with the objectives"),
        ({"loss": 1.0, "recall": 1.0}, "no 'speed'.*at every fidelity"),
        ({"loss": 1.0, "speed": 1.0}, "no 'recall'.*at the target"),
        ({"loss": "high", "speed": 1.0, "recall": 1.0}, "loss"),
        ({"loss": None, "speed": None, "recall": None}, "every outcome is None"),
    ],
)
def test_a_wrong_result_is_refused(given, words):
    of = problem(outcomes={**TWO, "recall": AtLeast(0.9)})
    with pytest.raises(InvalidInput, match=words):
        of.returned(given, of.target)


def test_variances_need_names():
    of = problem()
    assert of.variances({"loss": 0.1, "speed": None}) == {"loss": 0.1}
    assert of.variances(None) == {}
    for wrong in (0.1, {"size": 0.1}, {"loss": -1.0}):
        with pytest.raises(InvalidInput, match="noise"):
            of.variances(wrong)


def test_the_front_has_the_trials_that_none_dominates():
    rows = [(1.0, 5.0), (2.0, 6.0), (2.0, 4.0), (0.5, 1.0), (0.5, 1.0), (3.0, 6.0)]
    found = history(rows)
    assert [t.number for t in found.front(problem())] == [3, 4, 0, 1]
    assert found.best(problem()) is None
    assert [t.value for t in found] == [None] * 6


def test_the_front_holds_what_is_feasible_complete_and_at_the_target():
    of = problem(outcomes={**TWO, "recall": AtLeast(0.9)})
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    opt.add({"a": 0.1}, None, {"loss": 0.0, "speed": 9.0, "recall": 0.8})
    opt.add({"a": 0.2}, {"n": 0.5}, {"loss": 0.0, "speed": 9.0, "recall": 1.0})
    opt.add({"a": 0.3}, None, {"loss": 0.0, "recall": 1.0})
    opt.add({"a": 0.4}, None, {"loss": 0.0, "speed": 9.0})
    opt.fail(opt.ask(), "no")
    opt.add({"a": 0.5}, None, {"loss": 1.0, "speed": 1.0, "recall": 0.9})
    assert [t.number for t in opt.front] == [5]
    assert [is_told(of, t) for t in opt.history] == [True, True, False, True, False, True]


def test_with_one_objective_the_front_is_the_best():
    of = Problem(SPACE, direction="minimize")
    assert History().front(of) == []
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    for value in (2.0, 1.0, 1.0):
        opt.add({"a": value / 3}, None, value)
    assert [t.number for t in opt.history.front(of)] == [1]


def test_a_learned_reference_is_worse_than_the_front_in_each_objective():
    of = problem()
    Y = scores(of, history([(1.0, 5.0), (2.0, 6.0), (9.0, 0.0)]))
    assert Y.tolist() == [[-1.0, 5.0], [-2.0, 6.0], [-9.0, 0.0]]
    assert np.all(reference_point(of, Y) < Y[:2].min(axis=0))
    given = reference_point(problem(reference={"speed": 3.0}), Y)
    assert given[1] == 3.0
    assert given[0] == reference_point(of, Y)[0]
    assert np.all(reference_point(of, Y[:1]) < Y[0])
    assert reference_point(of, Y[:0]).tolist() == [0.0, 0.0]


def test_steps_are_for_one_objective():
    with pytest.raises(InvalidInput, match=r"'n' is boca.Steps.*Type boca.Int"):
        Problem(SPACE, Space(n=boca.Steps(1, 9)), outcomes=TWO)


def test_the_best_of_several_is_in_the_middle():
    of = problem()
    trials = history([(0.0, 0.0), (0.2, 0.8), (1.0, 1.0)])
    assert best_of_several(of, trials).number == 1
    assert best_of_several(of, []) is None


def test_maximize_names_optimize():
    for run in (boca.maximize, boca.minimize):
        with pytest.raises(BocaError, match=r"boca\.optimize"):
            run(lambda x: 0.0, SPACE, outcomes=TWO, budget=boca.targets(3))
