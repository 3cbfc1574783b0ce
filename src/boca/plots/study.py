"""A study as plots and reports see it, read-only: what was asked and told, and the model after it.

It comes from an `Optimizer`, from the `Result` of a run, or from a storage.  A storage keeps everything but code: of a
cost function, it has what the trials and a query at the target cost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from boca.accounting.ledger import Ledger
from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.problem import Problem
from boca.domain.trial import History, Trial
from boca.domain.words import text
from boca.execution.run import Result
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate
from boca.strategies.base import posterior
from boca.study import spec as specs
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation, recommend

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
        return self.history.best(self.problem)

    @cached_property
    def _model_or_lack(self) -> tuple[Posterior | None, str]:
        if self.lacks is not None:
            return None, self.lacks
        try:
            model = posterior(self.strategy, self.problem, self.history)
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
    """Return the study of an `Optimizer`, of a `Result`, or of anything with `problem`, `history` and `strategy`."""
    if isinstance(source, StudyView):
        return source
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
        raise InvalidInput(f"source must be an Optimizer, a Result, or boca.plots.load(url, name); got {source!r}.")
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


@dataclass(frozen=True)
class StoredStrategy:
    """What a storage keeps of a strategy's model."""

    surrogate: Surrogate | None
    hyperparameters: Mapping[str, Any] | None

    def posterior(self, problem: Problem, history: History) -> Posterior:
        known = self.hyperparameters if self.surrogate is not None else None
        surrogate = self.surrogate or Surrogate()
        if known is not None and problem.fidelity and surrogate.fidelity_kernel is None and "h_z" not in known:
            known = None  # they are those of every fidelity alone: how fidelities are correlated is learned
        return surrogate.model(problem, history, np.random.default_rng(0), hyperparameters=known)


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
    surrogate, caveat, lacks = _surrogate(settings.get("surrogate"))
    return StudyView(
        specs.problem_of(described),
        history,
        StoredStrategy(surrogate, settings.get("hyperparameters")),
        name=name,
        limit=specs.limit_of(described),
        seed=described["seed"],
        settings=settings,
        lacks=lacks,
        caveat=caveat,
    )


def _surrogate(kept: object) -> tuple[Surrogate | None, str | None, str | None]:
    """Return a stored surrogate, how it differs from what was stored, and why there is none."""
    if isinstance(kept, Mapping) and kept.get("fidelity_kernel") is not None:
        return None, None, _NO_CODE
    if not isinstance(kept, Mapping) or kept.get("type") != f"{Surrogate.__module__}.{Surrogate.__qualname__}":
        return None, None, None  # `recommend` has its own for a strategy without one
    known = [f.name for f in fields(Surrogate)]
    try:
        surrogate = Surrogate(**{name: kept[name] for name in known if name in kept})
    except BocaError as error:
        return None, None, f"There is no model: {error}"
    return surrogate, _caveat([name for name in kept if name not in ("type", *known)], set(known) - kept.keys()), None


def _caveat(unknown: Collection[str], new: Collection[str]) -> str | None:
    """Return in a sentence how the settings of another version differ from these; None if they do not."""
    how = [f"it ignores {text(', '.join(unknown))}, which this version does not know"] if unknown else []
    how += [f"it uses this version's {', '.join(sorted(new))}, which the other did not have"] if new else []
    if not how:
        return None
    return f"Another version of boca made the study, so the model is not quite the same: {', and '.join(how)}."
