"""What an objective may do wrong in a run with workers: the right state, the right words, and a worker soon after."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from dataclasses import dataclass

import pytest

import boca
from boca.execution.executors import Workers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED HERE: limits of memory are Linux's")

TIMEOUT = 3.0
WORDS = {
    "raises": "ValueError: no such matrix",
    "nan": "must return a finite number; it returned nan.",
    "inf": "must return a finite number; it returned inf.",
    "none": "must return a finite number; it returned None.",
    "text": "must return a finite number; it returned '0.5'.",
    "hangs": "no result after 3 s",
    "segfaults": "SIGSEGV",
    "exits": "status 3",
    "leaks": "MemoryError",
}
ORDER = [what for fault in WORDS for what in ("is fine", fault)] + ["is fine"]
SPACE = boca.Space(what=boca.Choice(["is fine", *WORDS]))


@dataclass(frozen=True)
class InOrder:
    """Everything that can go wrong, one after the other, with something sound in between."""

    def suggest(self, problem, history, budget, rng):
        what = ORDER[len(history) % len(ORDER)]
        return boca.Suggestion({"what": what}, {}, {"reason": "Its turn.", "phase": "start"})


def objective_that(writes):
    def objective(x):
        with open(writes, "a") as file:
            file.write(f"{time.time()!r}\n")
        match x["what"]:
            case "raises":
                raise ValueError("no such matrix")
            case "nan":
                return math.nan
            case "inf":
                return math.inf
            case "none":
                return None
            case "text":
                return "0.5"
            case "hangs":
                time.sleep(600.0)
            case "segfaults":
                ctypes.string_at(0)
            case "exits":
                os._exit(3)
            case "leaks":
                kept = []
                while True:
                    kept.append(bytes(2**24))
        return 0.5

    return objective


def test_every_fault_has_its_state_and_its_words_and_the_worker_is_back_within_five_seconds(tmp_path):
    result = boca.maximize(
        objective_that(tmp_path / "starts"),
        SPACE,
        budget=len(ORDER),
        strategy=InOrder(),
        seed=0,
        executor=Workers(1, memory=2**30),
        timeout=TIMEOUT,
        max_retries=0,
        storage=f"sqlite:///{tmp_path / 'study.db'}",
    )
    assert [trial.x["what"] for trial in result.history] == ORDER
    for trial in result.history:
        words = WORDS.get(trial.x["what"])
        if words is None:
            assert (trial.state, trial.value) == ("complete", 0.5)
        else:
            assert (trial.state, trial.value) == ("failed", None)
            assert words in trial.reason
    assert result.spent == len(ORDER)
    starts = [float(line) for line in (tmp_path / "starts").read_text().splitlines()]
    assert len(starts) == len(ORDER)
    for what, began, after in zip(ORDER, starts, starts[1:], strict=False):
        assert after - began < (TIMEOUT if what == "hangs" else 0.0) + 5.0, what
