"""The options of a run: each is checked when they are made, and all of `maximize` are among them."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.execution.callbacks import Log
from boca.execution.options import RunOptions, StudyOptions

OF_THE_PROBLEM = {
    "function",
    "objective",
    "subject_to",
    "space",
    "fidelity",
    "cost",
    "target",
    "deterministic",
    "first",
}


def fields(kind):
    return {field.name: field.default for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("function", [boca.maximize, boca.minimize])
def test_the_options_are_the_arguments_of_the_functions_with_their_defaults(function):
    arguments = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    options = {**fields(StudyOptions), **fields(RunOptions)}
    assert {name: arguments[name] for name in arguments if name not in OF_THE_PROBLEM} == options


@pytest.mark.parametrize("function", [boca.maximize, boca.minimize])
def test_every_argument_is_described(function):
    described = inspect.getdoc(function).split("Args:\n", 1)[1]
    for name in inspect.signature(function).parameters:
        assert f"\n    {name}: " in f"\n{described}"


def test_every_argument_of_the_functions_arrives(monkeypatch):
    seen = []
    monkeypatch.setattr("boca.execution.run.drive", lambda *given: seen.append(given))
    space, fidelity = boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 9))
    study = {"budget": 5.0, "strategy": boca.GPEI(), "seed": 7, "storage": "s", "name": "n", "allow_change": True}
    run = {"executor": 3, "timeout": 4.0, "max_retries": 1, "on_error": "raise", "stop": len, "callbacks": print}
    for function, direction in ((boca.maximize, "maximize"), (boca.minimize, "minimize")):
        function(abs, space, fidelity, cost=lambda z: 3.0, target={"n": 5}, **study, **run)
        objective, problem, given, options = seen.pop()
        assert (objective, problem.direction, problem.target, problem.cost({})) == (abs, direction, {"n": 5}, 3.0)
        assert given == StudyOptions(**study)
        assert options == RunOptions(**run)


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "2", None])
def test_retries_are_a_whole_number(wrong):
    with pytest.raises(InvalidInput, match=r"max_retries must be a whole number.*got"):
        RunOptions(max_retries=wrong)
    assert type(RunOptions(max_retries=np.int64(3)).max_retries) is int


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"stop": 3}, "stop must be a function of the history, a rule of boca.stopping, or None; got 3"),
        ({"timeout": 5.0}, "executor=1"),
        ({"timeout": math.nan, "executor": 2}, "timeout must be"),
        ({"callbacks": "log"}, "got 'log'"),
        ({"callbacks": [print, 5]}, "got 5"),
        ({"callbacks": Log}, "got <class"),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(wrong, message):
    with pytest.raises(InvalidInput, match=message):
        RunOptions(**wrong)


def test_callbacks_are_one_or_more():
    assert RunOptions(callbacks=print).callback_list == [print]
    assert RunOptions(callbacks=iter([print, len])).callback_list == [print, len]
    assert RunOptions().callback_list == []


def test_a_study_is_opened_as_the_options_say(tmp_path):
    problem, url = boca.Problem(boca.Space(a=boca.Float(0, 1))), f"sqlite:///{tmp_path}/study.db"
    options = StudyOptions(budget=boca.targets(4), seed=3, storage=url, name="svm")
    with_one = options.open(problem)
    with_one.tell(with_one.ask(), 1.0)
    resumed = dataclasses.replace(options, budget=boca.targets(9), allow_change=True).open(problem)
    assert (resumed.name, resumed.seed, len(resumed.history)) == ("svm", 3, 1)
    assert resumed.limit == boca.targets(9)
