"""An objective that is a command line: an evaluation runs a program, and what it prints last is the value.

    python train.py --lr {lr} --epochs {T}

The line is split once, by the rules of a shell, and no shell ever sees it: a value with blanks, quotes or semicolons
stays within its argument.  Besides, the program finds the point in its environment:

    BOCA_X_<name>, BOCA_Z_<name>   one value each, written as in the arguments
    BOCA_POINT                     all of them, as JSON: {"x": {...}, "z": {...}}
    BOCA_RESULT                    a file to write the value to, as JSON: {"value": 0.93}, or the bare number

A string is written as it is, everything else as JSON does: a float with all its digits, a flag as true or false.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import finite_number
from boca.studyfile.importing import nearest

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_CHUNK = 2**16  # bytes; a pipe holds no more
_TAIL = 2**16  # bytes of the output that are kept
_SHOWN = 2000  # characters of it that an error shows
_PATIENCE = 5.0  # seconds that a supervisor has to end its command


class CommandFailed(BocaError, RuntimeError):
    """A command that cannot run, ended with an error, or gave no number."""


@dataclass(frozen=True)
class Command:
    """A command line with a place for every {name}, run in a folder; call it with x and z for the value.

    `names` are those of all parameters and fidelities.  `{{` and `}}` stand for braces.
    """

    line: str
    folder: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a line with which no trial could succeed."""
        if not self._template():
            raise InvalidInput(f"command must be a command line; got {self.line!r}.")
        for name in self.names:
            if "=" in name or "\0" in name:
                raise InvalidInput(f"A name must be fit for the environment of a command, without '='; got {name!r}.")
        for argument in self._template():
            if "\0" in argument:
                raise InvalidInput(f"command must not have the character NUL; got {self.line!r}.")
            _PIECE.sub(self._check, argument)

    def __call__(self, x: Mapping[str, Any], z: Mapping[str, Any] | None = None) -> float:
        """Run the command at this point, pass on what it prints, and return its value."""
        point = {"x": _plain(x), "z": _plain(z or {})}
        values = {name: _text(value) for part in point.values() for name, value in part.items()}
        arguments = [_PIECE.sub(lambda piece: _filled(piece, values), argument) for argument in self._template()]
        with tempfile.TemporaryDirectory(prefix="boca-", ignore_cleanup_errors=True) as scratch:
            result = Path(scratch) / "result.json"
            environment = {
                **os.environ,
                **{f"BOCA_X_{name}": values[name] for name in point["x"]},
                **{f"BOCA_Z_{name}": values[name] for name in point["z"]},
                "BOCA_POINT": json.dumps(point, allow_nan=False),
                "BOCA_RESULT": str(result),
            }
            printed = _run(arguments, self.folder, environment, scratch)
            return _written(result) if result.exists() else _last_number(printed)

    def _template(self) -> list[str]:
        try:
            return shlex.split(self.line)
        except ValueError as error:
            raise InvalidInput(f"command must be quoted as for a shell; got {self.line!r} ({error}).") from error

    def _check(self, piece: re.Match[str]) -> str:
        name = piece[1]
        if piece[0] in ("{", "}"):
            raise InvalidInput(
                f"command needs {{{{ or }}}} for a brace that is part of no {{name}}; got {self.line!r}."
            )
        if name is not None and name not in self.names:
            allowed = ", ".join(f"{{{known}}}" for known in self.names)
            raise InvalidInput(f"command may have the places {allowed}; got {piece[0]}{nearest(name, self.names)}.")
        return ""


def _filled(piece: re.Match[str], values: Mapping[str, str]) -> str:
    """Return what stands in the place of a piece; a value is never looked at again."""
    return piece[0][0] if piece[1] is None else values[piece[1]]


def _plain(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in point.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, allow_nan=False)


# Running it -----------------------------------------------------------------------------------------------------------


