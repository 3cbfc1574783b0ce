"""Trials go out as CSV, JSON lines and tables, and come back as the results that they were."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import boca
from boca import exchange
from boca.errors import InvalidInput

PROBLEM = boca.Problem(
    boca.Space(
        a=boca.Float(1e-3, 1e3, log=True),
        k=boca.Int(1, 9),
        kind=boca.Choice(["plain", 'with, comma and "quotes"', "ünïcode", True, None, 2.5]),
    ),
    boca.Space(n=boca.Int(10, 1000, log=True), s=boca.Choice(["coarse", "fine"])),
    cost=lambda z: float(z["n"]),
    target={"s": "fine"},
)


@pytest.fixture
def study():
    opt = boca.Optimizer(PROBLEM, budget=boca.targets(50), strategy=boca.RandomSearch(), seed=1)
    for i, kind in enumerate(PROBLEM.space["kind"].choices):
        z = {"n": 10 + i, "s": "coarse"} if i % 2 else None
        opt.add({"a": 0.1 + i / 3, "k": 1 + i, "kind": kind}, z, i / 7, 1.5 * (i + 1), noise=0.25 if i == 3 else None)
    opt.tell(opt.ask(), -1.0 / 3.0, cost=12.5)
    opt.fail(opt.ask(), "it broke,\nbadly")
    opt.ask()
    return opt


def fresh():
    return boca.Optimizer(PROBLEM, budget=boca.targets(50), strategy=boca.RandomSearch(), seed=2)


def seen(history):
    return [(t.x, t.z, t.value, t.cost, t.noise) for t in history if t.state == "complete"]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_file_brings_back_what_was_complete(study, format, tmp_path):
    path = tmp_path / f"old.{format}"
    path.write_text(exchange.text(study.history, format), encoding="utf-8")
    other = fresh()
    added = other.add_all(path)
    assert len(added) == 7
    assert seen(other.history) == seen(study.history)
    assert all(t.added for t in other.history)
    assert other.spent == 0


def test_a_table_and_a_history_bring_back_the_same(study):
    for source in (study.history, study.history.to_dataframe()):
        other = fresh()
        other.add_all(source)
        assert seen(other.history) == seen(study.history)


def test_a_line_of_json_has_a_trial_with_its_reasons(study):
    lines = [json.loads(line) for line in exchange.text(study.history, "jsonl").splitlines()]
    assert [line["number"] for line in lines] == list(range(len(study.history)))
    assert [line["state"] for line in lines] == [t.state for t in study.history]
    assert [line["why"] for line in lines] == [t.why for t in study.history]


def test_a_table_that_somebody_made_needs_only_parameters_and_values():
    other = fresh()
    other.add_all(pd.DataFrame({"a": [1.0, 2.0], "k": [3, 4], "kind": ["plain", "plain"], "value": [0.5, 0.75]}))
    assert [(t.x["k"], t.z, t.value) for t in other.history] == [(3, PROBLEM.target, 0.5), (4, PROBLEM.target, 0.75)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.txt", "", r"\.csv or \.jsonl"),
        ("r.csv", "a,k,kind,value\n1,2,plain,3\n1,99,plain,4\n", r"line 3 of r\.csv.*99"),
        ("r.csv", "a,k,kind,value\n1,2,plain,much\n", r"line 2 of r\.csv: value must be a number; got 'much'"),
        ("r.csv", "a,k,kind\n1,2,plain\n", r"value must be a number; got None"),
        ("r.csv", "k,kind,value\n2,plain,1\n", r"line 2 of r\.csv.*a"),
        ("r.jsonl", '{"x": {"a": 1', r"line 1 of r\.jsonl"),
        ("r.jsonl", "[1, 2]", r"line 1 of r\.jsonl"),
        ("r.csv", "a,k,kind,value,cost\n1,2,plain,3,1\n1,2,plain,3,-1\n", "cost"),
        ("r.csv", "a,k,kind,value\n1,2,plain,3\n1,2,plain,nan\n", "value"),
    ],
)
def test_a_source_with_a_mistake_is_refused_whole(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    other = fresh()
    with pytest.raises(InvalidInput, match=message):
        other.add_all(tmp_path / name)
    assert len(other.history) == 0


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="must be readable"):
        fresh().add_all(tmp_path / "missing.csv")
    with pytest.raises(InvalidInput, match="pandas table or a History; got 3"):
        fresh().add_all(3)
    with pytest.raises(InvalidInput, match="format must be one of"):
        exchange.text(boca.History(), "xml")
