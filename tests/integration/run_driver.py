"""A study of runs with ask and tell, as a user writes it, which writes down what was acknowledged to it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import boca
from boca.study import report_buffer
from boca.study.storage import Lease

LAST = 9
PROBLEM = boca.Problem(
    boca.Space(a=boca.Float(0, 1)),
    boca.Space(n=boca.Int(10, 20), epochs=boca.Steps(1, LAST)),
    cost=lambda z: z["n"] * (2.0 + z["epochs"]),
)


@dataclass(frozen=True)
class PauseAndContinue:
    """Run every point for three steps; continue the last run that was paused, unless it is bad."""

    def suggest(
        self, problem: boca.Problem, history: boca.History, budget: boca.Budget, rng: np.random.Generator
    ) -> boca.Suggestion:
        last = history[-1] if len(history) else None
        if last is not None and last.state == "complete" and last.stop is None and last.z["epochs"] < LAST:
            z = {**last.z, "epochs": last.z["epochs"] + 3}
            return boca.Suggestion(last.x, z, {"reason": "It is worth more.", "phase": "start"}, last.number)
        x = problem.space.from_unit(rng.random(1))
        return boca.Suggestion(x, {"n": 20, "epochs": 3}, {"reason": "A new point.", "phase": "start"})

    def keep_going(
        self, problem: boca.Problem, history: boca.History, trial: boca.Trial, rng: np.random.Generator
    ) -> boca.Verdict:
        is_bad = trial.x["a"] < 0.6 and trial.reached % 3 == 2
        return boca.Verdict(not is_bad, {"reason": "It is bad."} if is_bad else {})


def settings() -> dict[str, Any]:
    return {"budget": boca.targets(8), "strategy": PauseAndContinue(), "seed": 5}


def value(x: dict[str, Any], step: int) -> float:
    return float(x["a"] + np.log(step))


def run(url: str | None, log: str | None, pause: float = 0.0) -> boca.Optimizer:
    """Run, or go on with, the study to its end; every report is durable when it returns."""
    report_buffer.INTERVAL = 0.0

    def note(*said: Any) -> None:
        if log is not None:
            with Path(log).open("a") as file:
                file.write(json.dumps(said) + "\n")
                file.flush()
                os.fsync(file.fileno())

    opt = boca.Optimizer(PROBLEM, storage=url, name="runs", **settings())
    lease = Lease()
    while True:
        taken = opt.take_over(lease, max_retries=10**6)
        trial = taken[0] if taken else opt.ask(lease=lease)
        if trial is None:
            return opt
        note("start", trial.number, trial.attempt, trial.start)
        steps = range(trial.start + 1, trial.planned["epochs"] + 1)
        for step in steps if trial.stop is None else ():  # a driver that died may have been told to stop it
            time.sleep(pause)
            goes_on = opt.report(trial, step, value(trial.x, step))
            note("report", trial.number, step, value(trial.x, step))
            if step % 2 == 0 or not goes_on or step == trial.planned["epochs"]:
                opt.saved(trial, step, f"{trial.number}.checkpoint")
                note("saved", trial.number, step)
            if not goes_on:
                break
        done = opt.tell(trial, None)
        note("told", trial.number, done.value, done.cost)
