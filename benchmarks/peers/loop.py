"""For optimizers that expect to run the loop: their object is a fold over the history, kept between suggestions.

The seed is stored with every trial, and what was told is compared with the history.  Where the object at hand does not
belong to this history, a new one is led through it: the same seed and the same results give the same questions.  So a
suggestion rests on the history alone, as with every other strategy, and the object is only a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from boca.domain.errors import BocaError
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, Suggestion, Trial

SEED = "peer_seed"


class Session(Protocol):
    """An optimizer of another library while it runs, with one suggestion open at a time."""

    def ask(self) -> tuple[Point, Point]:
        """Return the next x and z."""
        ...

    def tell(self, score: float) -> None:
        """Answer the last question; more is better."""
        ...


class Memory:
    """A session with all that it was asked and told."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._seed = 0
        self._asked: list[tuple[Point, Point]] = []
        self._told: list[float] = []

    def suggest(
        self,
        problem: Problem,
        history: History,
        rng: np.random.Generator,
        begin: Callable[[int], Session],
        *,
        name: str,
    ) -> Suggestion:
        """Return the question that follows this history."""
        seed = _seed(history, rng)
        scores = [float(score) for score in history.scores(problem.direction)]
        if self._session is None or not self._precedes(seed, history.finished, scores):
            self._session, self._seed, self._asked, self._told = begin(seed), seed, [], []
        for trial, score in list(zip(history.finished, scores, strict=True))[len(self._told) :]:
            if self._question(problem) != (trial.x, trial.z):
                raise BocaError(
                    f"{name} must be asked for every trial of its study: trial {trial.number} is none of its own."
                )
            self._session.tell(score)
            self._told.append(score)
        x, z = self._question(problem)
        why: dict[str, Any] = {"reason": f"The next question of {name}.", "phase": "start", SEED: seed}
        return Suggestion(dict(x), dict(z), why)

    def _precedes(self, seed: int, trials: tuple[Trial, ...], scores: list[float]) -> bool:
        """Whether what the session was told is how this history begins."""
        n = len(self._told)
        return seed == self._seed and self._told == scores[:n] and self._asked[:n] == [(t.x, t.z) for t in trials[:n]]

    def _question(self, problem: Problem) -> tuple[Point, Point]:
        """Return the open question; if there is none, ask."""
        assert self._session is not None
        if len(self._asked) == len(self._told):
            x, z = self._session.ask()
            self._asked.append((problem.space.validate(x, "x"), problem.fidelity.validate(z, "z")))
        return self._asked[-1]


def _seed(history: History, rng: np.random.Generator) -> int:
    stored = history[0].why.get(SEED) if len(history) else None
    return int(rng.integers(2**31)) if stored is None else int(stored)
