"""The engine of this process and thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import engine
from execution.executors.engine_contract import BAD, EngineContract, Make, run
from execution.executors.run_contract import RunContract


class TestInline(EngineContract, RunContract):
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
