"""The version is the one of the package."""

from __future__ import annotations

import tomllib
from pathlib import Path

import boca
from boca.domain.version import VERSION


def test_the_version_is_that_of_the_package():
    package = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert package["project"]["version"] == boca.__version__ == VERSION
