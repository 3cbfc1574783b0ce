"""Worker processes: what an objective may do to one, and what is left when the driver is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import Engine, Workers, engine
from boca.execution.executors.process import OUTPUT_LENGTH
from execution.executors.engine_contract import KillableContract, Make, is_alive, run, wait_until
from execution.executors.run_contract import RunContract

X = dict[str, Any]


@pytest.fixture
def make() -> Iterator[Make]:
    engines: list[Engine] = []

    def make(objective: Callable[..., Any], executor: object = 2, *, takes_fidelity: bool = False) -> Engine:
        engines.append(engine(executor, objective, takes_fidelity=takes_fidelity))
        return engines[-1]

    yield make
    for made in engines:
        made.close(now=True)


class TestSlots(KillableContract, RunContract):
    @pytest.fixture
    def executor(self) -> object:
        return 2

    @pytest.fixture
    def make(self, make: Make) -> Make:
        return make


# The objective travels --------------------------------------------------------------------------------------------


def test_an_objective_that_cannot_travel_is_refused_before_anything_runs() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match=r"cloudpickle refuses.*lock.*executor=None"):
        engine(1, lambda x: lock.locked(), takes_fidelity=False)


def test_a_point_that_cannot_travel_is_a_failure(make: Make) -> None:
    outcome = run(make(lambda x: 1.0, 1), {"a": threading.Lock()})
    assert outcome.error is not None
    assert "cannot be sent" in outcome.error
    assert run(make(lambda x: 1.0, 1), {"a": 1}).value == 1.0


def test_a_large_objective(make: Make) -> None:
    data = os.urandom(20_000_000)
    assert run(make(lambda x: len(data), 1), {}).value == 20_000_000


def test_a_module_that_the_worker_cannot_find_is_named(make: Make) -> None:
    module = types.ModuleType("nowhere_to_be_found")
    exec("def f(x): return 1.0", module.__dict__)
    sys.modules[module.__name__] = module
    try:
        made = make(module.f, 1)
    finally:
        del sys.modules[module.__name__]
    for _ in range(2):
        outcome = run(made, {})
        assert not outcome.died
        assert outcome.error is not None
        assert "could not be loaded" in outcome.error
        assert "No module named 'nowhere_to_be_found'" in outcome.error


def test_a_function_of_a_notebook(make: Make) -> None:
    cells: X = {"__name__": "__main__"}
    exec("import math\nk = 2.0\ndef g(a): return k * a\ndef f(x): return math.sqrt(g(x['a']))", cells)
    assert run(make(cells["f"], 1), {"a": 8}).value == 4.0


def test_a_script_without_a_guard_and_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def twice(a):\n    return 2 * a\n")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import os
            import beside
            from boca.execution.executors import engine

            print("once")
            OFFSET = 1

            def f(x, z):
                return beside.twice(x["a"]) + z["b"] + OFFSET

            os.chdir("/")
            made = engine(2, f, takes_fidelity=True)
            print(made.submit({"a": 3}, {"b": 4}, timeout=30).result().value)
            made.close()
            """)
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("once\n11.0\n", "", 0)


