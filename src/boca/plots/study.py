"""A study as pictures and reports see it: what was asked and told, and the model after it.  It cannot be changed here.

A study comes from an optimiser, from the result of a run, or from a storage, where everything is kept but the code: of
a cost function, what trials and a target cost.
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
from boca.execution.run import Result
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate
from boca.render import text
from boca.strategies.base import posterior
from boca.study import spec as specs
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation, recommend

_NO_CODE = "The covariance of fidelities is code, which a storage does not keep: there is no model here."


@dataclass(frozen=True)
class StudyView:
    """What pictures and reports are made of."""

    problem: Problem
    history: History
    strategy: object
    """Something with `surrogate` and `hyperparameters`, where the strategy has a model."""
    name: str = "study"
    limit: Limit | None = None
    seed: int | None = None
    settings: Mapping[str, Any] | None = None
    """The strategy by its name and its fields, as JSON."""
    said: tuple[str, ...] | None = None
    """What the optimiser itself warns of; None where it is not at hand."""
    lacks: str | None = None
    """Why there can be no model, where a part of it is missing."""
    caveat: str | None = None
    """In what the model here differs from the study's, where another version made that."""

    @cached_property
    def ledger(self) -> Ledger:
        """The money: what trials were charged and what a target costs."""
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
        except BocaError as error:  # no picture of a model is no reason to have none at all
            return None, f"There is no model: {error}"

    @property
    def model(self) -> Posterior | None:
        """The model behind `recommend()`: of f and of g, after everything that was told."""
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
    """Return the study of an optimiser, of a result, or of anything with `problem`, `history` and `strategy`."""
    if isinstance(source, StudyView):
        return source
    if isinstance(source, Result):
        if source.study is None:
            raise InvalidInput(
                "A Result that was copied or pickled has lost its problem: "
                "give boca.plots.StudyView(problem, history, strategy)."
            )
        return _of_optimizer(source.study, source.history, source.warnings)
    if isinstance(source, Optimizer):
        return _of_optimizer(source, source.history, source.warnings)
    problem, history = getattr(source, "problem", None), getattr(source, "history", None)
    if not isinstance(problem, Problem) or not isinstance(history, History):
        raise InvalidInput(
            f"A picture is made of an Optimizer, a Result, or boca.plots.load(url, name); got {source!r}."
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


@dataclass(frozen=True)
class StoredStrategy:
    """What a storage keeps of a strategy's model."""

    surrogate: Surrogate | None
    hyperparameters: Mapping[str, Any] | None

    def posterior(self, problem: Problem, history: History) -> Posterior:
        known = self.hyperparameters if self.surrogate is not None else None
        surrogate = self.surrogate or Surrogate()
        if known is not None and problem.fidelity and surrogate.fidelity_kernel is None and "h_z" not in known:
            known = None  # of every fidelity by itself: what they say about each other is learned
        return surrogate.model(problem, history, np.random.default_rng(0), hyperparameters=known)


def load(url: str, name: str) -> StudyView:
    """Return a stored study as it is now; nothing of it is changed, and no code of its maker is needed.

    `url` is that of the storage, or the file of a SQLite database.
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
    """Return a stored surrogate, in what it differs from the one that was stored, and why there is none."""
    if isinstance(kept, Mapping) and kept.get("fidelity_kernel") is not None:
        return None, None, _NO_CODE
    if not isinstance(kept, Mapping) or kept.get("type") != f"{Surrogate.__module__}.{Surrogate.__qualname__}":
        return None, None, None  # as for a strategy without one, `recommend` has its own
    known = [f.name for f in fields(Surrogate)]
    try:
        surrogate = Surrogate(**{name: kept[name] for name in known if name in kept})
    except BocaError as error:
        return None, None, f"There is no model: {error}"
    return surrogate, _caveat([name for name in kept if name not in ("type", *known)], set(known) - kept.keys()), None


def _caveat(unknown: Collection[str], new: Collection[str]) -> str | None:
    """Return what settings of another version come to, in a sentence."""
    how = [f"without {text(', '.join(unknown))}, which this version of boca does not know"] if unknown else []
    how += [f"with this version's {', '.join(sorted(new))}, which did not exist then"] if new else []
    if not how:
        return None
    return f"The model is not quite that of the study, which another version made: it is {' and '.join(how)}."
