"""The objective that is a command line: what the command is told, what is read back, and that it never stays behind."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boca import BocaError
from boca.domain.errors import InvalidInput
from boca.execution.executors.worker import described, evaluate
from boca.studyfile.command import Command, CommandFailed

PYTHON = f"{shlex.quote(sys.executable)} -I -S"
SAY_ALL = (
    "import json, os, sys; print(json.dumps([sys.argv[1:], {k: v for k, v in os.environ.items() if 'BOCA_' in k}, "
    "os.getcwd(), sys.stdin.read()])); print(7)"
)


def python(code, arguments="", *, folder=".", names=()):
    """Return a command that runs a program, with the braces of the program as braces."""
    source = shlex.quote(code.replace("{", "{{").replace("}", "}}"))
    return Command(f"{PYTHON} -c {source} {arguments}", str(folder), tuple(names))


def shell(script, folder="."):
    return Command(f"sh -c {shlex.quote(script)}", str(folder), ())


def is_running(pid):
    """Whether a process is there and not merely waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


# What the command is told ---------------------------------------------------------------------------------------------


def test_the_point_is_in_the_arguments_and_in_the_environment(tmp_path, capfd):
    command = python(
        SAY_ALL, "--lr={lr} {kind}{T} '{{lr}}' {{{T}}} {flag}", folder=tmp_path, names=("lr", "kind", "flag", "T")
    )
    point = {"lr": 0.1 + 0.2, "kind": "a b", "flag": True}, {"T": 50}
    assert command(*point) == 7.0
    arguments, environment, folder, given_input = json.loads(capfd.readouterr().out.splitlines()[0])
    assert arguments == ["--lr=0.30000000000000004", "a b50", "{lr}", "{50}", "true"]
    assert Path(folder) == tmp_path
    assert given_input == ""
    assert json.loads(environment.pop("BOCA_POINT")) == {"x": point[0], "z": point[1]}
    assert not os.path.exists(environment.pop("BOCA_RESULT"))
    given = {name: value for name, value in environment.items() if name.startswith(("BOCA_X_", "BOCA_Z_"))}
    assert given == {
        "BOCA_X_lr": "0.30000000000000004",
        "BOCA_X_kind": "a b",
        "BOCA_X_flag": "true",
        "BOCA_Z_T": "50",
    }


def test_without_fidelities_the_point_is_x_alone(capfd):
    assert python(SAY_ALL, "{a}", names=("a",))({"a": 1}) == 7.0
    environment = json.loads(capfd.readouterr().out.splitlines()[0])[1]
    assert json.loads(environment["BOCA_POINT"]) == {"x": {"a": 1}, "z": {}}


def test_numbers_of_numpy_are_written_as_plain_ones(capfd):
    command = python(SAY_ALL, "{a} {n}", names=("a", "n"))
    assert command({"a": np.float64(0.1)}, {"n": np.int64(3)}) == 7.0
    assert json.loads(capfd.readouterr().out.splitlines()[0])[0] == ["0.1", "3"]


ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
NASTY = st.sampled_from(
    ["; rm -rf x", "$(id)", "`id`", "{b}", "{{", "}", "'", '"', "\\", "\n", "-c", "", "*", "~", "é"]
)


@settings(deadline=None, derandomize=True, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(ANY_TEXT | NASTY, min_size=20, max_size=20),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
)
def test_any_text_and_any_number_arrive_as_they_are(tmp_path, texts, numbers):
    values = {f"v{i}": value for i, value in enumerate([*texts, *numbers])}
    code = (
        "import json, os, sys; args = sys.argv[1:]; env = [os.environ['BOCA_X_' + k] for k in json.loads("
        "os.environ['BOCA_POINT'])['x']]; json.dump({'value': args == env, 'args': args}, open('seen', 'w')); print(1)"
    )
    command = python(code, " ".join(f"{{{name}}}" for name in values), folder=tmp_path, names=values)
    assert command(values) == 1.0
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["value"]
    assert seen["args"][: len(texts)] == texts
    assert [float(text) for text in seen["args"][len(texts) :]] == numbers


