"""A finite list of candidates: how it is read, which points it has, and that none is run twice at a fidelity."""

from __future__ import annotations

import csv
import pickle

import numpy as np
import pytest

import boca
from boca import Candidates, Choice, Float, Int, targets
from boca.errors import InvalidInput
from boca.study import spec
from boca.study.trial_io import text


def made(count=40, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"name": f"c{i}", "a": float(rng.random()), "b": int(rng.integers(50)), "kind": "xyz"[i % 3]}
        | ({"q": float(rng.random())} if i % 2 else {})
        for i in range(count)
    ]


ROWS = made()
SPACE = Candidates(ROWS, labels=["name"])


def value(x):
    return x["a"] - (x["b"] / 50 - 0.5) ** 2 + x.get("q", 0.0)


def test_columns_are_features_and_labels():
    assert {name: type(p) for name, p in SPACE.items()} == {"a": Float, "b": Int, "kind": Choice, "q": Float}
    assert SPACE.names == ("a", "b", "kind", "q", "name")
    assert SPACE.size == 40
    assert list(SPACE.optional) == [False, False, False, True]
    assert SPACE.rows[0] == {name: ROWS[0][name] for name in ROWS[0]}


def test_mappings_a_table_and_a_csv_are_the_same(tmp_path):
    import pandas as pd

    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "a", "b", "kind", "q"])
        writer.writeheader()
        writer.writerows(ROWS)
    assert Candidates(tmp_path / "rows.csv", labels=["name"]) == SPACE
    assert Candidates(str(tmp_path / "rows.csv"), labels=["name"]) == SPACE
    assert Candidates(pd.DataFrame(ROWS), labels=["name"]) == SPACE
    assert pickle.loads(pickle.dumps(SPACE)) == SPACE
    assert hash(Candidates(ROWS, labels=["name"])) == hash(SPACE)


def test_rows_and_unit_coordinates_belong_together():
    U = SPACE.points()
    assert [SPACE.from_unit(u)["name"] for u in U] == [row["name"] for row in ROWS]
    assert np.array_equal(SPACE.snap(U), U)
    assert np.array_equal(U[:, 3] < 0.0, ["q" not in row for row in ROWS])
    near = np.random.default_rng(1).random((30, 4))
    assert all(any(np.array_equal(u, row) for row in U) for u in SPACE.snap(near))


def test_a_point_is_named_by_its_features_or_its_labels():
    row = ROWS[3]
    assert SPACE.validate({k: v for k, v in row.items() if k != "name"}, "x") == row
    assert SPACE.validate({"name": "c3"}, "x") == row
    assert SPACE.validate({**ROWS[2], "q": None}, "x") == ROWS[2]
    for wrong in ({**row, "a": 0.5}, {**row, "name": "c4"}, {"name": "none"}, {}):
        with pytest.raises(InvalidInput, match="none of the 40 rows"):
            SPACE.validate(wrong, "x")
    with pytest.raises(InvalidInput, match="other"):
        SPACE.validate({**row, "other": 1}, "x")


@pytest.mark.parametrize("strategy", [boca.RandomSearch(), boca.Boca()], ids=["random", "boca"])
def test_every_row_is_run_once_and_then_the_study_ends(strategy):
    small = Candidates(made(12), labels=["name"])
    result = boca.maximize(value, small, budget=targets(50), strategy=strategy, seed=0)
    assert sorted(t.x["name"] for t in result.history) == sorted(row["name"] for row in small.rows)
    assert result.value == max(map(value, made(12)))


def test_no_row_is_run_twice_at_a_fidelity():
    fidelity = boca.Space(n=Int(1, 3))
    result = boca.maximize(
        lambda x, z: value(x) + 0.1 * z["n"], SPACE, fidelity, cost=lambda z: z["n"], budget=targets(25), seed=1
    )
    done = [(t.x["name"], t.z["n"]) for t in result.history]
    assert len(set(done)) == len(done) > 25


def test_rows_may_be_repeated_if_that_is_wanted():
    again = Candidates(made(4), labels=["name"], repeat=True)
    assert len(boca.maximize(value, again, budget=targets(12), seed=0).history) == 12


def test_the_search_finds_the_best_row_early():
    rows = made(300, seed=4)
    best = max(map(value, rows))
    found = [
        boca.maximize(value, Candidates(rows, labels=["name"]), budget=targets(40), seed=seed).value
        for seed in range(3)
    ]
    # 40 random rows of 300 have the best one in 13 % of the runs, and all three runs in 0.2 %
    assert found == [best] * 3


