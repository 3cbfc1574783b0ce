"""Which executor makes which engine, and the engine of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.domain.space import finite_number
from boca.execution.executors import Workers, engine, refuse_wrong_timeout
from boca.execution.executors.worker import _finite
from execution.executors.engine_contract import BAD, GOOD, EngineContract, Make, run


class TestInline(EngineContract):
    @pytest.fixture
    def make(self) -> Make:
        def make(objective: Callable[..., Any], *, takes_fidelity: bool = False) -> Any:
            return engine(None, objective, takes_fidelity=takes_fidelity)

        return make

    # what is raised and returned here is there to be raised again
    def test_anything_else_is_a_failure_that_shows_what_came_back(self, make: Make) -> None:
        for value in BAD:
            outcome = run(make(lambda x: x["value"]), {"value": value})
            assert outcome.error is not None
            assert isinstance(outcome.exception, InvalidInput)
            assert str(outcome.exception) == outcome.error

    def test_the_exception_is_kept(self, make: Make) -> None:
        error = KeyError("x")

        def broken(x: dict[str, Any]) -> float:
            raise error

        assert run(make(broken), {}).exception is error

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_ctrl_c_and_exit_pass(self, make: Make, kind: type[BaseException]) -> None:
        def stop(x: dict[str, Any]) -> float:
            raise kind

        with pytest.raises(kind):
            make(stop).submit({}, {}, timeout=None)

    def test_a_timeout_is_refused_with_the_way_out(self, make: Make) -> None:
        with pytest.raises(InvalidInput, match="executor=1"):
            make(lambda x: 1.0).submit({}, {}, timeout=1.0)


@pytest.mark.parametrize("executor", ["4", 1.5, True, object(), ThreadPoolExecutor, [2], pytest])
def test_what_is_no_executor_is_refused_with_a_list(executor: object) -> None:
    with pytest.raises(InvalidInput, match=r"worker processes.*Workers.*Executor.*Dask.*ray"):
        engine(executor, lambda x: 1.0, takes_fidelity=False)


def test_the_number_of_workers_is_positive() -> None:
    for count in (0, -1):
        with pytest.raises(InvalidInput, match="at least 1"):
            engine(count, lambda x: 1.0, takes_fidelity=False)
    with pytest.raises(InvalidInput, match="memory must be"):
        Workers(1, memory=0)
    with pytest.raises(InvalidInput, match="must be an integer"):
        Workers(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_a_wrong_timeout_is_refused_by_itself(timeout: object) -> None:
    with pytest.raises(InvalidInput, match="timeout"):
        refuse_wrong_timeout(timeout, 2)


def test_a_timeout_needs_an_executor() -> None:
    for timeout in (5, lambda cost: cost):
        with pytest.raises(InvalidInput, match="executor=1"):
            refuse_wrong_timeout(timeout, None)
        refuse_wrong_timeout(timeout, 1)
    refuse_wrong_timeout(None, None)


def test_an_objective_is_callable() -> None:
    with pytest.raises(InvalidInput, match="must be a function"):
        engine(None, 3, takes_fidelity=False)  # type: ignore[arg-type]


def test_the_worker_knows_a_number_as_the_library_does() -> None:
    """Where NumPy calls a truth value or a complex number a float, the worker is stricter."""
    for value in GOOD:
        assert _finite(value) == finite_number(value, "value")
    for value in BAD:
        assert _finite(value) is None
