"""The data of the real problems: where they are found, how they are checked, how they are downloaded.

Neither data set is part of the package.  Each has a file name relative to a directory.  The directories are, in this
order, `$BOCA_DATA` and a cache: `$XDG_CACHE_HOME/boca`, otherwise `~/.cache/boca`, on macOS `~/Library/Caches/boca`.
A checksum is compared on every read, because a damaged file would give values that look right.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boca.domain.errors import BocaError, InvalidInput, one_of
from boca.domain.space import FloatArray

_FILES = {
    "supernova": "supernova/davis2007.txt",
    "newsgroups": "newsgroups/20news-bydate.jsonl.xz",
}
_SHA256 = {  # of the file of supernovae; of the documents of newsgroups, which can be compressed in many ways
    "supernova": "18142cc27d9ac3647db95b6c8a4542d65799057aba96caaf000e4a638bd24385",
    "newsgroups": "38efbf9a60aa934381f019909d8fc6c63e237381b0ed7f3fcc0104e67a789142",
}
_SUPERNOVA_URL = "https://raw.githubusercontent.com/dragonfly/dragonfly/3eef7d3/examples/supernova/davisdata"
_SPLITS = ("train", "test")

_TIMEOUT = 30.0  # seconds without an answer, after which an attempt has failed
_PAUSES_BEFORE_RETRIES = (1.0, 3.0)  # seconds: long enough for a connection that dropped


class Document(NamedTuple):
    """One message of a newsgroup, headers included."""

    split: str
    label: str
    id: str
    text: str


def names() -> tuple[str, ...]:
    """Return the names of the data sets."""
    return tuple(_FILES)


def locate(name: str) -> Path:
    """Return the file of this data set; the error says how to get it if there is none."""
    one_of(name, names(), "A data set's name")
    looked: list[str] = []
    for path in _places(name):
        if path.is_file():
            return path
        looked.append(str(path))
    raise InvalidInput(
        f"The data set {name} was not found at {' or '.join(looked)}. "
        f"Run `boca data fetch {name}`, or set BOCA_DATA to the directory that holds {_FILES[name]}."
    )


def fetch(name: str) -> Path:
    """Download a data set into the cache, unless it exists and is correct, and return its file.

    The file gets its name only when it is complete and checked, so an interrupted download leaves nothing behind that
    could be mistaken for it.
    """
    one_of(name, names(), "A data set's name")
    read = supernovae if name == "supernova" else newsgroups
    destination = _cache() / _FILES[name]
    for path in _places(name):
        if not path.is_file():
            continue
        try:
            read(path)
        except InvalidInput:
            if path != destination:  # it would be found before the new one
                raise
        else:
            return path
    _write(destination, _download_supernovae() if name == "supernova" else _download_newsgroups())
    return destination


def supernovae(path: Path) -> FloatArray:  # (192, 3)
    """Read the supernovae of Davis et al. (2007): redshift, distance modulus, its standard error."""
    content = path.read_bytes()
    if _sha256([content]) != _SHA256["supernova"]:
        raise _wrong("supernova", path, f"its sha256 is {_sha256([content])}")
    return np.array([line.split() for line in content.decode("ascii").splitlines()], dtype=float)


def newsgroups(path: Path) -> list[Document]:
    """Read the documents of 20 Newsgroups, in the order of split, label and file name."""
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        documents = _in_order(Document(row["split"], row["label"], row["id"], row["text"]) for row in rows)
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError) as error:
        raise _wrong("newsgroups", path, f"it cannot be read: {error!r}") from error
    seen = _sha256(_canonical(documents))
    if seen != _SHA256["newsgroups"]:
        raise _wrong("newsgroups", path, f"the sha256 of its {len(documents)} documents is {seen}")
    return documents


def _places(name: str) -> Iterator[Path]:
    given = os.environ.get("BOCA_DATA")
    if given:
        yield Path(given) / _FILES[name]
    yield _cache() / _FILES[name]


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "boca"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "boca"


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _wrong(name: str, path: Path, seen: str) -> InvalidInput:
    return InvalidInput(
        f"{path} is not the data set {name} as published: {seen}. Remove the file and run `boca data fetch {name}`."
    )


def _in_order(documents: Iterable[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: (_SPLITS.index(document.split), document.label, document.id))


def _canonical(documents: Iterable[Document]) -> Iterator[bytes]:
    for document in documents:
        yield json.dumps(list(document)).encode("ascii") + b"\n"


def _download_supernovae() -> bytes:
    content = _get(_SUPERNOVA_URL)
    if _sha256([content]) != _SHA256["supernova"]:
        raise BocaError(
            f"{_SUPERNOVA_URL} gave {len(content)} bytes with the sha256 {_sha256([content])}; it must be "
            f"{_SHA256['supernova']}. Something on the way changed the file; try another network."
        )
    return content


def _get(url: str) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    failure: Exception | None = None
    for pause in (0.0, *_PAUSES_BEFORE_RETRIES):
        time.sleep(pause)
        try:
            with urlopen(url, timeout=_TIMEOUT) as response:
                content: bytes = response.read()
            return content
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()  # it holds the connection
            failure = error
    raise BocaError(
        f"{url} could not be read: {failure!r}. Try again with a connection, or put the file into the directory that "
        f"BOCA_DATA names, as {_FILES['supernova']}."
    ) from failure


def _download_newsgroups() -> bytes:
    """Download and check the archive with scikit-learn, and return its documents in our format."""
    try:
        from sklearn.datasets import fetch_20newsgroups
    except ImportError as error:
        raise InvalidInput("20 Newsgroups are fetched by scikit-learn. Run `pip install 'boca[problems]'`.") from error
    found: list[Document] = []
    with tempfile.TemporaryDirectory() as home:
        for split in _SPLITS:
            try:
                bunch = fetch_20newsgroups(subset=split, shuffle=False, data_home=home)
            except OSError as error:
                raise BocaError(
                    f"scikit-learn could not download 20 Newsgroups: {error!r}. Try again with a connection, or put "
                    f"the file into the directory that BOCA_DATA names, as {_FILES['newsgroups']}."
                ) from error
            labels = [bunch.target_names[code] for code in bunch.target]
            ids = [Path(filename).name for filename in bunch.filenames]
            found += [Document(split, *rest) for rest in zip(labels, ids, bunch.data, strict=True)]
    documents = _in_order(found)
    if _sha256(_canonical(documents)) != _SHA256["newsgroups"]:
        raise BocaError(
            f"scikit-learn gave {len(documents)} documents with the sha256 {_sha256(_canonical(documents))}; it must "
            f"be {_SHA256['newsgroups']}. Try another version of scikit-learn."
        )
    lines = "".join(json.dumps(document._asdict(), ensure_ascii=False) + "\n" for document in documents)
    return lzma.compress(lines.encode("utf-8"), preset=1)  # a fifth of the time, a quarter more bytes


def _write(destination: Path, content: bytes) -> None:
    """Write the file so that it appears whole or not at all."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=destination.parent, prefix=destination.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, destination)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
