"""Run one command so that nothing of it outlives whoever asked for it; a script, started by `boca.study.command`.

A process between the two is what it takes.  The system can tell a process that its parent has died, but not the
processes below it, and a command is often a shell that starts the program: the supervisor is told, and ends the whole
process group of the command.  It also ends what a command leaves behind there when it is done.

It imports the standard library alone and starts in about 40 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ORPHANED = signal.SIGHUP  # no other tells: a parent of many threads is still there while they die one by one
_STOP = (signal.SIGTERM, signal.SIGINT, _ORPHANED)
_INHERITED = (*_STOP, signal.SIGPIPE, signal.SIGXFSZ)  # what Python or we have set, and a command does not expect


def supervise(parent: int, report: int, scratch: str, arguments: list[str]) -> None:
    """Run the command and write a line to `report`: its process group, and its exit code or why it cannot run.

    An exit code below zero is a signal.  If the parent dies, nobody but us can remove its folder `scratch`.
    """
    child = 0

    def stop(number: int, frame: object) -> None:
        for other in _STOP:  # every thread of a parent that dies sends one more: they must not break in here
            signal.signal(other, signal.SIG_IGN)
        if child:
            _kill(child)
        if number == _ORPHANED or os.getppid() != parent:
            import shutil  # seldom needed, and half as long to import as all the rest

            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    os.set_inheritable(report, False)
    for number in _STOP:
        signal.signal(number, stop)
    _follow(parent, _ORPHANED)
    this = os.getpid()
    child = os.fork()
    if child == 0:
        _become(arguments, this, report)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _kill(child)  # before the number is free for another group
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):  # whoever asked is gone
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(arguments: list[str], parent: int, report: int) -> None:
    """Turn this process into the command, in a process group of its own."""
    try:
        os.setpgid(0, 0)
        os.write(report, b"%d " % os.getpid())
        _follow(parent, signal.SIGKILL)
        for number in _INHERITED:
            signal.signal(number, signal.SIG_DFL)
        os.execvp(arguments[0], arguments)
    except OSError as error:
        os.write(report, f"{error.strerror}\n".encode())
    finally:
        os._exit(127)


def _follow(parent: int, number: signal.Signals) -> None:
    """Get this signal when the parent dies, or end here if it has died already."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone can do it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):  # there is nobody in it any more, or it was not made yet
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
