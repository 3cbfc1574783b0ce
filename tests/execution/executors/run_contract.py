"""What every engine promises of evaluations that pass through steps.  A test class inherits it with its own engines."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.execution.executors import Engine, Outcome
from boca.execution.executors import stamp as stamps
from boca.execution.executors.handle import Begun, Plan, Word

Make = Callable[..., Engine]
STUDY = "a study"


class Heard:
    """A link that keeps what a run says, and tells it to stop or to leave at a step."""

    def __init__(self, *, stop_at: int | None = None, refuse: int | None = None) -> None:
        self.reports: list[tuple[int, Any, Any]] = []
        self.checkpoints: list[tuple[int, str]] = []
        self.leaves, self.has_reported = threading.Event(), threading.Event()
        self._stop_at, self._refuse = stop_at, refuse

    def report(self, step: int, value: Any, noise: Any, *, wait: bool) -> Word:
        if step == self._refuse:
            raise InvalidInput(f"Step {step} is refused.")
        self.reports.append((step, value, noise))
        self.has_reported.set()
        return self.word()

    def saved(self, step: int, path: str) -> None:
        self.checkpoints.append((step, path))

    def word(self) -> Word:
        if self.leaves.is_set():
            return "leave"
        return "stop" if self._stop_at is not None and self.steps[-1:] >= [self._stop_at] else "go"

    def flush(self) -> None:
        """Do nothing: everything is kept at once."""

    @property
    def steps(self) -> list[int]:
        return [step for step, _, _ in self.reports]


class Bench:
    """An engine with one objective, and the folder that its runs share with this process."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder

    def begin(
        self, link: Heard, *, end: int = 6, start: int = 0, checkpoint: str | None = None, **x: Any
    ) -> Future[Outcome]:
        place = str(self.folder / "checkpoints")
        mailbox = str(self.folder / "talk" / f"{time.monotonic_ns()}")
        plan = Plan(STUDY, 7, 0, start, end, checkpoint=checkpoint, folder=place, mailbox=mailbox)
        return self.engine.submit(x, {"epochs": end}, timeout=None, run=Begun(plan, link))

    def run(self, link: Heard, **settings: Any) -> Outcome:
        return self.begin(link, **settings).result(60.0)


