"""A study that is saved from memory, where the open file cannot be read."""

from __future__ import annotations

import os

import pytest

from boca import AtMost, Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import StorageFailed

SETTINGS = {"budget": targets(99), "strategy": RandomSearch(), "seed": 0}


def opened(path):
    of = Problem(Space(a=Float(0, 1)), subject_to={"latency": AtMost(5.0, at="any")})
    return Optimizer(of, storage=f"sqlite:///{path}", **SETTINGS)


def seen(opt):
    return [(t.number, t.x, t.state, t.value, t.outcomes, t.notes, t.noise, t.reason, t.attempt) for t in opt.history]


def test_what_is_in_memory_is_a_study_that_can_be_resumed(tmp_path):
    path = tmp_path / "s.db"
    first = opened(path)
    for trial in first.ask(30):
        first.tell(trial, {"loss": trial.x["a"], "latency": 2.0})
    first.storage.close()  # everything is in the file now, and nothing in its log
    opt = opened(path)
    opt.enqueue({"a": 0.25})
    failed, told, running = opt.ask(), opt.ask(), opt.ask()
    opt.fail(failed, "the oven was cold")
    opt.tell(told, {"loss": 0.5, "latency": 3.0}, noise=0.1, notes={"host": "n1"})
    expected = seen(opt)
    path.write_bytes(os.urandom(path.stat().st_size))
    with pytest.raises(StorageFailed, match=r"s\.db\.rescued"):
        opt.tell(running, {"loss": 0.75, "latency": 4.0}, notes={"host": "n2"})
    opt.storage.close()
    saved = opened(tmp_path / "s.db.rescued")
    found = seen(saved)
    assert found[:-1] == expected[:-1]
    assert found[-1][2:6] == ("complete", 0.75, {"latency": 4.0}, {"host": "n2"})
    assert saved.ask().number == len(expected)
    saved.storage.close()


def test_a_copy_that_cannot_be_written_is_told_and_memory_can_still_be_read(tmp_path, monkeypatch):
    path = tmp_path / "s.db"
    opt = opened(path)
    trial = opt.ask()
    opt.tell(trial, {"loss": 0.5, "latency": 2.0})
    path.unlink()
    monkeypatch.setattr("boca.study.storage.rescue._free_path", lambda file: tmp_path / "no" / "folder" / "s.db")
    with pytest.raises(StorageFailed, match="could not be written"):
        opt.ask()
    assert [t.value for t in opt.history] == [0.5]
