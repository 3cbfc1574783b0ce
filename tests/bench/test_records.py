"""The books of a run by hand: the best so far at the target, regrets, and files that survive a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boca.bench import records
from boca.domain.errors import InvalidInput

Make = Callable[..., dict[str, Any]]


# One run ----------------------------------------------------------------------------------------------------------


def test_the_curve_is_the_best_so_far_at_the_target_alone(make_record: Make) -> None:
    run = make_record([0.5, 1.5, 2.0, 3.0, 3.5, 4.0], [None, -0.4, -0.6, -0.2, None, -0.9])
    assert list(records.curve(run)) == [(1.5, -0.4), (2.0, -0.4), (3.0, -0.2), (4.0, -0.2)]


def test_the_curve_of_a_minimised_problem_falls(make_record: Make) -> None:
    run = make_record([1.0, 2.0, 3.0], [0.5, 0.75, 0.25], direction="minimize")
    assert list(records.curve(run)) == [(1.0, 0.5), (2.0, 0.5), (3.0, 0.25)]
    assert records.best_within(run, 2.0) == 0.5
    assert records.bests(run) == [0.5, 0.5, 0.25, 0.25]


def test_the_best_within_a_limit(make_record: Make) -> None:
    run = make_record([0.5, 1.5, 2.0, 3.0 + 1e-12], [None, -0.4, -0.3, -0.2])
    assert records.best_within(run, 1.0) is None
    assert records.best_within(run, 1.5) == -0.4  # exactly at the limit: inside
    assert records.best_within(run, 1.999) == -0.4
    assert records.best_within(run, 2.0) == -0.3
    assert records.best_within(run, 3.0) == -0.2  # over it by rounding alone: inside
    assert records.best_within(run, 2.999) == -0.3


def test_regrets_within_each_share_of_the_budget(make_record: Make) -> None:
    # budget 4: shares end at 1, 2, 3, 4
    run = make_record([0.5, 1.5, 2.0, 3.0 + 1e-12, 3.5, 4.0], [None, -0.4, -0.3, -0.2, None, -0.9])
    assert records.regrets(run) == [None, 0.3, 0.2, 0.2]
    assert records.bests(run) == [None, -0.3, -0.2, -0.2]


def test_what_was_spent_beyond_the_budget_does_not_count(make_record: Make) -> None:
    run = make_record([3.0, 4.1], [-0.4, -0.1], unit="seconds")
    assert records.regrets(run) == [None, None, 0.4, 0.4]


def test_regret_is_none_without_a_query_at_the_target_and_never_negative(make_record: Make) -> None:
    assert records.regrets(make_record([0.5], [None])) == [None] * 4
    assert records.regrets(make_record([1.0], [1e-9])) == [0.0] * 4
    assert records.regret(make_record([1.0], [0.0]), None) is None


def test_regrets_of_a_minimised_problem(make_record: Make) -> None:
    run = make_record([1, 2, 3], [2.5, 2.25, 4.0], direction="minimize", optimum=2.0)
    assert records.regrets(run) == [0.5, 0.25, 0.25, 0.25]
    assert records.regret(run, 2.0) == 0.0
    assert records.regret(run, 1.5) == 0.0


# Files ------------------------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_cut_and_never_read(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    records.append(path, {"seed": 0})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seed": 1, "reg')
    assert records.read(path) == [{"seed": 0}]
    records.cut_torn_line(path)
    assert path.read_bytes() == whole
    records.append(path, {"seed": 1})
    records.cut_torn_line(path)
    assert [record["seed"] for record in records.read(path)] == [0, 1]


def test_a_torn_only_line_and_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    assert records.read(path) == []
    records.cut_torn_line(path)
    assert not path.exists()
    path.write_bytes(b'{"se')
    records.cut_torn_line(path)
    assert path.read_bytes() == b""


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    path.write_bytes(b'{"seed": 0}\n\x00\x00\n{"seed": 1}\n')
    with pytest.raises(InvalidInput, match=r"Line 2 of .*p\.m\.jsonl"):
        records.read(path)


def test_what_is_no_number_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    with pytest.raises(ValueError, match="JSON"):
        records.append(path, {"value": float("nan")})
    assert records.read(path) == []


def test_runs_are_found_by_problem_method_and_seed(make_record: Make, tmp_path: Path) -> None:
    for method, seed in (("boca", 0), ("boca", 3), ("own:Random", 0)):
        records.append(records.path_of(tmp_path, "branin", method), make_record([1], [-1], method=method, seed=seed))
    runs = records.load(tmp_path)
    assert {method: list(by_seed) for method, by_seed in runs["branin"].items()} == {"boca": [0, 3], "own:Random": [0]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["branin.boca.jsonl", "branin.own-Random.jsonl"]


def test_of_two_runs_of_one_cell_the_first_counts(make_record: Make, tmp_path: Path) -> None:
    for value in (-1.0, -7.0):
        records.append(tmp_path / "branin.boca.jsonl", make_record([1.0], [value]))
    assert records.load(tmp_path)["branin"]["boca"][0]["trace"]["value"] == [-1.0]


def test_a_directory_without_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.m.jsonl").write_bytes(b'{"torn')
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match="no finished runs in"):
            records.load(directory)
