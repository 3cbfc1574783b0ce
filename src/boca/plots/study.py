"""A study as plots and reports see it, read-only: what was asked and told, and the model after it.

It comes from an `Optimizer`, from the `Result` of a run, or from a storage.  A storage keeps everything but code: of a
cost function, it has what the trials and a query at the target cost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boca.accounting.ledger import Ledger
from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.problem import Problem
from boca.domain.trial import History, Trial
from boca.domain.words import text
from boca.execution.result import Result
from boca.model.posterior import Posterior
from boca.strategies.base import posterior
from boca.study import spec as specs
from boca.study.front import FrontRecommendation, recommend_front
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation, best, recommend

_SEVERAL = "There are several objectives, each with a model of its own: this plot is for one objective."
_NO_CODE = "There is no model here: the study has a fidelity kernel of its own, which is code, and code is not stored."


@dataclass(frozen=True)
class StudyView:
    """A study that can be looked at and not changed.

    Args:
        problem: What is searched.
        history: Every trial.
        strategy: What chose them; its model is used if it has one.
        name: The name of the study.
        limit: The budget as the user gave it; None if there is none.
        seed: The seed of the study.
        settings: The strategy by its name and its fields, as JSON.
        said: The warnings of the `Optimizer`; None if there is none at hand, and they are derived from the history.
        lacks: Why there can be no model, if a part of it is missing.
        caveat: How the model here differs from that of the study, if another version made it.
    """

    problem: Problem
    history: History
    strategy: object
    name: str = "study"
    limit: Limit | None = None
    seed: int | None = None
    settings: Mapping[str, Any] | None = None
    said: tuple[str, ...] | None = None
    lacks: str | None = None
    caveat: str | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """What trials were charged, and what a query at the target costs."""
        return Ledger(self.problem, self.history, self.limit)

    # What was found -----------------------------------------------------------------------------------------------

    @cached_property
    def best(self) -> Trial | None:
        if self.lacks is not None:  # its strategy is code, so the model is that of Boca()
            return best(self.problem, self.history, None)
        return best(self.problem, self.history, self.strategy)

    @cached_property
    def front(self) -> list[Trial]:
        """The trials at the target that none dominates; with one objective, the best."""
        return self.history.front(self.problem)

    @cached_property
    def recommended_front(self) -> list[FrontRecommendation]:
        """With several objectives, the points that are best according to the models."""
        if self.lacks is not None:
            return []
        return recommend_front(self.problem, self.history, self.strategy)

    @cached_property
    def believed(self) -> tuple[float, float] | None:
        """Mean and deviation at the best trial if variances were told: then its value alone says too much."""
        if self.best is None or self.model is None or not any(t.noise for t in self.history.feasible(self.problem)):
            return None
        mu, sigma = self.model.moments(self.problem.space.to_unit([self.best.x]))
        mean, deviation = float(mu[0]), float(sigma[0])
        return self.model.value_as_told(mean), self.model.interval_as_told(mean, deviation)

    @cached_property
    def _model_or_lack(self) -> tuple[Posterior | None, str]:
        if self.lacks is not None:
            return None, self.lacks
        try:
            model = posterior(self.strategy, self.problem, self.history)
            if model is None and self.problem.objectives:
                return None, _SEVERAL
            return model, "" if model else "No trial is complete yet: there is no model."
        except BocaError as error:  # plots without a model can still be drawn
            return None, f"There is no model: {error}"

    @property
    def model(self) -> Posterior | None:
        """The model behind `recommend()`, after every result."""
        return self._model_or_lack[0]

    @property
    def why_no_model(self) -> str:
        return self._model_or_lack[1]

    @cached_property
    def recommendation(self) -> Recommendation | None:
        if self.model is None:
            return None
        return recommend(self.problem, self.history, self.strategy)


def study(source: object) -> StudyView:
    """Return the study of an `Optimizer`, a `Result`, a fitted search, or what has problem, history and strategy."""
    if isinstance(source, StudyView):
        return source
    source = getattr(source, "result_", source)  # of a search in scikit-learn that was fitted
    if isinstance(source, Result):
        if source.study is None:
            raise InvalidInput(
                "A Result that was copied or pickled has no problem; a plot needs one. "
                "Pass boca.plots.StudyView(problem, result.history, strategy)."
            )
        return _of_optimizer(source.study, source.history, source.warnings)
    if isinstance(source, Optimizer):
        return _of_optimizer(source, source.history, source.warnings)
    problem, history = getattr(source, "problem", None), getattr(source, "history", None)
    if not isinstance(problem, Problem) or not isinstance(history, History):
        hint = " Call its method fit first." if callable(getattr(source, "fit", None)) else ""
        raise InvalidInput(
            "source must be an Optimizer, a Result, a fitted search, or boca.plots.load(url, name); "
            f"got {source!r}.{hint}"
        )
    return StudyView(problem, history, getattr(source, "strategy", None))


def _of_optimizer(optimizer: Optimizer, history: History, said: tuple[str, ...]) -> StudyView:
    return StudyView(
        optimizer.problem,
        history,
        optimizer.strategy,
        name=optimizer.name,
        limit=optimizer.limit,
        seed=optimizer.seed,
        settings=specs.plain(optimizer.strategy),
        said=said,
    )


# From a storage ---------------------------------------------------------------------------------------------------


def load(url: str, name: str) -> StudyView:
    """Return a stored study as it is now, without changing it; neither objective nor cost function is needed.

    `url` is the URL of the storage, or the file of a SQLite database.
    """
    from boca.study.storage.reader import Reader, understood

    with closing(Reader(url)) as reader:
        found = reader.study(name)
    with understood(name):
        return stored(name, found.spec, found.history)


def stored(name: str, described: Mapping[str, Any], history: History) -> StudyView:
    """Return the study of a stored description and its trials."""
    settings = described["strategy"] if isinstance(described["strategy"], Mapping) else {"type": described["strategy"]}
    strategy, lacks = _strategy(settings)
    return StudyView(
        specs.problem_of(described),
        history,
        strategy,
        name=name,
        limit=specs.limit_of(described),
        seed=described["seed"],
        settings=settings,
        lacks=lacks,
        caveat=None if strategy is None else _caveat(*specs.unlike(settings, specs.plain(strategy))),
    )


def _strategy(settings: Mapping[str, Any]) -> tuple[object, str | None]:
    """Return a stored strategy, and why there is no model; a strategy of the user's own is code, and None here."""
    surrogate = settings.get("surrogate")
    if isinstance(surrogate, Mapping) and surrogate.get("fidelity_kernel") is not None:
        return None, _NO_CODE
    try:
        return specs.remade(settings), None
    except BocaError as error:
        return None, f"There is no model: {error}"


def _caveat(unknown: Collection[str], new: Collection[str]) -> str | None:
    """Return in a sentence how the settings of another version differ from these; None if they do not."""
    how = [f"it ignores {text(', '.join(unknown))}, which this version does not know"] if unknown else []
    how += [f"it uses this version's {', '.join(sorted(new))}, which the other did not have"] if new else []
    if not how:
        return None
    return f"Another version of boca made the study, so the model is not quite the same: {', and '.join(how)}."
