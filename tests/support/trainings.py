"""A training that passes through steps, which shows if it went on from the wrong place, and strategies for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import boca

SPACE = boca.Space(a=boca.Float(0, 1))
FIDELITY = boca.Space(epochs=boca.Steps(1, 9))


def cost(z: dict[str, Any]) -> float:
    return float(z["epochs"])


def loss(x: dict[str, Any], step: int) -> float:
    """Return what a training of so many steps must have reached, whoever made them."""
    return float((x["a"] - 0.3) ** 2 + 1.0 / step)


def training(pause: float = 0.0, save_every: int = 1) -> Callable[..., None]:
    """Return a training whose state is the number of steps that it has made."""

    def train(x: dict[str, Any], z: dict[str, Any], run: boca.Run) -> None:
        made = json.loads((run.checkpoint / "made").read_text()) if run.checkpoint is not None else 0
        assert made == run.start
        for step in run.steps():
            time.sleep(pause)
            made += 1
            run.report(step, (x["a"] - 0.3) ** 2 + 1.0 / made)
            if step % save_every == 0:
                with run.save() as folder:
                    (folder / "made").write_text(json.dumps(made))

    return train


@dataclass(frozen=True)
class Climb:
    """Draw a point at a low step, and then go on with it step by step to the target: each goes on three times."""

    rungs: tuple[int, ...] = (2, 5, 9)

    def suggest(
        self, problem: boca.Problem, history: boca.History, budget: Any, rng: np.random.Generator
    ) -> boca.Suggestion:
        continued = {trial.continues for trial in history}
        for trial in history.complete:
            higher = [rung for rung in self.rungs if rung > trial.z["epochs"]]
            if higher and trial.number not in continued and trial.checkpoint is not None:
                why = {"reason": f"Goes on with trial {trial.number}.", "phase": "start"}
                return boca.Suggestion(dict(trial.x), {"epochs": higher[0]}, why, continues=trial.number)
        x = problem.space.from_unit(problem.space.snap(rng.random((1, 1)))[0])
        return boca.Suggestion(x, {"epochs": self.rungs[0]}, {"reason": "Begins.", "phase": "start"})


@dataclass(frozen=True)
class StopAt:
    """Random points at the target, of which every other one is stopped at a step."""

    step: int = 4

    def suggest(
        self, problem: boca.Problem, history: boca.History, budget: Any, rng: np.random.Generator
    ) -> boca.Suggestion:
        x = problem.space.from_unit(problem.space.snap(rng.random((1, 1)))[0])
        return boca.Suggestion(x, dict(problem.target), {"reason": "A random point.", "phase": "start"})

    def keep_going(
        self, problem: boca.Problem, history: boca.History, trial: boca.Trial, rng: np.random.Generator
    ) -> boca.Verdict:
        return boca.Verdict(trial.number % 2 == 0 or trial.reached < self.step, {"reason": "It is odd."})
