"""Many slow connections to the live page."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, suppress

from boca.dashboard.connections import Seldom
from dashboard.conftest import begin, run

SERVE = """
import resource, sys
from boca.dashboard import connections, serve
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
connections._HEADER_SECONDS = 3.0
serve(sys.argv[1], port=0, say=lambda line: print(line, flush=True))
"""


def test_half_requests_neither_stop_the_page_nor_fill_its_log(url, tmp_path):
    run(begin(url), 3)
    log = tmp_path / "log"
    with ExitStack() as open_ones:
        errors = open_ones.enter_context(log.open("wb"))
        command = [sys.executable, "-c", SERVE, url]
        server = open_ones.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True))
        open_ones.callback(server.kill)
        address = server.stdout.readline().split()[0]
        port = int(address.rstrip("/").rpartition(":")[2])
        for _ in range(400):
            half = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1")
            last = half
        for _ in range(3):
            with urllib.request.urlopen(f"{address}api/studies", timeout=30) as answer:
                assert answer.status == 200
        began = time.monotonic()
        last.settimeout(30)
        with suppress(ConnectionError):
            assert last.recv(1) == b""  # the page has closed it
        assert time.monotonic() - began < 25
    assert log.stat().st_size < 10_000


def test_a_log_line_of_one_kind_comes_once_a_minute():
    seldom = Seldom()
    lines = [logging.LogRecord("asyncio", logging.ERROR, "", 1, words, (), None) for words in ("a", "a", "b", "a")]
    assert [seldom.filter(line) for line in lines] == [True, False, True, False]
