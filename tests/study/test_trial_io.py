"""Trials go out as CSV, JSON lines and tables, and come back as the results that they were."""

from __future__ import annotations

import csv
import io
import json
import time

import pandas as pd
import pytest

import boca
from boca.domain.attempt import DIED, Attempt
from boca.domain.errors import InvalidInput
from boca.study import trial_io

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
    path.write_text(trial_io.text(study.history, format), encoding="utf-8")
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
    lines = [json.loads(line) for line in trial_io.text(study.history, "jsonl").splitlines()]
    assert [line["number"] for line in lines] == list(range(len(study.history)))
    assert [line["state"] for line in lines] == [t.state for t in study.history]
    assert [line["why"] for line in lines] == [t.why for t in study.history]


def test_why_a_trial_was_chosen_and_why_it_failed_are_two_columns(study):
    rows = list(csv.DictReader(io.StringIO(trial_io.text(study.history, "csv"))))
    lines = [json.loads(line) for line in trial_io.text(study.history, "jsonl").splitlines()]
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
        given.write_text(trial_io.text(first.history, source))
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
    with pytest.raises(InvalidInput, match=r"ine 2 of r\.csv .*UTF-8"):
        fresh().add_all(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.txt", "", r"\.csv or \.jsonl"),
        ("r.csv", "a,k,kind,value\n1,2,plain,3\n1,99,plain,4\n", r"line 3 of r\.csv.*99"),
        ("r.csv", "a,k,kind,value\n1,2,plain,much\n", r"line 2 of r\.csv: value is 'much', and must be a number"),
        ("r.csv", "a,k,kind\n1,2,plain\n", r"value is None, and must be a number"),
        ("r.csv", "k,kind,value\n2,plain,1\n", r"line 2 of r\.csv.*a"),
        ("r.csv", "a,k,kind,value,state\n1,2,plain,3,COMPLETE\n", "state is 'COMPLETE', and must be"),
        ("r.csv", "a,k,kind,value\n,2,plain,3\n", r"x\['a'\] must be a finite number; got ''"),
        ("r.jsonl", '{"x": {"a": 1', r"line 1 of r\.jsonl"),
        ("r.jsonl", "[1, 2]", r"line 1 of r\.jsonl"),
        (
            "r.csv",
            "a,k,kind,value,cost\n1,2,plain,3,1\n1,2,plain,3,-1\n",
            r"line 3 of r\.csv: cost .* must be positive",
        ),
        ("r.csv", "a,k,kind,value,cost\n1,2,plain,3,0\n", r"line 2 of r\.csv: cost is '0'"),
        ("r.csv", "a,k,kind,value,noise\n1,2,plain,3,-1\n", r"line 2 of r\.csv: noise is '-1'"),
        ("r.csv", "a,k,kind,value\n0,5,2,plain,3\n", r"line 2 of r\.csv has more .*\(4\)"),
        ("r.csv", "a,k,kind,value,n\n1,2,plain,3\n", r"line 2 of r\.csv has fewer .*\(5\)"),
        ("r.csv", 'a,k,kind,value,note\n1,2,plain,3,"two\nlines"\n1,2,plain,much,\n', r"line 4 of r\.csv: value"),
        ("r.csv", "a,k,kind,value\n1,2.5,plain,3\n", r"line 2 of r\.csv: x\['k'\] must be an integer; got 2\.5"),
        ("r.jsonl", '{"x": {"a": 1, "k": 2, "kind": "plain"}, "value": 1%s}' % ("0" * 400), "line 1 of r.jsonl: value"),
        (
            "r.csv",
            "a,k,kind,value\n1,2,plain,3\n1,2,plain,nan\n",
            r"line 3 of r\.csv: value is 'nan', and must be finite",
        ),
    ],
)
def test_a_source_with_a_mistake_is_refused_whole(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    other = fresh()
    with pytest.raises(InvalidInput, match=message):
        other.add_all(tmp_path / name)
    assert len(other.history) == 0


def test_a_table_of_pandas_may_write_an_integer_with_a_point(tmp_path):
    (tmp_path / "r.csv").write_text("a,k,kind,n,value\n1,2.0,plain,50.0,3\n1,3,plain,,4\n")
    other = fresh()
    other.add_all(tmp_path / "r.csv")
    assert [(t.x["k"], t.z["n"]) for t in other.history] == [(2, 50), (3, 1000)]
    assert all(type(t.x["k"]) is type(t.z["n"]) is int for t in other.history)


def test_a_text_of_json_may_hold_any_character(tmp_path):
    line = {"x": {"a": 1, "k": 2, "kind": "plain"}, "value": 3, "note": "a\u2028b\u0085c"}
    (tmp_path / "r.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\r\n\n", encoding="utf-8", newline="")
    other = fresh()
    assert len(other.add_all(tmp_path / "r.jsonl")) == 1


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        fresh().add_all(tmp_path / "missing.csv")
    with pytest.raises(InvalidInput, match=r"Results are 3, .*pandas table or a History"):
        fresh().add_all(3)
    with pytest.raises(InvalidInput, match="format must be one of"):
        trial_io.text(boca.History(), "xml")


# Sources of another problem -------------------------------------------------------------------------------------------

FREE = boca.Space(a=boca.Float(0, 1))


def given_as(source, history, tmp_path):
    """Return a history itself, as a table, or as a file of a format."""
    if source in ("csv", "jsonl"):
        (tmp_path / f"old.{source}").write_text(trial_io.text(history, source))
        return tmp_path / f"old.{source}"
    return history if source == "history" else history.to_dataframe()


SOURCES = pytest.mark.parametrize("source", ["history", "table", "csv", "jsonl"])


@SOURCES
@pytest.mark.parametrize("fidelity", [None, boca.Space(epochs=boca.Int(5, 100))])
def test_a_result_at_a_fidelity_that_the_problem_lacks_is_not_one_at_the_target(source, fidelity, tmp_path):
    old = boca.Optimizer(boca.Problem(FREE, boca.Space(n=boca.Int(5, 100))), budget=9, seed=0)
    old.add({"a": 0.1}, {"n": 5}, 99.0)  # a lie of the cheap end
    old.add({"a": 0.2}, {"n": 100}, 1.0)
    new = boca.Optimizer(boca.Problem(FREE, fidelity), budget=9, seed=0)
    with pytest.raises(InvalidInput, match=r"z\.n is '?5'?, .* no fidelity 'n'.* remove the column"):
        new.add_all(given_as(source, old.history, tmp_path))
    assert len(new.history) == 0


def test_what_the_error_says_can_be_done_about_a_fidelity_that_is_gone():
    old = boca.Optimizer(boca.Problem(FREE, boca.Space(n=boca.Int(5, 100))), budget=9, seed=0)
    old.add({"a": 0.1}, {"n": 5}, 99.0)
    old.add({"a": 0.2}, {"n": 100}, 1.0)
    table = old.history.to_dataframe()
    new = boca.Optimizer(boca.Problem(FREE), budget=9, seed=0)
    new.add_all(table[table["z.n"] == 100].drop(columns="z.n"))
    assert [(t.x, t.z, t.value) for t in new.history] == [({"a": 0.2}, {}, 1.0)]
    new = boca.Optimizer(boca.Problem(FREE, boca.Space(epochs=boca.Int(5, 100))), budget=9, seed=0)
    new.add_all(table.rename(columns={"z.n": "z.epochs"}))
    assert new.best.value == 1.0


@SOURCES
def test_a_parameter_that_is_a_fidelity_now_is_not_at_the_target(source, tmp_path):
    old = boca.Optimizer(boca.Problem(boca.Space(FREE, n=boca.Int(5, 100))), budget=9, seed=0)
    old.add({"a": 0.1, "n": 5}, None, 99.0)
    new = boca.Optimizer(boca.Problem(FREE, boca.Space(n=boca.Int(5, 100))), budget=9, seed=0)
    with pytest.raises(InvalidInput, match=r"x\.n is '?5'?, .* no parameter 'n'; it has \['a'\]"):
        new.add_all(given_as(source, old.history, tmp_path))


def test_a_column_of_a_foreign_fidelity_may_be_empty(tmp_path):
    (tmp_path / "r.csv").write_text("x.a,z.n,value\n0.5,,3\n")
    new = boca.Optimizer(boca.Problem(FREE), budget=9, seed=0)
    assert len(new.add_all(tmp_path / "r.csv")) == len(new.add_all(pd.read_csv(tmp_path / "r.csv"))) == 1


@SOURCES
def test_an_empty_text_is_a_fidelity_where_it_is_an_option(source, tmp_path):
    problem = boca.Problem(FREE, boca.Space(s=boca.Choice(["", "fine"])), target={"s": "fine"})
    old, new = (boca.Optimizer(problem, budget=9, seed=0) for _ in range(2))
    old.add({"a": 0.1}, {"s": ""}, 99.0)
    old.add({"a": 0.2}, {"s": "fine"}, 1.0)
    new.add_all(given_as(source, old.history, tmp_path))
    assert [t.z for t in new.history] == [{"s": ""}, {"s": "fine"}]
    if source == "csv":
        again = boca.Optimizer(problem, budget=9, seed=0)
        again.add_all(pd.read_csv(tmp_path / "old.csv"))
        assert [t.z for t in again.history] == [{"s": ""}, {"s": "fine"}]


@SOURCES
def test_a_cost_in_other_units_is_not_taken_for_seconds(source, tmp_path):
    fidelity = boca.Space(n=boca.Int(1, 10))
    old = boca.Optimizer(boca.Problem(FREE, fidelity, cost=lambda z: 1000.0 * z["n"]), budget=boca.targets(3), seed=0)
    old.tell(old.ask(), 1.0, seconds=0.25)
    old.tell(old.ask(), 2.0, seconds=0.0)
    old.add({"a": 0.5}, None, 3.0)  # nobody knows how long it took
    new = boca.Optimizer(boca.Problem(FREE, fidelity), budget=boca.seconds(600), seed=0)
    new.add_all(given_as(source, old.history, tmp_path))
    assert [t.seconds for t in new.history] == [0.25, pytest.approx(0.0, abs=1e-6), None]
    assert [t.cost for t in new.history[:2]] == [t.seconds for t in new.history[:2]]
    assert new.ask() is not None


@SOURCES
def test_a_cost_that_was_assumed_is_not_taken_for_seconds(source, tmp_path):
    problem = boca.Problem(FREE, boca.Space(n=boca.Int(1, 10)))
    old, new = (boca.Optimizer(problem, budget=boca.targets(5), seed=0) for _ in range(2))
    old.add({"a": 0.5}, {"n": 5}, 3.0)
    new.add_all(given_as(source, old.history, tmp_path))
    assert (new.history[0].cost, new.history[0].seconds) == (0.5, None)


def test_a_cost_is_in_seconds_where_those_have_no_column_and_are_learned(tmp_path):
    (tmp_path / "r.csv").write_text("a,value,cost\n0.5,1,7.5\n0.5,1,\n")
    new = boca.Optimizer(boca.Problem(FREE, boca.Space(n=boca.Int(1, 10))), budget=boca.seconds(600), seed=0)
    assert [t.seconds for t in new.add_all(tmp_path / "r.csv")] == [7.5, None]
    (tmp_path / "r.csv").write_text("a,value,seconds\n0.5,1,-1\n")
    with pytest.raises(InvalidInput, match=r"line 2 of r\.csv: seconds is '-1'"):
        new.add_all(tmp_path / "r.csv")


@SOURCES
def test_a_parameter_may_have_the_name_of_a_column(source, tmp_path):
    space = boca.Space({name: boca.Float(0, 9) for name in ("noise", "cost", "value", "state")})
    problem = boca.Problem(space, boca.Space(seconds=boca.Int(1, 9)), cost=lambda z: z["seconds"])
    old, new = (boca.Optimizer(problem, budget=99, seed=0) for _ in range(2))
    old.add({"noise": 1.0, "cost": 2.0, "value": 3.0, "state": 4.0}, {"seconds": 5}, 6.0, 7.0, noise=8.0)
    new.add_all(given_as(source, old.history, tmp_path))
    assert seen(new.history) == seen(old.history)


@pytest.mark.parametrize("name", ["noise", "cost", "value", "seconds", "phase"])
def test_a_column_that_may_be_two_things_is_refused(name, tmp_path):
    (tmp_path / "r.csv").write_text(f"a,value,{name}\n0.5,1,5\n" if name != "value" else "a,value\n0.5,5\n")
    for part, problem in (
        ("x", boca.Problem(boca.Space({**FREE, name: boca.Int(1, 9)}))),
        ("z", boca.Problem(FREE, boca.Space({name: boca.Int(1, 9)}))),
    ):
        new = boca.Optimizer(problem, budget=9, seed=0)
        with pytest.raises(InvalidInput, match=rf"line 2 of r\.csv: .*{name!r}.* {part}\.{name}\."):
            new.add_all(tmp_path / "r.csv")


def test_what_a_trial_took_is_not_taken_for_a_fidelity_of_that_name():
    old = boca.Optimizer(boca.Problem(FREE), budget=9, seed=0)
    old.tell(old.ask(), 1.0, seconds=3.0)
    new = boca.Optimizer(boca.Problem(FREE, boca.Space(seconds=boca.Float(1, 9))), budget=9, seed=0)
    assert new.add_all(old.history)[0].z == {"seconds": 9.0}


def test_an_import_of_thousands_is_quick_and_done_twice_changes_nothing(tmp_path):
    rows = [f"{k / 5000},{k % 7}" for k in range(5000)]
    (tmp_path / "old.csv").write_text("\n".join(["a,value", *rows, ""]))
    problem, url = boca.Problem(boca.Space(a=boca.Float(0, 1))), f"sqlite:///{tmp_path}/s.db"
    opt = boca.Optimizer(problem, budget=boca.targets(3), seed=0, storage=url)
    began = time.process_time()
    assert len(opt.add_all(tmp_path / "old.csv")) == 5000
    assert time.process_time() - began < 2.0
    before = [t.to_json() for t in opt.history]
    assert len(opt.add_all(tmp_path / "old.csv")) == 5000
    assert [t.to_json() for t in opt.history] == before
    opt.storage.close()


def test_a_cell_that_may_be_two_options_is_refused_and_json_lines_tell_them_apart(tmp_path):
    problem = boca.Problem(boca.Space(c=boca.Choice([None, "", "x"])))
    opt, fresh = (boca.Optimizer(problem, budget=boca.targets(9), seed=0) for _ in range(2))
    for k, option in enumerate([None, "", "x"]):
        opt.add({"c": option}, None, float(k))
    (tmp_path / "t.csv").write_text(trial_io.text(opt.history, "csv"))
    (tmp_path / "t.jsonl").write_text(trial_io.text(opt.history, "jsonl"))
    with pytest.raises(InvalidInput, match="JSON lines"):
        fresh.add_all(tmp_path / "t.csv")
    assert [t.x for t in fresh.add_all(tmp_path / "t.jsonl")] == [t.x for t in opt.history]


def test_a_failure_that_quotes_a_whole_output_can_be_read_again(tmp_path):
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)))
    opt = boca.Optimizer(problem, budget=boca.targets(9), strategy=boca.RandomSearch(), seed=0)
    opt.fail(opt.ask(), "x" * 200_000)
    opt.tell(opt.ask(), 1.0)
    (tmp_path / "t.csv").write_text(trial_io.text(opt.history, "csv"))
    assert len(boca.Optimizer(problem, budget=boca.targets(9), seed=0).add_all(tmp_path / "t.csv")) == 1