def test_a_value_never_reaches_a_shell(tmp_path):
    command = python("import sys; print(len(sys.argv))", "{a} x{a}y", folder=tmp_path, names=("a",))
    assert command({"a": "; touch harm #"}) == 3.0
    assert command({"a": "$(touch harm) & `touch harm`"}) == 3.0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train {lrr}", r"placeholders \{lr\}, \{T\}; got \{lrr\} \(did you mean 'lr'\?\)"),
        ("train {}", r"placeholders \{lr\}, \{T\}; got \{\}"),
        ("train {lr:.3f}", r"got \{lr:.3f\}"),
        ("train {lr", "got 'train {lr'. Write {{ or }}"),
        ("train lr}", "got 'train lr}'. Write {{ or }}"),
        ("train '{lr}", r"quoted as for a shell.*No closing quotation"),
        ("  ", "must be a command line"),
        ("train a\0b", "NUL"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_at_once(line, message):
    with pytest.raises(InvalidInput, match=message):
        Command(line, ".", ("lr", "T"))


def test_a_name_that_no_environment_can_hold_is_refused():
    with pytest.raises(InvalidInput, match=r"without '='.*; got 'a=b'"):
        Command("train", ".", ("a=b",))


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_command_travels(pickler):
    command = python("print(2)", "{a}", names=("a",))
    copy = pickle.loads(pickler.dumps(command))
    assert copy == command
    assert copy({"a": 1}) == 2.0


# The value ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("0.25", 0.25),
        ("epoch 1\nepoch 2\n-3e-2\n", -0.03),
        ("5\n\n   \n\n", 5.0),
        ("99% done\r100% done\r  0.5  \n", 0.5),
    ],
)
def test_the_value_is_the_last_line_that_is_not_empty(printed, value):
    assert python(f"import sys; sys.stdout.write({printed!r})")({}) == value


@pytest.mark.parametrize("written", ['{"value": 0.93, "epochs": 4}', " 0.93 \n"])
def test_the_value_in_the_file_comes_first(written):
    code = f"import os; open(os.environ['BOCA_RESULT'], 'w').write({written!r}); print('no number')"
    assert python(code)({}) == 0.93


@pytest.mark.parametrize("written", ["", '{"loss": 1}', '{"value": "0.9"}', "NaN", "[" * 9999])
def test_a_file_without_a_number_is_an_error_that_shows_it(written):
    code = f"import os; open(os.environ['BOCA_RESULT'], 'w').write({written!r}); print(1)"
    with pytest.raises(CommandFailed, match=r"\$BOCA_RESULT.*finite number") as caught:
        python(code)({})
    assert repr(written)[:50] in str(caught.value)


@pytest.mark.parametrize("line", ["accuracy: 0.9", "nan", "0,93"])
def test_a_last_line_that_is_no_number_is_an_error_that_shows_it(line):
    with pytest.raises(CommandFailed, match=f"last line.*{re.escape(repr(line))}"):
        python(f"print(3); print({line!r})")({})


def test_silence_is_an_error():
    with pytest.raises(CommandFailed, match="printed nothing"):
        python("pass")({})


def test_the_exit_status_and_the_end_of_the_errors_are_told():
    code = "import sys; print(1); sys.stderr.write('x' * 100_000 + 'out of memory'); sys.exit(3)"
    with pytest.raises(
        CommandFailed, match=r"^exit status 3: \.\.\.x+out of memory\n.*standard error:\nx+out of memory$"
    ) as caught:
        python(code)({})
    assert isinstance(caught.value, BocaError)
    assert len(str(caught.value)) < 3000
    with pytest.raises(CommandFailed, match=r"^exit status 4, with nothing on standard error$"):
        shell("echo 1; exit 4")({})


def test_the_last_line_of_the_errors_comes_first_and_the_rest_after_it():
    with pytest.raises(CommandFailed) as caught:
        shell("echo 'solver diverged at a=0.81' >&2; exit 3")({})
    assert str(caught.value) == "exit status 3: solver diverged at a=0.81"
    with pytest.raises(CommandFailed) as caught:
        shell("echo first >&2; echo last >&2; echo >&2; exit 3")({})
    assert str(caught.value) == "exit status 3: last\nThe end of its standard error:\nfirst\nlast"
    assert described(caught.value) == str(caught.value)


