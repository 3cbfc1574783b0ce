"""Evaluate an objective and report the result; as a script, do so for a driver at the other end of a pipe.

The script runs in a new interpreter and imports the standard library alone, which takes about 50 ms, while `import
boca` takes 300 ms.  What the objective needs is imported when it is unpickled.

A message is its length in eight bytes, then its body.  The driver sends the setup and the objective, which the worker
acknowledges, and then the arguments of one call after another.  Answers are JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import json
import math
import numbers
import os
import pickle
import reprlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

ERROR_LENGTH = 6000  # characters of an error that are kept, traceback included: it is stored with every failed trial
_SUMMARY_LENGTH = 1000  # characters of its first line, which says what happened
_VALUE_LENGTH = 300  # characters of a value that is shown because it is not a number
_VALUE_PART_LENGTH = 200  # characters of one element of such a value
_READ_SIZE = 1 << 20  # bytes per read: objectives may carry data
_ENCODING_ERRORS = "backslashreplace"  # output is for people: a character that cannot be encoded must not fail a trial
_PR_SET_PDEATHSIG = 1
_ANSWERED = ("value", "error", "seconds", "lacking", "ended", "lost")  # of a report, to the driver
_WORD = b"{"  # what a word of the driver to a run begins with; calls begin with another byte

LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})
"""What the system says if it has no more files, processes, memory or disk."""


class Report(NamedTuple):
    """The result of one call: a finite number, values by name, or why there is none; and how long it took."""

    value: float | dict[str, Any] | None
    error: str | None
    seconds: float
    exception: BaseException | None = None
    lacking: bool = False
    """Whether the machine lacked what it takes to begin."""
    ended: bool = False
    """Whether the last report is the result."""
    lost: bool = False
    """Whether the checkpoint that it was to go on from is not there."""
    told: tuple[Any, ...] = ()
    """What a run reported that had no way to tell its driver before."""
    apart: bool = False
    """Whether it had no folder in common with its driver."""
    worker: str = ""
    """The machine and the process that evaluated."""


# One call ---------------------------------------------------------------------------------------------------------


def evaluate(
    objective: Callable[..., object],
    arguments: tuple[Any, ...],
    *,
    passing: tuple[type[BaseException], ...] = (),
    run: Any = None,
) -> Report:
    """Call the objective and report its value, or what it raised; exceptions in `passing` are raised.

    With a `boca.Run` its last argument is that run, whose last report may be the result.
    """
    began = time.perf_counter()
    has_ended = False
    try:
        if run is None:
            returned = objective(*arguments)
        else:
            returned, has_ended = run.settle(objective(*arguments, run))
    except passing:
        raise
    except BaseException as error:  # sys.exit() in an objective ends a trial, not a worker
        took = time.perf_counter() - began
        if run is not None:
            run.give_up()
        if isinstance(error, MemoryError):
            traceback.clear_frames(error.__traceback__)  # the report needs the memory that they hold
        return Report(None, described(error), took, error, getattr(error, "machine_lacks", False) is True)
    took = time.perf_counter() - began
    if has_ended:
        return Report(None, None, took, ended=True)
    value = as_outcome(returned)
    if value is None:
        return Report(None, f"The objective must return a finite number; it returned {shown(returned)}.", took)
    return Report(value, None, took)


def evaluate_pickled(objective: bytes, arguments: bytes) -> Report:
    """Do the same in a worker of a pool or cluster, with the objective and its arguments as cloudpickle wrote them."""
    try:
        call, values = _unpickled(objective), pickle.loads(arguments)
        if isinstance(values, dict):  # a run
            from boca.execution.executors.mailbox import evaluate_by_mail
    except BaseException as error:
        return Report(None, unloadable(error), 0.0, lacking=is_lacking(error), worker=here())
    report = evaluate_by_mail(call, **values) if isinstance(values, dict) else evaluate(call, values)
    return report._replace(exception=None, worker=here())  # not every exception can be pickled


def here(process: int | None = None) -> str:
    """Return a process of this machine, by default this one, as `host:number`."""
    return f"{os.uname().nodename}:{os.getpid() if process is None else process}"


@lru_cache(maxsize=1)
def _unpickled(objective: bytes) -> Any:
    """Return the objective, the same object for every call in this process."""
    return pickle.loads(objective)


def as_outcome(returned: object) -> float | dict[str, Any] | None:
    """Return the number that a value stands for, or values by name; None if it stands for neither."""
    return _by_name(returned) if isinstance(returned, Mapping) else _finite(returned)


def _by_name(returned: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return outcomes and notes as JSON; None if there are none; the problem says what they mean."""
    return {str(name): _as_json(value) for name, value in returned.items()} or None


def _as_json(value: Any) -> Any:
    """Return a value as JSON: numbers as they are, arrays as lists, and what JSON lacks as text."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return _by_name(value) or {}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    number = _finite(value)
    if number is not None:
        return number
    return str(value) if isinstance(value, float) else shown(value)


def _finite(value: Any) -> float | None:
    """Return the float that a value stands for, by the rules of `boca.domain.space.finite_number`, or None.

    They are repeated here because that module imports NumPy, which takes longer than all of this.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic) and value.size == 1:
        value = None if getattr(value, "mask", False) else value.item()
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return None  # NumPy would drop the imaginary part
    try:
        number = float(value)
    except Exception:  # __float__ may raise anything
        return None
    return number if math.isfinite(number) else None


