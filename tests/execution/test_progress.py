"""The progress line: where it is shown by default, and how it is switched off."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

import boca
from boca.callbacks import Log, Progress
from boca.domain.errors import InvalidInput
from boca.execution.progress import NotebookLine, shown, with_progress

SPACE = boca.Space(a=boca.Float(0, 1))


class Screen(io.StringIO):
    """What a terminal would get."""

    def isatty(self):
        return True


def screen(patch):
    """Be a terminal of 80 columns from here on."""
    patch.setenv("TERM", "xterm")
    patch.setenv("COLUMNS", "80")
    patch.setattr(sys, "stderr", Screen())
    return sys.stderr


def pipe(patch):
    """Be a program whose errors another one reads."""
    patch.setattr(sys, "stderr", io.StringIO())
    return sys.stderr


def notebook(patch):
    """Be the kernel of a notebook."""
    shell = type("ZMQInteractiveShell", (), {})()
    patch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return pipe(patch)


def run(objective=lambda x: x["a"], **more):
    settings = {"budget": boca.targets(3), "strategy": boca.RandomSearch(), "seed": 0}
    return boca.maximize(objective, SPACE, **settings | more)


def test_a_terminal_shows_the_share_the_trials_and_the_best(monkeypatch):
    seen = screen(monkeypatch)
    best = run().value
    last = seen.getvalue()
    for words in ("100%", "3 trials", f"best {best:.6g}"):
        assert words in last


def test_a_line_fits_a_terminal_of_80_columns(monkeypatch):
    screen(monkeypatch)
    lines = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda self, task, **state: lines.append(state["description"]))
    run(lambda x: -1.23456789e-12, budget=boca.targets(3))
    assert lines
    beside = 20 + 1 + 4 + 1 + 1 + 7  # the bar, the share and the time, with spaces between
    assert max(map(len, lines)) + beside <= 80


def test_a_pipe_gets_nothing(monkeypatch):
    seen = pipe(monkeypatch)
    run()
    assert seen.getvalue() == ""


def test_a_notebook_gets_one_line_that_is_written_over(monkeypatch):
    seen = notebook(monkeypatch)
    run()
    text = seen.getvalue()
    assert text.startswith("\r")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert "100%  3 trials, best" in text.rpartition("\r")[2]


@pytest.mark.parametrize("where", [screen, notebook])
def test_it_can_be_switched_off(where, monkeypatch):
    seen = where(monkeypatch)
    run(progress=False)
    assert seen.getvalue() == ""


def test_it_can_be_asked_for(monkeypatch):
    seen = pipe(monkeypatch)
    run(progress=True)
    assert "3 trials" in seen.getvalue()


def test_a_callback_that_shows_it_is_not_doubled(monkeypatch):
    screen(monkeypatch)
    for own in (Log(), Progress(), NotebookLine()):
        assert with_progress([own], None) == [own]
    (mine, line) = with_progress([print], None)
    assert mine is print
    assert isinstance(line, Progress)


def test_the_line_is_closed_when_the_objective_fails(monkeypatch):
    seen = notebook(monkeypatch)

    def broken(x):
        raise ValueError("no")

    with pytest.raises(boca.errors.ObjectiveFailed):
        run(broken)
    assert "3 failed" in seen.getvalue()
    assert seen.getvalue().endswith("\n")


@pytest.mark.parametrize("wrong", [1, "no", 0.0])
def test_another_value_is_refused(wrong):
    with pytest.raises(InvalidInput, match=r"progress must be True, False or None; got .*progress=False"):
        shown(wrong)
