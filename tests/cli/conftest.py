"""A folder with a study, one that has run, and one that is damaged."""

from __future__ import annotations

import pytest

import boca
from cli.studies import OBJECTIVE, STUDY, command, damage, stored


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def done(folder):
    """A study that has run, with a failure in it."""
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    opt = stored()
    trial = opt.add({"a": 0.5, "kind": "flat"}, None, -1.04)
    assert trial.number == 4
    opt.storage.close()
    return folder


@pytest.fixture
def damaged(folder):
    """Make a database of two studies and damage it; the first has two trials."""
    opt = stored()
    opt.tell(opt.ask(), 1.0)
    opt.tell(opt.ask(), 2.0)
    opt.storage.close()
    other = boca.Problem(boca.Space(a=boca.Float(0, 1)))
    boca.Optimizer(other, budget=boca.targets(4), storage="sqlite:///bowl.db", name="other").storage.close()
    return lambda statement: damage("bowl.db", statement)
