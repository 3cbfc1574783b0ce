"""The recipes of CONTRIBUTING: every file that they name exists, and every list in the source is named by them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# What every list of a kind names: a file with all of them has to be changed when one is added.
KINDS = {
    "strategy": ("GPUCB", "GPEI", "MFGPUCB", "MFSKO", "RandomSearch"),
    "kernel component": ("Jump", "Trend", "Custom"),
    "acquisition": ("UCB", "LogEI", "LogNoisyEI", "LogInformation"),
    "storage": ("Memory", "Database"),
    "executor": ("Workers", "Pool", "Dask", "Ray"),
}


def recipe(kind):
    """Return the text of one recipe."""
    return PAGE.split(f"\n## Add a{'n' if kind[0] in 'ae' else ''} {kind}\n", 1)[1].split("\n## ", 1)[0]


def steps(kind):
    """Return its steps."""
    return re.findall(r"^\d\. .*(?:\n +.*)*", recipe(kind), flags=re.MULTILINE)


def named(kind):
    """Return the files that its steps name."""
    text = "\n".join(steps(kind))
    paths = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+|[\w-]+\.toml)`", text)
    return {path.rstrip("/") for path in paths}


HISTORY = "src/boca/study/storage/schema1.py"  # what an older version knew: it never grows


def lists(kind):
    """Return the files of the source and its settings that name every member of a kind: lists of them."""
    found = set()
    tracked = subprocess.run(
        ["git", "ls-files", "--", "src", "pyproject.toml"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in set(tracked.stdout.split()) - {HISTORY}:
        text = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).suffix in (".py", ".toml") else ""
        if all(re.search(rf"\b{member}\b", text) for member in KINDS[kind]):
            found.add(name)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_recipe_has_five_steps(kind):
    assert len(steps(kind)) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_a_recipe_exist(kind):
    assert named(kind)
    assert {path for path in named(kind) if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_is_named(kind):
    assert lists(kind) - named(kind) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_found_if_there_is_one(kind, tmp_path):
    """The search itself: the home of every kind names all of its members, but for storages, which have no list."""
    assert lists(kind) or kind == "storage"
