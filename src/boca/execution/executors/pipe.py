"""The way of a run in a worker process to its driver: the pipes on which its call came and its answer goes."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable
from typing import Any, final

from boca.execution.executors.handle import Plan, evaluate_run
from boca.execution.executors.talk import Far, Frame
from boca.execution.executors.worker import Report, receive, send


@final
class Pipes:
    """Both pipes as the run has them."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = requests
        self._replies = replies

    def send(self, frame: Frame) -> None:
        send(self._replies, frame)

    def receive(self, *, wait: bool) -> Frame | None:
        if not wait and not select.select([self._requests], [], [], 0.0)[0]:
            return None
        message = receive(self._requests)
        if message is None:
            if wait:
                os._exit(1)  # the driver is gone, and all that it started ends with it
            return None
        frame: Frame = json.loads(message)
        return frame


def evaluate_by_pipe(
    objective: Callable[..., object], arguments: tuple[Any, ...], plan: Plan, *, requests: int, replies: int
) -> Report:
    """Evaluate a run of a worker process."""
    return evaluate_run(objective, arguments, plan, Far(Pipes(requests, replies)))
