"""Cumulative regret and the parts of the budget, by hand and on a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boca import theory
from boca.bench import accounts, runner
from boca.bench.runner import Cell


def run(optimum: float | None = 1.0) -> dict[str, Any]:
    return {
        "capital": 10.0,
        "optimum": optimum,
        "direction": "maximize",
        "trace": {
            "spent": [0.5, 2.5, 3.0, 5.0, 7.0],
            "at_target": [False, True, False, True, True],
            "value": [None, 0.2, None, 0.9, 0.4],
            "overhead": [0.1, 0.2, 0.3, 0.0, 0.4],
        },
    }


def test_the_parts_by_hand() -> None:
    found = accounts.accounts(run())
    assert found.cumulative_regret == pytest.approx(0.8 + 0.1 + 0.6)
    assert found.target_share == pytest.approx(0.6)
    assert found.cheaper_share == pytest.approx(0.1)
    assert found.unspent_share == pytest.approx(0.3)
    assert found.overhead == pytest.approx(1.0)
    assert accounts.accounts(run(None)).cumulative_regret is None


def test_on_a_run_it_is_the_last_sum_of_the_theory() -> None:
    record = runner.run_cell(Cell("currin", "random", 0))
    at, value = np.array(record["trace"]["at_target"]), record["trace"]["value"]
    short = np.array([0.0 if v is None else record["optimum"] - v for v in value])
    found = accounts.accounts(record)
    assert found.cumulative_regret == pytest.approx(theory.cumulative_regret(short, at)[-1])
    assert found.target_share == pytest.approx(1.0)  # random search asks the target only


def test_the_table_has_a_row_for_every_method() -> None:
    text = accounts.markdown({"branin": {"boca": {0: run(), 1: run()}, "random": {0: run(None)}}})
    assert "| boca | 2 | 1.5 ± 0 | 60 % | 10 % | 30 % | 1 s |" in text
    assert "| random | 1 | - | 60 % | 10 % | 30 % | 1 s |" in text