def test_a_script_that_forgets_to_close_ends_nevertheless(tmp_path: Path) -> None:
    script = (
        "import os, time\nfrom boca.execution.executors import engine\n"
        "made = engine(1, lambda x: os.getpid(), takes_fidelity=False)\n"
        "print(int(made.submit({}, {}, timeout=30).result().value))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    wait_until(lambda: not is_alive(int(done.stdout)), 5)


def test_the_worker_imports_nothing_that_the_objective_does_not_need(make: Make) -> None:
    def imported(x: X) -> float:
        return sum(name.split(".")[0] in ("numpy", "scipy", "boca") for name in sys.modules)

    assert run(make(imported, 1), {}).value == 0


def test_an_objective_keeps_what_it_remembers(make: Make) -> None:
    memory: list[int] = []
    made = make(lambda x: memory.append(1) or len(memory), 1)
    assert [run(made, {}).value for _ in range(3)] == [1, 2, 3]
    assert memory == []


# What an objective may do -----------------------------------------------------------------------------------------


def test_how_a_worker_ended_is_said(make: Make) -> None:
    made = make(lambda x: os._exit(x["status"]) if "status" in x else os.kill(os.getpid(), x["signal"]), 1)
    for point, words in (
        ({"status": 3}, "exit status 3"),
        ({"status": 0}, "exit status 0"),
        ({"signal": signal.SIGKILL}, "SIGKILL"),
        ({"signal": signal.SIGTERM}, "SIGTERM"),
    ):
        outcome = run(made, point)
        assert outcome.died
        assert outcome.error is not None
        assert words in outcome.error


def test_a_crash_leaves_its_traceback_in_the_output(make: Make) -> None:
    def crash(x: X) -> float:
        print("before")
        return float(len(__import__("ctypes").string_at(0)))

    outcome = run(make(crash, 1), {})
    assert outcome.output.startswith("before\n")
    assert "Segmentation fault" in outcome.output
    assert "in crash" in outcome.output
    assert outcome.error is not None
    assert "SIGSEGV" in outcome.error


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of memory elsewhere")
def test_too_much_memory_is_an_ordinary_failure(make: Make) -> None:
    def greedy(x: X) -> float:
        kept = []
        while x["greedy"]:
            kept.append(bytes(10**6))
        return float(os.getpid())

    made = make(greedy, Workers(1, memory=2**30))
    before = run(made, {"greedy": False})
    outcome = run(made, {"greedy": True}, timeout=60)
    assert (outcome.value, outcome.died) == (None, False)
    assert outcome.error is not None
    assert outcome.error.startswith("MemoryError")
    assert run(made, {"greedy": False}).value == before.value  # the same worker is still there


def test_a_worker_that_dies_between_two_evaluations_costs_nothing(make: Make) -> None:
    made = make(lambda x: os.getpid(), 1)
    first = run(made, {}).value
    assert first is not None
    os.kill(int(first), signal.SIGKILL)
    wait_until(lambda: not is_alive(int(first)), 5)
    second = run(made, {})
    assert second.value not in (None, first)


def test_a_hang_that_lets_no_other_thread_run(make: Make) -> None:
    made = make(lambda x: __import__("ctypes").PyDLL(None).sleep(600), 1)
    began = time.monotonic()
    outcome = run(made, {}, timeout=1.0)
    assert time.monotonic() - began < 5.0
    assert outcome.error is not None
    assert "no result after 1 s" in outcome.error


def test_processes_of_the_objective_go_with_its_worker(make: Make, tmp_path: Path) -> None:
    def parent(x: X) -> float:
        child = subprocess.Popen(["sleep", "600"])
        path.write_text(str(child.pid))
        if x["how"] == "exit":
            os._exit(0)
        return float(child.wait())

    path = tmp_path / "pid"
    made = make(parent, 1)
    for how in ("exit", "hang"):
        assert run(made, {"how": how}, timeout=1.5).value is None
        wait_until(lambda: not is_alive(int(path.read_text())), 5)


def test_processes_that_outlive_their_evaluation_go_with_the_engine(make: Make) -> None:
    made = make(lambda x: subprocess.Popen(["sleep", "600"]).pid, 1)
    pid = run(made, {}).value
    assert pid is not None
    assert is_alive(int(pid))
    made.close()
    wait_until(lambda: not is_alive(int(pid)), 5)


def test_an_objective_with_workers_of_its_own(make: Make, tmp_path: Path) -> None:
    def outer(x: X) -> float:
        def inner(x: X) -> float:
            path.write_text(str(os.getpid()))
            time.sleep(600)
            return 0.0

        engine(1, inner, takes_fidelity=False).submit({}, {}, timeout=None).result()
        return 0.0

    path = tmp_path / "pid"
    future = make(outer, 1).submit({}, {}, timeout=3.0)
    wait_until(lambda: path.exists() and path.read_text() != "", 30)
    assert future.result(30.0).value is None
    wait_until(lambda: not is_alive(int(path.read_text())), 5)


def test_an_objective_that_forks(make: Make) -> None:
    def fork(x: X) -> float:
        child = os.fork()
        if x["leaves"]:  # the child has all pipes of the worker, and keeps them
            if child == 0:
                time.sleep(600)
            os._exit(3)
        if child == 0:
            return 2.0  # in the child: not an answer
        os.waitpid(child, 0)
        return 1.0

    made = make(fork, 1)
    assert [run(made, {"leaves": False}).value for _ in range(3)] == [1.0, 1.0, 1.0]
    began = time.monotonic()
    assert run(made, {"leaves": True}).died
    assert time.monotonic() - began < 5.0
    assert run(made, {"leaves": False}).value == 1.0


def test_ctrl_c_in_the_terminal_does_not_reach_workers(make: Make) -> None:
    session, group = (run(make(f, 1), {}).value for f in (lambda x: os.getsid(0), lambda x: os.getpgid(0)))
    assert session != os.getsid(0)
    assert group != os.getpgid(0)


# What it prints ---------------------------------------------------------------------------------------------------


def test_everything_that_is_printed_is_captured_once(make: Make) -> None:
    def loud(x: X) -> float:
        print("by Python", x["i"])
        print("to stderr \N{SNOWMAN} \ud800", file=sys.stderr)
        __import__("ctypes").CDLL(None).puts(b"by C")
        subprocess.run(["echo", "by a child"], check=True)
        os.system("echo by a shell")
        print("no end", end="")
        return 1.0

    made = make(loud, 1)
    for i in range(2):
        output = run(made, {"i": i}).output
        said = [
            f"by Python {i}\n",
            "to stderr \N{SNOWMAN} \\ud800\n",
            "by a child\n",
            "by a shell\n",
            "by C\n",
            "no end",
        ]
        assert [output.count(text) for text in said] == [1] * len(said)
        assert len(output) == sum(map(len, said))


def test_much_output_is_cut_to_its_end_and_says_so(make: Make) -> None:
    def chatty(x: X) -> float:
        for i in range(20):
            print(f"{i:6}" * 50_000)
        print("the last line")
        return 1.0

    outcome = run(make(chatty, 1), {}, timeout=30)
    assert outcome.value == 1.0
    first, _, rest = outcome.output.partition("\n")
    assert first == f"[... {20 * 300_001 + 14 - OUTPUT_LENGTH} bytes cut ...]"
    assert len(rest) == OUTPUT_LENGTH
    assert rest.endswith("the last line\n")


def test_output_without_end_stops_with_its_time(make: Make) -> None:
    made = make(lambda x: subprocess.run(["yes"]).returncode, 1)
    outcome = run(made, {}, timeout=1.0)
    assert outcome.error is not None
    assert "no result after 1 s" in outcome.error
    assert outcome.output.endswith("y\ny\n")
    assert len(outcome.output) < OUTPUT_LENGTH + 100


def test_a_process_that_keeps_printing_does_not_block_the_next_evaluation(make: Make) -> None:
    made = make(lambda x: subprocess.Popen(["yes"]).pid if x["yes"] else 1.0, 1)
    assert run(made, {"yes": True}, timeout=20).value
    assert run(made, {"yes": False}, timeout=20).value == 1.0


def test_an_objective_that_closes_its_output(make: Make) -> None:
    def close(x: X) -> float:
        print("still here")
        if x["how"] == "python":
            sys.stdout.close()
            sys.stderr.close()
        if x["how"] == "system":
            os.close(1)
            os.close(2)
        return 1.0

    made = make(close, 1)
    for how in ("python", "no", "system", "no"):
        outcome = run(made, {"how": how})
        assert (outcome.value, outcome.output) == (1.0, "still here\n")


def test_what_was_printed_before_a_hang_or_a_death_is_kept(make: Make) -> None:
    def end(x: X) -> float:
        print("last words")
        if x["how"] == "exit":
            os._exit(3)
        time.sleep(600)
        return 0.0

    made = make(end, 1)
    assert run(made, {"how": "exit"}).output == "last words\n"
    assert run(made, {"how": "hang"}, timeout=1.0).output == "last words\n"


# The end ----------------------------------------------------------------------------------------------------------


def test_close_waits_for_what_runs_and_for_what_is_queued(make: Make) -> None:
    made = make(lambda x: time.sleep(0.2) or 1.0, 1)
    futures = [made.submit({}, {}, timeout=None) for _ in range(3)]
    made.close()
    assert [future.result(0.0).value for future in futures] == [1.0] * 3


def test_close_lets_an_idle_worker_do_what_is_left_for_the_end(make: Make, tmp_path: Path) -> None:
    def f(x: X) -> float:
        __import__("atexit").register((tmp_path / "bye").touch)
        return 1.0

    made = make(f, 1)
    run(made, {})
    made.close()
    assert (tmp_path / "bye").exists()


def test_close_does_not_wait_for_a_worker_that_does_not_end(make: Make) -> None:
    made = make(lambda x: threading.Thread(target=time.sleep, args=(600,)).start() or 1.0, 1)
    assert run(made, {}).value == 1.0
    began = time.monotonic()
    made.close()
    assert time.monotonic() - began < 8.0


def test_close_now_ends_what_is_queued_too(make: Make) -> None:
    made = make(lambda x: time.sleep(600), 1)
    futures = [made.submit({}, {}, timeout=None) for _ in range(5)]
    time.sleep(0.3)
    began = time.monotonic()
    made.close(now=True)
    assert time.monotonic() - began < 5.0
    assert all(future.result(0.0).died for future in futures)


@pytest.mark.parametrize("holds", ["time.sleep(600)", "__import__('ctypes').PyDLL(None).sleep(600)"])
def test_nothing_outlives_a_driver_that_was_killed(tmp_path: Path, holds: str) -> None:
    """Also where the objective keeps every thread of its process from running."""
    script = textwrap.dedent(f"""
        import os, pathlib, subprocess, time
        from boca.execution.executors import engine

        def f(x):
            child = subprocess.Popen(["sleep", "600"])
            pathlib.Path({str(tmp_path)!r}, f"{{os.getpid()}} {{child.pid}}").touch()
            {holds}

        made = engine(2, f, takes_fidelity=False)
        futures = [made.submit({{}}, {{}}, timeout=None) for _ in range(2)]
        futures[0].result()
        """)
    driver = subprocess.Popen([sys.executable, "-c", script])
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, 30)
        pids = [int(pid) for path in tmp_path.iterdir() for pid in path.name.split()]
        assert all(is_alive(pid) for pid in pids)
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in pids), 5)
