"""A scikit-learn search that spends most of its budget on fewer samples, fewer trees, fewer iterations.

`FidelitySearchCV` replaces `GridSearchCV` or `RandomizedSearchCV`.  It derives from the base class of both and
implements the method that scikit-learn provides for sequential searches, so scores, delegated methods, metadata and
parallel folds are scikit-learn's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from boca.domain.budget import Limit, targets
from boca.domain.errors import BocaError, InvalidInput, ObjectiveFailed
from boca.domain.other_tools import names_ours
from boca.domain.outcomes import OutcomeLimit
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.execution.progress import shown
from boca.execution.result import result_of
from boca.execution.watchdog import GIVE_UP_AFTER_FAILURES, all_failed
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer

try:
    from sklearn.base import clone, is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV  # _run_search is its hook for other searches
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _num_samples
except ImportError as error:
    raise BocaError(
        "boca.integrations.sklearn needs scikit-learn 1.4 or newer. Run `pip install 'boca[sklearn]'`."
    ) from error

from boca.integrations.sklearn_clock import next_trial, unspent
from boca.integrations.sklearn_folds import Folds
from boca.integrations.sklearn_ranges import Settings, cost_of, fidelities_of
from boca.integrations.sklearn_trials import Plan, Table, Trials, refit_needed

_DEFAULT_BUDGET = targets(10)  # like n_iter=10 of scikit-learn's random search


_OUR_OWN = (
    "space",
    "param_distributions",
    "fidelity",
    "cost",
    "budget",
    "n_iter",
    "strategy",
    "progress",
    "subject_to",
)
"""The settings that scikit-learn does not know."""


class FitsFailed(ObjectiveFailed, ValueError):
    """A search in which no point could be fitted at the target; also a ValueError, which scikit-learn would raise."""

    partly_fitted: Point | None = None
    """The settings that were tried last, if some of their folds could be fitted."""


class FidelitySearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search hyperparameters by cross-validation, mostly at low fidelity; only full evaluations count as results.

    After `fit` there are the attributes of a scikit-learn search, all `best_*` from trials at the target, and
    `history_` and `result_`, every trial and the whole as boca has them.

    Args:
        estimator: What is searched.
        space: Maps names of parameters, as `set_params` has them (`svc__C`), to a `boca.Float`, `Int` or `Choice`, a
            tuple (low, high) or (low, high, "log"), a list of options, or a frozen distribution of SciPy, of which the
            bounds are used.  A list of such mappings, as `GridSearchCV` takes it, is one space with conditions.
        fidelity: Maps what makes an evaluation cheaper to its range; the upper end is the target.  `n_samples` is the
            number of samples, and its upper end None means all of them.  Other names are parameters of the estimator.
            A tuple is on a log scale if its ends are positive; a `boca.Int` or `boca.Float` is exact.
        cost: "measured", in seconds, from which boca learns what other fidelities cost; "product", of every fidelity
            over its target, which needs no clock; or a function of the fidelities.
        budget: `boca.targets(n)`, `boca.seconds(s)` or a number: of full evaluations, or in units of your own cost
            function; None means `boca.targets(10)`.
        strategy: One of boca's; None means `boca.Boca()`.
        scoring: As in scikit-learn.
        n_jobs: How many folds of a trial run in parallel; trials run one after another, so it changes no result.
        refit: As in scikit-learn; with more than one metric, it names the one to search by.
        cv: As in scikit-learn.
        verbose: As in scikit-learn.
        random_state: Equal values give equal results, unless time plays a part.  It plays none with `cost="product"` or
            a cost function, and a budget that is not in seconds.
        error_score: As in scikit-learn.
        return_train_score: As in scikit-learn.
        param_distributions: Another name for `space`, as in `RandomizedSearchCV`.
        n_iter: Another name for `budget=boca.targets(n_iter)`: the cost of as many full evaluations, in more trials.
        progress: Whether to show a line with the progress; None shows it in a terminal and in a notebook, unless
            `verbose` is set.
        subject_to: Limits on other metrics of `scoring`, such as `{"recall": boca.AtLeast(0.9)}`.  They hold for the
            mean over the folds at the target, and `best_*` are the best of the trials that keep them.
    """

    _parameter_constraints = {  # noqa: RUF012
        **BaseSearchCV._parameter_constraints,
        "random_state": ["random_state"],
        # these are checked with the data at hand, and with errors of boca's own
        **dict.fromkeys(_OUR_OWN, "no_validation"),
    }
    _parameter_constraints.pop("pre_dispatch")

    @names_ours
    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any] | list[Mapping[str, Any]] | None = None,
        fidelity: Mapping[str, Any] | None = None,
        *,
        cost: Literal["measured", "product"] | CostFunction = "measured",
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
        param_distributions: Mapping[str, Any] | None = None,
        n_iter: int | None = None,
        progress: bool | None = None,
        subject_to: Mapping[str, OutcomeLimit] | None = None,
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
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.progress = progress
        self.subject_to = subject_to

    def fit(self, X: Any, y: Any = None, **params: Any) -> FidelitySearchCV:
        """Search, and fit the best on all the data; `groups` go to the splitter, other parameters to the estimator.

        With metadata routing enabled, they go where they were requested.
        """
        self._n_samples = _num_samples(X)
        try:
            super().fit(X, y, **params)
        except FitsFailed as failed:
            if self.refit and failed.partly_fitted is not None:
                self._refit_all_the_same(failed.partly_fitted, X, y, params)
            raise
        finally:
            del self._n_samples
        return self

    def _refit_all_the_same(self, settings: Point, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        """Fit settings that failed to all data, as a search of scikit-learn does if its scores are all NaN.

        What the estimator says of data that it cannot take is worth more than what is said of folds.
        """
        model = clone(self.estimator).set_params(**clone(settings, safe=False))
        given = self._get_routed_params_for_fit(dict(params)).estimator.fit
        model.fit(X, **given) if y is None else model.fit(X, y, **given)

    def _run_search(self, evaluate_candidates: Callable[..., Table]) -> None:
        """Ask, cross-validate and tell until the budget is spent, and complete scikit-learn's table."""
        plan = self._plan()
        optimizer = plan.optimizer
        trials = Trials(plan, evaluate_candidates, self.refit, self.error_score)
        line = shown(self.progress, has_own=bool(self.verbose))
        try:
            _run_trials(optimizer, trials, line)
        except FitsFailed as failed:
            failed.partly_fitted = trials.partly_fitted
            raise
        finally:
            if line is not None:
                line.close()
        self.history_ = optimizer.history
        self.result_ = result_of(optimizer, *unspent(optimizer))
        _warn_of_failures(self.history_)
        trials.complete_table(self.history_)

    def _plan(self) -> Plan:
        """Read the settings, and refuse what cannot work before anything is fitted."""
        several = not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring))
        if several and not isinstance(self.refit, str):
            raise refit_needed(self.refit)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        known = set(self.estimator.get_params(deep=True))
        settings = Settings.read(
            _one_of_two(self.space, self.param_distributions, "space", "param_distributions"), known
        )
        fidelity, full = fidelities_of(self.fidelity, known, self._n_samples)
        _refuse_unscored(self.subject_to, self.scoring, self.refit)
        cost = cost_of(self.cost, fidelity, full)
        problem = Problem(settings.free, fidelity, cost=cost, subject_to=self.subject_to)
        asked = None if self.n_iter is None else targets(self.n_iter)
        budget = _one_of_two(self.budget, asked, "budget", "n_iter")
        budget = _DEFAULT_BUDGET if budget is None else budget
        limit = budget if isinstance(budget, Limit) else Limit(budget, "cost" if callable(self.cost) else "targets")
        _refuse_too_little(limit, problem)
        optimizer = Optimizer(problem, budget=limit, strategy=self.strategy, seed=seed)
        # scikit-learn has read cv already; a generator would be exhausted
        cv = getattr(self, "_checked_cv_orig", self.cv)
        folds = Folds(cv, self._n_samples, seed, is_classification=is_classifier(self.estimator))
        return Plan(optimizer, settings, full, folds)

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: Table) -> int:
        """Return the best at the target; a function as `refit` may choose another row there."""
        best = int(BaseSearchCV._select_best_index(refit, refit_metric, results))
        if not results["at_target"][best] or results["state"][best] != "complete":
            raise InvalidInput(
                "refit must return the index of a complete trial at the target, where results['at_target'] is true "
                f"and results['state'] is 'complete'; got {best}."
            )
        return best


