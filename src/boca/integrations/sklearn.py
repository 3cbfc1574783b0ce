"""A scikit-learn search that spends most of its budget on fewer samples, fewer trees, fewer iterations.

`FidelitySearchCV` stands where `GridSearchCV` or `RandomizedSearchCV` would.  It derives from the base class of both
and fills in the method that scikit-learn provides for sequential searches, so scores, delegated methods, metadata and
parallel folds are scikit-learn's own.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.budget import Limit, targets
from boca.domain.errors import BocaError, InvalidInput, ObjectiveFailed
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Choice, Float, Int, Parameter, Point, Space
from boca.domain.trial import History
from boca.execution.run import result
from boca.execution.watchdog import GIVE_UP_AFTER_FAILURES, all_failed
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer

try:
    from sklearn.base import is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV  # whose _run_search is the way in for other searches
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import _num_samples
except ImportError as error:
    raise BocaError(
        "boca.integrations.sklearn needs scikit-learn 1.4 or newer. Run `pip install 'boca[sklearn]'`."
    ) from error

Indices: TypeAlias = NDArray[np.intp]
Table: TypeAlias = dict[str, Any]
"""What scikit-learn calls `cv_results_`: an array for every column."""

_SAMPLES = "n_samples"
_DEFAULT_BUDGET = targets(10)
_ALL_FAILED = "All the "  # how scikit-learn begins when no fold could be fitted


class FitsFailed(ObjectiveFailed, ValueError):
    """A search in which no point could be fitted where it counts; a ValueError too, which scikit-learn would raise."""


class FidelitySearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search hyper-parameters by cross-validation, mostly at low fidelity; what counts is the full evaluation alone.

    `space` maps names of parameters, as `set_params` knows them (`svc__C`), to a `boca.Float`, `Int` or `Choice`, a
    tuple (low, high), a list of options, or a frozen distribution of SciPy, of which the bounds are used.

    `fidelity` maps what makes an evaluation cheaper to its range, and the upper end is the target.  `n_samples` is the
    number of samples; its upper end None means all of them.  Other names are parameters of the estimator.  A tuple is
    on a log scale if its ends are positive; a `boca.Int` or `boca.Float` says it exactly.  None: no fidelities.

    `cost` is "product", of every fidelity over its target; "measured", in seconds; or a function of the fidelities.
    `budget` is `boca.targets(n)`, `boca.seconds(s)` or a number in units of the cost, which with "product" are full
    evaluations; None means `boca.targets(10)`.  `strategy` is one of boca's; None means `boca.Boca()`.

    The rest is as in scikit-learn.  With several metrics, `refit` names the one to search by.  The folds of a trial run
    in parallel with `n_jobs`, and trials one after another, so that it changes no result.  Equal `random_state` gives
    equal results unless time plays a part, by `cost="measured"` or a budget in seconds.

    After `fit` there are the attributes of a scikit-learn search, all `best_*` from trials at the target, and
    `history_` and `result_`, what boca knows of every trial and of the whole.
    """

    _parameter_constraints = {  # noqa: RUF012
        **BaseSearchCV._parameter_constraints,
        "random_state": ["random_state"],
        # these are checked with the data at hand, and with errors of boca's own
        **dict.fromkeys(("space", "fidelity", "cost", "budget", "strategy"), "no_validation"),
    }
    _parameter_constraints.pop("pre_dispatch")

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        fidelity: Mapping[str, Any] | None = None,
        *,
        cost: Literal["product", "measured"] | CostFunction = "product",
        budget: Limit | float | None = None,
        strategy: Strategy | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[[Table], int] = True,
        cv: Any = 5,
        verbose: int = 0,
        random_state: Any = None,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.fidelity = fidelity
        self.cost = cost
        self.budget = budget
        self.strategy = strategy
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> FidelitySearchCV:
        """Search, and fit the best on all the data; `groups` go to the splitter, other parameters to the estimator.

        With metadata routing switched on, they go where they were requested.
        """
        self._n_samples = _num_samples(X)
        try:
            super().fit(X, y, **params)
        finally:
            del self._n_samples
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Table]) -> None:
        """Ask, cross-validate and tell until the budget is gone, and complete scikit-learn's table."""
        plan = self._plan()
        optimizer = plan.optimizer
        trials = _Trials(plan, evaluate_candidates, self.refit, self.error_score)
        while (trial := optimizer.ask()) is not None:
            score = trials.run(trial.x, trial.z)
            if score.value is None:
                optimizer.fail(trial, score.reason, seconds=score.seconds, output=score.story)
                _give_up_if_hopeless(optimizer, at_least=GIVE_UP_AFTER_FAILURES)
            else:
                optimizer.tell(trial, score.value, seconds=score.seconds)
        _give_up_if_hopeless(optimizer, at_least=1)
        if optimizer.best is None:
            _run_recommended(optimizer, trials)
        self.history_ = optimizer.history
        self.result_ = result(optimizer)
        _warn_of_failures(self.history_)
        trials.complete_table(self.history_)

    def _plan(self) -> _Plan:
        """Read what the user gave, and refuse what cannot work before anything is fitted."""
        several = not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring))
        if several and not isinstance(self.refit, str):
            raise _refit_needed(self.refit)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        known = set(self.estimator.get_params(deep=True))
        settings = _Settings.read(self.space, known)
        fidelity, full = _fidelities(self.fidelity, known, self._n_samples)
        problem = Problem(settings.free, fidelity, cost=_cost(self.cost, fidelity, full))
        budget = _DEFAULT_BUDGET if self.budget is None else self.budget
        limit = budget if isinstance(budget, Limit) else Limit(budget, "cost")
        _refuse_too_little(limit, problem)
        optimizer = Optimizer(problem, budget=limit, strategy=self.strategy, seed=seed)
        # scikit-learn has looked at cv already, and has used it up where it is a generator
        cv = getattr(self, "_checked_cv_orig", self.cv)
        folds = _Folds(cv, self._n_samples, seed, is_classification=is_classifier(self.estimator))
        return _Plan(optimizer, settings, full, folds)

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: Table) -> int:
        """Return the best at the target; a function of the user's may choose another row, but only there."""
        best = int(BaseSearchCV._select_best_index(refit, refit_metric, results))
        if not results["at_target"][best] or results["state"][best] != "complete":
            raise InvalidInput(
                "refit must return the index of a complete trial at the target, where results['at_target'] is true "
                f"and results['state'] is 'complete'; got {best}."
            )
        return best


