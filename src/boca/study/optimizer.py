"""The optimizer: the one stateful object.  It asks a strategy, keeps the ledger, and remembers through a storage."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias, overload

import numpy as np

from boca.accounting import cost as cost_models
from boca.accounting.ledger import Ledger
from boca.domain.budget import Budget, Limit, limit_of
from boca.domain.errors import InvalidInput, InvalidTrial
from boca.domain.other_tools import names_ours
from boca.domain.outcomes import checked_notes
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.runs import RunEvent
from boca.domain.space import Point, non_negative_number, positive_number
from boca.domain.trial import History, Trial, is_exhausted, occupied, point_key, unavailable
from boca.domain.version import VERSION
from boca.domain.words import point, text
from boca.strategies import Boca, Strategy
from boca.strategies.base import HasKeepGoing, shares_batches
from boca.strategies.base import check as check_settings
from boca.study import runs
from boca.study.ahead import Ahead, Choosing, Draft
from boca.study.batch import Batch
from boca.study.front import recommend_front
from boca.study.opening import DEFAULT_NAME, open_study, warn_of_no_name
from boca.study.recommendation import best, recommend
from boca.study.report_buffer import ReportBuffer
from boca.study.spec import describe
from boca.study.storage import Lease, Memory, Queued, Report, Snapshot, Storage
from boca.study.storage.transitions import refuse_result
from boca.study.trial_io import ImportedResult, results

Check: TypeAlias = Callable[[Trial], object]
"""Called with a trial that is about to be handed out; if it raises, the trial is not."""

Told: TypeAlias = float | Mapping[str, Any]
"""A value, or the outcomes of an evaluation by name, of which the rest is notes."""

Noise: TypeAlias = float | Mapping[str, float]
"""The variance of a value, or variances by outcome."""

log = logging.getLogger("boca")

_TRIES_BEFORE_A_LATE_CLAIM = 3  # choices that other claims overtook; the next one is claimed if it still stands


class Optimizer:
    """Ask for a query, evaluate it however you like, tell the result."""

    @names_ours
    def __init__(
        self,
        problem: Problem,
        *,
        budget: Limit | float | None,
        strategy: Strategy | None = None,
        seed: int | None = None,
        storage: str | None = None,
        name: str | None = None,
        allow_change: bool = False,
        stop_runs: HasKeepGoing | None = None,
    ) -> None:
        """Begin a study, or resume the one of this name if the storage has it.

        A stored study must have been made with the same problem, strategy, seed and budget.

        Args:
            problem: what to search.
            budget: `boca.targets(30)`, `boca.seconds(600)`, a number in cost units, or None for no limit.
            strategy: what chooses the queries; `Boca()` by default.
            seed: a non-negative integer; None draws one, or takes that of the stored study.
            storage: None for memory, or a URL: `sqlite:///study.db`, `postgresql+psycopg://user@host/database`.
            name: the study in the storage; "study" if none is given.
            allow_change: permit a larger budget, the strategy fields of a newer boca, an Int fidelity that becomes
                `Steps` of the same bounds, or another rule `stop_runs`.
            stop_runs: the rule that says whether an evaluation that reports its steps goes on, if the strategy has none
                of its own; None lets every one go on.
        """
        if not isinstance(problem, Problem):
            raise InvalidInput(f"problem is {problem!r}, and must be a boca.Problem.")
        strategy = Boca() if strategy is None else strategy
        if not isinstance(strategy, Strategy) or isinstance(strategy, type):
            raise InvalidInput(f"strategy is {strategy!r}, and must have a method suggest, as boca.Boca() has.")
        check_settings(strategy, problem)  # before anything is paid for
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise InvalidInput(f"seed is {seed!r}, and must be a non-negative integer or None.")
        if stop_runs is not None and not isinstance(stop_runs, HasKeepGoing):
            raise InvalidInput(f"stop_runs is {stop_runs!r}, and must have a method keep_going, or be None.")
        self.problem = problem
        self.strategy = strategy
        self.stop_runs = stop_runs
        self.seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else int(seed)  # 63 bits
        self.name = DEFAULT_NAME if name is None else name
        self.limit = limit_of(budget, problem.target_cost if problem.has_declared_cost else None)
        self._first: Limit | None = None  # the budget that the study was made with, if it has another now
        if storage is not None and name is None:
            warn_of_no_name()
        self.storage: Storage = Memory() if storage is None else self._open(storage, seed, allow_change)
        self._reports = ReportBuffer(lambda: self.storage)
        self._handed_out: dict[int, tuple[int, float]] = {}  # number -> attempt and when
        self._refused: tuple[int, tuple[Queued, ...]] | None = None  # event and queue when nothing was affordable

    def _open(self, url: str, seed: int | None, allow_change: bool) -> Storage:
        given = describe(self.problem, self.strategy, seed=self.seed, limit=self.limit, stop_runs=self.stop_runs)
        opened = open_study(
            url,
            self.name,
            given,
            problem=self.problem,
            strategy=self.strategy,
            keeps_seed=seed is None,
            allow_change=allow_change,
        )
        self.seed, self._first, self.strategy = opened.seed, opened.first, opened.strategy
        return opened.storage

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "An Optimizer cannot be copied or sent to another process: it is connected to its storage. Give the "
            "other process the URL of the storage, and open the study there."
        )

    # What can be read ---------------------------------------------------------------------------------------------

    @property
    def history(self) -> History:
        """All trials so far, as copies: changing them does not change the study."""
        self._reports.flush()
        return self._history.copied()

    @property
    def running(self) -> tuple[Trial, ...]:
        """The trials that were handed out and have no result yet."""
        self._reports.flush()
        return tuple(trial.copied() for trial in self._history.running)

    @property
    def best(self) -> Trial | None:
        """The best complete trial at the target, within all limits; None before there is one.

        If variances were told, it is the one with the highest posterior mean; its value is as told.
        """
        found = best(self.problem, self._history, self.strategy)
        return None if found is None else found.copied()

    @property
    def budget(self) -> Budget:
        """The budget in cost units, with what is spent and what running trials reserve."""
        return self._ledger(self._history).budget

    @property
    def spent(self) -> float:
        """What finished trials were charged: cost units, or seconds under a budget in seconds."""
        return self._ledger(self._history).spent

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its user should know about this study, in sentences."""
        now = self.storage.read()
        ledger = self._ledger(now.history)
        return tuple(ledger.warnings(queued=sum(not ledger.affords(point.z) for point in now.queue)))

    @property
    def front(self) -> list[Trial]:
        """The complete trials at the target, within all limits, that none dominates; with one objective, the best."""
        if not self.problem.objectives:
            return [] if (found := self.best) is None else [found]
        return [trial.copied() for trial in self._history.front(self.problem)]

    def recommend(self) -> Any:
        """Return the point to use at the target, with its uncertainty: a `Recommendation`.

        None before the first result.  With several objectives it is a list of `FrontRecommendation`: the points that
        are best according to the models, empty before the first result.
        """
        if self.problem.objectives:
            return recommend_front(self.problem, self._history, self.strategy)
        return recommend(self.problem, self._history, self.strategy)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the best, what is spent and what runs, with trials and problem folded away."""
        from boca.domain import html

        history, best = self._history, self.best
        found = "no trial is complete at the target" if best is None else f"{text(best.value)} at {point(best.x)}"
        if self.problem.objectives:
            found = f"{len(self.front)} trials on the front"
        rows = [
            ("study", self.name),
            ("best at the target", found),
            ("spent", f"{self._ledger(history).spent_in_words} on {len(history)} trials"),
            ("running", ", ".join(str(trial.number) for trial in history.running) or "none"),
        ]
        trials = html.folded("trials", html.history(history, repr(history)))
        return f"<div>{html.table([], rows)}{trials}{html.folded('problem', html.problem(self.problem))}</div>"

    # What can be done ---------------------------------------------------------------------------------------------

    @overload
    def ask(self, *, lease: Lease | None = None, check: Check | None = None) -> Trial | None: ...
    @overload
    def ask(self, n: int, *, lease: Lease | None = None, check: Check | None = None) -> list[Trial]: ...
    def ask(
        self, n: int | None = None, *, lease: Lease | None = None, check: Check | None = None
    ) -> Trial | list[Trial] | None:
        """Return the next trial to evaluate, or None if nothing affordable is left (while trials run: for now).

        Args:
            n: how many trials to return at most, as a list; without it, one trial.
            lease: the terms on which an executor holds the trial; without them it runs until it is told, in any process
                and after any time.
            check: called with a trial before it is stored; if it raises, nothing was handed out.
        """
        if n is None:
            return self._ask(lease, check)
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInput(
                f"n is {n!r}, and must be a positive integer. Type ask() for one trial, ask(4) for four."
            )
        trials = list(self.ask_each(int(n), lease=lease, check=check))
        self._note_time(trials)  # choosing the later ones is not the earlier ones' time
        return trials

    def ask_each(self, n: int, *, lease: Lease | None = None, check: Check | None = None) -> Iterator[Trial]:
        """Yield the trials of `ask(n)`, each as soon as it is chosen and stored.

        Results may be told in between: they do not change the choice of the others.
        """
        batch = Batch(self.strategy) if n > 1 and shares_batches(self.strategy) else None
        for _ in range(n):
            trial = self._ask(lease, check, batch)
            if trial is None:
                return
            yield trial

    def ahead(self) -> Ahead:
        """Return what chooses trials before workers are free for them; a driver uses it."""
        return Ahead(Choosing(self.storage, self.strategy, self._draft, self._stands, self._claimed))

    def take_over(self, lease: Lease, *, max_retries: int = 2, limit: int | None = None) -> list[Trial]:
        """Take over the trials of drivers that died, and return them for evaluation; see `Storage.take_over`.

        One with `trial.stop` was told to stop before its driver died: end it with opt.tell(trial, None).
        """
        trials = [trial.copied() for trial in self.storage.take_over(lease, max_retries=max_retries, limit=limit)]
        self._note_time(trials)
        return trials

    def tell(
        self,
        trial: Trial | int,
        value: Told | None,
        *,
        cost: float | None = None,
        noise: Noise | None = None,
        seconds: float | None = None,
        output: str | None = None,
        notes: Mapping[str, Any] | None = None,
        worker: str | None = None,
    ) -> Trial:
        """Store the result of a running trial.

        Args:
            trial: the trial, or its number.
            value: what the objective returned: a number, or numbers by name if outcomes have limits.  After reports,
                None ends the trial at the last one, which is its value.
            cost: what it cost, in place of what was expected; in seconds if no cost is declared.
            noise: the variance of this value, if it is known; or variances by name.
            seconds: how long the evaluation took; by default the time since the trial was handed out.  Give it if more
                than one trial runs.
            output: what the evaluation printed, to be kept with the trial.
            notes: further values by name, which are stored and shown, and not optimized.
            worker: what evaluated it, such as `node7:4711`, to be stored and shown.
        """
        running = self._written(trial)
        ended = runs.ended(self.problem, running)
        if value is None and ended is not None:
            complete, kept = self._finished(ended, cost, seconds), checked_notes(notes)
            return self._finish(replace(complete, output=output, notes=kept, worker=worker))
        is_told_there = ended is not None and runs.is_over(running)
        try:
            result = self.problem.returned(value, ended.z if ended and is_told_there else running.planned)
        except InvalidInput as error:
            raise InvalidInput(
                f"{error} Nothing was changed. If there is no value, type opt.fail(trial, reason)."
            ) from None
        variances, kept = self.problem.variances(noise), {**result.notes, **checked_notes(notes)}
        if ended is not None and is_told_there:
            joined = runs.joined(self.problem, ended, result.values, variances)
            complete = self._finished(joined, cost, seconds)
        else:
            complete = self._finished(running, cost, seconds).observed(result.values, noise=variances)
        return self._finish(replace(complete, output=output, notes=kept, worker=worker))

    def report(self, trial: Trial | int, step: int, value: Told, *, noise: Noise | None = None) -> bool:
        """Store what a running evaluation has reached at a step, and return whether it should go on.

        The report is a result at the trial's z with its `Steps` at this step.  It is stored when this returns, unless
        the trial reports more than twenty times a second: then it is within 50 ms.  If it should not go on, end the
        evaluation and type opt.tell(trial, None): the last report is then its value, and it is charged for that step.

        Args:
            trial: the trial, or its number.
            step: beyond the last one that was reported, and not beyond the one that was handed out.
            value: what the evaluation is worth at this step: a number, or numbers by name if outcomes have limits.
            noise: the variance of this value, if it is known; or variances by name.
        """
        history = self._history
        running = self._reports.ahead(self._running(trial, history))
        number = runs.checked_step(self.problem, running, step)
        told = runs.told_at(self.problem, running, number, value, noise, self._seconds_so_far(running))
        report, differs = runs.unless_known(self.problem, history, running, Report(number, told))
        stored = self._reports.put(running, report)
        if differs is not None:
            log.warning("%s", runs.difference_in_words(running, differs))
            self._reports.flush(running.number)
            stored = self.storage.record(running, differs)
        if not report.told and number < runs.last_step(self.problem, running):  # it was decided before
            return running.stop is None
        if stored is None:
            return self._goes_on(running.reported(number, report.told), is_written=False)
        return self._goes_on(stored)

    def saved(self, trial: Trial | int, step: int, checkpoint: str | os.PathLike[str]) -> Trial:
        """Note that a running evaluation has left a checkpoint of a step: from there it can go on, or be continued.

        Args:
            trial: the trial, or its number.
            step: the step that the checkpoint is of.
            checkpoint: where it is.
        """
        running = self._written(trial)
        event = runs.checkpoint(self.problem, running, step, os.fspath(checkpoint), self._seconds_so_far(running))
        return self.storage.record(running, event).copied()

    def flush(self) -> None:
        """Write the reports of the last 50 ms, of trials that report more than twenty times a second."""
        self._reports.flush()

    def drop(self, trial: Trial | int) -> Trial:
        """Note that the checkpoint of a trial is deleted: nothing continues it any more."""
        stored = self._stored(trial)
        return self.storage.record(stored, RunEvent("dropped", stored.saved)).copied()

    def fail(
        self,
        trial: Trial | int,
        reason: str,
        *,
        cost: float | None = None,
        seconds: float | None = None,
        output: str | None = None,
        worker: str | None = None,
    ) -> Trial:
        """Store that a running trial failed: it is charged, and its point counts as worse than every result so far.

        Args:
            trial: the trial, or its number.
            reason: why, in a sentence.
            cost: what it cost, in place of what was expected.
            seconds: how long the evaluation took; by default the time since the trial was handed out.
            output: what the evaluation printed, to be kept with the trial.
            worker: what evaluated it, such as `node7:4711`, to be stored and shown.
        """
        failed = replace(self._written(trial), state="failed", reason=str(reason), output=output, worker=worker)
        return self._finish(self._finished(failed, cost, seconds))

    def add(
        self,
        x: Mapping[str, Any],
        z: Mapping[str, Any] | None,
        value: Told,
        cost: float | None = None,
        *,
        noise: Noise | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Import a result that you already have; it is not charged to the budget.

        Args:
            x: the point.
            z: the fidelity; None is the target.
            value: the observed value, or numbers by name; of an evaluation that passes through steps, the values by
                step, `{1: 0.9, 2: 0.7}`, and then the same import changes nothing when it is done again.
            cost: what it cost, in units of the declared cost, or in seconds if the cost is learned.
            noise: the variance of this value, if it is known; or variances by name.
            notes: further values by name, which are stored and shown, and not optimized.
        """
        if runs.is_curve(value):
            drafts = [self._imported(runs.curve(self.problem, x, z, value, cost, noise, notes))]
            return self.storage.add_many(drafts)[0].copied()
        point = self.problem.space.validate(x, "x")
        fidelity = self.problem.fidelity.validate(self.problem.target if z is None else z, "z")
        given = ImportedResult(point, fidelity, value, cost, noise, notes=checked_notes(notes))
        return self.storage.add(self._imported(given)).copied()

    def add_all(self, source: object) -> list[Trial]:
        """Import many results: the complete ones of a History, a pandas table, or a .csv or .jsonl file.

        Each has its fidelity and, if it is known, its cost: in units of the declared cost; if the cost is learned, the
        `seconds` of the source, or its `cost` if it has no seconds.  One mistake in a source imports nothing of it.

        Results that were imported before, with the same point and value, are left out: a second import of one source
        changes nothing.  Return a trial for each result, new or not.
        """
        known = results(source, self.problem)
        costs = cost_models.costs(self.problem, self._history)
        return [trial.copied() for trial in self.storage.add_many([self._imported(k, costs) for k in known])]

    def _imported(self, given: ImportedResult, costs: cost_models.Costs | None = None) -> Trial:
        """Return an imported result as a trial that is to be stored."""
        costs = cost_models.costs(self.problem, self._history) if costs is None else costs
        fidelity = self.problem.with_all_steps.validate(given.z, "z")
        result = self.problem.returned(given.told(self.problem), None)
        paid = None if given.cost is None else positive_number(given.cost, "cost")
        draft = Trial(
            number=0,
            x=self.problem.space.validate(given.x, "x"),
            planned=fidelity,
            cost=costs.going_on(fidelity, 0) if paid is None else paid,
            reasons=Reasons.of({"reason": "Imported result.", "phase": "added"}),
            seconds=None if self.problem.has_declared_cost else paid,
            notes={**result.notes, **checked_notes(given.notes)},
            version=VERSION,
        )
        reported = replace(draft, observations=runs.imported_reports(self.problem, given.reports))
        return reported.observed(result.values, noise=self.problem.variances(given.noise))

    def enqueue(self, x: Mapping[str, Any], z: Mapping[str, Any] | None = None) -> None:
        """Queue a point, to be handed out before the strategy's own; `z=None` is the target."""
        point = self.problem.space.validate(x, "x")
        fidelity = self.problem.fidelity.validate(self.problem.target if z is None else z, "z")
        self._refuse_infeasible(point, "x")
        self.storage.enqueue(point, fidelity)

    # How --------------------------------------------------------------------------------------------------------

    @property
    def _history(self) -> History:
        """All trials as they are stored: for reading only, since an edit would change the study."""
        return self.storage.read().history

    def _ledger(self, history: History) -> Ledger:
        return Ledger(self.problem, history, self.limit, self._first)

    def _ask(self, lease: Lease | None, check: Check | None, batch: Batch | None = None) -> Trial | None:
        """Choose a trial and claim it; if another driver claims first, choose again.

        No lock is held while a strategy runs.  After some tries a trial is claimed if it is still affordable and free.
        """
        if self.limit is not None and self.limit.unit == "seconds":
            _load_what_choosing_needs()  # a second per process, which is not part of a choice
        began = time.perf_counter()
        for tries in itertools.count():
            now = self.storage.read()
            if self._refused == (now.event, now.queue):
                return None  # a driver asks every second; the same question has the same answer
            read = now if batch is None else batch.read(now)
            found = self._draft(read, batch, began)
            if found is None:
                if batch is not None and read.event != now.event:
                    batch.end()  # results that were told since may leave something affordable
                    continue
                self._refused = (now.event, now.queue)
                return None
            draft, queued = found
            if check is not None:
                check(draft)
            affords = None
            if batch is not None and read.event != now.event:  # its earlier trials are events too
                affords = batch.unless_joined(self._stands(draft))
            elif tries >= _TRIES_BEFORE_A_LATE_CLAIM:
                affords = self._stands(draft)
            trial = self.storage.claim(draft, affords=affords, queued=queued, lease=lease)
            if trial is not None:
                if batch is not None:
                    batch.add(trial)
                return self._claimed(trial)
            if batch is not None:
                batch.end()
        raise AssertionError("a count has no end")

    def _claimed(self, trial: Trial) -> Trial:
        self._note_time([trial])
        return trial.copied()

    def _draft(self, read: Snapshot, batch: Batch | None, began: float) -> Draft | None:
        """Return the next trial, chosen and not stored yet, with the queued point that it is; None if there is none."""
        ledger = self._ledger(read.history)
        chosen = self._choose(read, ledger, batch)
        if chosen is None:
            return None
        x, z, why, queued, before = chosen
        draft = Trial(
            number=len(read.history),
            x=x,
            planned=z,
            cost=ledger.costs.going_on(z, 0 if before is None else before.saved),
            reasons=Reasons.of(why),
            overhead=time.perf_counter() - began,
            seen=read.event,
            pending=tuple(t.number for t in read.history.running),
            version=VERSION,
        )
        return runs.from_checkpoint(draft, before), queued

    def _choose(
        self, now: Snapshot, ledger: Ledger, batch: Batch | None
    ) -> tuple[Point, Point, dict[str, Any], Queued | None, Trial | None] | None:
        """Return the next point with its fidelity and its reasons; None if it is not affordable, or nothing is new.

        With them comes the queued point that it is, and the trial that it continues.
        """
        running = occupied(self.problem, now.history)
        for queued in now.queue:
            x, z = dict(queued.x), dict(queued.z)
            if ledger.affords(z) and (point_key(x), point_key(z)) not in running:
                return x, z, {"reason": "Queued by the user.", "phase": "queued"}, queued, None
        if is_exhausted(self.problem, now.history):
            return None
        rng = np.random.default_rng([self.seed, len(now.history)])
        if batch is None:
            suggestion = self.strategy.suggest(self.problem, now.history, ledger.budget, rng)
        else:
            suggestion = batch.suggest(self.problem, now.history, ledger.budget, rng)
        x = self.problem.space.validate(suggestion.x, "the strategy's x")
        z = self.problem.fidelity.validate(suggestion.z, "the strategy's z")
        self._refuse_infeasible(x, "the strategy's x")
        before = runs.continued(self.problem, now.history, replace(suggestion, x=x, z=z))
        if not ledger.affords(z, 0 if before is None else before.saved):
            return None
        if self.problem.deterministic and (point_key(x), point_key(z)) in unavailable(self.problem, now.history):
            return None  # every point that could be run has been
        return x, z, dict(suggestion.why), None, before

    def _refuse_infeasible(self, x: Point, what: str) -> None:
        """Refuse a point at which a known constraint does not hold; results from such points are data all the same."""
        violated = self.problem.space.violated(x)
        if violated is not None:
            raise InvalidInput(
                f"{what} is {x!r}, where the constraint {violated.words!r} does not hold; only points that satisfy "
                "every constraint are run. Give such a point, or import a result that you have with opt.add."
            )

    def _stands(self, draft: Trial) -> Callable[[History], bool]:
        """Return whether a choice still stands after others have claimed.

        It must be affordable, and none of them may have the same point: drivers that choose at the same moment agree.
        What it continues must still have its checkpoint.
        """
        here = (point_key(draft.x), point_key(draft.planned))

        def stands(history: History) -> bool:
            others = {(point_key(t.x), point_key(t.planned)) for t in history[draft.number :]}
            if here in others or here in unavailable(self.problem, history):
                return False
            if draft.continues is not None and history[draft.continues].checkpoint != draft.checkpoint:
                return False
            return self._ledger(history).affords(draft.planned, draft.start)

        return stands

    def _goes_on(self, trial: Trial, *, is_written: bool = True) -> bool:
        """Return whether a run goes on after its last report; a stop is stored when it is decided.

        A report that is written later is decided on as if it were, and once more when it is if the run is to stop.
        """
        if trial.stop is not None or trial.reached >= self.problem.step(trial.planned):
            return False
        rules = (self.strategy, self.stop_runs)
        if not runs.has_rule(rules) or not self.problem.is_modelled(self.problem.at_step(trial.planned, trial.reached)):
            return True
        now = self.storage.read()
        history = now.history if is_written else now.history.replaced(trial)
        running = history[trial.number]
        found = runs.verdict(rules, self.problem, history, running, runs.decision_rng(self.seed, running))
        if found.go_on:
            return True
        if not is_written:
            self._reports.flush(trial.number)
            return self._goes_on(self._running(trial.number))
        self.storage.record(running, RunEvent("stopped", trial.reached, why=dict(found.why), seen=now.event))
        return False

    def _note_time(self, trials: Sequence[Trial]) -> None:
        now = time.perf_counter()
        self._handed_out.update({trial.number: (trial.attempt, now) for trial in trials})

    def _written(self, trial: Trial | int) -> Trial:
        """Return a running trial as it is stored, after everything that it has reported."""
        running = self._running(trial)
        self._reports.flush(running.number)
        return running if self.problem.steps is None else self._running(trial)

    def _finish(self, trial: Trial) -> Trial:
        done = self.storage.finish(trial)
        self._reports.forget(trial.number)
        self._handed_out.pop(trial.number, None)
        return done.copied()

    def _stored(self, trial: Trial | int, history: History | None = None) -> Trial:
        """Return the trial as it is stored, or as it is in a history that was just read."""
        number = trial.number if isinstance(trial, Trial) else trial
        history = self._history if history is None else history
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(history):
            raise InvalidTrial(f"There is no trial {number!r}: this study has {len(history)}. Nothing was changed.")
        return history[int(number)]

    def _running(self, trial: Trial | int, history: History | None = None) -> Trial:
        """Return the trial as it is stored, or say why it cannot take a result."""
        stored = self._stored(trial, history)
        number = stored.number
        attempt, _ = self._handed_out.get(stored.number, (stored.attempt, 0.0))
        refuse_result(stored, replace(stored, attempt=trial.attempt if isinstance(trial, Trial) else attempt))
        if isinstance(trial, Trial) and (trial.x != stored.x or trial.planned != stored.planned):
            raise InvalidTrial(
                f"This is not trial {number} of this study, which was handed out at x={stored.x!r}, "
                f"z={stored.planned!r}; got x={trial.x!r}, z={trial.planned!r}. It belongs to another study, or your "
                f"code changed it. To tell the value for the stored one, type opt.tell({number}, value)."
            )
        return stored

    def _finished(self, trial: Trial, cost: float | None, seconds: float | None) -> Trial:
        """Return the trial with what it took and what it is charged."""
        paid = None if cost is None else positive_number(cost, "cost")
        took = None if seconds is None else non_negative_number(seconds, "seconds")
        if took is None and paid is not None and not self.problem.has_declared_cost:
            took = paid  # without a declared cost, cost is seconds
        took = self._seconds_so_far(trial) if took is None else took + trial.carried
        if paid is None and not self.problem.has_declared_cost and took is not None:
            paid = max(took, cost_models.CLOCK_RESOLUTION)
        if paid is None:
            paid = self.problem.cost_from(trial.z, trial.origin) if trial.z != trial.planned else trial.cost
        return replace(trial, cost=paid, seconds=took)

    def _seconds_so_far(self, trial: Trial) -> float | None:
        """Return how long the evaluation of a running trial has taken, in all attempts that led to where it is."""
        if trial.number in self._handed_out:
            return trial.carried + time.perf_counter() - self._handed_out[trial.number][1]
        took = self.storage.seconds_out(trial.number)  # another process asked: the storage may know when
        return None if took is None else trial.carried + took


def _load_what_choosing_needs() -> None:
    """Import what strategies import when they first need it."""
    import scipy.linalg
    import scipy.optimize
    import scipy.special
    import scipy.stats.qmc  # noqa: F401
