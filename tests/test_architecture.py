"""The page on architecture and the source tree name the same modules."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "boca"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def documented():
    """Return the modules that the tables of rooms name, in their order."""
    section = PAGE.split("\n## Rooms\n", 1)[1].split("\n## ", 1)[0]
    first = [line.strip("|").split("|")[0] for line in section.splitlines() if line.startswith("|")]
    return [name for cell in first for name in re.findall(r"`([\w/]+\.py)`", cell)]


def real():
    """Return the modules of the package; a package itself is its folder."""
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    return {name for name in modules if not name.endswith("__init__.py")}


def test_every_module_is_named():
    assert sorted(real() - set(documented())) == []


def test_every_name_is_a_module():
    assert sorted(set(documented()) - real()) == []


def test_no_module_is_named_twice():
    assert len(documented()) == len(set(documented()))


def test_every_heading_names_a_room():
    headings = re.findall(r"^### `(\w+)/`", PAGE, flags=re.MULTILINE)
    assert all((PACKAGE / room).is_dir() for room in headings)


def test_the_files_that_the_conversions_name_exist():
    section = PAGE.split("\n## Three conversions", 1)[1]
    names = re.findall(r"`([\w/]+\.py)`", section)
    assert len(names) >= 3
    assert all((PACKAGE / name).is_file() for name in names)