def _refit_needed(refit: object) -> InvalidInput:
    return InvalidInput(
        f"With several metrics, refit must name the one to search by, such as refit='accuracy'; got {refit!r}."
    )


def _refuse_too_little(limit: Limit, problem: Problem) -> None:
    """Refuse a budget that cannot buy what counts; seconds can be compared with nothing yet."""
    if limit.unit == "targets":
        needed = 1.0
    elif limit.unit == "cost" and problem.has_declared_cost:
        needed = problem.target_cost
    else:
        return
    if limit.amount < needed * (1.0 - 1e-9):
        raise InvalidInput(
            f"The budget must buy at least one evaluation at the target, which costs {needed:.6g}; "
            f"got {limit.amount:.6g}. Nothing was run; boca.targets(10) is a usual one."
        )


def _give_up_if_hopeless(optimizer: Optimizer, *, at_least: int) -> None:
    """Raise if so many trials all failed: then the estimator or the data, not the point, is to blame."""
    failed = all_failed(optimizer.history, at_least=at_least)
    if failed:
        last = failed[-1]
        raise FitsFailed(
            f"All {len(failed)} trials failed, the last at {last.x!r}, {last.z!r} with: {last.reason} "
            f"error_score='raise' shows where.\n{last.output or ''}",
            result(optimizer),
        )


def _run_recommended(optimizer: Optimizer, trials: _Trials) -> None:
    """Evaluate the recommended point at the target, beyond the budget: a search without a best is of no use."""
    advice = optimizer.recommend()
    assert advice is not None  # a trial is complete
    score = trials.run(advice.x, optimizer.problem.target)
    if score.value is None:
        raise FitsFailed(
            f"No trial at the target was complete, and the recommended {advice.x!r} failed there too, with: "
            f"{score.reason} error_score='raise' shows where.\n{score.story or ''}",
            result(optimizer),
        )
    measured = None if optimizer.problem.has_declared_cost else max(score.seconds, 1e-9)
    optimizer.add(advice.x, None, score.value, measured)
    warnings.warn(
        "The budget ended before a trial at the target was complete, so the recommended point was evaluated there "
        f"beyond it, which took {score.seconds:.3g} s. A wider budget lets the search choose.",
        stacklevel=4,
    )


