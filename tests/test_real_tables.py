"""Rows and statistics of the real tasks, on runs that were made up."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from boca.bench import records

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

from benchmarks.real import __main__ as real
from benchmarks.real import compared, rows, tasks
from benchmarks.real.rows import Row

GP = "benchmarks.peers.optuna:GP"


def record(method, seed, values, *, task="lcbench_34539", capital=10.0, optimum=1.0, family="lcbench"):
    """A run of a query per unit of cost; a value of None is not at the target."""
    n = len(values)
    return {
        "problem": tasks.PATH + task, "method": method, "seed": seed, "learn": False, "direction": "maximize",
        "capital": capital, "unit": "cost", "optimum": optimum, "family": family, "seconds": 1.0,
        "spread": None if optimum is None else 2.0,
        "trace": {
            "cost": [1.0] * n, "seconds": [3.0] * n, "overhead": [0.5] * n, "spent": [float(k + 1) for k in range(n)],
            "at_target": [v is not None for v in values], "value": values,
        },
    }  # fmt: skip


def store(directory, targets, *found):
    folder = directory / f"{targets:g}"
    records.make(folder)
    for run in found:
        records.append(records.path_of(folder, run["problem"], run["method"]), run)


def made(method, task, seed, regrets, family="lcbench"):
    return Row(task, family, method, seed, 15.0, tuple(regrets), 10, 1.0)


# Rows ---------------------------------------------------------------------------------------------------------------


def test_a_row_has_the_regret_in_spreads_at_every_share():
    run = record("boca", 3, [0.0, None, 0.2, 0.2, 0.6, 0.5, 0.9, 0.9, 0.9, 0.9])
    found = rows.row(run, 15)
    assert found.regrets == pytest.approx((None, 0.5, 0.5, 0.2, 0.05), nan_ok=False)
    assert (found.task, found.method, found.seed, found.queries) == ("lcbench_34539", "boca", 3, 10)
    assert found.choosing == pytest.approx(5.0)


def test_a_method_that_ignores_the_budget_has_the_rows_of_smaller_ones_too(tmp_path):
    values = [k / 10 for k in range(10)]
    store(tmp_path, 50, record(GP, 0, values), record("boca", 0, values))
    store(tmp_path, 15, record("boca", 0, [0.5, 0.7, 0.8], capital=3.0))
    found = {(r.method, r.targets): r for r in rows.from_directory(tmp_path, [GP])}
    assert set(found) == {("peers.optuna:GP", 50.0), ("peers.optuna:GP", 15.0), ("boca", 50.0), ("boca", 15.0)}
    assert found["peers.optuna:GP", 15.0].queries == 3
    assert found["peers.optuna:GP", 15.0].regrets[-1] == pytest.approx((1 - 0.2) / 2)
    assert found["boca", 15.0].regrets[-1] == pytest.approx(0.1)
    assert found["boca", 50.0].regrets[-1] == pytest.approx(0.05)


def test_a_live_task_is_judged_by_the_best_that_any_run_found(tmp_path):
    live = {"task": "live_svc_digits", "optimum": None, "family": "live"}
    store(tmp_path, 15, record("random", 0, [0.2, 0.4, 0.6], **live), record("boca", 0, [None, 0.9], **live))
    found = {r.method: r.regrets[-1] for r in rows.from_directory(tmp_path, [])}
    assert found == pytest.approx({"random": (0.9 - 0.6) / 0.5, "boca": 0.0})


def test_a_csv_gives_the_same_rows_back(tmp_path):
    before = [made("boca", "taskset_0", 1, (None, 0.5, 0.25, 0.125, 0.0)), made("random", "a", 0, [1.0] * 5)]
    path = tmp_path / "runs.csv"
    path.write_text(rows.to_csv(before) + "\n")
    assert sorted(rows.from_csv(path), key=lambda r: r.method) == before


# Statistics ---------------------------------------------------------------------------------------------------------


def test_ranks_share_ties_and_no_result_is_last():
    found = [
        made("a", "t", 0, (None, 0.5, 0.1, 0.1, 1e-5)),
        made("b", "t", 0, (None, 0.5, 0.2, 0.2, 1e-9)),
        made("c", "t", 0, (0.9, None, 0.3, 0.05, 0.5)),
        made("a", "t", 1, [0.1] * 5),  # the others lack this seed: no ranks of it
    ]
    ranks = compared.mean_ranks(found)
    assert ranks["a"] == [2.5, 1.5, 1, 2, 1.5]
    assert ranks["b"] == [2.5, 1.5, 2, 3, 1.5]
    assert ranks["c"] == [1, 3, 3, 1, 3]


def test_ratios_are_paired_by_task_and_seed_and_pooled_over_tasks():
    found = []
    for task, seed, ours, theirs in (("s", 0, 0.01, 0.1), ("s", 1, 0.1, 0.1), ("t", 0, 0.5, 0.05), ("t", 1, None, 1)):
        found += [made("mine", task, seed, [ours] * 5), made("ref", task, seed, [theirs] * 5)]
    found.append(made("mine", "t", 7, [0.1] * 5))
    pairs = compared.paired(found, "mine", "ref", 2)
    assert pairs.by_task == {"s": pytest.approx((-1.0, 0.0)), "t": pytest.approx((1.0,))}
    assert pairs.missing == 1
    assert pairs.counts == (1, 1, 1)
    assert pairs.pooled.mean == pytest.approx((-0.5 + 1.0) / 2)
    assert pairs.pooled.error == pytest.approx(np.std([-0.5, 1.0], ddof=1) / math.sqrt(2))


def test_differences_below_a_thousandth_of_the_spread_are_none():
    found = [made("mine", "t", 0, [1e-8] * 5), made("ref", "t", 0, [1e-3] * 5)]
    assert compared.paired(found, "mine", "ref", 0).all == (0.0,)


def test_holm_is_what_its_definition_says():
    ps = [0.01, 0.04, 0.03, 0.005]
    ordered = sorted(ps)
    by_definition = {p: min(1.0, max((4 - j) * ordered[j] for j in range(ordered.index(p) + 1))) for p in ps}
    assert compared.holm(ps) == pytest.approx([by_definition[p] for p in ps])
    assert compared.holm(ps) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert compared.holm([0.9, 0.8]) == [1.0, 1.0]


def test_luck_is_seldom_called_a_difference_and_a_difference_is():
    """Forty families of pure noise, ten tests each: Holm finds something in about one of twenty, raw p in many."""
    rng = np.random.default_rng(0)
    families = [[_p(rng, 0.0) for _ in range(10)] for _ in range(40)]
    corrected = sum(min(compared.holm(ps)) < 0.05 for ps in families)
    raw = sum(min(ps) < 0.05 for ps in families)
    assert corrected <= 6 < raw
    assert max(compared.holm([_p(rng, 1.5) for _ in range(10)])) < 0.05


def _p(rng, shift):
    return compared.Pairs({"t": tuple(rng.normal(shift, 1.0, 25))}, 0).p


def test_pairs_that_are_all_equal_have_a_p_of_one():
    assert compared.Pairs({"t": (0.0, 0.0)}, 0).p == 1.0


def test_a_method_on_a_few_tasks_is_left_out_and_named():
    found = [made("boca", f"t{k}", 0, [0.1] * 5) for k in range(5)] + [made("slow", "t0", 0, [0.2] * 5)]
    text = compared.markdown(found, "boca")
    assert "fewer than half of these tasks: slow." in text
    assert "| slow |" not in text
    assert "| slow |" in compared.markdown([r for r in found if r.task == "t0"], "boca")


def test_shares_without_a_pair_are_no_tests():
    found = []
    for seed in range(12):
        found += [
            made("boca", "t", seed, [None, None, 0.1, 0.1, 0.1]),
            made("m", "t", seed, [None, 0.2, 0.2, 0.1, 0.1]),
        ]
    (row,) = compared._family_rows(found, "boca")
    assert row[1] == row[2] == "none 12"
    raw = compared.paired(found, "m", "boca", 2).p
    assert f"p {3 * raw:.2g}" in row[3], "three shares have pairs"


# Tables and the command ---------------------------------------------------------------------------------------------


def test_the_tables_say_ranks_ratios_counts_and_what_is_missing(tmp_path, capsys):
    for seed, task in itertools.product(range(3), ("lcbench_34539", "lcbench_126026")):
        worse = [None, *([0.5 - 0.01 * seed] * 9)]
        store(tmp_path, 15, record("boca", seed, [0.9] * 10, task=task), record(GP, seed, worse, task=task))
    assert real.main(["table", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "15 targets: 2 tasks, up to 3 seeds" in text
    assert "| boca | 1.50 | 1.00 | 1.00 | 1.00 | 1.00 |" in text, "neither has a result at 5 %"
    assert "none 6" in text
    assert "(0 / 0 / 6; p" in text
    assert real.main(["csv", str(tmp_path), "--half", "check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("task,family,method,seed,targets,5 %")
    assert {line.split(",")[0] for line in lines[1:]} == {"lcbench_126026"}


def test_the_committed_rows_make_the_tables_of_the_readme(capsys):
    folder = Path(real.__file__).parent
    assert real.main(["table", str(folder / "runs.csv"), "--half", "tune"]) == 0
    made_now = capsys.readouterr().out.strip()
    assert made_now in (folder / "README.md").read_text()


def test_live_tasks_have_a_table_of_their_own(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    both = [made("boca", "taskset_0", 0, [0.5] * 5, "taskset"), made("boca", "live_svc_digits", 0, [0.25] * 5, "live")]
    path.write_text(rows.to_csv(both) + "\n")
    assert real.main(["table", str(path)]) == 0
    assert "0.5 |" in (text := capsys.readouterr().out)
    assert "0.25" not in text
    assert real.main(["table", str(path), "--family", "live"]) == 0
    assert "0.25 |" in capsys.readouterr().out


def test_cells_go_seed_by_seed_so_that_a_part_is_a_comparison():
    cells = real.cells(["a", "b"], ["boca", "random"], 2)
    assert [c.seed for c in cells] == [0] * 4 + [1] * 4
    assert {(c.problem, c.method) for c in cells[:4]} == {(tasks.PATH + t, m) for t in "ab" for m in ("boca", "random")}


def test_the_command_runs_what_is_missing_and_says_what_it_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BOCA_DATA", raising=False)
    command = ["run", "--out", str(tmp_path), "--task", "trees_cancer", "--task", "lcbench_34539", "--method", "random"]
    assert real.main([*command, "--targets", "3", "--seeds", "1"]) == 0
    assert "lcbench_34539" in capsys.readouterr().err
    assert real.main([*command, "--targets", "3", "--seeds", "2"]) == 0
    (path,) = (tmp_path / "3").iterdir()
    assert [run["seed"] for run in records.read(path)] == [0, 1]
