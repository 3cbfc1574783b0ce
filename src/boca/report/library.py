"""The chart library that reports and the live page have in them.

It is the part of plotly.js 4.1.1 with axes, in its own form for browsers: the package plotly.js-cartesian-dist-min of
Plotly, Inc., under the license beside it.  The whole of plotly.js is three times as large.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib import resources

from boca.domain.errors import BocaError

FILE = "plotly-cartesian.min.js.gz"
SHA256 = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
"""Of the library as it was published, which is the content of the file."""


@cache
def packed() -> bytes:
    """Return the library as gzip made it smaller."""
    return resources.files("boca.report").joinpath(FILE).read_bytes()


@cache
def plotly() -> str:
    """Return the library, after a look at whether it is the one that was published."""
    content = gzip.decompress(packed())
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise BocaError("The chart library in this installation was changed. Type: pip install --force-reinstall boca")
    return content.decode()
