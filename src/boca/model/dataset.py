"""A history as arrays: what was observed, in the order in which it was told, and what is still running.

symbol   shape    meaning
U        (n, d)   unit coordinates of x
Z        (n, p)   unit coordinates of z
scores   (n,)     values, so that more is better; a failure counts as the worst one
X        (n, D)   features, by an encoding
y        (n,)     standardised scores
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History
from boca.gp.fit import Standardisation
from boca.gp.fitc import IntArray
from boca.gp.noise import Noise
from boca.model.encoding import BoolArray, Encoding

_GOLDEN = 0.6180339887498949
_LARGEST_NOISE = 1e12  # standardised: such a result says nothing, and infinity would break the factor


@dataclass(frozen=True)
class Dataset:
    """All results of a history, made once for everything that a decision does with them."""

    problem: Problem
    U: FloatArray
    Z: FloatArray
    scores: FloatArray
    variances: FloatArray | None  # (n,), of single results as the user told them; None if none was told
    running: tuple[FloatArray, FloatArray]  # U and Z of the trials without a result
    iterations: int
    """How many trials a model chose: a refit remembers it."""

    @classmethod
    def of(cls, problem: Problem, history: History) -> Dataset:
        finished = history.finished
        has_noise = any(t.noise is not None for t in finished)
        return cls(
            problem,
            problem.space.to_unit([t.x for t in finished]),
            problem.fidelity.to_unit([t.z for t in finished]),
            history.scores(problem.direction),
            np.array([t.noise or 0.0 for t in finished]) if has_noise else None,
            (
                problem.space.to_unit([t.x for t in history.running]),
                problem.fidelity.to_unit([t.planned for t in history.running]),
            ),
            len(history.chosen),
        )

    @property
    def results(self) -> int:
        """How many results say something: one with an infinite variance does not."""
        return len(self.scores) if self.variances is None else int(np.sum(np.isfinite(self.variances)))

    def encoded(self, encoding: Encoding, standard: Standardisation) -> Data:
        """Return what a GP is conditioned on."""
        noise = None
        if self.variances is not None:
            noise = np.minimum(self.variances / standard.scale / standard.scale, _LARGEST_NOISE)
        X = encoding.features(self.U, self.Z)
        pending = encoding.features(*self.running)
        return Data(
            self.U, X, standard.apply(self.scores), noise, encoding.is_target(X), pending, encoding.is_target(pending)
        )


@dataclass(frozen=True)
class Data:
    """What a GP is conditioned on, in standardised units."""

    U: FloatArray  # (n, d)
    X: FloatArray  # (n, D)
    y: FloatArray  # (n,)
    noise: FloatArray | None  # (n,)
    is_target: BoolArray  # (n,)
    pending: FloatArray  # (m, D)
    is_pending_target: BoolArray  # (m,)

    def taken(self, rows: IntArray) -> Data:
        """Return these results, in this order."""
        noise = None if self.noise is None else self.noise[rows]
        return replace(
            self, U=self.U[rows], X=self.X[rows], y=self.y[rows], noise=noise, is_target=self.is_target[rows]
        )

    def with_noise(self, noise: Noise) -> Data:
        """Return the results with these components of the noise added."""
        return replace(self, noise=noise.added_to(self.noise, self.X))

    def at_target(self) -> Data:
        """Return the results at the target, and what is running there."""
        kept = self.taken(np.flatnonzero(self.is_target))
        here = self.is_pending_target
        return replace(kept, pending=self.pending[here], is_pending_target=here[here])

    def thinned(self, count: int) -> Data:
        """Return at most so many results, evenly from the first told to the last."""
        n = len(self.y)
        if n <= count:
            return self
        spread = np.argsort(np.arange(n) * _GOLDEN % 1.0, kind="stable")  # in step with no cycle of results
        return self.taken(np.sort(spread[:count]))
