"""Word through files: whole lines only, each once, and a run without a common folder keeps its reports."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

from boca.execution.executors.handle import Plan
from boca.execution.executors.mailbox import Box, Mail, Mailroom, evaluate_by_mail
from boca.execution.executors.talk import Far
from execution.executors.run_contract import Heard


def plan(folder):
    return Plan("s", 7, 0, 0, 4, folder=str(folder), mailbox=str(folder / "box"))


def test_a_line_that_is_not_whole_waits(tmp_path):
    box = Box(tmp_path / "box", Heard())
    mail = Mail(tmp_path / "box")
    assert mail.receive(wait=False) is None
    file = tmp_path / "box" / "driver.jsonl"
    file.write_text('{"word": "g')
    assert mail.receive(wait=False) is None
    file.write_text('{"word": "go"}\n{"word": "stop"}\n')
    assert [mail.receive(wait=False) for _ in range(3)] == [{"word": "go"}, {"word": "stop"}, None]
    box.close()
    assert not (tmp_path / "box").exists()


def test_a_room_answers_runs_until_their_boxes_are_closed(tmp_path):
    heard, room = Heard(stop_at=2), Mailroom()
    box = room.open(plan(tmp_path), heard)
    far = Far(Mail(tmp_path / "box"))
    assert far.report(1, 1.0, None, wait=True) == "go"
    assert far.report(2, 1.0, None, wait=True) == "stop"
    far.report(3, 1.0, None, wait=False)
    room.close(box)
    assert heard.steps == [1, 2, 3]  # the last one was taken on closing
    room.close(box)
    assert room.open(replace(plan(tmp_path), mailbox=None), heard) is None
    deadline = time.monotonic() + 10
    while any(thread.name == "boca mail" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_whose_box_is_gone_is_to_leave(tmp_path):
    box = Box(tmp_path / "box", Heard())
    far = Far(Mail(tmp_path / "box"))
    box.close()
    assert far.report(1, 1.0, None, wait=True) == "leave"


def test_without_a_common_folder_reports_come_with_the_result(tmp_path):
    def training(x, z, run):
        for step in run.steps():
            run.report(step, x["a"] / step)
        with run.save() as folder:
            (folder / "state").touch()

    report = evaluate_by_mail(training, ({"a": 2.0}, {}), plan(tmp_path))
    assert (report.ended, report.apart) == (True, True)
    assert report.told == tuple((step, 2.0 / step, None) for step in range(1, 5))
    assert list(tmp_path.iterdir()) == []
    assert json.dumps(report.told)
