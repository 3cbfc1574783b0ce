"""Ask and tell from four processes at once, as on four hosts, with one that is told to go in the middle."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from boca.study.storage.reader import Reader
from support.places import on

EXAMPLES = Path(__file__).parents[2] / "examples"


def started(url, **more):
    environment = {**os.environ, "SECONDS_PER_TRIAL": "0.05", **more}
    script = [sys.executable, str(EXAMPLES / "many_hosts.py"), url]
    return subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True)


def history(url):
    with closing(Reader(url)) as reader:
        return reader.study("many")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_four_processes_share_a_study_and_one_that_leaves_loses_nothing(kind, tmp_path):
    with on(kind, tmp_path) as place:
        url = place.url
        leaves = started(url, SECONDS_PER_TRIAL="60")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if history(url).history:
                    break
            except Exception:  # there is no study yet
                time.sleep(0.1)
        others = [started(url) for _ in range(3)]
        leaves.send_signal(signal.SIGTERM)
        leaves.communicate(timeout=60)
        assert leaves.returncode == 143
        said = [other.communicate(timeout=240)[0] for other in others]
        assert [other.returncode for other in others] == [0, 0, 0]
        study = history(url)
    trials = study.history
    assert [t.number for t in trials] == list(range(len(trials)))
    assert {t.state for t in trials} == {"complete"}
    assert sum(t.cost for t in trials) <= 1000.0
    assert trials[0].attempt == 0  # no process died of it
    assert [one.ending for one in study.attempts[0]] == ["the driver stopped"]
    assert len({t.worker for t in trials}) > 1
    assert all("best " in words for words in said)
    points = [(tuple(t.x.items()), tuple(t.z.items())) for t in trials]
    assert len(set(points)) == len(points)


def test_the_array_script_passes_the_signal_on_and_asks_to_be_queued_again(tmp_path):
    """SLURM is played by two small programs; the script is the real one."""
    script = EXAMPLES / "slurm.sh"
    assert os.stat(script).st_mode & stat.S_IXUSR
    child = tmp_path / "child.sh"
    child.write_text('trap "echo got TERM; exit 143" TERM\necho ready "$@"\nwhile :; do sleep 0.1; done\n')
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\necho "scontrol $*"\n')
    scontrol.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        **{"PYTHON": "bash", "SCRIPT": str(child), "DATABASE": "sqlite:///x.db"},
        **{"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "6", "SLURM_ARRAY_TASK_ID": "3"},
    }
    with subprocess.Popen(["bash", str(script)], env=environment, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "ready sqlite:///x.db\n"
        job.send_signal(signal.SIGTERM)
        assert job.stdout.read() == "got TERM\nscontrol requeue 6_3\n"
        assert job.wait(30) == 143
