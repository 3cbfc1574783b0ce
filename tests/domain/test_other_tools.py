"""An argument of another tool is refused with the name that it has here."""

from __future__ import annotations

import inspect

import pytest

import boca
from boca.domain.other_tools import hint
from boca.errors import BocaError, UnknownArgument

SPACE = boca.Space(a=(0.0, 1.0))


@pytest.mark.parametrize("function", [boca.maximize, boca.minimize])
@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"n_trials": 20}, "boca.targets(20)"),
        ({"n_iter": 20}, "boca.targets(20)"),
        ({"n_calls": 20}, "boca.targets(20)"),
        ({"max_evals": 20}, "boca.targets(20)"),
        ({"n_jobs": 2}, "executor=2"),
        ({"verbose": 1}, "progress=False"),
        ({"show_progress_bar": True}, "progress=True"),
        ({"constraints_func": max}, "subject_to={'latency': boca.AtMost(20.0)}"),
        ({"constraints": ()}, "subject_to={'latency': boca.AtMost(20.0)}"),
        ({"random_state": 7}, "seed=7"),
        ({"study_name": "svm"}, "name='svm'"),
        ({"load_if_exists": True}, "resumed"),
        ({"search_space": {}}, "space=boca.Space("),
        ({"sampler": None}, "strategy="),
        ({"direction": "minimize"}, "boca.minimize minimizes"),
        ({"budgett": 3}, "'budget'"),
        ({"zzz": 3}, "budget, cost"),
    ],
)
def test_a_run_names_its_own_argument(function, given, ours):
    with pytest.raises(UnknownArgument) as refused:
        function(lambda x: x["a"], SPACE, **given)
    assert repr(next(iter(given))) in str(refused.value)
    assert f"boca.{function.__name__} " in str(refused.value)
    assert ours in str(refused.value)
    assert isinstance(refused.value, BocaError)
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"timeout": 600}, "boca.seconds(600)"),
        ({"n_jobs": 4}, "ask(4)"),
        ({"verbose": True}, "leave it out"),
        ({"constraints": ()}, "boca.Problem"),
    ],
)
def test_an_optimizer_names_its_own_argument(given, ours):
    with pytest.raises(UnknownArgument) as refused:
        boca.Optimizer(boca.Problem(SPACE), budget=None, **given)
    assert "boca.Optimizer has no argument" in str(refused.value)
    assert ours in str(refused.value)


def test_a_problem_names_its_own_argument():
    with pytest.raises(UnknownArgument, match=r"boca.Problem has no argument 'directions'.*outcomes="):
        boca.Problem(SPACE, directions=["minimize"])


def test_a_limit_on_an_outcome_is_named_where_there_is_one():
    assert "subject_to=" in hint("constraints_func", max, ["objective", "subject_to"])
    assert "boca.Problem" in hint("constraints_func", max, ["objective"])


def test_the_signature_stays_that_of_the_function():
    assert list(inspect.signature(boca.maximize).parameters)[:3] == ["function", "space", "fidelity"]
    assert list(inspect.signature(boca.Optimizer).parameters)[:2] == ["problem", "budget"]
    with pytest.raises(TypeError, match="missing"):
        boca.Problem()


def test_a_timeout_of_the_whole_study_is_named_where_it_means_one_evaluation():
    with pytest.raises(BocaError) as refused:
        boca.minimize(lambda x: x["a"], SPACE, timeout=600)
    assert "executor=1" in str(refused.value)
    assert "boca.seconds(600)" in str(refused.value)
