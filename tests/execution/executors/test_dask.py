"""The engine of a Dask client, on a cluster of this machine."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors import Engine, engine
from execution.executors.engine_contract import KillableContract, Make, run, wait_until
from execution.executors.run_contract import RunContract

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'boca[dask]'")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.filterwarnings("default")  # of Dask's own

X = dict[str, Any]


def cluster(workers: int, threads: int) -> Any:
    return distributed.LocalCluster(
        host="127.0.0.1",
        n_workers=workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # a local cluster gives a worker up for good that is away at this time after its last death
    patience = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with patience, cluster(2, 1) as local, distributed.Client(local) as client:
        yield client


def allowed_failures(client: Any) -> int:
    return int(client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures))


class TestDask(KillableContract, RunContract):
    @pytest.fixture
    def executor(self, client: Any) -> object:
        client.wait_for_workers(2, timeout=30)
        return client

    @pytest.fixture
    def make(self, client: Any) -> Iterator[Make]:
        client.wait_for_workers(2, timeout=30)
        engines: list[Engine] = []

        def make(objective: Callable[..., Any], *, takes_fidelity: bool = False) -> Engine:
            engines.append(engine(client, objective, takes_fidelity=takes_fidelity))
            return engines[-1]

        yield make
        for made in reversed(engines):
            made.close(now=True)
        client.wait_for_workers(2, timeout=30)


def test_the_scheduler_is_left_as_it_was(client: Any) -> None:
    before = allowed_failures(client)
    made = engine(client, lambda x: 1.0, takes_fidelity=False)
    assert allowed_failures(client) == 0
    made.close()
    assert allowed_failures(client) == before > 0


def test_two_runs_on_one_cluster_leave_the_scheduler_as_it_was(client: Any) -> None:
    before = allowed_failures(client)
    one, other = (engine(client, lambda x: 1.0, takes_fidelity=False) for _ in range(2))
    one.close()
    one.close()
    assert allowed_failures(client) == 0
    other.close()
    assert allowed_failures(client) == before > 0


def test_a_module_that_the_worker_cannot_find_is_named(client: Any) -> None:
    made = engine(client, lambda x: __import__("nowhere_to_be_found"), takes_fidelity=False)
    outcome = run(made, {})
    made.close()
    assert not outcome.died
    assert outcome.error is not None
    assert "nowhere_to_be_found" in outcome.error


def test_a_worker_with_several_threads_is_not_killed_for_one() -> None:
    with cluster(1, 2) as local, distributed.Client(local) as client:
        made = engine(client, lambda x: time.sleep(x["s"]) or os.getpid(), takes_fidelity=False)
        assert made.slots == 2
        long = made.submit({"s": 4.0}, {}, timeout=None)
        late = run(made, {"s": 3.0}, timeout=1.0)
        assert late.error is not None
        assert "no result after 1 s" in late.error
        assert made.slots == 1
        wait_until(lambda: made.slots == 2, 20)
        assert long.result(20).value == run(made, {"s": 0.0}).value
        made.close()


def test_a_client_that_is_closed_is_refused() -> None:
    with cluster(1, 1) as local:
        client = distributed.Client(local)
        made = engine(client, lambda x: 1.0, takes_fidelity=False)
        client.close()
        with pytest.raises(BocaError, match="Dask"):
            made.submit({}, {}, timeout=None)
        made.close()
        with pytest.raises(InvalidInput, match="must be connected"):
            engine(client, lambda x: 1.0, takes_fidelity=False)


def test_an_objective_that_cannot_travel_is_refused(client: Any) -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match="cloudpickle refuses"):
        engine(client, lambda x: lock.locked(), takes_fidelity=False)
