"""A run as its objective has it: steps, reports, results, and checkpoints that are whole or not there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import stamp
from boca.execution.executors.handle import UNAWAITED_SECONDS, Kept, Plan, Run, evaluate_run
from execution.executors.run_contract import STUDY, Heard


def plan(folder: Path | None = None, *, end: int = 6, **more: Any) -> Plan:
    return Plan(STUDY, 7, 0, more.pop("start", 0), end, folder=None if folder is None else str(folder), **more)


def outcome(objective: Any, heard: Heard, **more: Any) -> tuple[Any, bool, list[int]]:
    report = evaluate_run(objective, ({}, {}), plan(**more), heard)
    return report.value, report.ended, heard.steps


# What a result is -----------------------------------------------------------------------------------------------------


def test_a_number_after_all_steps_is_the_result_at_z():
    def sparse(x, z, run):
        for step in run.steps():
            if step % 2:
                run.report(step, 1.0 / step)
        return 0.5

    assert outcome(sparse, Heard()) == (0.5, False, [1, 3, 5])


def test_a_number_before_z_ends_the_run_at_its_last_report():
    def early(x, z, run):
        for step in run.steps():
            if step == 4:
                return 0.25
            run.report(step, 1.0 / step)
        return 1.0

    heard = Heard()
    assert outcome(early, heard) == (None, True, [1, 2, 3])
    assert heard.reports[-1] == (3, 1.0 / 3, None)


def test_without_reports_a_number_before_z_belongs_to_the_step_that_was_reached():
    def early(x, z, run):
        for step in run.steps():
            if step == 4:
                return 0.25
        return 1.0

    heard = Heard()
    assert outcome(early, heard) == (None, True, [4])
    assert heard.reports == [(4, 0.25, None)]


def test_a_number_in_the_last_step_is_the_result_at_z():
    def late(x, z, run):
        for step in run.steps():
            if step == run.end:
                return 0.25
            run.report(step, 1.0 / step)
        return None

    assert outcome(late, Heard()) == (0.25, False, [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("reported", "is_early"),
    [
        ([1, 2, 3], True),  # every step, and then two more were due
        ([1, 2, 3, 4, 5], False),  # all but the one that is returned
        ([3], False),  # not every step: nothing says that the loop ended here
        ([1, 2, 4], False),
    ],
)
def test_a_loop_of_its_own_has_ended_early_if_it_reported_every_step_until_then(reported, is_early):
    def own_loop(x, z, run):
        for step in reported:
            run.report(step, 1.0 / step)
        return 0.01

    expected = (None, True, reported) if is_early else (0.01, False, reported)
    assert outcome(own_loop, Heard()) == expected


def test_nothing_after_the_reports_of_an_earlier_attempt_ends_there():
    assert outcome(lambda x, z, run: None, Heard(), has_reports=True) == (None, True, [])


def test_nothing_from_a_run_that_was_told_to_leave_is_no_failure():
    class Leaving(Heard):
        def word(self):
            return "leave"

    def waits(x, z, run):
        for step in run.steps():
            run.report(step, 1.0)

    assert outcome(waits, Leaving()) == (None, True, [])


def test_a_number_that_was_reported_before_z_ends_there_without_steps_too():
    def own_loop(x, z, run):
        for epoch in range(1, 4):
            run.report(epoch, 1.0 / epoch)
        return 1.0 / 3

    assert outcome(own_loop, Heard()) == (None, True, [1, 2, 3])


def test_nothing_at_all_is_a_failure():
    report = evaluate_run(lambda x, z, run: None, ({}, {}), plan(), Heard())
    assert report.error == "The objective must return a finite number; it returned None."


def test_a_number_without_reports_is_a_result():
    assert outcome(lambda x, z, run: 2.0, Heard()) == (2.0, False, [])


# Reports --------------------------------------------------------------------------------------------------------------


def test_one_report_in_a_twentieth_of_a_second_is_waited_for():
    class Waiting(Heard):
        def report(self, step, value, noise, *, wait):
            self.waited = [*getattr(self, "waited", []), wait]
            return super().report(step, value, noise, wait=wait)

    heard = Waiting()
    run = Run(plan(), heard)
    run.report(1, 1.0)
    run.report(2, 1.0)
    time.sleep(1.2 * UNAWAITED_SECONDS)
    run.report(3, 1.0)
    run.report(4, 1.0)
    run.report(6, 1.0)
    assert heard.waited == [True, False, True, False, True]  # the last step too


@pytest.mark.parametrize(
    ("step", "value", "words"),
    [
        (0, 1.0, "step 0, and it continues from step 0"),
        (True, 1.0, "step True, and a step is a whole number"),
        (9, 1.0, "step 9, and this run ends at step 6"),
        (1, float("inf"), "got inf at step 1"),
        (1, "good", "got 'good' at step 1"),
    ],
)
def test_what_is_no_report_is_refused_and_changes_nothing(step, value, words):
    heard = Heard()
    run = Run(plan(), heard)
    with pytest.raises(InvalidInput, match=words) as refused:
        run.report(step, value)
    assert "Nothing was stored" in str(refused.value) or "whole number" in str(refused.value)
    assert run.report(1, 1.0)
    assert heard.steps == [1]


def test_a_copy_in_another_process_cannot_report():
    run = Run(plan(), Heard())
    child = os.fork()
    if child == 0:
        try:
            run.report(1, 1.0)
        except InvalidInput:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


# Checkpoints ----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_that_of_the_last_report_and_replaces_the_one_before(tmp_path):
    heard = Heard()
    run = Run(plan(tmp_path), heard)
    seen = [run.checkpoint]
    for step in (1, 3):
        run.report(step, 1.0)
        with run.save() as folder:
            assert not list(folder.iterdir())
            (folder / "deep").mkdir()
            (folder / "deep" / "state").write_text(str(step))
        seen.append(run.checkpoint)
    assert seen[0] is None
    assert [str(path) for path in seen[1:]] == [path for _, path in heard.checkpoints]
    assert [step for step, _ in heard.checkpoints] == [1, 3]
    assert [(path / "deep" / "state").read_text() for path in seen[1:] if path] == ["1", "3"]
    assert stamp.fits(seen[2], study=STUDY, step=3, trial=7)
    assert not stamp.fits(seen[2], study=STUDY, step=1)


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path):
    heard = Heard()
    run = Run(plan(tmp_path), heard)
    run.report(1, 1.0)
    with run.save() as folder:
        (folder / "state").touch()
    before = run.checkpoint
    run.report(2, 1.0)

    def save() -> None:
        with run.save() as folder:
            (folder / "state").touch()
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        save()
    assert run.checkpoint == before
    assert [step for step, _ in heard.checkpoints] == [1]
    assert list((tmp_path / "000007").iterdir()) == [before]


def test_where_nothing_can_be_continued_a_checkpoint_is_discarded(tmp_path):
    heard = Heard()
    early, apart = Run(plan(tmp_path), heard), Run(plan(None), heard)
    apart.report(1, 1.0)
    for run in (early, apart):
        with run.save() as folder:
            (folder / "state").touch()
        assert not folder.exists()
        assert run.checkpoint is None
    assert heard.checkpoints == []
    assert list(tmp_path.iterdir()) == []


def test_without_a_way_to_the_driver_reports_are_kept():
    kept = Kept()
    report = evaluate_run(
        lambda x, z, run: [run.report(s, s / 2) for s in run.steps()] and None, ({}, {}), plan(), kept
    )
    assert report.ended
    assert kept.told == [(step, step / 2, None) for step in range(1, 7)]
    assert kept.word() == "go"
