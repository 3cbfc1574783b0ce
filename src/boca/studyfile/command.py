"""An objective that is a command line: each evaluation runs a program, and the last line that it prints is the value.

    python train.py --lr {lr} --epochs {T}

The line is split once, by the rules of a shell, but no shell runs it: a value with blanks, quotes or semicolons stays
within its argument.  The program also finds the point in its environment:

    BOCA_X_<name>, BOCA_Z_<name>   one value each, written as in the arguments
    BOCA_POINT                     all of them, as JSON: {"x": {...}, "z": {...}}
    BOCA_STUDY_FOLDER              the folder of the study file
    BOCA_RESULT                    a file to write the value to, as JSON: {"value": 0.93}, or the bare number; with
                                   limits, all outcomes by name: {"loss": 0.1, "latency": 14}; the rest is notes

If a fidelity is `steps`, the program can also report them, be stopped, and go on from a checkpoint; see
`boca.studyfile.watch`:

    BOCA_REPORTS                   a pipe for a line `step value` after each step, or `step {"loss": 0.1, ...}`
    BOCA_START, BOCA_END           the step to go on from, 0 from scratch, and the last one
    BOCA_CHECKPOINT                what was left at the step BOCA_START; empty from scratch
    BOCA_SAVE                      a folder: what is renamed there to its step is the checkpoint of that step

A parameter that is inactive is absent from the environment and from the JSON, and empty in the arguments.  A string is
written as it is, any other value as JSON: a float with all its digits, a flag as true or false.
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
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import finite_number
from boca.execution.executors.handle import Run
from boca.execution.executors.worker import is_lacking
from boca.studyfile.importing import nearest
from boca.studyfile.watch import TICK_SECONDS, Watch

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_READ_SIZE = 2**16  # bytes per read: what a pipe usually holds
_KEPT_OUTPUT = 2**16  # bytes of the output that are kept, its end: the value is in the last line
_ERROR_LENGTH = 2000  # characters of standard error that a failure shows: it is stored with the trial
_LAST_LINE_LENGTH = 300  # characters of the last one of these lines, which comes first: it says most
_VALUE_LENGTH = 200  # characters of a wrong value that a failure shows
_SUPERVISOR_SECONDS = 5.0  # for a supervisor to end its command, before it is killed itself


class CommandFailed(BocaError, RuntimeError):
    """A command that could not run, ended with an error, or gave no number; its first line says how."""

    speaks_for_itself = True


class CommandNotStarted(CommandFailed):
    """A command for which the machine has no process, memory, file or disk left: the point is not at fault."""

    machine_lacks = True


@dataclass(frozen=True)
class Command:
    """A command line with placeholders {name}, run in a folder; call it with x and z to get the value.

    `names` are the parameters and fidelities.  `{{` and `}}` stand for braces.
    """

    line: str
    folder: str
    names: tuple[str, ...]
    returns_outcomes: bool = False
    """Whether $BOCA_RESULT holds outcomes by name, of which the problem knows what they mean; else one value counts."""
    environment: tuple[tuple[str, str], ...] = ()
    """Further variables."""
    runs: str | None = None
    """A folder in which every call gets a new one to run in, which is kept; None runs all in `folder`."""
    stop_grace: float = 10.0
    """Seconds from SIGTERM to SIGKILL, if the command is to stop before its last step."""

    def __post_init__(self) -> None:
        """Refuse a line with which every trial would fail."""
        if not self._template():
            raise InvalidInput(f"command must be a command line; got {self.line!r}.")
        for name in self.names:
            if "=" in name or "\0" in name:
                raise InvalidInput(
                    f"A name must be fit for an environment variable, without '=' and NUL; got {name!r}. Rename it."
                )
        for argument in self._template():
            if "\0" in argument:
                raise InvalidInput(f"command must not have the character NUL; got {self.line!r}.")
            _PIECE.sub(self._check, argument)

    def __call__(
        self, x: Mapping[str, Any], z: Mapping[str, Any] | None = None, run: Run | None = None
    ) -> float | dict[str, Any] | None:
        """Run the command at this point, pass on its output, and return its value, or what it wrote by name.

        With a run, it may return None: the last report is then the result.
        """
        point = {"x": _plain(x), "z": _plain(z or {})}
        values = {name: _text(value) for part in point.values() for name, value in part.items()}
        arguments = [_PIECE.sub(lambda piece: _filled(piece, values), argument) for argument in self._template()]
        with _scratch() as scratch:
            result = Path(scratch) / "result.json"
            folder = self.folder if self.runs is None else _kept(self.runs, point)
            environment = {
                **os.environ,
                **dict(self.environment),
                **{f"BOCA_X_{name}": values[name] for name in point["x"]},
                **{f"BOCA_Z_{name}": values[name] for name in point["z"]},
                "BOCA_POINT": json.dumps(point, allow_nan=False),
                "BOCA_RESULT": str(result),
                "BOCA_STUDY_FOLDER": self.folder,
            }
            if run is None:
                printed = _run(arguments, folder, environment, scratch)
            else:
                with Watch(run, scratch, grace=self.stop_grace) as watch:
                    printed = _run(arguments, folder, {**environment, **watch.environment}, scratch, watch)
                    if watch.has_stopped or (watch.has_reported and not os.path.lexists(result)):
                        return None
            return _written(result, self.returns_outcomes) if os.path.lexists(result) else _last_number(printed)

    def _template(self) -> list[str]:
        try:
            return shlex.split(self.line)
        except ValueError as error:
            raise InvalidInput(f"command must be quoted as for a shell; got {self.line!r}: {error}.") from error

    def _check(self, piece: re.Match[str]) -> str:
        name = piece[1]
        if piece[0] in ("{", "}"):
            raise InvalidInput(
                f"command has a brace that is not part of a {{name}}; got {self.line!r}. "
                "Write {{ or }} for a brace."
            )
        if name is not None and name not in self.names:
            allowed = ", ".join(f"{{{known}}}" for known in self.names)
            raise InvalidInput(
                f"command may have the placeholders {allowed}; got {piece[0]}{nearest(name, self.names)}."
            )
        return ""


def _filled(piece: re.Match[str], values: Mapping[str, str]) -> str:
    """Return the text for a placeholder or a double brace; braces within a value mean nothing.

    A parameter that is inactive has no value, and its placeholder becomes an empty text.
    """
    return piece[0][0] if piece[1] is None else values.get(piece[1], "")


def _plain(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in point.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, allow_nan=False)


# Running it -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    """Yield a folder of this call, and remove it."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="boca-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CommandNotStarted(f"The command needs a temporary folder: {error}.") from error
    with folder as path:
        yield path