@pytest.mark.parametrize("made", ["mkfifo $BOCA_RESULT", "mkdir $BOCA_RESULT", "ln -s /dev/zero $BOCA_RESULT"])
def test_a_result_that_is_no_file_is_refused_at_once(made):
    with pytest.raises(CommandFailed, match="no file"):
        shell(f"{made}; echo 1")({})


@pytest.mark.parametrize("line", ["1_000", "\u0661", "0x10", "1,5"])
def test_a_value_is_written_in_plain_digits(line):
    with pytest.raises(CommandFailed, match="last line"):
        python(f"print({line!r})")({})


def test_a_machine_without_processes_is_not_the_fault_of_the_point(monkeypatch):
    def no_process(*arguments, **options):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", no_process)
    report = evaluate(shell("echo 1"), ({},))
    assert report.lacking
    assert "temporarily unavailable" in report.error


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15)])
def test_the_signal_is_told(name, number):
    with pytest.raises(CommandFailed, match=rf"killed by signal {number} \(SIG{name}\)"):
        shell(f"kill -{name} $$")({})


def test_a_program_that_does_not_exist_and_a_folder_that_does_not_exist_are_told(tmp_path):
    with pytest.raises(CommandFailed, match="cannot run: 'no-such-program': No such file or directory"):
        Command("no-such-program", ".", ())({})
    (tmp_path / "here").write_text("")
    with pytest.raises(CommandFailed, match=r"cannot run: '\./here': Permission denied"):
        Command("./here", str(tmp_path), ())({})
    with pytest.raises(CommandFailed, match=r"cannot be started: .*nowhere"):
        Command("true", str(tmp_path / "nowhere"), ())({})
    with pytest.raises(CommandFailed, match="cannot be started"):
        Command("true {a}", ".", ("a",))({"a": "a\0b"})


def test_a_script_beside_the_file_runs(tmp_path):
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\necho $BOCA_X_a\n")
    script.chmod(0o755)
    assert Command("./train.sh", str(tmp_path), ("a",))({"a": 2.5}) == 2.5


# Its output -----------------------------------------------------------------------------------------------------------


def test_what_it_prints_is_passed_on(capsys):
    assert python("import sys; print('grüße'); print('oh', file=sys.stderr); print(1)")({}) == 1.0
    printed = capsys.readouterr()
    assert printed.out == "grüße\n1\n"
    assert printed.err == "oh\n"


def test_characters_are_not_torn(capsys):
    code = "import sys; sys.stdout.buffer.write(b'a' + 'é'.encode() * 100_000 + b'\\n1\\n')"
    assert python(code)({}) == 1.0
    assert capsys.readouterr().out == "a" + "é" * 100_000 + "\n1\n"


def test_the_output_needs_no_reader(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    assert python("print(1)")({}) == 1.0
    with (tmp_path / "closed").open("w") as closed:
        pass
    monkeypatch.setattr(sys, "stdout", closed)
    assert python("print(1)")({}) == 1.0


def test_a_chatty_command_costs_no_memory():
    chatty = "for i in range(1000): print('x' * 49_999)\nprint(0.5)"  # fifty megabytes
    script = (
        "import resource, sys; from boca.studyfile.command import Command\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"value = Command({python(chatty).line!r}, '.', ())({{}})\n"
        "print(value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True
    )
    value, kilobytes = run.stderr.split()
    assert float(value) == 0.5
    assert int(kilobytes) < 20_000


def test_the_end_of_a_long_line_does_not_pass_for_the_line(capsys):
    with pytest.raises(CommandFailed, match=r"last line.*'1111"):
        python("print('9' + '1' * 100_000)")({})
    capsys.readouterr()


# Nothing stays behind -------------------------------------------------------------------------------------------------


def test_what_a_command_leaves_behind_ends_with_it(tmp_path):
    began = time.monotonic()
    assert shell("sleep 60 & echo $! > left; echo 1", tmp_path)({}) == 1.0
    assert time.monotonic() - began < 10.0
    wait_until(lambda: not is_running((tmp_path / "left").read_text().strip()))


def test_a_daemon_that_holds_the_output_open_is_not_waited_for(tmp_path):
    began = time.monotonic()
    code = """
import os, time
if os.fork():
    while not os.path.exists("daemon"):
        time.sleep(0.01)
    print(1)
else:
    os.setsid()
    open("daemon", "w").write(str(os.getpid()))
    time.sleep(60)
"""
    assert python(code, folder=tmp_path)({}) == 1.0
    assert time.monotonic() - began < 10.0
    wait_until(lambda: (tmp_path / "daemon").read_text())
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)


