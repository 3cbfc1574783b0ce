"""One worker process: asked, heard and ended."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boca.execution.executors.base import pickled
from boca.execution.executors.process import OUTPUT_LENGTH, End, Worker, _Tail
from execution.executors.engine_contract import is_alive, wait_until

NEVER = threading.Event()


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(8) + body


def setup(objective: Callable[..., Any]) -> bytes:
    return frame(pickle.dumps((sys.path, None))) + frame(pickled(objective))


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(Path.cwd())
    yield made
    made.end()


def ask(worker: Worker, x: dict[str, Any], seconds: float | None = 30.0, stop: threading.Event = NEVER) -> Any:
    return worker.ask(frame(pickle.dumps((x,))), seconds, stop)


def test_a_worker_acknowledges_its_objective_and_answers_one_call_after_another(worker: Worker) -> None:
    assert worker.ask(setup(lambda x: x["a"] ** 2), 30.0, NEVER) == {"error": None}
    for a in (2, 3):
        answer = ask(worker, {"a": a})
        assert (answer["value"], answer["error"]) == (a**2, None)
    assert worker.is_alive


def test_an_objective_that_does_not_load_is_said_in_the_acknowledgement(worker: Worker) -> None:
    answer = worker.ask(frame(pickle.dumps((sys.path, None))) + frame(b"no pickle"), 30.0, NEVER)
    assert isinstance(answer, dict)
    assert "could not be loaded" in answer["error"]


def test_the_output_is_that_of_the_last_call(worker: Worker) -> None:
    worker.ask(setup(lambda x: print("call", x["i"]) or 1.0), 30.0, NEVER)
    for i in range(2):
        ask(worker, {"i": i})
        assert worker.output == f"call {i}\n"


def test_there_is_no_answer_from_a_worker_that_is_late_dead_or_not_awaited(tmp_path: Path) -> None:
    def act(x: dict[str, Any]) -> float:
        if x["how"] == "exit":
            os._exit(7)
        time.sleep(600)
        return 0.0

    enough = threading.Event()
    enough.set()
    for x, seconds, stop, end in (
        ({"how": "sleep"}, 0.3, NEVER, End.LATE),
        ({"how": "exit"}, 30.0, NEVER, End.DEAD),
        ({"how": "sleep"}, 30.0, enough, End.STOPPED),
    ):
        worker = Worker(tmp_path)
        worker.ask(setup(act), 30.0, NEVER)
        assert ask(worker, x, seconds, stop) is end
        if end is End.DEAD:
            assert worker.fate == "ended with exit status 7"
        worker.end()
        assert not worker.is_alive


def test_a_worker_that_is_killed_says_by_which_signal() -> None:
    worker = Worker(Path.cwd())
    assert worker.fate == "did not end"
    worker.end()
    assert "SIGKILL" in worker.fate


def test_the_end_takes_the_whole_group_with_it() -> None:
    worker = Worker(Path.cwd())
    worker.ask(setup(lambda x: __import__("subprocess").Popen(["sleep", "600"]).pid), 30.0, NEVER)
    pid = int(ask(worker, {})["value"])
    assert is_alive(pid)
    worker.end()
    wait_until(lambda: not is_alive(pid), 5)


def test_the_tail_keeps_the_last_bytes_and_says_how_many_are_missing() -> None:
    tail = _Tail()
    tail.add(b"short\0")
    assert tail.text == "short\\0"
    tail.add(b"x" * OUTPUT_LENGTH)
    assert tail.text == f"[... 6 bytes cut ...]\n{'x' * OUTPUT_LENGTH}"