def _kept(runs: str, point: Mapping[str, Any]) -> str:
    """Create a folder for one call and return it; its name has the time, and `point.json` in it has the point."""
    try:
        os.makedirs(runs, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=runs)
        Path(folder, "point.json").write_text(json.dumps(point, allow_nan=False), encoding="utf-8")
    except OSError as error:
        raise CommandNotStarted(
            f"No folder can be created in {runs}: {error}. Give trial_folders a folder that can be written to."
        ) from error
    print(f"in {folder}")
    return folder


class _Stream:
    """One output of the command: passed on as it comes, and its end kept."""

    def __init__(self, onward: TextIO | None) -> None:
        self._onward = onward
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._tail = bytearray()
        self._is_cut = False

    def __call__(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > _KEPT_OUTPUT:
            del self._tail[:-_KEPT_OUTPUT]
            self._is_cut = True
        if self._onward is not None:
            with contextlib.suppress(OSError, ValueError):  # its reader is gone, which is no reason to fail a trial
                self._onward.write(self._decode(data))
                self._onward.flush()

    @property
    def end(self) -> str:
        """The end of the output, after dots if it was cut: the end of a long line must not look like a line."""
        return ("..." if self._is_cut else "") + self._tail.decode(errors="replace")


def _run(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], scratch: str, watch: Watch | None = None
) -> str:
    """Run a program and return the end of its output, or raise how it failed."""
    out, err = _Stream(sys.stdout), _Stream(sys.stderr)
    process, report = _start(arguments, folder, environment, scratch)
    with process, open(report, "rb", buffering=0):
        try:
            outcome = _listen(process, report, out, err, watch)
        except BaseException:  # Ctrl-C too: the command must not outlive this call
            _end(process)
            raise
    if watch is not None:
        watch.take()
    if outcome == "0" or (watch is not None and watch.has_stopped):
        return out.end
    raise CommandFailed(_failure(outcome, arguments[0], err.end))


