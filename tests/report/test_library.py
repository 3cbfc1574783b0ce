"""The chart library is the one that was published, and has every kind of trace that a report draws."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from boca.domain.errors import BocaError
from boca.report import library

REPORT = Path(library.__file__).parent


@pytest.fixture(autouse=True)
def forget():
    yield
    library.packed.cache_clear()
    library.plotly.cache_clear()


def test_it_is_the_published_one_with_its_license():
    text = library.plotly()
    assert hashlib.sha256(text.encode()).hexdigest() == library.SHA256
    assert "plotly.js (cartesian - minified) v4.1.1" in text[:200]
    assert "MIT License" in resources.files("boca.report").joinpath("plotly-cartesian.LICENSE").read_text()


def test_one_that_was_changed_is_refused(monkeypatch):
    library.plotly.cache_clear()
    monkeypatch.setattr(library, "packed", lambda: gzip.compress(b"alert(1)"))
    with pytest.raises(BocaError, match="was changed"):
        library.plotly()


def test_it_has_every_kind_of_trace_that_is_drawn():
    drawn = set()
    for file in REPORT.glob("*.py"):
        drawn |= set(re.findall(r'"type": "(scatter|bar|heatmap|contour|parcoords|pie|surface)"', file.read_text()))
    assert drawn <= {"scatter", "bar", "heatmap", "contour"}
    text = library.plotly()
    assert all(f'name:"{kind}"' in text for kind in drawn)