def _warn_of_failures(history: History) -> None:
    failed = [trial for trial in history if trial.state == "failed"]
    if failed:
        text = f"{len(failed)} of {len(history)} trials failed, the last with: {failed[-1].reason}"
        warnings.warn(text, FitFailedWarning, stacklevel=4)


# What may vary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Settings:
    """What the user searches: parameters that vary, ones that do not, and the objects behind names of options."""

    free: Space
    fixed: Point
    named: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, given: object, known: set[str]) -> _Settings:
        free: dict[str, Parameter] = {}
        fixed: Point = {}
        named: dict[str, dict[str, Any]] = {}
        for name, value in _entries(given, "space", known):
            options = list(value) if isinstance(value, list | np.ndarray) else None
            if options is None:
                free[name] = _range(value, f"space[{name!r}]", log=False)
            elif len(options) == 1:
                fixed[name] = options[0]
            else:
                free[name], objects = _choice(options)
                named.update({name: objects} if objects else {})
        if not free:
            raise InvalidInput(f"space must have at least one parameter that varies; got {given!r}.")
        return cls(Space(free), fixed, named)

    def of(self, x: Mapping[str, Any]) -> Point:
        """Return what the estimator is set to at x."""
        return self.fixed | {name: self.named.get(name, {}).get(value, value) for name, value in x.items()}


def _entries(given: object, what: str, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a mapping from name to range holds, if the estimator has these names."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must be a mapping from name to range; got {given!r}.")
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(
                f"{what} may name parameters of the estimator: {', '.join(sorted(known)) or '(none)'}; got {name!r}."
            )
        yield name, value


def _choice(options: list[Any]) -> tuple[Choice, dict[str, Any]]:
    """Return a choice among options; those that a study cannot hold, such as estimators, go by their text."""
    try:
        return Choice(options), {}
    except InvalidInput:
        return Choice([repr(option) for option in options]), {repr(option): option for option in options}


