"""The folder of a study's checkpoints: where it is, what is trusted in it, and what is deleted when."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.execution.checkpoints import Checkpoints, checked_keep, checked_place, default_place
from boca.execution.executors import stamp
from support.trainings import FIDELITY, SPACE, Climb, StopAt, cost, training


def study(**settings: Any) -> boca.Optimizer:
    problem = boca.Problem(SPACE, FIDELITY, cost=cost, direction="minimize")
    return boca.Optimizer(problem, **{"budget": boca.targets(9), "strategy": Climb(), "seed": 5} | settings)


def leave(checkpoints: Checkpoints, opt: boca.Optimizer, trial: boca.Trial, step: int) -> Path:
    """Leave a checkpoint as a run does."""
    part = checkpoints.folder / f"{trial.number:06d}" / f".{step}.part"
    part.mkdir(parents=True)
    (part / "state").touch()
    stamp.write(part, study=checkpoints.study, trial=trial.number, attempt=0, step=step)
    path = stamp.move(part, part.with_name(f"{step:08d}-x"))
    opt.saved(trial, step, path)
    return path


def paused(checkpoints: Checkpoints, opt: boca.Optimizer, value: float, x: float = 0.5) -> boca.Trial:
    """Run a trial to its end, with a checkpoint there."""
    trial = opt.ask()
    assert trial is not None
    step = trial.z["epochs"]
    opt.report(trial, step, value)
    leave(checkpoints, opt, trial, step)
    opt.tell(trial, None)
    checkpoints.after(trial.number)
    return opt.history[trial.number]


@pytest.fixture
def opt() -> boca.Optimizer:
    return study()


@pytest.fixture
def checkpoints(opt: boca.Optimizer, tmp_path: Path) -> Checkpoints:
    made = Checkpoints(opt, tmp_path)
    made.make()
    return made


# Where they are -------------------------------------------------------------------------------------------------------


def test_they_are_beside_the_file_or_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_place("sqlite:///a/study.db") == tmp_path / "a" / "study.db-checkpoints"
    assert default_place("study.db") == tmp_path / "study.db-checkpoints"
    assert default_place("postgresql+psycopg://me@host/db") == tmp_path / "boca-checkpoints"
    assert default_place("sqlite://") is None
    assert default_place(None) is None
    assert checked_place("there") == tmp_path / "there"
    (tmp_path / "file").touch()
    for wrong in ("", 3, "file"):
        with pytest.raises(InvalidInput, match="must be a folder"):
            checked_place(wrong)


def test_studies_have_folders_of_their_own(tmp_path):
    one, two, other = (
        Checkpoints(study(name=name, seed=seed), tmp_path) for name, seed in [("a/b", 1), ("a/b", 2), ("c", 1)]
    )
    assert len({one.folder, two.folder, other.folder}) == 3
    assert one.folder.parent == tmp_path
    assert one.folder.name.startswith("a_b-")
    assert Checkpoints(study(name="a/b", seed=1), tmp_path).folder == one.folder


def test_without_a_storage_the_folder_ends_with_the_run(opt):
    made = Checkpoints(opt, None)
    made.make()
    assert made.talk.is_dir()
    made.close()
    assert not made.folder.parent.exists()


def test_a_folder_that_cannot_be_made_is_named(opt, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=r"cannot be made.*checkpoints="):
        Checkpoints(opt, tmp_path / "file").make()


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "all"])
def test_how_many_are_kept_is_a_number(wrong):
    assert (checked_keep(None), checked_keep(0), checked_keep(3)) == (None, 0, 3)
    with pytest.raises(InvalidInput, match="keep_checkpoints"):
        checked_keep(wrong)


# What is trusted ------------------------------------------------------------------------------------------------------


def test_a_stored_checkpoint_must_be_there_and_have_its_stamp(opt, checkpoints):
    trial = paused(checkpoints, opt, 1.0)
    assert checkpoints.has(trial)
    mark = Path(trial.checkpoint) / stamp.NAME
    said = json.loads(mark.read_text())
    for change in ({"study": "another"}, {"step": 1}):
        mark.write_text(json.dumps(said | change))
        assert not checkpoints.has(trial)


def test_a_sweep_forgets_what_is_gone_and_deletes_what_nothing_knows(opt, checkpoints, caplog):
    first = opt.ask()
    path = leave(checkpoints, opt, first, 1)
    orphan = path.with_name("00000002-y")
    orphan.mkdir()
    checkpoints.sweep()
    assert orphan.exists()  # of a trial that runs: it may be about to be told
    opt.report(first, 2, 1.0)
    opt.tell(first, None)
    checkpoints.sweep()
    assert not orphan.exists()
    assert path.exists()
    shutil.rmtree(path)
    checkpoints.sweep()
    assert opt.history[0].checkpoint is None
    assert "checkpoint of trial 0 is gone" in caplog.text
    assert not path.parent.exists()


def test_a_sweep_leaves_the_checkpoints_of_other_folders_alone(opt, checkpoints, tmp_path):
    trial = opt.ask()
    opt.report(trial, 2, 1.0)
    opt.saved(trial, 2, "/of/another/machine")
    opt.tell(trial, None)
    checkpoints.sweep()
    assert opt.history[0].checkpoint == "/of/another/machine"


# What is deleted ------------------------------------------------------------------------------------------------------


def test_of_a_chain_only_the_newest_is_kept_and_none_at_the_last_step(opt, checkpoints):
    first = paused(checkpoints, opt, 3.0)
    second = paused(checkpoints, opt, 2.0)
    assert second.continues == 0
    assert opt.history[0].checkpoint is None
    assert not Path(first.checkpoint).exists()
    assert Path(second.checkpoint).exists()
    last = paused(checkpoints, opt, 1.0)
    assert last.z == {"epochs": 9}
    assert [trial.checkpoint for trial in opt.history] == [None, None, None]
    assert list(checkpoints.folder.glob("0*")) == []


def test_what_a_failed_trial_left_is_deleted_and_what_it_continued_is_not(opt, checkpoints):
    first = paused(checkpoints, opt, 3.0)
    second = opt.ask()
    assert second.continues == 0
    opt.report(second, 3, 1.0)
    path = leave(checkpoints, opt, second, 3)
    opt.fail(second, "It broke.")
    checkpoints.after(second.number)
    assert not path.exists()
    assert opt.history[1].checkpoint is None
    assert Path(first.checkpoint).exists()
    assert opt.history[0].checkpoint == first.checkpoint


def test_a_trial_that_was_continued_without_a_new_checkpoint_keeps_the_old_one(opt, checkpoints):
    first = paused(checkpoints, opt, 3.0)
    second = opt.ask()
    opt.report(second, 5, 1.0)
    opt.tell(second, None)
    checkpoints.after(second.number)
    assert Path(first.checkpoint).exists()
    assert opt.history[1].checkpoint == first.checkpoint


def test_the_worst_go_first_where_only_some_are_kept(tmp_path):
    opt = study(strategy=StopAt(2))
    checkpoints = Checkpoints(opt, tmp_path, keep=2)
    checkpoints.make()
    values = [3.0, 1.0, 4.0, 2.0, 5.0]
    for value in values:
        trial = opt.ask()
        opt.report(trial, 3, value)
        leave(checkpoints, opt, trial, 3)
        opt.tell(trial, None)
        checkpoints.after(trial.number)
    kept = [trial.value for trial in opt.history if trial.checkpoint is not None]
    assert kept == [1.0, 2.0]
    assert len(list(checkpoints.folder.glob("0*/0*"))) == 2


def test_a_run_replaces_its_own(checkpoints, opt):
    trial = opt.ask()
    before = leave(checkpoints, opt, trial, 1)
    leave(checkpoints, opt, trial, 2)
    checkpoints.replaced(str(before))
    checkpoints.replaced(None)
    checkpoints.replaced("/somewhere/else")
    assert not before.exists()
    assert opt.history[0].saved == 2


def test_after_a_run_the_disk_has_what_can_still_be_continued_and_no_more(tmp_path):
    result = boca.minimize(
        training(), SPACE, FIDELITY, cost=cost, budget=boca.targets(2.5), strategy=Climb(), seed=1, checkpoints=tmp_path
    )
    stored = {trial.checkpoint for trial in result.history if trial.checkpoint is not None}
    found = {str(path.parent) for path in tmp_path.rglob(stamp.NAME)}
    assert found == stored
    assert len(found) == 1  # one chain is under way
    assert not list(tmp_path.rglob("*.part"))