def _start(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], scratch: str
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the command under a supervisor, in its own session; return the supervisor and the pipe of its report.

    Without a terminal, the command gets no Ctrl-C that is meant for the driver, and cannot wait for input.
    """
    try:
        report, theirs = os.pipe()
    except OSError as error:
        raise CommandNotStarted(f"The command cannot be started: {error}.") from error
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
        if is_lacking(error):
            raise CommandNotStarted(f"The command cannot be started: {error}.") from error
        if isinstance(error, OSError | ValueError):  # a missing folder, a line that is too long, a NUL in an argument
            raise CommandFailed(f"The command cannot be started: {error}.") from error
        raise
    finally:
        os.close(theirs)
    return process, report


def _listen(
    process: subprocess.Popen[bytes], report: int, out: _Stream, err: _Stream, watch: Watch | None = None
) -> str:
    """Return the supervisor's report on the command; empty if it was killed, which ends the command too.

    The end of the command is its report, not the end of its output, which a daemon may hold open forever.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    outputs: dict[int, Callable[[bytes], None]] = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    said = b""
    with selectors.DefaultSelector() as selector:
        for pipe in (report, *outputs, *([] if watch is None else [watch.pipe])):
            selector.register(pipe, selectors.EVENT_READ)
        while not said.endswith(b"\n"):
            ready = [key.fd for key, _ in selector.select(None if watch is None else TICK_SECONDS)]
            if watch is not None:
                watch.take()
                watch.stop_if_due(said.partition(b" ")[0])
            for pipe in ready:
                if watch is not None and pipe == watch.pipe:
                    continue
                data = os.read(pipe, _READ_SIZE)
                if pipe == report:
                    said += data or b"\n"
                elif data:
                    outputs[pipe](data)
                else:
                    selector.unregister(pipe)
    for pipe, stream in outputs.items():  # the output that was not read yet: one read empties a full pipe
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            stream(os.read(pipe, _READ_SIZE))
    group, _, outcome = said.decode(errors="replace").splitlines()[0].partition(" ")
    if group and not outcome:
        with contextlib.suppress(OSError):  # the group is empty
            os.killpg(int(group), signal.SIGKILL)
    return outcome


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the supervisor, which kills its command."""
    process.terminate()
    try:
        process.wait(_SUPERVISOR_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _failure(outcome: str, program: str, errors: str) -> str:
    """Return how a command failed."""
    if not outcome:
        return "The command was killed, because its supervisor process was killed."
    if not re.fullmatch(r"-?\d+", outcome):
        return f"The command cannot run: {program!r}: {outcome}."
    code = int(outcome)
    how = f"exit status {code}" if code > 0 else f"killed by {_signal(-code)}"
    end = errors.strip()
    if not end:
        return f"{how}, with nothing on standard error"
    last = end.splitlines()[-1].strip()
    shown = last if len(last) <= _LAST_LINE_LENGTH else f"...{last[-_LAST_LINE_LENGTH:]}"
    rest = "" if end == last == shown else f"\nThe end of its standard error:\n{end[-_ERROR_LENGTH:]}"
    return f"{how}: {shown}{rest}"


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


# Its value ------------------------------------------------------------------------------------------------------------


def _written(result: Path, returns_outcomes: bool) -> float | dict[str, Any]:
    """Return the value in the file that the command wrote, or outcomes and notes by name; other keys are ignored."""
    try:
        descriptor = os.open(result, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise IsADirectoryError
            text = file.read(_KEPT_OUTPUT).decode(errors="replace")
    except OSError as error:
        raise CommandFailed("The command made $BOCA_RESULT something that is no file. It must be a file.") from error
    try:
        content = json.loads(text)
        if isinstance(content, dict) and returns_outcomes:
            if not any(isinstance(value, int | float) for value in content.values()):
                raise ValueError("there is no number in it")
            return content  # what its keys mean is decided by the problem
        return finite_number(content["value"] if isinstance(content, dict) else content, "value")
    except (ValueError, KeyError, RecursionError) as error:
        raise CommandFailed(
            f"The command wrote {text[:_VALUE_LENGTH]!r} to $BOCA_RESULT. It must write a finite number as JSON, "
            'alone or as {"value": 0.93}, or outcomes by name.'
        ) from error


def _last_number(printed: str) -> float:
    lines = [line for line in printed.splitlines() if line.strip()]
    if not lines:
        raise CommandFailed("The command printed nothing. Its last line must be a finite number.")
    try:
        if not _NUMBER.fullmatch(lines[-1].strip()):  # Python takes 1_000 and digits of other scripts too
            raise ValueError(lines[-1])
        return finite_number(float(lines[-1]), "value")
    except ValueError as error:
        raise CommandFailed(
            f"The last line of the command was {lines[-1][-_VALUE_LENGTH:]!r}. It must be a finite number."
        ) from error
