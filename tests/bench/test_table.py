"""The numbers of the tables by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boca.bench import records, runner, table
from boca.bench.runner import Cell

Make = Callable[..., dict[str, Any]]


def row(markdown: str, begin: str) -> list[str]:
    (line,) = [line for line in markdown.splitlines() if line.startswith(f"| {begin} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def with_optimum(make_record: Make) -> records.Runs:
    """Runs whose regrets at the four shares are these; seed s begins with s queries away from the target."""

    def run(method: str, seed: int, *regrets: float | None, recommended: float | None = 0.5) -> dict[str, Any]:
        made = make_record(
            [*(0.1 * (k + 1) for k in range(seed)), 1.0, 2.0, 3.0, 4.0],
            [*[None] * seed, *(None if r is None else -r for r in regrets)],
            recommendation=None if recommended is None else -recommended,
            knows_gp=method == "gp-ucb",
        )
        made["trace"]["overhead"] = [0.001 * (1 + seed)] * (4 + seed)
        return made

    return {
        "branin": {
            "boca": {
                0: run("boca", 0, 1.0, 0.1, 0.01, 0.0),
                1: run("boca", 1, 2.0, 0.2, 0.002, 1e-9),
                2: run("boca", 2, None, 0.3, 0.2, 0.2, recommended=None),
            },
            "gp-ucb": {
                0: run("gp-ucb", 0, 10.0, 0.1, 0.1, 1e-5),
                1: run("gp-ucb", 1, None, 0.2, 0.2, 1e-7),
                2: run("gp-ucb", 2, None, None, None, None),
                9: run("gp-ucb", 9, 5.0, 5.0, 5.0, 5.0),  # a seed that the reference has not run
            },
        }
    }


def test_regrets_of_a_table_by_hand(with_optimum: records.Runs) -> None:
    text = table.markdown(with_optimum, reference="boca").split("| log10 ratio")[0]
    assert row(text, "boca") == [
        "boca",
        "3",
        "1.5 ± 0.5 (1.5), none 1",
        "0.2 ± 0.058 (0.2)",
        "0.071 ± 0.065 (0.01)",
        "0.067 ± 0.067 (1e-09)",
        "1",
        "0.5 ± 0 (0.5), none 1",
        "4 of 5 (73 %)",  # 11 of 15
        "0.011 s (2.1 ms)",  # (4 * 1 + 5 * 2 + 6 * 3) milliseconds in 3 runs, 15 queries
    ]
    assert row(text, "gp-ucb")[6] == "1"  # 5.0; the run without a regret is no stuck one
    assert "The true GP was known to gp-ucb." in text
    assert "If no optimum is known" not in text


def test_paired_ratios_by_hand(with_optimum: records.Runs) -> None:
    text = table.markdown(with_optimum, reference="boca")
    cells = row(text.split("| log10 ratio to boca")[1], "gp-ucb")
    # seed by seed: 25 % +1, none, none; 50 % 0, 0, none; 75 % +1, +2, none;
    # 100 % log10(1e-5 / 1e-6) = 1, both at the floor = 0, none
    assert cells[:2] == ["gp-ucb", "3"]
    assert cells[2:] == ["+1.00, none 2", "+0.00 ± 0.00, none 1", "+1.50 ± 0.50, none 1", "+0.50 ± 0.50, none 1"]
    assert "floored at 1e-06" in text
    turned = table.markdown(with_optimum, reference="gp-ucb")
    assert row(turned.split("| log10 ratio to gp-ucb")[1], "boca")[4] == "-1.50 ± 0.50, none 1"


def test_ratios_are_none_where_there_is_nothing_to_pair(with_optimum: records.Runs) -> None:
    assert table.log_ratio(None, 1.0) is table.log_ratio(1.0, None) is None
    assert table.log_ratio(0.0, 1.0) == -6.0
    assert "There are no runs of random to compare with." in table.markdown(with_optimum, reference="random")


@pytest.fixture
def without_optimum(make_record: Make) -> records.Runs:
    """Runs of a minimised problem, four seconds each, with a query a second."""

    def run(*values: float | None) -> dict[str, Any]:
        return make_record([1.0, 2.0, 3.0, 4.0], values, optimum=None, unit="seconds", direction="minimize")

    return {
        "own:loss": {
            "boca": {0: run(5.0, 4.0, 3.0, 2.0), 1: run(7.0, 6.0, 8.0, 4.0)},
            "random": {0: run(6.0, 6.0, 5.0, 7.0), 1: run(None, 9.0, 8.0, 4.0)},
        }
    }


def test_values_of_a_table_by_hand(without_optimum: records.Runs) -> None:
    text = table.markdown(without_optimum, reference="boca").split("| difference")[0]
    assert row(text, "boca")[:6] == ["boca", "2", "6 ± 1 (6)", "5 ± 1 (5)", "4.5 ± 1.5 (4.5)", "3 ± 1 (3)"]
    assert row(text, "random")[2:6] == ["6 (6), none 1", "7.5 ± 1.5 (7.5)", "6.5 ± 1.5 (6.5)", "4.5 ± 0.5 (4.5)"]
    assert row(text, "method")[6:] == ["at z* of all queries", "overhead"]  # nobody knows who is stuck
    assert "Simple regret" not in text


def test_differences_count_what_is_better_as_positive(without_optimum: records.Runs) -> None:
    text = table.markdown(without_optimum, reference="boca")
    cells = row(text.split("| difference to boca")[1], "random")
    # seed by seed: 25 % 5 - 6, none; 50 % 4 - 6, 6 - 9; 75 % 3 - 5, 6 - 8; 100 % 2 - 5, 4 - 4
    assert cells == ["random", "2", "-1, none 1", "-2.5 ± 0.5", "-2 ± 0", "-1.5 ± 1.5"]
    for run in (run for by_seed in without_optimum["own:loss"].values() for run in by_seed.values()):
        run["direction"] = "maximize"
    turned = table.markdown(without_optimum, reference="boca")
    # the best so far is now 5, 5, 5, 5 and 7, 7, 8, 8 of boca, 6, 6, 6, 7 and none, 9, 9, 9 of random
    cells = row(turned.split("| difference to boca")[1], "random")
    assert cells[2:] == ["+1, none 1", "+1.5 ± 0.5", "+1 ± 0", "+1.5 ± 0.5"]


def test_problems_of_both_kinds_in_one_document(with_optimum: records.Runs, without_optimum: records.Runs) -> None:
    text = table.markdown(with_optimum | without_optimum, reference="boca")
    assert text.index("### branin") < text.index("### own:loss")
    assert text.index("Simple regret") < text.index("If no optimum is known") < text.index("### branin")


def test_a_summary_of_nothing_and_of_one() -> None:
    nothing, one = table.summary([None, None]), table.summary([3.0])
    assert math.isnan(nothing.mean)
    assert nothing.missing == 2
    assert (one.mean, one.median, one.missing) == (3.0, 3.0, 0)
    assert math.isnan(one.error)


def test_a_run_that_never_reached_the_target_has_no_number(toy: Any, tmp_path: Path) -> None:
    at = f"{toy.__name__}:"
    runner.run([Cell(at + "make", at + "NeverAtTarget", 0)], tmp_path, jobs=0)
    cells = row(table.markdown(records.load(tmp_path), reference="boca"), at + "NeverAtTarget")
    assert cells[2:7] == ["none 1"] * 4 + ["0"]
    assert cells[8] == "0 of 16 (0 %)"
