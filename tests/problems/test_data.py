"""Where data sets are looked for, what is taken for one, and what a download leaves behind.

Nothing here needs a network: a server on this machine stands in for GitHub, and a cache of scikit-learn's own format
for its archive.
"""

from __future__ import annotations

import codecs
import json
import lzma
import os
import pickle
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from boca.domain.errors import BocaError, InvalidInput
from boca.problems import data

TABLE = b"0.016 34.1 0.2\n0.5\t42.3\t0.25\n"
DOCUMENTS = [
    data.Document("train", "alt.atheism", "10", "First\nline \xe9\x85 \r\n"),
    data.Document("train", "alt.atheism", "9", "numbers are sorted as names"),
    data.Document("train", "sci.space", "10", "the same name in another group"),
    data.Document("test", "alt.atheism", "1", "test comes after train"),
]


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """An empty $BOCA_DATA, an empty cache, and the checksums of small data sets."""
    monkeypatch.setenv("BOCA_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setitem(data._SHA256, "supernova", data._sha256([TABLE]))
    monkeypatch.setitem(data._SHA256, "newsgroups", data._sha256(data._canonical(DOCUMENTS)))
    monkeypatch.setattr(data, "_PAUSES_BEFORE_RETRIES", (0.0, 0.0))
    return tmp_path / "given", tmp_path / "caches" / "boca"


def put(directory, name, content):
    path = directory / data._FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def packed(documents):
    return lzma.compress("".join(json.dumps(document._asdict()) + "\n" for document in documents).encode())


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


# --- where ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"),
    [("supernova", "supernova/davis2007.txt"), ("newsgroups", "newsgroups/20news-bydate.jsonl.xz")],
)
def test_the_named_directory_comes_before_the_cache(places, name, file):
    given, cache = places
    cached = put(cache, name, b"")
    assert data.locate(name) == cached == cache / file
    assert put(given, name, b"") == data.locate(name) == given / file


@pytest.mark.parametrize("value", ["", None])
def test_without_a_named_directory_there_is_the_cache(places, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("BOCA_DATA")
    else:
        monkeypatch.setenv("BOCA_DATA", value)
    assert put(places[1], "supernova", b"") == data.locate("supernova")


@pytest.mark.parametrize(("platform", "below"), [("linux", ".cache/boca"), ("darwin", "Library/Caches/boca")])
def test_the_cache_of_each_system(tmp_path, monkeypatch, platform, below):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert data._cache() == tmp_path / below


@pytest.mark.parametrize("name", ["supernova", "newsgroups"])
def test_a_missing_set_is_told_with_the_places_and_the_command(places, name):
    with pytest.raises(InvalidInput) as caught:
        data.locate(name)
    for part in (*(str(place / data._FILES[name]) for place in places), f"boca data fetch {name}", "BOCA_DATA"):
        assert part in str(caught.value)


@pytest.mark.parametrize("function", [data.locate, data.fetch])
@pytest.mark.parametrize("name", ["supernovae", "", None, ["supernova"]])
def test_an_unknown_set_is_refused_with_the_names_there_are(function, name):
    with pytest.raises(InvalidInput, match="'supernova', 'newsgroups'"):
        function(name)


# --- what -----------------------------------------------------------------------------------------------------


def test_supernovae_are_three_columns(places):
    table = data.supernovae(put(places[0], "supernova", TABLE))
    np.testing.assert_array_equal(table, [[0.016, 34.1, 0.2], [0.5, 42.3, 0.25]])


@pytest.mark.parametrize("content", [b"", TABLE[:-5], TABLE.replace(b"34.1", b"34.2"), b"\xff\xfe"])
def test_other_supernovae_are_refused(places, content):
    path = put(places[0], "supernova", content)
    with pytest.raises(InvalidInput, match=r"davis2007\.txt is not .*sha256.*boca data fetch supernova"):
        data.supernovae(path)


def test_documents_come_in_order_however_they_are_stored(places):
    for stored in (DOCUMENTS, DOCUMENTS[::-1]):
        assert data.newsgroups(put(places[0], "newsgroups", packed(stored))) == DOCUMENTS


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        packed(DOCUMENTS)[:-20],
        packed(DOCUMENTS[1:]),
        packed([*DOCUMENTS[1:], DOCUMENTS[0]._replace(text="First\nline")]),
        packed([DOCUMENTS[0]._replace(split="validation")]),
        lzma.compress(b'{"split": "train"}\n'),
        lzma.compress(b"[1, 2]\n"),
        lzma.compress(b"{\n"),
        lzma.compress(b"\xff\n"),
    ],
)
def test_other_documents_are_refused(places, content):
    path = put(places[0], "newsgroups", content)
    with pytest.raises(InvalidInput, match=r"bydate\.jsonl\.xz is not .*boca data fetch newsgroups"):
        data.newsgroups(path)


# --- fetching the supernovae ----------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """A server that gives the answers it was told, the last one for ever."""

    answers: list[tuple[int, bytes, int]]  # status, body, declared length
    requests = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        status, body, length = self.server.answers[min(self.server.requests, len(self.server.answers)) - 1]
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(data, "_SUPERNOVA_URL", f"http://127.0.0.1:{server.server_port}/davisdata")
        server.answers = [(200, TABLE, len(TABLE))]
        yield server
        server.shutdown()
        thread.join()


