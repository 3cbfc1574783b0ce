"""Who holds a trial: whether a process is dead must be known, and never be believed of one that lives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boca.study.storage import Owner

SAY_WHO = (
    "import json, sys\nfrom boca.study.storage import Owner\n"
    "print(json.dumps(Owner.me().to_json()), flush=True); input()"
)


def started() -> tuple[subprocess.Popen[str], Owner]:
    """Start a process that says who it is and waits."""
    import json

    process = subprocess.Popen([sys.executable, "-c", SAY_WHO], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    return process, Owner(**json.loads(process.stdout.readline()))


def test_this_process_lives_and_is_always_the_same():
    me = Owner.me()
    assert me == Owner.me()
    assert me.pid == os.getpid()
    assert me.started
    assert not me.is_dead()


def test_another_process_lives_until_it_is_killed_and_is_dead_before_anybody_buries_it():
    process, owner = started()
    with process:
        assert owner.pid == process.pid
        assert owner.machine == Owner.me().machine
        assert not owner.is_dead()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a corpse that still has its number
        assert owner.is_dead()
        process.communicate()
        assert owner.is_dead()


def test_a_process_that_has_the_number_of_another_one_is_not_it():
    assert replace(Owner.me(), started="once").is_dead()


def test_nobody_knows_of_another_machine():
    assert not replace(Owner.me(), machine="elsewhere", started="once").is_dead()
    assert not replace(Owner.me(), machine="elsewhere", pid=2**22 + 1).is_dead()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ps is asked")
@pytest.mark.parametrize("hidden", [FileNotFoundError, PermissionError, OSError])
def test_a_process_whose_beginning_is_hidden_lives_as_long_as_its_number_is_taken(hidden, monkeypatch):
    """As with /proc mounted with hidepid, for the processes of other users."""
    process, owner = started()
    with process, monkeypatch.context() as patch:

        def refuse(path):
            raise hidden(2, "There is nothing to see here", str(path))

        patch.setattr(Path, "read_text", refuse)
        assert not owner.is_dead()
        with monkeypatch.context() as foreign:
            foreign.setattr("os.kill", lambda pid, signal: (_ for _ in ()).throw(PermissionError(1, "Not yours")))
            assert not owner.is_dead()
        process.kill()
        process.communicate()
        assert owner.is_dead()


def test_an_owner_that_could_not_tell_when_it_began_lives_as_long_as_its_number_is_taken():
    assert not replace(Owner.me(), started="").is_dead()
    assert replace(Owner.me(), started="", pid=2**22 + 1).is_dead()
