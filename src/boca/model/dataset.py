"""A history as arrays: the results in the order in which they were told, and the trials that are still running.

A dataset is of the objective, of one outcome that has a limit, or of success: 1 where a trial is complete, 0 where it
failed.  A trial without that number has no row.

symbol   shape    meaning
U        (n, d)   unit coordinates of x
Z        (n, p)   unit coordinates of z
scores   (n,)     values with the sign that makes larger ones better, warped or as told; of failures see `Failures`
X        (n, D)   features, by an encoding
y        (n,)     standardized scores
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from boca.domain.observation import OBJECTIVE
from boca.domain.outcomes import SUCCESS
from boca.domain.problem import Problem
from boca.domain.space import BoolArray, FloatArray, IntArray, Point
from boca.domain.trial import History, sign
from boca.gp.curve_noise import NO_CURVE
from boca.gp.fit import Standardization
from boca.gp.noise import Noise
from boca.model import curves
from boca.model.encoding import Encoding
from boca.model.warp import Warp

Failures: TypeAlias = Literal["worst", "below"]
"""The value of a failure: the worst one of all results, or that less half of the range of all results."""

_DOUBT = 0.5  # of that margin: the deviation of a failure's value, because a failure beside good results may be chance
_MARGIN = 0.5  # of the range of the results, by which a failure lies below the worst of them
_GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo 1 are evenly spread, and follow no cycle of the results
_LARGEST = float(np.finfo(float).max)
_LARGEST_NOISE = 1e12  # standardized: such a result has no weight, and infinity would break the factor


@dataclass(frozen=True)
class Dataset:
    """All results of a history as arrays, made once per decision."""

    problem: Problem
    U: FloatArray
    Z: FloatArray
    scores: FloatArray
    variances: FloatArray | None  # (n,), of single results, as told; None if none was told
    running: tuple[FloatArray, FloatArray]  # U and Z of the trials without a result
    iterations: int
    """How many trials a model has chosen; a refit stores it."""
    failed: BoolArray  # (n,)
    failures: Failures = "worst"
    outcome: str = OBJECTIVE
    """Which number of the trials it holds; a refit is stored under this name."""
    bound: float | None = None
    """Where the limit of an outcome lies among the scores: within it, a score is at least as high."""
    curves: tuple[FloatArray, FloatArray] | None = None
    """The curve of every result and of every running trial, -1 for none; None if there are no curves."""

    @classmethod
    def from_history(cls, problem: Problem, history: History, failures: Failures | None = "worst") -> Dataset:
        """Return the results of the objective; if `failures` is None, a failed trial says nothing about it.

        Where evaluations pass through steps, their reports are results.
        """
        if problem.steps is not None:
            return cls._from_curves(problem, history, failures)
        finished, scores = history.finished, history.scores(problem.direction)
        told = [t.value is not None or (failures is not None and t.state == "failed") for t in finished]
        if not all(told):
            finished, scores = tuple(t for t, is_told in zip(finished, told, strict=True) if is_told), scores[told]
        has_noise = any(t.noise is not None for t in finished)
        return cls(
            problem,
            problem.space.to_unit([t.x for t in finished]),
            problem.fidelity.to_unit([t.z for t in finished]),
            scores,
            np.array([t.noise or 0.0 for t in finished]) if has_noise else None,
            _running(problem, history),
            len(history.chosen),
            np.array([t.state == "failed" for t in finished], dtype=bool),
            failures or "worst",
        )

    @classmethod
    def _from_curves(cls, problem: Problem, history: History, failures: Failures | None) -> Dataset:
        rows = curves.rows(problem, history, with_failures=failures is not None)
        turn = sign(problem.direction)
        scores = np.array([np.nan if row.value is None else turn * row.value for row in rows])
        failed = np.isnan(scores)
        if not failed.all():
            scores[failed] = np.min(scores[~failed])
        has_noise = any(row.noise is not None for row in rows)
        of_trial = curves.numbers(history)
        return cls(
            problem,
            problem.space.to_unit([row.trial.x for row in rows]),
            problem.fidelity.to_unit([row.z for row in rows]),
            scores,
            np.array([row.noise or 0.0 for row in rows]) if has_noise else None,
            _running(problem, history),
            len(history.chosen),
            failed,
            failures or "worst",
            curves=(
                np.array([NO_CURVE if row.curve is None else float(row.curve) for row in rows]),
                np.array([float(of_trial[t.number]) for t in history.running]),
            ),
        )

    def warped(self, warp: Warp | None) -> Dataset:
        """Return the same results in the units of the model: warped, and with the values of failures."""
        if warp is None and self.failures == "worst":
            return self
        scores = self.scores if warp is None else warp.apply(self.scores)
        variances = self.variances
        if warp is not None and variances is not None:
            with np.errstate(over="ignore"):
                slope = warp.slope(self.scores)
                variances = variances * slope * slope  # the square alone may overflow, or vanish
        if self.failures == "below" and self.failed.any():
            told = scores[~self.failed]
            margin = float(np.ptp(_MARGIN * told))
            doubt = _DOUBT * margin
            scores, variances = scores.copy(), np.zeros(len(scores)) if variances is None else variances.copy()
            scores[self.failed] = max(float(np.min(told)) - margin, -_LARGEST)
            variances[self.failed] = min(doubt * doubt, _LARGEST)
        return replace(self, scores=scores, variances=variances)

    @property
    def judged(self) -> FloatArray:
        """The scores from which location and scale are taken; failures below all others do not count."""
        return self.scores if self.failures == "worst" else self.scores[~self.failed]

    @classmethod
    def of_outcome(cls, problem: Problem, history: History, name: str) -> Dataset:
        """Return the results of a limited outcome, or of one of several objectives, as a problem of its own."""
        part, better = problem.outcomes[name], sign(problem.outcomes[name].direction)
        told = [(t, o) for t in history.finished for o in t.observations if o.outcome == name]
        has_noise = any(o.noise is not None for _, o in told)
        return cls(
            part,
            problem.space.to_unit([t.x for t, _ in told]),
            part.fidelity.to_unit([_fidelity(part, o.z) for _, o in told]),
            np.array([better * o.value for _, o in told]),
            np.array([o.noise or 0.0 for _, o in told]) if has_noise else None,
            _running(part, history),
            len(history.chosen),
            np.zeros(len(told), dtype=bool),
            outcome=name,
            bound=better * problem.subject_to[name].bound if name in problem.subject_to else None,
        )

    @classmethod
    def of_success(cls, problem: Problem, history: History) -> Dataset:
        """Return which trials are complete and which failed."""
        finished = history.finished
        return cls(
            problem.success,
            problem.space.to_unit([t.x for t in finished]),
            problem.fidelity.to_unit([t.z for t in finished]),
            np.array([float(t.state == "complete") for t in finished]),
            None,
            _running(problem.success, history),
            len(history.chosen),
            np.zeros(len(finished), dtype=bool),
            outcome=SUCCESS,
            bound=0.5,
        )

    @property
    def results(self) -> int:
        """How many results have a finite variance: the others have no weight."""
        return len(self.scores) if self.variances is None else int(np.sum(np.isfinite(self.variances)))

    def encoded(self, encoding: Encoding, standard: Standardization) -> TrainingData:
        """Return what a GP is conditioned on."""
        noise = None
        if self.variances is not None:
            with np.errstate(over="ignore"):  # a variance beyond the largest number is capped like others
                noise = np.minimum(self.variances / standard.scale / standard.scale, _LARGEST_NOISE)
        of_results, of_running = (None, None) if self.curves is None else self.curves
        X = encoding.features(self.U, self.Z, of_results)
        pending = encoding.features(*self.running, of_running)
        return TrainingData(
            self.U, X, standard.apply(self.scores), noise, encoding.is_target(X), pending, encoding.is_target(pending)
        )


def _running(problem: Problem, history: History) -> tuple[FloatArray, FloatArray]:
    return (
        problem.space.to_unit([t.x for t in history.running]),
        problem.fidelity.to_unit([_fidelity(problem, t.planned) for t in history.running]),
    )


def _fidelity(problem: Problem, z: Point) -> Point:
    """Return the part of a fidelity that a problem has: an outcome that is the same at all of them has none."""
    return z if problem.fidelity else {}


@dataclass(frozen=True)
class TrainingData:
    """What a GP is conditioned on, in standardized units."""

    U: FloatArray  # (n, d)
    X: FloatArray  # (n, D)
    y: FloatArray  # (n,)
    noise: FloatArray | None  # (n,)
    is_target: BoolArray  # (n,)
    pending: FloatArray  # (m, D)
    is_pending_target: BoolArray  # (m,)

    def select(self, rows: IntArray) -> TrainingData:
        """Return the results of these rows, in this order."""
        noise = None if self.noise is None else self.noise[rows]
        return replace(
            self, U=self.U[rows], X=self.X[rows], y=self.y[rows], noise=noise, is_target=self.is_target[rows]
        )

    def with_noise(self, noise: Noise) -> TrainingData:
        """Return the same results with these components added to their noise."""
        return replace(self, noise=noise.added_to(self.noise, self.X))

    def at_target(self) -> TrainingData:
        """Return the results and the running trials at the target."""
        kept = self.select(np.flatnonzero(self.is_target))
        here = self.is_pending_target
        return replace(kept, pending=self.pending[here], is_pending_target=here[here])

    def joined(self, pending: FloatArray, is_target: BoolArray) -> TrainingData:  # (m, D), (m,)
        """Return the same results with further running trials, after those that were running before."""
        return replace(
            self,
            pending=np.vstack([self.pending, pending]),
            is_pending_target=np.concatenate([self.is_pending_target, is_target]),
        )

    def thinned(self, count: int) -> TrainingData:
        """Return at most `count` results, evenly from the first told to the last."""
        return self if len(self.y) <= count else self.select(evenly(len(self.y), count))


def evenly(n: int, count: int) -> IntArray:  # (count,)
    """Return at most `count` of n rows, evenly from the first to the last."""
    spread = np.argsort(np.arange(n) * _GOLDEN_RATIO % 1.0, kind="stable")
    return np.sort(spread[:count])