def _run_trials(optimizer: Optimizer, trials: Trials, line: Callable[[Optimizer, Trial], object] | None) -> None:
    """Run trials until the budget is spent; raise `FitsFailed` if there is no result at the target."""
    while (trial := next_trial(optimizer)) is not None:
        score = trials.run(trial.x, trial.z)
        if score.value is None:
            done = optimizer.fail(trial, score.reason, seconds=score.seconds, output=score.output)
        else:
            done = optimizer.tell(trial, score.told, seconds=score.seconds)
        if line is not None:
            line(optimizer, done)
        if score.value is None:
            _give_up_if_hopeless(optimizer, at_least=GIVE_UP_AFTER_FAILURES)
    _give_up_if_hopeless(optimizer, at_least=1)
    if not any(optimizer.problem.is_target(trial.z) for trial in optimizer.history.complete):
        _run_recommended(optimizer, trials)


def _one_of_two(ours: Any, alias: Any, name: str, name_of_alias: str) -> Any:
    """Return the one of an argument and its alias that was given, or refuse both."""
    if ours is not None and alias is not None:
        raise InvalidInput(f"{name_of_alias} is another name for {name}; got both. Pass {name} alone.")
    return alias if ours is None else ours


def _refuse_unscored(limits: object, scoring: Any, refit: object) -> None:
    """Refuse limits on metrics that are not scored; what a function returns is not known yet."""
    if not limits or callable(scoring) or not isinstance(limits, Mapping):
        return
    scored = [] if scoring is None or isinstance(scoring, str) else list(scoring)
    missing = [name for name in limits if name not in scored]
    if missing or refit in limits:
        raise InvalidInput(
            f"subject_to limits {list(limits)}, and must name metrics of scoring, which has {scored or scoring!r}, "
            "other than that of refit. Pass scoring=['accuracy', 'recall'], refit='accuracy', for example."
        )