def _range(value: Any, what: str, *, log: bool) -> Parameter:
    """Return the parameter that a range means; `log` is for tuples, where they can be on a log scale."""
    if isinstance(value, Float | Int | Choice):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(_is_number(end) for end in value):
        low, high = value
        kind = Int if all(isinstance(end, int | np.integer) for end in value) else Float
        return kind(low, high, log=log and low > 0)
    if callable(getattr(value, "support", None)) and hasattr(value, "dist"):
        return _from_distribution(value, what)
    raise InvalidInput(
        f"{what} must be a boca.Float, Int or Choice, a tuple of two numbers (low, high), a list of options or a "
        f"frozen distribution of scipy.stats; got {value!r}."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _from_distribution(frozen: Any, what: str) -> Parameter:
    """Return the bounds of a distribution; its shape between them is not used."""
    from scipy.stats import rv_discrete

    low, high = (float(end) for end in frozen.support())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidInput(
            f"{what} must have finite bounds; scipy.stats.{frozen.dist.name} lies in [{low}, {high}]. "
            "Give boca.Float(low, high), with log=True for orders of magnitude."
        )
    if isinstance(frozen.dist, rv_discrete):
        return Int(low, high)  # type: ignore[arg-type]  # floats without fraction
    return Float(low, high, log=frozen.dist.name in ("loguniform", "reciprocal"))


def _fidelities(given: object, known: set[str], n: int) -> tuple[Space, Point]:
    """Return the fidelities that vary, and the target with those that do not."""
    free: dict[str, Parameter] = {}
    full: Point = {}
    for name, value in _entries({} if given is None else given, "fidelity", known | {_SAMPLES}):
        what = f"fidelity[{name!r}]"
        ends = tuple(value) if isinstance(value, list) else value
        parameter = _samples(ends, what, n) if name == _SAMPLES else _range(ends, what, log=True)
        if isinstance(parameter, Choice):
            raise InvalidInput(f"{what} must be a range whose upper end is the target; got {value!r}.")
        full[name] = n if parameter is None else parameter.high
        if parameter is not None:
            free[name] = parameter
    return Space(free), full


def _samples(value: Any, what: str, n: int) -> Parameter | None:
    """Return the range of the number of samples; None where even its lower end is all of them."""
    low, high, log = (value.low, value.high, value.log) if isinstance(value, Int) else (*_pair(value, what), True)
    high = n if high is None else min(high, n)
    return None if low >= n else Int(low, high, log=log)


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    is_pair = isinstance(value, tuple) and len(value) == 2
    if not is_pair or not all(isinstance(end, int | np.integer) for end in value if end is not None) or not value[0]:
        raise InvalidInput(
            f"{what} must be (low, high) in whole numbers of samples, with high=None for all, or a boca.Int; "
            f"got {value!r}."
        )
    return value[0], value[1]


def _cost(given: Any, fidelity: Space, full: Point) -> CostFunction | None:
    """Return the cost as a function of the fidelities that vary; None where it is measured."""
    if given == "measured":
        return None
    if callable(given):
        return lambda z: given({**full, **z})
    if given != "product":
        raise InvalidInput(f"cost must be 'product', 'measured' or a function of the fidelities; got {given!r}.")
    for name, parameter in fidelity.items():
        if not isinstance(parameter, Choice) and not parameter.low > 0:
            raise InvalidInput(
                f"cost='product' needs fidelities above zero; {name!r} begins at {parameter.low!r}. "
                "Raise it, or give cost='measured' or a function."
            )
    return lambda z: math.prod(value / full[name] for name, value in z.items())


# Subsets of the data ------------------------------------------------------------------------------------------------


class _Folds:
    """The user's own folds, and smaller ones within them.

    With n of N samples, the training and the test part of each fold keep the share n / N.  So groups stay apart where
    the user's folds keep them apart, and any splitter will do.
    """

    def __init__(self, cv: Any, total: int, seed: int, *, is_classification: bool) -> None:
        self._cv = cv
        self._is_classification = is_classification
        self._priority = np.random.default_rng(seed).permutation(total)
        self._full: list[tuple[Any, ...]] | None = None
        self._labels = np.zeros(total, dtype=np.intp)

    @property
    def total(self) -> int:
        return len(self._priority)

    def of(self, n: int, X: Any, y: Any, split_params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Return the folds for n samples; for all samples the user's own, untouched.

        The user's splitter is asked once, so that one that shuffles anew each time gives all trials the same folds.
        """
        if self._full is None:
            splitter = check_cv(self._cv, y, classifier=self._is_classification)
            self._full = list(splitter.split(X, y, **split_params))
            if self._is_classification and type_of_target(y) in ("binary", "multiclass"):
                self._labels = np.unique(np.asarray(y).ravel(), return_inverse=True)[1]
        if n >= self.total:
            return self._full
        return [tuple(self._subset(n, _indices(part)) for part in fold) for fold in self._full]

    def _subset(self, n: int, part: Indices) -> Indices:
        return part[nested_subset(n / self.total, self._priority[part], self._labels[part])]


def nested_subset(share: float, priority: Indices, labels: Indices) -> NDArray[np.bool_]:  # (m,), (m,) -> (m,)
    """Return which of m samples belong to the subset of this share: the first of an order that does not depend on it.

    So a smaller subset lies within every larger one.  In the order the classes stay in proportion, after one sample of
    each, which every subset has.
    """
    order = np.lexsort((priority, labels))
    first, behind = (np.searchsorted(labels[order], labels, side=side) for side in ("left", "right"))
    place = np.empty(len(labels), dtype=np.intp)
    place[order] = np.arange(len(labels))
    place -= first  # within its class
    key = np.where(place == 0, -1.0, (place + 0.5) / (behind - first))
    subset = np.zeros(len(labels), dtype=bool)
    subset[np.lexsort((priority, key))[: max(round(share * len(labels)), np.count_nonzero(place == 0))]] = True
    return subset


def _indices(part: Any) -> Indices:
    """Return a part of a fold as indices; a mask is allowed too."""
    given = np.asarray(part)
    return np.flatnonzero(given) if given.dtype == bool else given


@dataclass(frozen=True)
class _Splitter:
    """The folds for n samples, in the form that scikit-learn asks for."""

    folds: _Folds
    n: int

    def split(self, X: Any, y: Any = None, **split_params: Any) -> list[tuple[Any, ...]]:
        return self.folds.of(self.n, X, y, split_params)


# Trials as rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """All that a search knows before its first fit."""

    optimizer: Optimizer
    settings: _Settings
    full: Point
    folds: _Folds

    def fidelities(self, z: Mapping[str, Any]) -> Point:
        """Return every fidelity that the user named, also one that does not vary on these data."""
        return self.full | dict(z)

    def parameters(self, x: Mapping[str, Any], z: Mapping[str, Any]) -> Point:
        """Return what the estimator is set to."""
        own = {name: value for name, value in self.fidelities(z).items() if name != _SAMPLES}
        return self.settings.of(x) | own

    def splitter(self, z: Mapping[str, Any]) -> _Splitter:
        return _Splitter(self.folds, self.fidelities(z).get(_SAMPLES, self.folds.total))


@dataclass(frozen=True)
class _Score:
    """What came of one cross-validation."""

    value: float | None
    seconds: float
    reason: str = ""
    story: str | None = None


class _Trials:
    """Cross-validates through scikit-learn, and keeps scikit-learn's table in the order of the trials."""

    def __init__(self, plan: _Plan, evaluate: Callable[..., Table], refit: object, error_score: object) -> None:
        self._plan = plan
        self._evaluate = evaluate
        self._refit = refit
        self._error_score = error_score
        self._table: Table = {}
        self._has_row: list[bool] = []
        self._params: list[Point] = []

    def run(self, x: Mapping[str, Any], z: Mapping[str, Any]) -> _Score:
        """Return the mean score over the folds, or why there is none."""
        params = self._plan.parameters(x, z)
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                # of rows of the whole table, at every trial; failures are told once, at the end
                warnings.filterwarnings("ignore", message="One or more of the (test|train) scores are non-finite")
                self._table = self._evaluate([params], cv=self._plan.splitter(z))
        except ValueError as error:
            story = str(error).strip()
            if self._error_score == "raise" or not story.startswith(_ALL_FAILED):
                raise
            score = _Score(None, time.perf_counter() - began, story.splitlines()[-1], story)
        else:
            value = float(self._table[f"mean_test_{self._metric()}"][-1])
            seconds = time.perf_counter() - began
            if math.isfinite(value):
                score = _Score(value, seconds)
            else:
                score = _Score(None, seconds, f"The mean score is {value}: a fold could not be fitted or scored.")
        self._has_row.append(score.value is not None or score.story is None)
        self._params.append(params)
        return score

    def _metric(self) -> str:
        if "mean_test_score" in self._table:
            return "score"
        if not isinstance(self._refit, str) or f"mean_test_{self._refit}" not in self._table:
            raise _refit_needed(self._refit)  # scoring is a function, and returned several
        return self._refit

    def complete_table(self, history: History) -> None:
        """Give failed trials their rows, rank what is at the target, and add what scikit-learn does not know.

        The table is changed in place: scikit-learn goes on with the one that it returned last.
        """
        table = self._table if all(self._has_row) else self._with_failed_rows()
        problem = self._plan.optimizer.problem
        at_target = np.array([problem.is_target(trial.z) for trial in history])
        complete = np.array([trial.state == "complete" for trial in history])
        for name in [name for name in table if name.startswith("rank_test_")]:
            table[name] = _ranked(table[name.replace("rank", "mean", 1)], at_target & complete)
        fidelities = [self._plan.fidelities(trial.z) for trial in history]
        table.update({f"fidelity_{name}": np.array([z[name] for z in fidelities]) for name in self._plan.full})
        table["at_target"] = at_target
        table["cost"] = np.array([trial.cost for trial in history])
        table["state"] = np.array([trial.state for trial in history], dtype=object)
        self._table.update(table)

    def _with_failed_rows(self) -> Table:
        rows = np.flatnonzero(self._has_row)
        table: Table = {}
        for name, column in self._table.items():
            if name == "params":
                table[name] = self._params
            elif name.startswith("param_"):
                key = name.removeprefix("param_")
                table[name] = np.ma.MaskedArray(_column([params[key] for params in self._params]))
            else:
                is_score = "_test_" in name or "_train_" in name
                unknown = self._error_score if is_score and not name.startswith("std_") else np.nan
                table[name] = np.full(len(self._has_row), unknown, dtype=float)
                table[name][rows] = column
        return table


def _column(values: list[Any]) -> NDArray[Any]:
    """Return numbers as an array of numbers, and anything else as one of objects."""
    if all(_is_number(value) for value in values) or all(isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _ranked(scores: NDArray[np.float64], eligible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rank the eligible, equals alike; all others share the place behind them."""
    from scipy.stats import rankdata

    ranks = np.full(len(scores), np.count_nonzero(eligible) + 1, dtype=np.int32)
    known = eligible & np.isfinite(scores)
    ranks[known] = rankdata(-scores[known], method="min").astype(np.int32)
    return ranks