def test_a_fetched_set_is_found(places, server):
    path = data.fetch("supernova")
    assert path == data.locate("supernova") == places[1] / "supernova/davis2007.txt"
    assert path.read_bytes() == TABLE
    assert files(places[1]) == ["supernova/davis2007.txt"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_set_that_is_there_is_not_fetched_again(places, server, place):
    path = put(places[place], "supernova", TABLE)
    assert data.fetch("supernova") == path
    assert server.requests == 0
    assert not any(other.exists() for other in places if other != places[place])


def test_a_damaged_set_in_the_cache_is_replaced(places, server):
    put(places[1], "supernova", TABLE[:10])
    assert data.fetch("supernova").read_bytes() == TABLE
    assert files(places[1]) == ["supernova/davis2007.txt"]


def test_a_damaged_set_elsewhere_is_told_because_it_would_be_found_first(places, server):
    path = put(places[0], "supernova", TABLE[:10])
    with pytest.raises(InvalidInput, match="Remove the file"):
        data.fetch("supernova")
    assert path.read_bytes() == TABLE[:10]
    assert server.requests == 0


@pytest.mark.parametrize("failure", [(503, b"", 0), (200, TABLE[:9], len(TABLE))])
def test_a_failure_that_passes_is_tried_again(places, server, failure):
    server.answers = [failure, failure, *server.answers]
    assert data.fetch("supernova").read_bytes() == TABLE
    assert server.requests == 3


@pytest.mark.parametrize("failure", [(404, b"", 0), (200, TABLE[:9], len(TABLE))])
def test_a_failure_that_stays_is_told_and_leaves_nothing(places, server, failure):
    server.answers = [failure]
    with pytest.raises(BocaError, match=r"davisdata could not be read.*BOCA_DATA"):
        data.fetch("supernova")
    assert server.requests == 3
    assert files(places[1]) == []


def test_without_a_network_the_error_says_so(places, monkeypatch):
    def refuse(url, timeout):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(BocaError, match=r"Network is unreachable.*Try again with a connection"):
        data.fetch("supernova")
    assert files(places[1]) == []


def test_other_content_from_the_address_is_refused_and_leaves_nothing(places, server):
    server.answers = [(200, b"<html>Please log in</html>", 26)]
    with pytest.raises(BocaError, match="gave 26 bytes"):
        data.fetch("supernova")
    assert files(places[1]) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupted_write_leaves_what_was_there(places, server, monkeypatch, step):
    put(places[1], "supernova", b"old")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        data.fetch("supernova")
    assert files(places[1]) == ["supernova/davis2007.txt"]
    assert data.locate("supernova").read_bytes() == b"old"


# --- fetching the newsgroups ----------------------------------------------------------------------------------


def from_archive(monkeypatch, home, documents):
    """Let scikit-learn read, in a shuffled order, a cache of these documents in place of a download."""
    from sklearn import datasets
    from sklearn.utils import Bunch

    cache = {}
    for split in ("train", "test"):
        some = [document for document in documents if document.split == split]
        labels = sorted({document.label for document in some})
        order = np.random.default_rng(0).permutation(len(some))
        cache[split] = Bunch(
            data=[some[i].text for i in order],
            filenames=np.array([f"20news-bydate-{split}/{some[i].label}/{some[i].id}" for i in order]),
            target_names=labels,
            target=np.array([labels.index(some[i].label) for i in order]),
        )
    home.mkdir()
    (home / "20news-bydate_py3.pkz").write_bytes(codecs.encode(pickle.dumps(cache), "zlib_codec"))
    homes = []

    def offline(*, data_home, fetch=datasets.fetch_20newsgroups, **options):
        homes.append(Path(data_home))
        return fetch(data_home=home, download_if_missing=False, **options)

    monkeypatch.setattr(datasets, "fetch_20newsgroups", offline)
    return homes


def test_fetched_documents_are_found(places, tmp_path, monkeypatch):
    homes = from_archive(monkeypatch, tmp_path / "home", DOCUMENTS)
    path = data.fetch("newsgroups")
    assert path == data.locate("newsgroups") == places[1] / "newsgroups/20news-bydate.jsonl.xz"
    assert data.newsgroups(path) == DOCUMENTS
    assert files(places[1]) == ["newsgroups/20news-bydate.jsonl.xz"]
    assert homes
    assert not any(home.exists() for home in homes)
    homes.clear()
    assert data.fetch("newsgroups") == path
    assert not homes


def test_other_documents_from_scikit_learn_are_refused_and_leave_nothing(places, tmp_path, monkeypatch):
    from_archive(monkeypatch, tmp_path / "home", [document._replace(text="") for document in DOCUMENTS])
    with pytest.raises(BocaError, match="gave 4 documents"):
        data.fetch("newsgroups")
    assert files(places[1]) == []


def test_a_download_of_scikit_learn_that_fails_is_told(places, monkeypatch):
    def refuse(**options):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", refuse)
    with pytest.raises(BocaError, match=r"Network is unreachable.*Try again with a connection"):
        data.fetch("newsgroups")
    assert files(places[1]) == []


def test_without_scikit_learn_the_fetch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InvalidInput, match=r"pip install 'boca\[problems\]'"):
        data.fetch("newsgroups")


@pytest.mark.slow
def test_the_real_documents_come_back_from_scikit_learn(places, tmp_path, monkeypatch):
    monkeypatch.undo()
    try:
        documents = data.newsgroups(data.locate("newsgroups"))
    except InvalidInput as error:
        pytest.skip(f"no data: {error}")
    monkeypatch.delenv("BOCA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    from_archive(monkeypatch, tmp_path / "home", documents)
    assert data.newsgroups(data.fetch("newsgroups")) == documents
