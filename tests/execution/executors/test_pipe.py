"""The pipes of a run in a worker process."""

from __future__ import annotations

import json
import os

from boca.execution.executors.pipe import Pipes


def test_frames_go_both_ways_and_nothing_is_waited_for_that_need_not_be():
    their_requests, requests = os.pipe()
    replies, their_replies = os.pipe()
    pipes = Pipes(their_requests, their_replies)
    assert pipes.receive(wait=False) is None
    for word in ("go", "stop"):
        body = json.dumps({"word": word}).encode()
        os.write(requests, len(body).to_bytes(8) + body)
    assert pipes.receive(wait=True) == {"word": "go"}
    assert pipes.receive(wait=False) == {"word": "stop"}
    pipes.send({"talk": "flush"})
    length = int.from_bytes(os.read(replies, 8))
    assert json.loads(os.read(replies, length)) == {"talk": "flush"}
    os.close(requests)
    assert pipes.receive(wait=False) is None
    for number in (their_requests, replies, their_replies):
        os.close(number)