def test_brackets_without_end_are_a_mistake_in_a_line(tmp_path):
    (tmp_path / "t.jsonl").write_text("[" * 100_000)
    opt = boca.Optimizer(boca.Problem(boca.Space(a=boca.Float(0, 1))), budget=boca.targets(9), seed=0)
    with pytest.raises(InvalidInput, match=r"line 1 of t\.jsonl"):
        opt.add_all(tmp_path / "t.jsonl")


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_parameter_may_have_the_name_of_a_clock_column(format, tmp_path):
    names = boca.Space(worker=boca.Float(0, 1), version=boca.Int(1, 9))
    problem = boca.Problem(names, boca.Space(host=boca.Int(1, 9)), cost=lambda z: float(z["host"]))
    first, second = (boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=k) for k in (1, 2))
    first.tell(first.ask(), 0.5)
    file = tmp_path / f"old.{format}"
    file.write_text(trial_io.text(first.history, format))
    second.add_all(file)
    assert seen(second.history) == seen(first.history)


def test_exports_say_when_and_where(study):
    rows = list(csv.DictReader(io.StringIO(trial_io.text(study.history, "csv"))))
    lines = [json.loads(line) for line in trial_io.text(study.history, "jsonl").splitlines()]
    for trial, row, line in zip(study.history, rows, lines, strict=True):
        assert row["version"] == line["version"] == boca.__version__
        if trial.added:
            assert (row["began"], line["began"], line["host"]) == ("", None, None)
        else:
            assert (row["began"], int(row["process"])) == (line["began"], line["process"])
            assert row["began"].endswith("Z")
            assert (row["ended"] == "") == (trial.state == "running")


