"""Trials go out as CSV, JSON lines and tables, and come back as the results that they were."""

from __future__ import annotations

import csv
import io
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


def test_why_a_trial_was_chosen_and_why_it_failed_are_two_columns(study):
    rows = list(csv.DictReader(io.StringIO(exchange.text(study.history, "csv"))))
    lines = [json.loads(line) for line in exchange.text(study.history, "jsonl").splitlines()]
    table = study.history.to_dataframe()
    for k, trial in enumerate(study.history):
        assert trial.row()["reason"] == rows[k]["reason"] == lines[k]["reason"] == trial.why["reason"]
        assert trial.row()["failure"] == lines[k]["failure"] == trial.reason
        assert rows[k]["failure"] == table["failure"].fillna("")[k] == (trial.reason or "")
    assert [t.reason for t in study.history if t.state == "failed"] == ["it broke,\nbadly"]


def test_an_export_from_before_there_were_two_columns_is_still_read(tmp_path):
    (tmp_path / "old.csv").write_text(
        "number,state,value,cost,noise,seconds,overhead,phase,reason,x.a,x.k,x.kind,z.n,z.s\n"
        "0,complete,0.5,12.0,,,0.1,start,A random point.,1.0,3,plain,100,coarse\n"
        "1,failed,,12.0,,,0.1,start,it broke,1.0,4,plain,100,coarse\n"
    )
    (tmp_path / "old.jsonl").write_text(
        '{"number": 0, "state": "complete", "x": {"a": 1.0, "k": 3, "kind": "plain"}, "z": {"n": 100, "s": "coarse"}, '
        '"value": 0.5, "cost": 12.0, "reason": null, "why": {"reason": "A random point."}}\n'
    )
    for name in ("old.csv", "old.jsonl"):
        other = fresh()
        other.add_all(tmp_path / name)
        x, z = {"a": 1.0, "k": 3, "kind": "plain"}, {"n": 100, "s": "coarse"}
        assert seen(other.history) == [(x, z, 0.5, 12.0, None)]


def test_a_table_that_somebody_made_needs_only_parameters_and_values():
    other = fresh()
    other.add_all(pd.DataFrame({"a": [1.0, 2.0], "k": [3, 4], "kind": ["plain", "plain"], "value": [0.5, 0.75]}))
    assert [(t.x["k"], t.z, t.value) for t in other.history] == [(3, PROBLEM.target, 0.5), (4, PROBLEM.target, 0.75)]


@pytest.mark.parametrize("blank", [None, float("nan"), "", pd.NA])
def test_a_row_of_a_table_without_a_state_is_complete(blank):
    rows = {"a": [1.0] * 3, "k": [3, 4, 5], "kind": ["plain"] * 3, "value": [1.0, 2.0, 3.0]}
    other = fresh()
    other.add_all(pd.DataFrame({**rows, "state": ["complete", blank, "failed"]}))
    assert [t.value for t in other.history] == [1.0, 2.0]


@pytest.mark.parametrize("source", ["history", "table", "csv", "jsonl"])
def test_an_option_is_taken_for_itself_before_it_is_taken_for_a_text(source, tmp_path):
    problem = boca.Problem(
        boca.Space(k=boca.Choice([None, "None", "x"]), b=boca.Choice([True, "True"])),
        boca.Space(s=boca.Choice([None, "None", "fine"])),
        target={"s": "fine"},
    )
    first, other = (boca.Optimizer(problem, budget=boca.targets(50), seed=0) for _ in range(2))
    for k in (None, "None", "x"):
        first.add({"k": k, "b": "True"}, {"s": k if k != "x" else "fine"}, 1.0)
    given = {"history": first.history, "table": first.history.to_dataframe()}.get(source, tmp_path / f"old.{source}")
    if source in ("csv", "jsonl"):
        given.write_text(exchange.text(first.history, source))
    other.add_all(given)
    assert [(t.x, t.z) for t in other.history] == [(t.x, t.z) for t in first.history]


def test_text_stands_for_an_option_in_a_table_and_not_in_a_history(tmp_path):
    old, new = (boca.Problem(boca.Space(k=boca.Choice(options))) for options in (["None", "True"], [None, True]))
    first = boca.Optimizer(old, budget=9, seed=0)
    first.add({"k": "True"}, None, 1.0)
    with pytest.raises(InvalidInput, match="must be one of"):
        boca.Optimizer(new, budget=9, seed=0).add_all(first.history)
    (tmp_path / "old.csv").write_text("k,value\nTrue,1\nNone,2\n,3\n")
    for source in (tmp_path / "old.csv", pd.read_csv(tmp_path / "old.csv", dtype=str)):
        other = boca.Optimizer(new, budget=9, seed=0)
        other.add_all(source)
        assert [t.x["k"] for t in other.history] == [True, None, None]


def test_a_fidelity_that_is_left_empty_is_the_targets(tmp_path):
    (tmp_path / "r.csv").write_text("a,k,kind,n,s,value\n1,2,plain,,coarse,3\n1,2,plain,50,,4\n")
    (tmp_path / "r.jsonl").write_text('{"x": {"a": 1, "k": 2, "kind": "plain"}, "z": {"n": null}, "value": 3}\n')
    for source in (tmp_path / "r.csv", pd.read_csv(tmp_path / "r.csv")):
        other = fresh()
        other.add_all(source)
        assert [t.z for t in other.history] == [{"n": 1000, "s": "coarse"}, {"n": 50, "s": "fine"}]
    other = fresh()
    other.add_all(tmp_path / "r.jsonl")
    assert [t.z for t in other.history] == [PROBLEM.target]


def test_a_file_of_a_spreadsheet_is_read_and_one_that_is_not_utf_8_is_told(tmp_path):
    text = "a,k,kind,value\r\n1,2,ünïcode,3\r\n"
    (tmp_path / "r.csv").write_bytes(text.encode("utf-8-sig"))
    other = fresh()
    other.add_all(tmp_path / "r.csv")
    assert [(t.x["kind"], t.value) for t in other.history] == [("ünïcode", 3.0)]
    (tmp_path / "r.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"UTF-8; line 2 of r\.csv"):
        fresh().add_all(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.txt", "", r"\.csv or \.jsonl"),
        ("r.csv", "a,k,kind,value\n1,2,plain,3\n1,99,plain,4\n", r"line 3 of r\.csv.*99"),
        ("r.csv", "a,k,kind,value\n1,2,plain,much\n", r"line 2 of r\.csv: value must be a number; got 'much'"),
        ("r.csv", "a,k,kind\n1,2,plain\n", r"value must be a number; got None"),
        ("r.csv", "k,kind,value\n2,plain,1\n", r"line 2 of r\.csv.*a"),
        ("r.csv", "a,k,kind,value,state\n1,2,plain,3,COMPLETE\n", "state must be one of .*or empty; got 'COMPLETE'"),
        ("r.csv", "a,k,kind,value\n,2,plain,3\n", r"x\['a'\] must be a finite number; got ''"),
        ("r.jsonl", '{"x": {"a": 1', r"line 1 of r\.jsonl"),
        ("r.jsonl", "[1, 2]", r"line 1 of r\.jsonl"),
        ("r.csv", "a,k,kind,value,cost\n1,2,plain,3,1\n1,2,plain,3,-1\n", "cost"),
        ("r.csv", "a,k,kind,value\n1,2,plain,3\n1,2,plain,nan\n", r"line 3 of r\.csv: value must be finite; got 'nan'"),
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