def test_constraints_leave_rows_out():
    few = SPACE.where("b <= 20").where(lambda x: x["kind"] != "x", "not x")
    expected = [row["name"] for row in ROWS if row["b"] <= 20 and row["kind"] != "x"]
    assert [row["name"] for row in few.rows] == expected
    assert len(SPACE.rows) == 40
    result = boca.maximize(value, few, budget=targets(99), seed=0)
    assert sorted(t.x["name"] for t in result.history) == sorted(expected)
    optimizer = boca.Optimizer(boca.Problem(few), budget=None, seed=0)
    optimizer.add(ROWS[0], None, 3.0)  # kind x: data all the same
    with pytest.raises(InvalidInput, match="does not hold"):
        optimizer.enqueue(ROWS[0])
    with pytest.raises(InvalidInput, match="No row"):
        SPACE.where("b > 99")
    assert SPACE.where("q <= 0.5").validate(ROWS[2], "x") == ROWS[2]  # without q, it holds


def test_a_study_stores_a_fingerprint_and_resumes_with_the_same_rows(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    optimizer = boca.Optimizer(boca.Problem(SPACE), budget=None, seed=1, storage=url)
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, value(trial.x))
    resumed = boca.Optimizer(boca.Problem(SPACE), budget=None, seed=1, storage=url)
    assert resumed.ask().x == boca_next(optimizer)
    stored = spec.describe(boca.Problem(SPACE), boca.Boca(), seed=0, limit=None)
    assert "c3" not in str(stored)
    with pytest.raises(InvalidInput, match="candidates was"):
        boca.Optimizer(boca.Problem(Candidates(ROWS[1:], labels=["name"])), budget=None, seed=1, storage=url)


def boca_next(optimizer):
    """Return the x of trial 6, which another optimizer of the same study has asked for."""
    return optimizer.history[6].x


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_trials_are_exported_with_labels_and_read_again(tmp_path, format):
    optimizer = boca.Optimizer(boca.Problem(SPACE), budget=None, seed=1, strategy=boca.RandomSearch())
    for _ in range(8):
        optimizer.tell(optimizer.ask(), 1.0)
    path = tmp_path / f"trials.{format}"
    path.write_text(text(optimizer.history, format))
    assert "c" in path.read_text()
    other = boca.Optimizer(boca.Problem(SPACE), budget=None, seed=2)
    other.add_all(path)
    assert [t.x for t in other.history] == [t.x for t in optimizer.history]


@pytest.mark.parametrize(
    ("rows", "more", "part"),
    [
        ([{"a": 1}], {}, "2 to 100,000 rows"),
        ([{"a": 1}, {"a": 1}], {}, "one value"),
        ([{"a": 1, "b": 2}, {"a": 2, "b": 2}], {}, r"labels=\['b'\]"),
        ([{"a": 1, "n": "x"}, {"a": 2, "n": "y"}, {"a": 1, "n": "z"}], {"labels": ["n"]}, "same features"),
        ([{"a": 1}, {"a": 2}], {"labels": "a"}, "list of columns"),
        ([{"a": 1}, {"a": 2}], {"labels": ["b"]}, "'b'"),
        ([{"a": 1}, {"a": 2}], {"labels": ["a"]}, "must have a feature"),
        ([{"a": [1]}, {"a": 2}], {}, "Row 0"),
        ([{"a": f"t{i}"} for i in range(300)], {}, "300 different texts"),
        ("nowhere.csv", {}, "nowhere.csv"),
        (3, {}, "list of mappings"),
        ([{"a": 1}, {"a": 20}], {"parameters": {"a": Float(0, 10)}}, "20"),
    ],
)
def test_rows_that_cannot_be_searched_are_refused(rows, more, part):
    with pytest.raises(InvalidInput, match=part):
        Candidates(rows, **more)


def test_a_feature_may_have_a_scale_of_its_own():
    space = Candidates([{"c": 0.1}, {"c": 1.0}, {"c": 10.0}], parameters={"c": Float(0.1, 10.0, log=True)})
    assert np.allclose(space.points()[:, 0], [0.0, 0.5, 1.0])


def test_the_strategies_of_papers_refuse_a_list():
    for strategy in (boca.GPUCB(), boca.GPEI(), boca.MFGPUCB(), boca.MFSKO(), boca.Boca.paper()):
        with pytest.raises(InvalidInput, match="list of candidates"):
            boca.Optimizer(boca.Problem(SPACE), budget=None, strategy=strategy)
