"""A study whose every name is an attack, its report, and a parser of pages."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import boca
from boca import Choice, Float, Int, Space
from boca.cli import app
from report.made import EVIL, NAMES, Page, run


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A study whose every name is an attack, in a storage."""
    space = Space(
        {NAMES[0]: Float(1e-3, 1, log=True), NAMES[1]: Choice([EVIL, "<img src=x>", None]), NAMES[2]: Int(1, 3)}
    )
    fidelity = Space({NAMES[3]: Float(0.1, 1), EVIL + "z": Choice([EVIL, "real"])})
    problem = boca.Problem(
        space,
        fidelity,
        cost=lambda z: z[NAMES[3]] * (1.0 if z[EVIL + "z"] == "real" else 0.1),
        target={EVIL + "z": "real"},
        direction="minimize",
    )
    url = f"sqlite:///{tmp_path_factory.mktemp('report')}/evil.db"
    opt = boca.Optimizer(problem, budget=boca.targets(5), seed=1, storage=url, name=NAMES[0])
    run(opt, 14, lambda t: t.x[NAMES[0]] + t.x[NAMES[2]], failing=(2,))
    opt.add({NAMES[0]: 0.5, NAMES[1]: None, NAMES[2]: 2}, None, 2.5)
    assert opt.history.chosen
    return opt, url


@pytest.fixture(scope="module")
def written(hostile, tmp_path_factory):
    file = tmp_path_factory.mktemp("out") / "report.html"
    done = CliRunner().invoke(app, ["report", hostile[1], NAMES[0], "-o", str(file), "--optimum", "-1"])
    assert done.exit_code == 0
    assert done.stdout.strip() == str(file)
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(written):
    return Page(written)