def shown(value: object) -> str:
    """Return a value in one line of limited length, also if its repr raises."""
    shape = reprlib.Repr()
    shape.maxstring = shape.maxother = shape.maxlong = _VALUE_PART_LENGTH
    try:
        return cut(" ".join(shape.repr(value).split()), _VALUE_LENGTH)
    except Exception:
        return f"an object of type {type(value).__name__} whose repr fails"


def described(error: BaseException) -> str:
    """Return an exception as text: what it is in the first line, then its traceback.

    An error of a program that was run needs neither its class nor a traceback through boca.
    """
    if getattr(error, "speaks_for_itself", False) is True:
        return cut(str(error), ERROR_LENGTH)
    stack = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame that called the objective
    try:
        summary = "".join(traceback.format_exception_only(error)).strip()
        trace = "".join(traceback.format_exception(type(error), error, stack)).strip() if stack else ""
    except Exception:
        return f"{type(error).__name__}, whose message cannot be shown"
    summary = cut(summary, _SUMMARY_LENGTH)
    return f"{summary}\n{cut(trace, ERROR_LENGTH - len(summary))}" if trace else summary


def is_lacking(error: BaseException | None) -> bool:
    """Whether an error says that the machine has no memory, processes, files or disk left."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in LACKING):
            return True
        error = error.__cause__ or error.__context__
    return False


def unloadable(error: BaseException) -> str:
    """Return the error of an objective that could not be unpickled."""
    return (
        f"The objective could not be loaded in the worker: {described(error)}\n"
        "Install what it imports where the worker runs, or put it on the driver's sys.path."
    )


def cut(text: str, length: int) -> str:
    """Return text that any file or database can hold, without its middle if it is longer than `length`."""
    text = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    if len(text) <= length:
        return text
    head = length // 3
    return f"{text[:head]} [... {len(text) - length} characters cut ...] {text[head - length :]}"


# One worker -------------------------------------------------------------------------------------------------------


def main(requests: int, replies: int, driver: int) -> None:
    """Evaluate the calls that come in on one pipe, answer on the other, and return at the end of the first."""
    _follow(driver)
    faulthandler.enable()  # a crash prints its traceback
    for pipe in (requests, replies):
        os.set_inheritable(pipe, False)  # not for the processes that the objective starts
    this, spare = os.getpid(), os.dup(1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors=_ENCODING_ERRORS, line_buffering=True)  # type: ignore[union-attr]
    setup = receive(requests)
    objective = receive(requests)
    if setup is None or objective is None:
        return
    try:
        call = _load(setup, objective)
    except BaseException as error:
        send(replies, {"error": unloadable(error), "lacking": is_lacking(error)})
        return
    del objective
    send(replies, {"error": None})
    while (arguments := receive(requests)) is not None:
        if arguments.startswith(_WORD):
            continue  # to a run that has ended meanwhile
        _open_output(spare)
        try:
            values = pickle.loads(arguments)
            if isinstance(values, dict):
                from boca.execution.executors.pipe import evaluate_by_pipe

                report = evaluate_by_pipe(call, **values, requests=requests, replies=replies)
            else:
                report = evaluate(call, values)
            del values
        except BaseException as error:  # of unpickling
            report = Report(None, unloadable(error), 0.0, lacking=is_lacking(error))
        _flush()
        if os.getpid() != this:
            os._exit(0)  # the objective forked, and this is the child: the parent answers
        send(replies, {name: getattr(report, name) for name in _ANSWERED})
        del report  # its exception refers to the objects of the objective


def _follow(driver: int) -> None:
    """End with the driver: on Linux the kernel does it too, elsewhere only the shell that watches this group."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != driver:  # it died before that took effect
        os._exit(1)


def _load(setup: bytes, objective: bytes) -> Any:
    """Set the driver's import path and the limit of memory, and load the objective."""
    sys.path[:], memory = pickle.loads(setup)
    if memory is not None:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = memory if most == resource.RLIM_INFINITY else min(memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return pickle.loads(objective)


def _open_output(spare: int) -> None:
    """Reopen stdout and stderr if an objective closed them."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(spare, number)
        if getattr(getattr(sys, name, None), "closed", True):
            setattr(sys, name, open(number, "w", 1, encoding="utf-8", errors=_ENCODING_ERRORS, closefd=False))  # noqa: SIM115


def _flush() -> None:
    """Flush the buffers of Python and of C."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def receive(pipe: int) -> bytes | None:
    """Return the next message, or None at the end."""
    header = _read(pipe, 8)
    return None if header is None else _read(pipe, int.from_bytes(header))


def _read(pipe: int, length: int) -> bytes | None:
    parts, missing = [], length
    while missing:
        part = os.read(pipe, min(missing, _READ_SIZE))
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def send(pipe: int, answer: dict[str, Any]) -> None:
    body = json.dumps(answer, allow_nan=False).encode()
    message = memoryview(len(body).to_bytes(8) + body)
    while message:
        message = message[os.write(pipe, message) :]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
