"""A headless Chromium, driven over a pipe in the words of its DevTools: no further library, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
]
_QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"]
# The browser reads its orders from descriptor 3 and answers on 4.
_BEGIN = """
import fcntl, os, sys
first, second = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(first, 3)
os.dup2(second, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program():
    """Return the path of Chromium; without one, skip, or fail with BOCA_REQUIRE_CHROMIUM=1."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("/usr/bin/chromium")
    if found is None and os.environ.get("BOCA_REQUIRE_CHROMIUM") == "1":
        pytest.fail("BOCA_REQUIRE_CHROMIUM=1, and there is no chromium in the path.")
    if found is None:
        pytest.skip("THE LIVE PAGE IS NOT TESTED IN A BROWSER: there is no chromium in the path.")
    return found


class Browser:
    """One page of one browser, and everything that happened on it."""

    def __init__(self, profile):
        ours, theirs = os.pipe(), os.pipe()  # (read, write) each
        flags = [*_FLAGS, *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        command = [sys.executable, "-c", _BEGIN, str(theirs[0]), str(ours[1]), program(), *flags]
        self._log = (Path(profile).parent / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            command, pass_fds=(theirs[0], ours[1]), stdout=self._log, stderr=self._log, start_new_session=True
        )
        os.close(theirs[0])
        os.close(ours[1])
        self._in, self._out = ours[0], theirs[1]
        self._rest, self._number, self._session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(20)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._in)
            os.close(self._out)
            self._log.close()

    def call(self, method, **params):
        """Give an order and return the answer; what else is heard meanwhile goes to the events."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            order["sessionId"] = self._session
        os.write(self._out, json.dumps(order).encode() + b"\0")
        until = time.monotonic() + 30
        while True:
            heard = self._hear(until)
            if heard.get("id") == self._number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                return heard["result"]
            self.events.append(heard)

    def _hear(self, until):
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 16)
            if not piece:
                raise RuntimeError("the browser is gone")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def forget(self):
        """Forget everything that happened until now."""
        self.heard("none")
        self.events.clear()

    def value(self, expression):
        """Return the value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def wait(self, expression, seconds=30.0):
        """Wait until an expression holds and return how long that took."""
        began = time.monotonic()
        while not self.value(f"Boolean({expression})"):
            if time.monotonic() - began > seconds:
                seen = self.value("document.body.innerText")
                raise AssertionError(f"not within {seconds} s: {expression}\nthe page says:\n{seen}\n{self.errors()}")
            time.sleep(0.05)
        return time.monotonic() - began

    def heard(self, method):
        self.call("Runtime.evaluate", expression="0")  # what was said before the answer is in the events
        return [event["params"] for event in self.events if event.get("method") == method]

    def errors(self):
        """Return what went wrong on the page: exceptions, errors and warnings of the console, refused content."""
        thrown = [event["exceptionDetails"] for event in self.heard("Runtime.exceptionThrown")]
        said = [e for e in self.heard("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")]
        logged = [e["entry"] for e in self.heard("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
        return [*thrown, *said, *logged]

    def requests(self):
        return [event["request"]["url"] for event in self.heard("Network.requestWillBeSent")]

    def size(self, width, height, *, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        Path(path).write_bytes(
            base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])
        )
