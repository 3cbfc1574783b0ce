"""One line per trial: for people to follow, and JSON for programs."""

from __future__ import annotations

import io
import json
import logging

import pytest

import boca
from boca.accounting.ledger import Ledger
from boca.execution import lines
from boca.execution.lines import JsonLines, Pace, line, resumed

SPACE = boca.Space(a=boca.Float(0, 1))
FIDELITY = boca.Space(n=boca.Int(1, 100), tol=boca.Float(1e-6, 1e-2, log=True))
PROBLEM = boca.Problem(SPACE, FIDELITY, cost=lambda z: float(z["n"]), target={"tol": 1e-6})


def study(**more):
    settings = {"budget": 500.0, "strategy": boca.RandomSearch(), "seed": 0}
    return boca.Optimizer(PROBLEM, **settings | more)


def told(opt, value, **z):
    opt.enqueue({"a": 0.5}, {"n": 100, "tol": 1e-6} | z)
    trial = opt.ask()
    return opt.tell(trial, value) if value is not None else opt.fail(trial, "exit status 3: no\x1bconvergence\nmore")


def ledger(opt):
    return Ledger(opt.problem, opt.storage.read().history, opt.limit)


def test_a_line_says_what_happened_and_how_far_the_study_is():
    opt = study()
    told(opt, 0.0904)
    trial = told(opt, 0.0251, n=42, tol=2e-6)
    assert (
        line(ledger(opt), trial, 240.0) == "   1  0.0251       n=42 tol=2e-06  best 0.0904 (#0)  28 % spent, 4 min left"
    )
    assert line(ledger(opt), trial, None).endswith("28 % spent")


def test_a_failure_says_why_in_one_line_that_no_terminal_obeys():
    opt = study()
    trial = told(opt, None, n=42)
    said = line(ledger(opt), trial, None)
    assert said == "   0  failed       n=42 tol=1e-06  exit status 3: no\\x1bconvergence  no best yet  8 % spent"


def test_without_fidelities_the_point_is_shown_and_without_a_limit_what_is_spent():
    opt = boca.Optimizer(boca.Problem(SPACE, cost=lambda z: 2.0), budget=None, strategy=boca.RandomSearch(), seed=0)
    opt.enqueue({"a": 0.123456789})
    trial = opt.tell(opt.ask(), 1.0)
    assert line(ledger(opt), trial, None) == "   0  1            a=0.1235  best 1 (#0)  spent 2 cost units"


def test_the_time_left_follows_what_this_run_has_spent(monkeypatch):
    """A study is resumed with 100 of 500 spent; the run spends 50 in 10 s, and 350 are left."""
    opt = study()
    told(opt, 1.0)
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(lines.time, "monotonic", lambda: next(clock))
    pace = Pace()
    trial = told(opt, 1.0, n=50)
    monkeypatch.undo()
    monkeypatch.setattr(lines.time, "monotonic", lambda: 10.0)
    assert pace.seconds_left(ledger(opt), trial) == pytest.approx(350 / 50 * 10.0)


def test_no_limit_has_no_end():
    opt = study(budget=None)
    assert Pace().seconds_left(ledger(opt), told(opt, 1.0)) is None


def test_what_a_resumed_study_has_is_said(tmp_path, caplog):
    opt = study(storage=f"sqlite:///{tmp_path}/s.db", name="bowl")
    assert resumed(opt) == ""
    told(opt, 1.0)
    told(opt, None)
    opt.ask()
    assert resumed(opt) == ("Resuming 'bowl': 3 trials (1 complete, 1 failed, 1 running), best 1 (#0), 40 % spent.")
    opt.storage.close()
    with caplog.at_level(logging.INFO, logger="boca"):
        boca.minimize(lambda x: x["a"], SPACE, cost=lambda z: 1.0, budget=3.0, seed=0)
    assert not [text for text in caplog.messages if "Resuming" in text]


def test_json_lines_can_be_read_back():
    stream = io.StringIO()
    result = boca.maximize(
        lambda x, z: x["a"] if x["a"] > 0.2 else 1 / 0,
        SPACE,
        boca.Space(n=boca.Int(1, 4)),
        cost=lambda z: z["n"],
        budget=boca.targets(6),
        strategy=boca.RandomSearch(),
        seed=1,
        callbacks=JsonLines(stream),
    )
    found = [json.loads(text) for text in stream.getvalue().splitlines()]
    assert [one["number"] for one in found] == [t.number for t in result.history]
    assert [one["value"] for one in found] == [t.value for t in result.history]
    assert {one["event"] for one in found} == {"trial"}
    assert found[-1]["share"] == 1.0
    assert found[-1]["best"]["value"] == result.value
    assert all(one["ended"].endswith("Z") for one in found)
