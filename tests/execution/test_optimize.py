"""`boca.optimize`: what a run with several outcomes returns, and what it says while it runs."""

from __future__ import annotations

import inspect
import logging
import pickle

import pytest

import boca
from boca import AtLeast, Float, RandomSearch, Space, targets
from boca.domain.errors import BocaError
from boca.execution.callbacks import Log, state_of

SPACE, FIDELITY = Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0))
TWO = {"loss": "minimize", "speed": "maximize"}


def evaluate(x, z=None):
    return {"loss": x["a"] ** 2, "speed": x["a"] - 0.1 * (0 if z is None else 1 - z["n"]), "recall": 1 - x["a"]}


def run(outcomes=TWO, fidelity=None, **more):
    cost = None if fidelity is None else (lambda z: 0.1 + z["n"])
    given = {"budget": targets(6), "strategy": RandomSearch(), "seed": 0} | more
    return boca.optimize(evaluate, SPACE, fidelity, outcomes=outcomes, cost=cost, **given)


def test_a_run_returns_a_front():
    result = run(TWO | {"recall": AtLeast(0.2)}, FIDELITY)
    assert (result.x, result.value) == (None, None)
    assert [t.number for t in result.front] == [t.number for t in result.study.front]
    assert all(t.outcomes["recall"] >= 0.2 for t in result.front)
    assert {one.verified for one in result.recommendation} == {True}
    assert result.history[0].value is None
    assert result.warnings == ()


def test_notes_are_what_is_left():
    assert set(run().history[0].notes) == {"recall"}


def test_with_one_objective_it_is_maximize_with_limits():
    result = run({"speed": "maximize", "recall": AtLeast(0.2)})
    other = boca.maximize(
        lambda x: {k: v for k, v in evaluate(x).items() if k != "loss"},
        SPACE,
        subject_to={"recall": AtLeast(0.2)},
        budget=targets(6),
        strategy=RandomSearch(),
        seed=0,
    )
    assert (result.x, result.value) == (other.x, other.value)
    assert [t.number for t in result.front] == [t.number for t in other.front] == [result.study.best.number]


def test_a_result_travels_and_is_shown():
    result = run()
    assert [t.number for t in pickle.loads(pickle.dumps(result)).front] == [t.number for t in result.front]
    assert f"{len(result.front)} trials" in result._repr_html_()
    assert "on the front" in result.study._repr_html_()
    assert "minimize loss, maximize speed" in result.study._repr_html_()


def test_the_progress_shows_the_size_of_the_front(caplog):
    with caplog.at_level(logging.INFO, "boca"):
        result = run(callbacks=Log())
    assert f"6 trials, {len(result.front)} on the front" in state_of(result.study)[1]
    assert "loss" in caplog.text
    assert "speed" in caplog.text


def test_nothing_feasible_is_a_warning():
    result = run(TWO | {"recall": AtLeast(2.0)})
    assert result.front == []
    assert "there is no front" in result.warnings[0]


def test_it_runs_in_worker_processes():
    result = run(executor=2, budget=targets(3))
    assert len(result.front) >= 1


def test_stop_reads_the_front():
    of = boca.Problem(SPACE, outcomes=TWO)
    result = run(stop=lambda history: len(history.front(of)) >= 2)
    assert len(result.front) == 2


def test_its_arguments_are_those_of_maximize():
    own, others = (set(inspect.signature(f).parameters) for f in (boca.optimize, boca.maximize))
    assert own - others == {"outcomes", "reference"}
    assert others - own == {"subject_to", "objective"}
    with pytest.raises(BocaError, match="outcomes"):
        run(directions=["minimize", "maximize"])
