"""A private PostgreSQL server for the tests: its own directory, its own port on 127.0.0.1, gone when they end.

Where there is no PostgreSQL the tests that need one are skipped; with BOCA_REQUIRE_POSTGRES=1 they fail.
"""

from __future__ import annotations

import functools
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from glob import glob
from pathlib import Path
from typing import Any, NoReturn

import pytest

_PATIENCE = 60.0  # seconds for a start or an end
_names = itertools.count()

# A shell that ends the server when its own input ends: then whoever started it is gone, be it by a kill.
_WATCHED = """
"$@" & child=$!
trap "" INT
read -r how
kill -"${how:-INT}" $child
wait $child
[ -n "$how" ] || rm -rf "$0"
"""


class Server:
    """A server with one database, in which every study gets a schema of its own."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.directory = Path(tempfile.mkdtemp(prefix="boca-postgres-"))
        self._as_user: dict[str, Any] = {"cwd": self.directory}
        if os.geteuid() == 0:  # it refuses to run as root
            user = _ordinary_user()
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self._as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        settings = ["--auth=trust", "--username=boca", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [programs / "initdb", "-D", self.directory / "data", *settings]
        made = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, **self._as_user)
        if made.returncode:
            raise RuntimeError(f"initdb said: {made.stderr}{made.stdout}")
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://boca@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, which recovers first where it was stopped hard, and return when it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            "fsync": "on",
            "shared_buffers": "16MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [self._programs / "postgres", "-D", self.directory / "data", *options]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _WATCHED, self.directory, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                **self._as_user,
            )
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {(self.directory / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT in order, SIGQUIT as if the machine had lost its power."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate(f"{how.name.removeprefix('SIG')}\n".encode(), timeout=_PATIENCE)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def fresh(self) -> str:
        """Return the URL of a place that is empty."""
        name = f"test{next(_names)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url}?options=-csearch_path%3D{name}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(host="127.0.0.1", port=self.port, user="boca", dbname="postgres") as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def _answers(self) -> bool:
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def server() -> Server:
    """Return the server of this process, which starts with the first call; skip the test where there is none."""
    found = _server()
    if isinstance(found, str):
        _do_without(found)
    return found


def remove() -> None:
    """End the server, if there is one."""
    if _server.cache_info().currsize and isinstance(found := _server(), Server):
        found.remove()
        _server.cache_clear()


@functools.cache
def _server() -> Server | str:
    """Return a server, or why there is none."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (pip install 'boca[postgres]')"
    programs = _programs()
    if programs is None:
        return "PostgreSQL is not installed (apt-get install postgresql, brew install postgresql)"
    return Server(programs)


def _do_without(reason: str) -> NoReturn:
    if os.environ.get("BOCA_REQUIRE_POSTGRES") == "1":
        pytest.fail(f"BOCA_REQUIRE_POSTGRES=1, but {reason}.", pytrace=False)
    pytest.skip(f"NOTHING IS TESTED ON POSTGRESQL HERE: {reason}.")


def _programs() -> Path | None:
    """Return the directory with the programs of the newest PostgreSQL that is installed."""
    places = [str(Path(found).parent)] if (found := shutil.which("initdb")) else []
    if shutil.which("pg_config"):
        said = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, timeout=10, check=False)
        places.append(said.stdout.strip())
    places += sorted(glob("/usr/lib/postgresql/*/bin"), key=_version, reverse=True)
    places += ["/opt/homebrew/bin", "/usr/local/bin", *sorted(glob("/opt/homebrew/opt/postgresql@*/bin"), reverse=True)]
    return next((Path(p) for p in places if Path(p, "initdb").exists() and Path(p, "postgres").exists()), None)


def _version(place: str) -> int:
    name = Path(place).parent.name
    return int(name) if name.isdigit() else 0


def _ordinary_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _free_port() -> int:
    """Return a port below those that the system gives to clients, which might take it while the server is stopped."""
    for port in random.SystemRandom().sample(range(20000, 32000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("there is no free port between 20000 and 32000")