def _refuse_too_little(limit: Limit, problem: Problem) -> None:
    """Refuse a budget that does not cover one full evaluation; what fits a number of seconds is not known yet."""
    if limit.unit == "targets":
        needed = 1.0
    elif limit.unit == "cost" and problem.has_declared_cost:
        needed = problem.target_cost
    else:
        return
    if limit.amount < needed * (1.0 - 1e-9):
        raise InvalidInput(
            f"The budget of {limit.amount:.6g} does not cover one evaluation at the target, which costs "
            f"{needed:.6g}; nothing was run. Pass budget=boca.targets(10), for example."
        )


def _give_up_if_hopeless(optimizer: Optimizer, *, at_least: int) -> None:
    """Raise if there are at least that many trials and all failed: the cause is then not the point."""
    failed = all_failed(optimizer.history, at_least=at_least)
    if failed:
        last = failed[-1]
        raise FitsFailed(
            f"All {len(failed)} trials failed, the last at {last.x!r}, {last.z!r} with: {last.reason} "
            f"Pass error_score='raise' to see where.\n{last.output or ''}",
            result_of(optimizer),
        )


def _run_recommended(optimizer: Optimizer, trials: Trials) -> None:
    """Evaluate the recommended point at the target, beyond the budget: a search needs a best."""
    advice = optimizer.recommend()
    assert advice is not None  # a trial is complete
    score = trials.run(advice.x, optimizer.problem.target)
    if score.value is None:
        raise FitsFailed(
            f"No trial at the target was complete, and the recommended {advice.x!r} failed there too, with: "
            f"{score.reason} Pass error_score='raise' to see where.\n{score.output or ''}",
            result_of(optimizer),
        )
    measured = None if optimizer.problem.has_declared_cost else max(score.seconds, 1e-9)
    optimizer.add(advice.x, None, score.told, measured)
    warnings.warn(
        "The budget was spent before a trial at the target was complete, so the recommended point was evaluated there "
        f"beyond it, which took {score.seconds:.3g} s. Pass a larger budget to let the search choose.",
        stacklevel=4,
    )


def _warn_of_failures(history: History) -> None:
    failed = [trial for trial in history if trial.state == "failed"]
    if failed:
        text = f"{len(failed)} of {len(history)} trials failed, the last with: {failed[-1].reason}"
        warnings.warn(text, FitFailedWarning, stacklevel=4)
