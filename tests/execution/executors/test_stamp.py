"""Only a folder with its own stamp is a checkpoint."""

from __future__ import annotations

import json

import pytest

from boca.execution.executors import stamp


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "part"
    made.mkdir()
    (made / "state").write_text("7")
    stamp.write(made, study="s", trial=3, attempt=1, step=5)
    return stamp.move(made, tmp_path / "whole")


def test_a_stamp_fits_its_own_study_trial_and_step(folder):
    assert (folder / "state").read_text() == "7"
    assert stamp.fits(folder, study="s", step=5)
    assert stamp.fits(str(folder), study="s", step=5, trial=3)
    assert not stamp.fits(folder, study="other", step=5)
    assert not stamp.fits(folder, study="s", step=4)
    assert not stamp.fits(folder, study="s", step=5, trial=4)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", json.dumps({"study": "s"}), "\x00"])
def test_what_is_damaged_is_no_checkpoint(folder, text):
    (folder / stamp.NAME).write_text(text)
    assert not stamp.fits(folder, study="s", step=5)


def test_nothing_is_no_checkpoint(tmp_path):
    assert not stamp.fits(None, study="s", step=5)
    assert not stamp.fits(tmp_path / "nowhere", study="s", step=5)
    assert not stamp.fits(tmp_path, study="s", step=5)
