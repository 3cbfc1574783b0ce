"""Tests mirror the source: the tests of src/boca/room/module.py are in tests/room/test_module.py."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "src" / "boca", ROOT / "tests"

RE_EXPORTS = "has public names of other modules and no code; tests/test_import.py imports them"

# Modules without a test file of their own, and why.
EXCEPTIONS: dict[str, str] = {
    "callbacks.py": RE_EXPORTS,
    "errors.py": RE_EXPORTS,
    "executors.py": RE_EXPORTS,
    "stopping.py": RE_EXPORTS,
    "study/storage/base.py": "is a protocol; tests/study/storage/test_contract.py holds every storage to it",
    "study/storage/memory.py": "is the reference on which tests/study/storage/test_contract.py runs",
}


def mirror(module: str) -> Path:
    """Return where the tests of a module belong."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def modules() -> list[str]:
    found = (path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return sorted(name for name in found if Path(name).name not in ("__init__.py", "__main__.py"))


def test_every_module_has_a_test_file_at_the_same_place():
    assert [name for name in modules() if not mirror(name).is_file() and name not in EXCEPTIONS] == []


@pytest.mark.parametrize("module", EXCEPTIONS)
def test_an_exception_is_needed_and_has_a_reason(module):
    assert (PACKAGE / module).is_file(), "there is no such module: remove the line"
    assert not mirror(module).is_file(), "it has tests at its place: remove the line"
    assert EXCEPTIONS[module]


def test_a_module_without_tests_would_be_found():
    assert mirror("execution/executors/pool.py") == TESTS / "execution" / "executors" / "test_pool.py"
    assert not mirror("execution/nothing.py").is_file()
