"""`Result`: what a run found and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any, ClassVar

from boca.accounting.ledger import Ledger
from boca.domain.errors import BocaError
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.domain.words import point, readable, text
from boca.study.optimizer import Optimizer
from boca.study.recommendation import nothing_best

MAX_ROWS = 20  # trials of a front that a notebook shows


@dataclass(frozen=True)
class Result:
    """What a run found, and what it cost."""

    x: Point | None
    """The best point observed at the target; None if nothing was observed there."""
    value: float | None
    """The value observed there."""
    recommendation: Any
    """The point to use, according to the model, with its uncertainty: a `Recommendation`, or None.

    With several objectives it is a list of `FrontRecommendation`."""
    history: History
    spent: float
    """In cost units; in seconds if the budget is in seconds."""
    warnings: tuple[str, ...]
    interrupted: bool = False
    """Whether Ctrl-C ended the run."""
    front: list[Trial] = field(default_factory=list)
    """The trials at the target, within all limits, that none dominates; with one objective, the best."""
    _study: ClassVar[Optimizer | None] = None  # of an unpickled result; any other has its own
    optimizer: InitVar[Optimizer | None] = None  # no field: it is neither printed, compared nor pickled

    def __post_init__(self, optimizer: Optimizer | None) -> None:
        object.__setattr__(self, "_study", optimizer)

    @property
    def study(self) -> Optimizer | None:
        """The study itself, for plots and reports; None if the result was unpickled."""
        return self._study

    def with_warnings(self, warnings: Sequence[str]) -> Result:
        """Return the same result with more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings), optimizer=self.study)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # cost functions and connections stay here

    def _repr_html_(self) -> str:
        """Return what was found and what it cost, with the trials folded away."""
        from boca.domain import html

        rows = self._best_rows
        rows.append(("spent", f"{self._spent_in_words} on {len(self.history)} trials"))
        rows += [("warning", text(warning, html.MAX_SENTENCE)) for warning in self.warnings]
        trials = html.history(self.history, repr(self.history))
        return f"<div>{html.table([], rows)}{html.folded('trials', trials)}</div>"

    @property
    def _best_rows(self) -> list[tuple[str, str]]:
        advised = self.recommendation
        if isinstance(advised, list):
            members = [("", f"{point(t.outcomes)} at {point(t.x)} (trial {t.number})") for t in self.front[:MAX_ROWS]]
            return [("front at the target", f"{len(self.front)} trials"), *members]
        rows = [("best at the target", self._nothing if self.x is None else text(self.value))]
        if self.x is not None:
            rows.append(("at", point(self.x)))
        if advised is not None:
            rows.append(("recommended", f"{point(advised.x)}: {advised.words}"))
        return rows

    @property
    def _nothing(self) -> str:
        problem = None if self.study is None else self.study.problem
        return nothing_best(problem, self.history) if problem is not None else "no trial is complete at the target"

    @property
    def _spent_in_words(self) -> str:
        if self.study is None:  # a result that was unpickled has lost its budget
            return readable(self.spent)
        return Ledger(self.study.problem, self.history, self.study.limit).spent_in_words


def result_of(optimizer: Optimizer, *warnings: str, interrupted: bool = False) -> Result:
    """Return what a study has found so far."""
    history, best = optimizer.history, optimizer.best
    optimizer.storage.load_reasons()  # the result may outlive the storage
    try:
        recommendation = optimizer.recommend()
    except Exception as error:  # a recommendation that fails must not cost the results
        message = str(error) if isinstance(error, BocaError) else repr(error)
        recommendation, warnings = None, (*warnings, f"There is no recommendation: {message}")
    return Result(
        x=None if best is None else dict(best.x),
        value=None if best is None else best.value,
        recommendation=recommendation,
        history=history,
        spent=optimizer.spent,
        warnings=(*warnings, *optimizer.warnings),
        interrupted=interrupted,
        front=optimizer.front,
        optimizer=optimizer,
    )
