"""A report of a live study and of a stored one, and the command that writes it."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

import boca
from boca import report
from boca.cli import app
from boca.domain.errors import InvalidInput
from report.made import NAMES, Page


def test_a_report_needs_no_plotly_beside_the_one_that_it_has(hostile, tmp_path, monkeypatch):
    for name in ("plotly", "plotly.offline"):
        monkeypatch.setitem(sys.modules, name, None)
    assert report.write(hostile[0], tmp_path / "report.html").is_file()


def test_a_report_of_two_hundred_trials_is_small(tmp_path):
    problem = boca.Problem(
        boca.Space(**{f"parameter_{k}": boca.Float(0, 1) for k in range(6)}), boca.Space(n=boca.Int(1, 100))
    )
    opt = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for k in range(200):
        opt.tell(opt.ask(), float(k % 7), seconds=1.0)
    assert report.write(opt, tmp_path / "report.html").stat().st_size < 1_500_000


def test_a_live_study_and_a_stored_one_give_the_same_report(hostile, parsed):
    live = Page(report.html(hostile[0], optimum=-1))
    assert live.figures == parsed.figures
    assert live.rows == parsed.rows
    assert live.sections["found"] == parsed.sections["found"]
    assert live.sections["warnings"].split() == parsed.sections["warnings"].split()


def test_the_study_is_as_it_was(hostile, written):
    opt, url = hostile
    before = [(t.number, t.state, t.value, t.told) for t in opt.history]
    report.html(report.load(url, NAMES[0]))
    assert [(t.number, t.state, t.value, t.told) for t in opt.history] == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["nowhere.db", "study"], "no file"), (["URL", "another"], "There is no study 'another'")],
)
def test_a_mistake_is_told(hostile, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [hostile[1] if each == "URL" else each for each in arguments]
    with pytest.raises(InvalidInput, match=says):
        CliRunner().invoke(app, ["report", *given], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(hostile, tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written"):
        report.write(hostile[0], tmp_path / "no" / "report.html")


def test_what_is_no_path_is_told(hostile):
    with pytest.raises(InvalidInput, match=r"path must be .*got 5"):
        report.write(hostile[0], 5)
