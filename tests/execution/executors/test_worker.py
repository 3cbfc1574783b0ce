"""One call of an objective, in the module that a worker runs as a script."""

from __future__ import annotations

import subprocess
import sys

import cloudpickle
import pytest

from boca.domain.space import finite_number
from boca.execution.executors import worker
from boca.execution.executors.worker import _finite, cut, described, evaluate, evaluate_pickled
from execution.executors.engine_contract import BAD, GOOD


def test_the_worker_knows_a_number_as_the_library_does() -> None:
    """Where NumPy calls a truth value or a complex number a float, the worker is stricter."""
    for value in GOOD:
        assert _finite(value) == finite_number(value, "value")
    for value in BAD:
        assert _finite(value) is None


def test_a_call_has_its_value_and_its_seconds() -> None:
    report = evaluate(lambda x, z: x["a"] + z["n"], ({"a": 1}, {"n": 2}))
    assert (report.value, report.error, report.exception) == (3.0, None, None)
    assert 0.0 <= report.seconds < 1.0


def test_what_is_raised_is_reported_unless_it_is_to_pass() -> None:
    def broken() -> float:
        raise SystemExit("enough")

    report = evaluate(broken, ())
    assert report.value is None
    assert report.error is not None
    assert report.error.splitlines()[0] == "SystemExit: enough"
    assert isinstance(report.exception, SystemExit)
    with pytest.raises(SystemExit):
        evaluate(broken, (), passing=(SystemExit,))


def test_a_pickled_call_is_the_same_call_without_the_exception() -> None:
    def inverse(x: dict[str, float]) -> float:
        return 1.0 / x["a"]

    objective = cloudpickle.dumps(inverse)
    assert evaluate_pickled(objective, cloudpickle.dumps(({"a": 4.0},))).value == 0.25
    failed = evaluate_pickled(objective, cloudpickle.dumps(({"a": 0.0},)))
    assert failed.exception is None
    assert failed.error is not None
    assert failed.error.startswith("ZeroDivisionError")


def test_an_objective_that_does_not_load_is_a_failure_with_the_way_out() -> None:
    report = evaluate_pickled(b"no pickle", b"")
    assert report.value is None
    assert report.error is not None
    assert "could not be loaded" in report.error
    assert "sys.path" in report.error


def test_an_exception_has_a_first_line_and_its_traceback_without_our_own_frame() -> None:
    def broken() -> float:
        raise ValueError("no\nconvergence")

    error = evaluate(broken, ()).exception
    assert error is not None
    text = described(error)
    assert text.startswith("ValueError: no")
    assert "in broken" in text
    assert "in evaluate" not in text


def test_a_long_text_keeps_both_ends_and_its_length_is_said() -> None:
    assert cut("short", 5) == "short"
    text = cut("a" * 100 + "b" * 100, 30)
    assert text == "a" * 10 + " [... 170 characters cut ...] " + "b" * 20
    assert cut("a\0\ud800", 100) == "a\\0\\ud800"


def test_the_script_imports_the_standard_library_alone() -> None:
    code = f"import sys; sys.argv = ['worker']; exec(open({worker.__file__!r}).read(), {{'__name__': 'worker'}})"
    check = "; print(sorted({name.split('.')[0] for name in sys.modules} & {'boca', 'numpy', 'scipy', 'cloudpickle'}))"
    done = subprocess.run([sys.executable, "-I", "-c", code + check], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
