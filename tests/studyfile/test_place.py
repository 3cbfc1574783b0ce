"""Where the evaluations of a study file run."""

from __future__ import annotations

import os
import sys

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors import Workers
from boca.studyfile.place import Place, placed


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [("4 GB", 4 * 10**9), ("512 MiB", 512 * 2**20), ("1.5G", 15 * 10**8), (2**30, 2**30), ("800 kB", 800_000)],
)
def test_memory_has_a_unit(given, bytes_):
    assert placed({"memory": given}).memory == bytes_


@pytest.mark.parametrize("given", ["much", "4 XB", 0, -1, True, "0 GB", 1.5])
def test_memory_that_cannot_be_meant_is_refused(given):
    with pytest.raises(InvalidInput, match='memory must be a number of bytes, or text such as "4 GB"'):
        placed({"memory": given})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"executor": "dask"}, "executor must be a table"),
        ({"executor": {}}, "exactly one of dask and ray"),
        ({"executor": {"slurm": "x"}}, "may have the keys dask, ray; got 'slurm'"),
        ({"executor": {"dask": 1}}, r"executor\.dask must be an address"),
        ({"executor": {"ray": "auto"}, "memory": "1 GB"}, "limit the workers of the cluster"),
        ({"environment": {"A": 1}}, r"environment\.A must be text"),
        ({"environment": {"A=B": "1"}}, "or have '='"),
        ({"environment": "A=1"}, "environment must be a table"),
    ],
)
def test_a_place_that_cannot_be_meant_is_refused(document, words):
    with pytest.raises(InvalidInput, match=words):
        placed(document)


def test_workers_of_this_machine_have_the_memory_and_the_environment(monkeypatch):
    monkeypatch.delenv("BOCA_TEST_PLACE", raising=False)
    place = placed({"memory": "2 GB", "environment": {"BOCA_TEST_PLACE": "here"}})
    with place.opened(3) as executor:
        assert executor == Workers(3, memory=2 * 10**9)
        assert os.environ.pop("BOCA_TEST_PLACE") == "here"


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_library_that_is_not_installed_is_named(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, {"dask": "distributed", "ray": "ray"}[kind], None)
    with pytest.raises(InvalidInput, match=rf"pip install 'boca\[{kind}\]'"), Place(kind, "x").opened(1):
        pass


def test_a_dask_cluster_is_connected_as_long_as_the_run_lasts():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        with placed({"executor": {"dask": cluster.scheduler_address}}).opened(None) as client:
            assert sum(client.nthreads().values()) == 2
        assert client.status == "closed"


def test_a_cluster_that_does_not_answer_is_an_error_in_a_sentence(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(address, timeout):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with (
        pytest.raises(InvalidInput, match="No Dask scheduler answers at 'tcp://nowhere:1'"),
        Place("dask", "tcp://nowhere:1").opened(1),
    ):
        pass