class _Stream:
    """One output of the command: passed on as it comes, and its end remembered."""

    def __init__(self, onward: TextIO | None) -> None:
        self._onward = onward
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._tail = bytearray()
        self._is_cut = False

    def __call__(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > _TAIL:
            del self._tail[:-_TAIL]
            self._is_cut = True
        if self._onward is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more: no reason to fail a trial
                self._onward.write(self._decode(data))
                self._onward.flush()

    @property
    def end(self) -> str:
        """The last of it; dots where it was cut, so that the end of a line does not pass for the line."""
        return ("..." if self._is_cut else "") + self._tail.decode(errors="replace")


def _run(arguments: Sequence[str], folder: str, environment: Mapping[str, str], scratch: str) -> str:
    """Run a program to its end and return the end of what it printed, or say how it failed."""
    out, err = _Stream(sys.stdout), _Stream(sys.stderr)
    process, report = _start(arguments, folder, environment, scratch)
    with process, open(report, "rb", buffering=0):
        try:
            outcome = _listen(process, report, out, err)
        except BaseException:  # Ctrl-C too: the command does not go on without us
            _end(process)
            raise
    if outcome == "0":
        return out.end
    raise CommandFailed(_how(outcome, arguments[0], err.end))


def _start(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], scratch: str
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the command under a supervisor, in a session of its own; return it and the pipe on which it reports.

    Out of reach of the terminal, the command gets no Ctrl-C that is meant for us, and cannot stop to ask a question.
    """
    report, theirs = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), str(theirs), scratch, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(theirs,),
            start_new_session=True,
        )
    except BaseException as error:
        os.close(report)
        if isinstance(error, OSError | ValueError):  # no such folder, too long a line, a NUL in an argument
            raise CommandFailed(f"The command cannot be started: {error}.") from error
        raise
    finally:
        os.close(theirs)
    return process, report


def _listen(process: subprocess.Popen[bytes], report: int, out: _Stream, err: _Stream) -> str:
    """Return what the supervisor reports of the command; nothing if it was killed, which ends the command too.

    The report, not the end of the output, is what is waited for: a daemon may hold the output open for ever.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    outputs: dict[int, Callable[[bytes], None]] = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    said = b""
    with selectors.DefaultSelector() as selector:
        for pipe in (report, *outputs):
            selector.register(pipe, selectors.EVENT_READ)
        while not said.endswith(b"\n"):
            for pipe in [key.fd for key, _ in selector.select()]:
                data = os.read(pipe, _CHUNK)
                if pipe == report:
                    said += data or b"\n"
                elif data:
                    outputs[pipe](data)
                else:
                    selector.unregister(pipe)
    for pipe, stream in outputs.items():  # what was printed and not read yet; a full pipe is one chunk
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            stream(os.read(pipe, _CHUNK))
    group, _, outcome = said.decode(errors="replace").splitlines()[0].partition(" ")
    if group and not outcome:
        with contextlib.suppress(OSError):  # there is nobody in it any more
            os.killpg(int(group), signal.SIGKILL)
    return outcome


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the supervisor, which ends its command."""
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def _how(outcome: str, program: str, errors: str) -> str:
    """Say how a command failed."""
    if not outcome:
        return "The command was lost: the process that watched over it was killed."
    if not re.fullmatch(r"-?\d+", outcome):
        return f"The command cannot run: {program!r}: {outcome}."
    code = int(outcome)
    how = f"ended with exit status {code}" if code > 0 else f"was ended by {_signal(-code)}"
    end = errors.strip()
    if not end:
        return f"The command {how} and wrote nothing to standard error."
    return f"The command {how}; the end of its standard error:\n{end[-_SHOWN:]}"


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


# Its value ------------------------------------------------------------------------------------------------------------


def _written(result: Path) -> float:
    """Return the value in the file that the command wrote; further keys are the command's own business."""
    with result.open("rb") as file:
        text = file.read(_TAIL).decode(errors="replace")
    try:
        content = json.loads(text)
        return finite_number(content["value"] if isinstance(content, dict) else content, "value")
    except (ValueError, KeyError, RecursionError) as error:
        raise CommandFailed(
            "The command must write a finite number to $BOCA_RESULT, as JSON, bare or as "
            f'{{"value": 0.93}}; it wrote {text[:200]!r}.'
        ) from error


def _last_number(printed: str) -> float:
    lines = [line for line in printed.splitlines() if line.strip()]
    if not lines:
        raise CommandFailed("The command must print a finite number in its last line; it printed nothing.")
    try:
        return finite_number(float(lines[-1]), "value")
    except ValueError as error:
        raise CommandFailed(
            f"The command must print a finite number in its last line; that was {lines[-1][-200:]!r}."
        ) from error
