"""The supervisor as a process of its own: what it reports of a command, and what it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boca.studyfile import supervisor


class Supervised:
    """A command under a supervisor, and the pipe on which that reports."""

    def __init__(self, *arguments, scratch):
        self._report, theirs = os.pipe()
        script = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(theirs), str(scratch)]
        self.process = subprocess.Popen([*script, *arguments], pass_fds=(theirs,), start_new_session=True)
        os.close(theirs)

    def report(self):
        """Return all that it reports."""
        with open(self._report, "rb") as pipe:
            said = pipe.read().decode()
        self.process.wait(10)
        return said


def is_running(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", "0"), ("exit 3", "3"), ("kill -KILL $$", "-9"), ("kill -TERM $$", "-15")]
)
def test_the_process_group_and_the_exit_code_are_reported(tmp_path, script, code):
    group, _, outcome = Supervised("sh", "-c", script, scratch=tmp_path).report().partition(" ")
    assert int(group) > 1
    assert outcome == f"{code}\n"


def test_a_program_that_does_not_exist_is_reported_in_words(tmp_path):
    assert "No such file or directory" in Supervised("no-such-program", scratch=tmp_path).report()


def test_what_the_command_leaves_running_is_ended(tmp_path):
    Supervised("sh", "-c", f"sleep 60 & echo $! > {tmp_path}/left", scratch=tmp_path / "s").report()
    wait_until(lambda: not is_running((tmp_path / "left").read_text().strip()))


def test_a_signal_ends_the_command_and_keeps_the_folder_of_a_living_parent(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    supervised = Supervised("sh", "-c", f"echo $$ > {tmp_path}/shell; sleep 60", scratch=scratch)
    shell = tmp_path / "shell"
    wait_until(lambda: shell.exists() and shell.read_text().endswith("\n"))
    supervised.process.send_signal(signal.SIGTERM)
    assert " " in supervised.report()  # the group, and no exit code
    assert supervised.process.returncode == 1
    wait_until(lambda: not is_running(shell.read_text().strip()))
    assert scratch.exists()


def test_the_command_has_default_signals(tmp_path):
    _, _, outcome = Supervised("sh", "-c", "kill -PIPE $$", scratch=tmp_path).report().partition(" ")
    assert outcome == f"-{int(signal.SIGPIPE)}\n"


def test_the_script_imports_the_standard_library_alone():
    code = f"import sys; exec(open({supervisor.__file__!r}).read(), {{'__name__': 'supervisor'}})"
    check = "; print(sorted({name.split('.')[0] for name in sys.modules} & {'boca', 'numpy', 'shutil', 'tempfile'}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code + check], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