# A shell that starts the program, and writes down who it is: both must end.
FAMILY = "echo $$ > shell; sleep 60 & echo $! > program; wait"


def family(folder):
    """Return the process ids of the shell and of the program below it, once both are there."""
    files = [folder / "shell", folder / "program"]
    wait_until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
    return [file.read_text().strip() for file in files]


@pytest.fixture(params=[0, 8], ids=["one thread", "many threads"])
def driver(request, tmp_path):
    """A process that runs the family, and has a folder of its own for what is temporary."""
    (tmp_path / "temporary").mkdir()
    script = f"""
import threading, time
for _ in range({request.param}):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
from boca.studyfile.command import Command
Command({shell(FAMILY).line!r}, {str(tmp_path)!r}, ())({{}})
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, env=environment)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_a_command_does_not_outlive_a_process_that_is_killed(driver, tmp_path):
    pids = family(tmp_path)
    assert all(is_running(pid) for pid in pids)
    driver.kill()
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    wait_until(lambda: not list((tmp_path / "temporary").iterdir()))


def test_an_interrupt_ends_the_command_and_is_passed_on(driver, tmp_path):
    pids = family(tmp_path)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=10)
    assert "KeyboardInterrupt" in errors
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_an_exception_in_the_middle_ends_the_command(tmp_path, monkeypatch):
    class Impatient:
        def write(self, text):
            raise RuntimeError("enough")

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Impatient())
    with pytest.raises(RuntimeError, match="enough"):
        shell(FAMILY.replace("wait", "sleep 0.2; echo now; wait"), tmp_path)({})
    wait_until(lambda: not any(is_running(pid) for pid in family(tmp_path)))


def test_a_supervisor_that_is_killed_is_told_and_takes_the_command_along(tmp_path):
    with pytest.raises(CommandFailed, match="supervisor process was killed"):
        shell(FAMILY.replace("wait", "kill -9 $PPID; wait"), tmp_path)({})
    wait_until(lambda: not any(is_running(pid) for pid in family(tmp_path)))


def test_the_command_has_the_signals_that_a_program_expects(capfd):
    code = "from signal import *; print(getsignal(SIGTERM), getsignal(SIGHUP), getsignal(SIGINT)); print(1)"
    assert python(code)({}) == 1.0
    assert capfd.readouterr().out.splitlines()[0].split()[:2] == [str(signal.SIG_DFL.value)] * 2
    with pytest.raises(CommandFailed, match="SIGPIPE"):  # Python ignores it, which a command must not inherit
        shell("kill -PIPE $$")({})


def test_no_file_and_no_descriptor_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    open_before = os.listdir("/proc/self/fd") if sys.platform == "linux" else []
    for command in (python("print(1)"), shell("exit 1"), Command("nothing", ".", ()), Command("x", "/nowhere", ())):
        with contextlib.suppress(CommandFailed):
            command({})
    assert list(tmp_path.iterdir()) == []
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == len(open_before)


def test_outcomes_and_notes_are_written_as_json(tmp_path):
    script = tmp_path / "outcomes.py"
    script.write_text(
        "import json, os\n"
        "x = json.loads(os.environ['BOCA_POINT'])['x']\n"
        "json.dump({'loss': x['a'], 'latency': 3, 'host': 'n1'}, open(os.environ['BOCA_RESULT'], 'w'))\n"
    )
    command = Command(f"{sys.executable} {script}", str(tmp_path), ("a",), returns_outcomes=True)
    assert command({"a": 0.5}) == {"loss": 0.5, "latency": 3, "host": "n1"}


@pytest.mark.parametrize("written", ['{"who": "n1"}', "{}"])
def test_a_mapping_without_a_number_is_no_result(tmp_path, written):
    script = tmp_path / "none.py"
    script.write_text(f"import os\nopen(os.environ['BOCA_RESULT'], 'w').write({written!r})\n")
    with pytest.raises(CommandFailed, match="outcomes by name"):
        Command(f"{sys.executable} {script}", str(tmp_path), ("a",), returns_outcomes=True)({"a": 0.5})
