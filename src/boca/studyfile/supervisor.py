"""Run one command so that no process of it outlives its parent; a script, started by `boca.studyfile.command`.

This takes a process between the two.  The system can signal the death of a parent to its child, but not to the
processes below, and a command is often a shell that starts the program.  The supervisor gets the signal, and kills the
whole process group of the command.  It also kills what a command leaves running when it ends.

It imports the standard library alone, and starts in about 40 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PARENT_DIED = signal.SIGHUP  # its own signal, because getppid() is late: the threads of a parent die one by one
_STOP = (signal.SIGTERM, signal.SIGINT, _PARENT_DIED)
_CHANGED = (*_STOP, signal.SIGPIPE, signal.SIGXFSZ)  # by Python or here: a command expects the defaults


def supervise(parent: int, report: int, scratch: str, arguments: list[str]) -> None:
    """Run the command and write a line to `report`: its process group, and its exit code or why it cannot run.

    A negative exit code is a signal.  If the parent dies, its folder `scratch` is removed here.
    """
    child = 0

    def stop(number: int, frame: object) -> None:
        for other in _STOP:  # each thread of a dying parent sends one more, which must not interrupt this
            signal.signal(other, signal.SIG_IGN)
        if child:
            _kill(child)
        if number == _PARENT_DIED or os.getppid() != parent:
            import shutil  # seldom needed, and its import takes half as long as all others

            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    os.set_inheritable(report, False)
    for number in _STOP:
        signal.signal(number, stop)
    _signal_if_parent_dies(parent, _PARENT_DIED)
    this = os.getpid()
    child = os.fork()
    if child == 0:
        _become(arguments, this, report)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _kill(child)  # before `waitpid`, which frees the number for another group
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):  # the parent is gone
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(arguments: list[str], parent: int, report: int) -> None:
    """Turn this process into the command, in a process group of its own."""
    try:
        os.setpgid(0, 0)
        os.write(report, b"%d " % os.getpid())
        _signal_if_parent_dies(parent, signal.SIGKILL)
        for number in _CHANGED:
            signal.signal(number, signal.SIG_DFL)
        os.execvp(arguments[0], arguments)
    except OSError as error:
        os.write(report, f"{error.strerror}\n".encode())
    finally:
        os._exit(127)


def _signal_if_parent_dies(parent: int, number: signal.Signals) -> None:
    """Ask the kernel for this signal when the parent dies; exit if it has died already."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux can do this
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):  # the group is empty, or does not exist yet
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