def test_json_lines_have_the_attempts_without_a_result(study):
    lost = {7: (Attempt(0, 0.0, None, "node", 1, DIED),)}
    lines = [json.loads(line) for line in trial_io.text(study.history, "jsonl", lost).splitlines()]
    assert lines[7]["attempts"] == [lost[7][0].to_json()]
    assert not any("attempts" in line for k, line in enumerate(lines) if k != 7)


FORMULAS = ["=1+1", "+cmd", "-x", "@sum", "'=quoted", "''-twice", "plain", "'plain", "-1.5", "\tx"]


def test_no_cell_is_a_formula_and_every_text_comes_back(tmp_path):
    problem = boca.Problem(boca.Space(kind=boca.Choice(FORMULAS), a=boca.Float(-1, 1)))
    opt = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=1)
    for kind in FORMULAS:
        opt.add({"kind": kind, "a": -0.5}, None, -1.0)
    opt.fail(opt.ask(), "=HYPERLINK(1)")
    file = tmp_path / "trials.csv"
    file.write_text(trial_io.text(opt.history, "csv"))
    for row in csv.DictReader(io.StringIO(file.read_text())):
        for cell in row.values():
            assert cell[:1] not in ("=", "+", "@", "\t")
            assert not cell.startswith("-") or float(cell) < 0
    again = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=2)
    again.add_all(file)
    assert [t.x for t in again.history] == [t.x for t in opt.history if t.added]