class RunContract:
    """Evaluations that pass through steps report, stop, save and go on, wherever they run."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError

    @pytest.fixture
    def bench(self, make: Make, tmp_path: Path) -> Callable[[Callable[..., Any]], Bench]:
        return lambda objective: Bench(make(objective, takes_fidelity=True), tmp_path)

    def test_reports_arrive_in_their_order_and_the_last_one_is_the_result(self, bench: Any) -> None:
        def training(x: Any, z: Any, run: boca.Run) -> None:
            for step in run.steps():
                assert run.report(step, x["a"] / step, noise=0.5 if step == 2 else None) == (step < z["epochs"])

        heard = Heard()
        outcome = bench(training).run(heard, a=3.0)
        assert (outcome.value, outcome.error, outcome.ended) == (None, None, True)
        assert heard.reports == [(step, 3.0 / step, 0.5 if step == 2 else None) for step in range(1, 7)]

    def test_reports_that_come_faster_than_twenty_a_second_all_arrive(self, bench: Any) -> None:
        def fast(x: Any, z: Any, run: boca.Run) -> float:
            for step in run.steps():
                run.report(step, {"loss": 1.0 / step, "size": step})
            return 2.0

        heard = Heard()
        outcome = bench(fast).run(heard, end=300)
        assert (outcome.value, outcome.ended) == (2.0, False)
        assert heard.reports == [(step, {"loss": 1.0 / step, "size": step}, None) for step in range(1, 301)]

    def test_a_stop_ends_the_steps_and_what_was_saved_can_be_continued(self, bench: Any) -> None:
        def training(x: Any, z: Any, run: boca.Run) -> None:
            import json
            import time

            done = json.loads((run.checkpoint / "done").read_text()) if run.start else []
            for step in run.steps():
                done.append(step)
                time.sleep(0.06)
                run.report(step, float(len(done)))
            assert run.should_stop() or done[-1] == z["epochs"]
            with run.save() as folder:
                assert not list(folder.iterdir())
                (folder / "done").write_text(json.dumps(done))
            assert run.checkpoint is not None
            assert json.loads((run.checkpoint / "done").read_text()) == done

        place, first, second = bench(training), Heard(stop_at=3), Heard()
        assert place.run(first).ended
        assert first.steps == [1, 2, 3]
        ((step, path),) = first.checkpoints
        assert step == 3
        assert stamps.fits(path, study=STUDY, trial=7, step=3)
        assert place.run(second, start=3, checkpoint=path).ended
        assert [(step, value) for step, value, _ in second.reports] == [(4, 4.0), (5, 5.0), (6, 6.0)]
        assert json.loads(Path(second.checkpoints[-1][1], "done").read_text()) == [1, 2, 3, 4, 5, 6]
        assert Path(path).is_dir()  # only the driver deletes

    def test_a_driver_that_is_to_end_is_heard_between_reports(self, bench: Any) -> None:
        def waits(x: Any, z: Any, run: boca.Run) -> None:
            import time

            run.report(2, 1.0)
            while not run.should_stop():
                time.sleep(0.01)
            with run.save() as folder:
                (folder / "state").touch()

        heard = Heard()
        threading.Thread(target=lambda: heard.has_reported.wait(60.0) and heard.leaves.set(), daemon=True).start()
        assert bench(waits).run(heard).ended
        assert [step for step, _ in heard.checkpoints] == [2]

    def test_an_exception_after_reports_fails_and_keeps_them(self, bench: Any) -> None:
        def breaks(x: Any, z: Any, run: boca.Run) -> None:
            run.report(1, 1.0)
            run.report(2, 2.0)
            raise RuntimeError("no more")

        heard = Heard()
        outcome = bench(breaks).run(heard)
        assert outcome.error is not None
        assert outcome.error.startswith("RuntimeError: no more")
        assert (outcome.value, outcome.ended, heard.steps) == (None, False, [1, 2])

    @pytest.mark.parametrize(
        ("steps", "words"),
        [([2, 2], ["step 2", "from 3 to 6"]), ([7], ["step 7", "ends at step 6"]), ([1.5], ["1.5", "whole number"])],
    )
    def test_a_step_that_cannot_be_is_named(self, bench: Any, steps: list[Any], words: list[str]) -> None:
        def wrong(x: Any, z: Any, run: boca.Run) -> None:
            for step in x["steps"]:
                run.report(step, 1.0)

        heard = Heard()
        error = bench(wrong).run(heard, steps=steps).error
        assert error is not None
        assert [word for word in words if word not in error.splitlines()[0]] == []
        assert heard.steps == steps[:-1]

    def test_a_value_that_is_no_number_is_named_with_its_step(self, bench: Any) -> None:
        def diverges(x: Any, z: Any, run: boca.Run) -> None:
            run.report(1, 1.0)
            run.report(2, float("nan"))

        heard = Heard()
        error = bench(diverges).run(heard).error
        assert error is not None
        assert "nan at step 2" in error.splitlines()[0]
        assert heard.steps == [1]

    def test_what_the_driver_refuses_is_raised_in_the_evaluation(self, bench: Any) -> None:
        def goes_on(x: Any, z: Any, run: boca.Run) -> None:
            import time

            for step in run.steps():
                time.sleep(0.06)
                run.report(step, 1.0)

        heard = Heard(refuse=2)
        error = bench(goes_on).run(heard).error
        assert error is not None
        assert "Step 2 is refused." in error.splitlines()[0]

    def test_a_checkpoint_that_is_gone_or_another_is_not_gone_on_from(self, bench: Any, tmp_path: Path) -> None:
        def never(x: Any, z: Any, run: boca.Run) -> float:
            raise AssertionError("it ran")

        place, other = bench(never), tmp_path / "other"
        other.mkdir()
        stamps.write(other, study=STUDY, trial=7, attempt=0, step=2)
        for path in (None, str(tmp_path / "nothing"), str(tmp_path), str(other)):
            outcome = place.run(Heard(), start=3, checkpoint=path)
            assert outcome.lost
            assert not outcome.died
            assert "no checkpoint of step 3" in (outcome.error or "")
