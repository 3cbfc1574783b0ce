"""Known constraints: what is checked when they are made, what is stored of them, and who respects them."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import Choice, Float, Int, Space
from boca.domain.constraints import TRIES, first_feasible
from boca.errors import InvalidInput
from support.spaces import PIPELINE

SQUARE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))


def test_a_constraint_narrows_a_copy():
    narrow = SQUARE.where(lambda x: x["a"] + x["b"] <= 1, "a + b <= 1")
    U = np.random.default_rng(0).random((200, 2))
    assert np.array_equal(narrow.feasible(U), U.sum(axis=1) <= 1)
    assert SQUARE.constraints == ()
    assert SQUARE.is_box
    assert not narrow.is_box
    assert "a + b <= 1" in repr(narrow)


def test_several_constraints_hold_together():
    narrow = SQUARE.where("a <= 0.5").where("b >= 0.5")
    assert [c.words for c in narrow.constraints] == ["a <= 0.5", "b >= 0.5"]
    assert narrow.violated({"a": 0.2, "b": 0.2}).words == "b >= 0.5"
    assert narrow.violated(narrow.example) is None


def test_the_fingerprint_is_of_the_answers():
    one, same, other = (SQUARE.where(f"a <= {limit}").constraints[0] for limit in ("0.5", "1 / 2", "0.6"))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert SQUARE.where("a <= 0.5") == SQUARE.where("a <= 0.5") != SQUARE.where("a <= 0.6") != SQUARE


def test_where_nothing_is_feasible_the_space_is_refused_unless_a_point_is_known():
    def thin(x):
        return abs(x["a"] - 0.123456789) < 1e-9

    calls = []
    with pytest.raises(InvalidInput, match=f"{TRIES:,} tries.*example="):
        SQUARE.where(lambda x: bool(calls.append(1)) or thin(x), "thin")
    assert len(calls) >= TRIES
    assert SQUARE.where(thin, "thin", example={"a": 0.123456789, "b": 0.5}).example["a"] == 0.123456789
    with pytest.raises(InvalidInput, match=r"example.*does not hold"):
        SQUARE.where(thin, "thin", example={"a": 0.5, "b": 0.5})


def test_a_function_that_reads_an_inactive_parameter_is_refused_with_its_branch():
    with pytest.raises(InvalidInput, match=r"'gamma', which is inactive at .*'kernel': '(linear|poly)'"):
        PIPELINE.where(lambda x: x["gamma"] <= 1, "gamma <= 1")
    PIPELINE.where(lambda x: x.get("gamma", 0.0) <= 1, "gamma <= 1")
    assert PIPELINE.where("gamma <= 1").violated({"kernel": "linear", "C": 1.0}) is None


@pytest.mark.parametrize(
    ("test", "words", "part"),
    [
        (lambda x: x["a"] - 1, "w", "True or False"),
        (lambda x: None, "w", "True or False"),
        (lambda x: x["c"] <= 1, "w", "KeyError"),
        (lambda x: 1 / 0 > 1, "w", "ZeroDivisionError"),
        (lambda x: True, None, "words"),
        (lambda x: True, " ", "words"),
        (3, "w", "function"),
    ],
)
def test_a_constraint_that_does_not_answer_is_refused(test, words, part):
    with pytest.raises(InvalidInput, match=part):
        SQUARE.where(test, words)


def test_numpy_answers_count():
    assert SQUARE.where(lambda x: np.less(x["a"], 0.5), "a < 0.5").violated({"a": 0.7, "b": 0.0}) is not None


def test_infeasible_imports_are_data_and_an_infeasible_enqueue_is_refused():
    problem = boca.Problem(SQUARE.where("a + b <= 1"))
    optimizer = boca.Optimizer(problem, budget=None, seed=0)
    optimizer.add({"a": 0.9, "b": 0.9}, None, 100.0)
    optimizer.add({"a": 0.1, "b": 0.1}, None, 1.0)
    with pytest.raises(InvalidInput, match=r"a \+ b <= 1.*does not hold"):
        optimizer.enqueue({"a": 0.9, "b": 0.9})
    assert optimizer.best.value == 1.0
    assert optimizer.recommend().x == {"a": 0.1, "b": 0.1}
    assert len(optimizer.history.complete) == 2


def test_a_strategy_that_breaks_a_constraint_is_stopped():
    class Corner:
        def suggest(self, problem, history, budget, rng):
            return boca.Suggestion({"a": 1.0, "b": 1.0}, {}, {"reason": "A corner.", "phase": "start"})

    optimizer = boca.Optimizer(boca.Problem(SQUARE.where("a + b <= 1")), budget=None, strategy=Corner(), seed=0)
    with pytest.raises(InvalidInput, match="the strategy's x"):
        optimizer.ask()
    assert len(optimizer.history) == 0


def test_the_first_feasible_point_is_the_first_of_the_sequence():
    narrow = SQUARE.where("a <= 0.3")
    index, u = first_feasible(narrow, skip=0, tries=64, seed=5)
    from scipy.stats import qmc

    every = qmc.Sobol(2, scramble=True, rng=np.random.default_rng(5)).random_base2(6)
    assert index == int(np.argmax(every[:, 0] <= 0.3))
    assert np.array_equal(u, every[index])
    later, _ = first_feasible(narrow, skip=index + 1, tries=64, seed=5)
    assert later == index + 1 + int(np.argmax(every[index + 1 :, 0] <= 0.3))
    assert first_feasible(narrow, skip=0, tries=1, seed=None) is not None
    with pytest.raises(InvalidInput, match="No point"):
        Space(k=Choice(["x", "y"]), n=Int(1, 3)).where("n > 5")
