"""The result of every run and the time left, on a terminal and in a log."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boca.bench import progress, runner
from boca.bench.runner import Cell

Make = Callable[..., dict[str, Any]]

SCRIPT = Path(sys.executable).parent / "boca"


def test_progress_says_what_is_left(make_record: Make, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [Cell("branin", "random", seed) for seed in range(4)]
    with progress.shown(cells, jobs=2, timed=()) as report:
        report(cells[0], make_record([1.0], [-0.25], seconds=120.0))
        report(cells[1], make_record([1.0], [None], seconds=240.0))
        report(cells[2], "Traceback [bold]:smile:")
        report(cells[3], make_record([1.0], [-12.345678], optimum=None, seconds=30.0))
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.splitlines() == [
        "[1/4] branin random seed 0: regret 0.25, 120.0 s; about 3 min left",
        "[2/4] branin random seed 1: no query at the target, 240.0 s; about 3 min left",
        "[3/4] branin random seed 2 FAILED",
        "Traceback [bold]:smile:",
        "[4/4] branin random seed 3: best -12.346, 30.0 s; about 0 s left",
    ]


def test_on_a_terminal_there_is_a_bar(make_record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    cells = [Cell("branin", "random", seed) for seed in range(3)]
    with progress.shown(cells, jobs=1, timed=()) as report:
        report(cells[0], make_record([1.0], [-0.25], seconds=120.0))
        report(cells[1], "Traceback")
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "2/3" in text
    assert "about 2 min left" in text
    assert "branin random seed 0: regret 0.25, 120.0 s" in text
    assert "branin random seed 1 FAILED" in text
    assert text.endswith("\x1b[?25h")  # the cursor is back


def test_a_forecast_goes_by_the_same_kind_then_by_effort_and_by_the_clock(toy: Any, make_record: Make) -> None:
    clock = f"{toy.__name__}:in_seconds"
    random, other, timed = Cell("branin", "random", 0), Cell("branin", "boca", 0), Cell(clock, "random", 0)
    cells = [random, Cell("branin", "random", 1), other, timed]
    forecast = progress.Forecast(cells, jobs=2, timed={clock})
    forecast.note(random, make_record([1.0], [-1.0], seconds=10.0))
    assert (forecast.done, forecast.total) == (1, 4)
    scale = 10.0 / runner.effort(random)
    assert forecast.seconds_left() == pytest.approx(10.0 / 2 + scale * runner.effort(other) / 2 + 0.2)
    forecast.note(timed, "Traceback")
    assert forecast.seconds_left() == pytest.approx(10.0 / 2 + scale * runner.effort(other) / 2)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (29, "29 s"), (61, "1 min"), (5940, "99 min"), (6000, "1 h 40 min")]
)
def test_times_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text
