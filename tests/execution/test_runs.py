"""What a driver does with evaluations that pass through steps: reports, stops, continuing, crashes, shutdown."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput, Terminated
from boca.execution.runs import takes_run
from support.trainings import FIDELITY, SPACE, Climb, StopAt, cost, loss, training

EXECUTORS = [None, 2, "threads"]


def run(objective: Any, strategy: Any, *, executor: Any = None, targets: float = 4, **settings: Any) -> boca.Result:
    given: dict[str, Any] = {"cost": cost, "budget": boca.targets(targets), "seed": 1, "strategy": strategy}
    if executor == "threads":
        with ThreadPoolExecutor(2) as pool:
            return boca.minimize(objective, SPACE, FIDELITY, executor=pool, **given | settings)
    return boca.minimize(objective, SPACE, FIDELITY, executor=executor, **given | settings)


def curve(result: boca.Result, trial: boca.Trial) -> list[tuple[int, float]]:
    assert result.study is not None
    return result.history.curve(result.study.problem, trial)


def right(trial: boca.Trial) -> bool:
    """Whether a trial has what its steps must give, whatever happened on the way."""
    return all(o.value == loss(trial.x, o.z["epochs"]) for o in trial.observations)


# Reports and stops ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_report_is_stored_and_a_stop_ends_a_trial_where_it_is(executor):
    found = run(training(), StopAt(4), executor=executor)
    assert len(found.history) >= 4
    for trial in found.history:
        last = 9 if trial.number % 2 == 0 else 4
        assert (trial.state, trial.z, trial.cost) == ("complete", {"epochs": last}, float(last))
        assert curve(found, trial) == [(step, loss(trial.x, step)) for step in range(1, last + 1)]
        assert trial.value == loss(trial.x, last)
        assert (trial.stop is not None) == (last == 4)
        assert trial.stop is None or trial.stop.why["reason"] == "It is odd."
    assert found.spent == sum(trial.cost for trial in found.history) <= 4 * 9


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_trial_goes_on_from_the_checkpoint_of_another(executor):
    found = run(training(), Climb(), executor=executor)
    continued = [trial for trial in found.history if trial.continues is not None]
    assert len(continued) >= 4
    for trial in continued:
        before = found.history[trial.continues]
        assert trial.x == before.x
        assert trial.start == before.z["epochs"]
        assert trial.cost == trial.z["epochs"] - trial.start
        assert [o.z["epochs"] for o in trial.observations] == list(range(trial.start + 1, trial.z["epochs"] + 1))
    assert all(map(right, found.history))
    assert found.spent == math.fsum(trial.cost for trial in found.history) <= 4 * 9
    whole = max(found.history, key=lambda trial: trial.z["epochs"])
    assert [step for step, _ in curve(found, whole)] == list(range(1, 10))


def test_an_objective_of_two_arguments_stays_as_it_is():
    found = run(lambda x, z: loss(x, z["epochs"]), StopAt())
    assert {len(trial.observations) for trial in found.history} == {1}
    assert {trial.z["epochs"] for trial in found.history} == {9}


def test_a_fast_training_loses_no_report():
    def fast(x: Any, z: Any, run: boca.Run) -> None:
        for step in run.steps():
            run.report(step, loss(x, step))

    fidelity = boca.Space(epochs=boca.Steps(1, 500))
    found = boca.minimize(fast, SPACE, fidelity, cost=cost, budget=boca.targets(2), strategy=StopAt(1000), seed=0)
    assert [len(trial.observations) for trial in found.history] == [500, 500]
    assert all(map(right, found.history))


def test_an_exception_after_reports_fails_the_trial_and_keeps_its_reports():
    def breaks(x: Any, z: Any, run: boca.Run) -> float:
        for step in run.steps():
            run.report(step, loss(x, step))
            if step == 3 and x["a"] > 0.5:
                raise RuntimeError("no more")
        return loss(x, 9)

    found = run(breaks, StopAt(1000), targets=8)
    failed = [trial for trial in found.history if trial.state == "failed"]
    assert failed
    assert len(failed) < len(found.history)
    for trial in failed:
        assert [o.z["epochs"] for o in trial.observations] == [1, 2, 3]
        assert trial.value is None
        assert (trial.reason or "").startswith("RuntimeError: no more")


def test_a_number_that_is_returned_early_never_counts_at_the_target():
    def gives_up(x: Any, z: Any, run: boca.Run) -> float:
        best = math.inf
        for step in range(1, z["epochs"] + 1):
            best = min(best, loss(x, step) + (step == 3))
            run.report(step, loss(x, step))
            if step == 3 and run.trial % 2:
                return best - 1.0
        return loss(x, 9)

    found = run(gives_up, StopAt(1000))
    early = [trial for trial in found.history if trial.number % 2]
    assert early
    for trial in early:
        assert (trial.state, trial.z, trial.cost, trial.value) == ("complete", {"epochs": 3}, 3.0, loss(trial.x, 3))
    assert found.value is not None
    assert found.value >= 1.0 / 9


def test_a_decision_is_made_while_reports_arrive():
    """A strategy that waits for a report of a running trial would wait forever if none were taken meanwhile."""
    seen: list[int] = []

    class Waits(StopAt):
        def suggest(self, problem, history, budget, rng):
            if len(history.running) == 1:
                deadline = time.monotonic() + 20
                while not any(t.reached for t in studies[0].running):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                seen.append(studies[0].running[0].reached)
            return super().suggest(problem, history, budget, rng)

    studies: list[boca.Optimizer] = []
    original = boca.Optimizer.__init__

    def remembered(self: boca.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        studies.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boca.Optimizer, "__init__", remembered)
        run(training(pause=0.02), Waits(1000), executor="threads")
    assert seen


# Which objectives have a run ------------------------------------------------------------------------------------------


def test_a_third_argument_asks_for_the_run():
    problem = boca.Problem(SPACE, FIDELITY)
    plain = boca.Problem(SPACE, boca.Space(epochs=boca.Int(1, 9)))
    assert takes_run(lambda x, z, run: 1.0, problem)
    assert takes_run(lambda x, z, run=None: 1.0, problem)
    assert not takes_run(lambda x, z: 1.0, problem)
    assert not takes_run(lambda x, z, verbose=False: 1.0, problem)
    assert not takes_run(lambda x, z, *, seed: 1.0, problem)
    assert not takes_run(lambda x, z, run=None: 1.0, plain)
    assert not takes_run(max, problem)
    with pytest.raises(InvalidInput, match=r"third argument, 'run'.*boca.Steps"):
        takes_run(lambda x, z, run: 1.0, plain)
    with pytest.raises(InvalidInput, match="third argument"):
        boca.minimize(lambda x, z, run: 1.0, SPACE, boca.Space(epochs=boca.Int(1, 9)), budget=boca.targets(1))


# Crashes --------------------------------------------------------------------------------------------------------------


def test_after_the_death_of_a_worker_a_trial_goes_on_from_its_checkpoint(tmp_path):
    def dies_once(x: dict[str, Any], z: dict[str, Any], run: boca.Run) -> None:
        made = json.loads((run.checkpoint / "made").read_text()) if run.checkpoint is not None else 0
        with open(log, "a") as file:
            file.write(f"{run.trial} {run.start}\n")
        for step in run.steps():
            made += 1
            run.report(step, (x["a"] - 0.3) ** 2 + 1.0 / made)
            if step == 4 and run.trial % 2 == 0:
                with run.save() as folder:
                    (folder / "made").write_text(json.dumps(made))
            if step == 6 and not (marks / str(run.trial)).exists():
                (marks / str(run.trial)).touch()
                os.kill(os.getpid(), signal.SIGKILL)

    log, marks = tmp_path / "log", tmp_path / "marks"
    marks.mkdir()
    found = run(dies_once, StopAt(1000), executor=1, targets=3)
    begun = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert begun == [(0, 0), (0, 4), (1, 0), (1, 0), (2, 0), (2, 4)]
    for trial in found.history:
        assert [o.z["epochs"] for o in trial.observations] == list(range(1, 10))
        assert (trial.attempt, trial.cost, trial.z) == (1, 9.0, {"epochs": 9})
        assert right(trial)
    assert found.spent == 27


@pytest.mark.parametrize("returns", [False, True])
def test_what_dies_after_its_last_checkpoint_is_complete_and_not_run_again(tmp_path, returns):
    def dies_at_the_end(x: dict[str, Any], z: dict[str, Any], run: boca.Run) -> float | None:
        with open(log, "a") as file:
            file.write(f"{run.trial} {run.start}\n")
        for step in run.steps():
            time.sleep(0.06 if step == 4 else 0.0)  # then the report waits for its answer
            value = (x["a"] - 0.3) ** 2 + 1.0 / step
            if not run.report(step, value):
                with run.save() as folder:
                    (folder / "made").touch()
        if not (marks / str(run.trial)).exists():
            (marks / str(run.trial)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value if returns else None

    log, marks = tmp_path / "log", tmp_path / "marks"
    marks.mkdir()
    found = run(dies_at_the_end, StopAt(4), executor=1, targets=2)
    begun = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert begun[:2] == [(0, 0), (1, 0)]
    for trial, last in zip(found.history[:2], (9, 4), strict=True):
        assert (trial.state, trial.attempt, trial.cost, trial.z) == ("complete", 1, float(last), {"epochs": last})
        assert [o.z["epochs"] for o in trial.observations] == list(range(1, last + 1))
        assert right(trial)


def test_a_checkpoint_that_is_gone_costs_the_steps_and_not_the_trial(tmp_path, caplog):
    def loses(x: Any, z: Any, run: boca.Run) -> None:
        starts.append((run.trial, run.start))
        made = run.start
        for step in run.steps():
            made += 1
            run.report(step, loss(x, made))
        with run.save() as folder:
            (folder / "made").touch()
        if run.trial == 0 and run.checkpoint is not None:
            (run.checkpoint / "boca-checkpoint.json").unlink()

    starts: list[tuple[int, int]] = []
    with caplog.at_level(logging.WARNING, logger="boca"):
        found = run(loses, Climb(), targets=1, checkpoints=tmp_path)
    assert starts[:2] == [(0, 0), (1, 0)]
    assert "Trial 1 begins from scratch" in caplog.text
    trial = found.history[1]
    assert (trial.continues, trial.state, trial.cost) == (0, "complete", 3.0)
    assert [o.z["epochs"] for o in trial.observations] == [3, 4, 5]
    assert [step for step, _ in curve(found, trial)] == [1, 2, 3, 4, 5]


def test_a_shutdown_hands_a_run_back_to_go_on_in_the_same_attempt(tmp_path):
    def slow(x: Any, z: Any, run: boca.Run) -> float:
        made = json.loads((run.checkpoint / "made").read_text()) if run.checkpoint is not None else 0
        for step in run.steps():
            made += 1
            run.report(step, loss(x, made))
            if step == 3 and interrupts:
                interrupts.pop()
                os.kill(os.getpid(), signal.SIGTERM)
        with run.save() as folder:
            (folder / "made").write_text(json.dumps(made))
        return loss(x, made)

    interrupts = [1]
    opt = boca.Optimizer(
        boca.Problem(SPACE, FIDELITY, cost=cost, direction="minimize"),
        budget=boca.targets(2),
        strategy=StopAt(99),
        seed=1,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("boca.execution.options.Optimizer", lambda *_, **__: opt)
        settings = {"checkpoints": tmp_path, "targets": 2}
        with pytest.raises(Terminated) as stopped:
            run(slow, StopAt(99), grace=30.0, **settings)
        assert stopped.value.signal == signal.SIGTERM
        (left,) = opt.running
        assert (left.saved, left.reached, left.attempt) == (3, 3, 0)
        found = run(slow, StopAt(99), **settings)
    trial = found.history[0]
    assert (trial.attempt, trial.start, trial.state, trial.cost) == (0, 3, "complete", 9.0)
    assert [o.z["epochs"] for o in trial.observations] == list(range(1, 10))
    assert right(trial)


@pytest.mark.parametrize("breaks", [False, True])
def test_a_shutdown_before_the_first_step_costs_no_trial(tmp_path, breaks):
    def slow(x: Any, z: Any, run: boca.Run) -> float:
        if interrupts:
            os.kill(os.getpid(), interrupts.pop())
        value = None
        for step in run.steps():
            value = loss(x, step)
            run.report(step, value)
        if breaks and value is None:
            raise UnboundLocalError("value")
        return value  # type: ignore[return-value]

    interrupts = [signal.SIGTERM]
    settings = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "name": "runs", "targets": 1}
    with pytest.raises(Terminated):
        run(slow, StopAt(99), grace=30.0, **settings)
    found = run(slow, StopAt(99), **settings)
    (trial,) = found.history
    assert (trial.attempt, trial.start, trial.state, trial.cost) == (0, 0, "complete", 9.0)
    assert right(trial)


def test_workers_hear_of_a_shutdown_between_their_reports(tmp_path):
    def waits(x: Any, z: Any, run: boca.Run) -> None:
        import time

        run.report(2, 1.0)
        (marks / "reported").touch()
        while not run.should_stop():
            time.sleep(0.01)
        with run.save() as folder:
            (folder / "state").touch()

    marks = tmp_path
    seen: list[boca.Trial] = []

    def terminate() -> None:
        deadline = time.monotonic() + 60
        while not (marks / "reported").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate, daemon=True).start()
    with pytest.raises(Terminated) as stopped:
        run(waits, StopAt(99), executor=1, grace=60.0, callbacks=lambda opt, trial: seen.append(trial))
    assert seen == []
    (left,) = stopped.value.result.history
    assert (left.state, left.saved, left.attempt) == ("running", 2, 0)


# Workers that share no folder -----------------------------------------------------------------------------------------


def test_workers_without_a_common_folder_report_at_the_end_and_that_is_said(caplog):
    from boca.execution.executors import mailbox

    def apart(objective: Any, arguments: Any, plan: Any) -> Any:
        return original(objective, arguments, mailbox.replace(plan, mailbox=str(Path(plan.mailbox) / "elsewhere")))

    original = mailbox.evaluate_by_mail
    from boca.execution.executors.pool import Pool

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, logger="boca"):
        patch.setattr(mailbox, "evaluate_by_mail", apart)
        patch.setattr(Pool, "is_here", False)
        patch.setattr("boca.execution.executors.pool.ThreadPoolExecutor", type("NoThreads", (), {}))
        found = run(training(), StopAt(4), executor="threads")
    assert caplog.text.count("The workers cannot reach") == 1
    assert {trial.z["epochs"] for trial in found.history} == {9}  # nothing was stopped
    assert all(len(trial.observations) == 9 and right(trial) for trial in found.history)
    assert all(trial.checkpoint is None for trial in found.history)
