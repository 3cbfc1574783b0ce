"""The engine of Ray, on a cluster of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import Engine, engine
from execution.executors.engine_contract import KillableContract, Make
from execution.executors.run_contract import RunContract

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'boca[ray]'")

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own

X = dict[str, Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(
        address="local",
        _node_ip_address="127.0.0.1",
        include_dashboard=False,
        num_cpus=2,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()


class TestRay(KillableContract, RunContract):
    @pytest.fixture
    def executor(self, cluster: None) -> object:
        return ray

    @pytest.fixture
    def make(self, cluster: None) -> Iterator[Make]:
        engines: list[Engine] = []

        def make(objective: Callable[..., Any], *, takes_fidelity: bool = False) -> Engine:
            engines.append(engine(ray, objective, takes_fidelity=takes_fidelity))
            return engines[-1]

        yield make
        for made in engines:
            made.close(now=True)


def test_an_objective_that_cannot_travel_is_refused(cluster: None) -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match="cloudpickle refuses"):
        engine(ray, lambda x: lock.locked(), takes_fidelity=False)


def test_ray_must_have_been_started() -> None:
    script = (
        "import ray\nfrom boca.execution.executors import engine\n"
        "try:\n    engine(ray, lambda x: 1.0, takes_fidelity=False)\n"
        "except Exception as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ}
    )
    assert "ray.init()" in done.stdout
