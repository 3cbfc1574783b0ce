"""Which executor makes which engine, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import Workers, engine, refuse_wrong_timeout


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
