"""What the README and the guide for contributors say is true: their programs run, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import boca

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text, language):
    """Return the fenced blocks of a language, each with the line on which it begins."""
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(match.group(1), text[: match.start(1)].count("\n")) for match in found]


def run(text, name):
    """Execute the Python blocks of a document from top to bottom in one namespace, and return it."""
    namespace = {"__name__": "__main__"}
    for source, line in blocks(text, "python"):
        code = compile("\n" * line + source, str(ROOT / name), "exec")  # errors then name the line of the document
        exec(code, namespace)
    return namespace


def table_under(heading):
    """Return the rows of the first table under a heading, as lists of cells, without its head."""
    section = README.split(f"{heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def names_in(text):
    return re.findall(r"`([^`]+)`", text)


@pytest.fixture(scope="module")
def executed():
    return run(README, "README.md")


def test_the_blocks_of_the_readme_run(executed):
    assert len(blocks(README, "python")) >= 5
    result = executed["result"]
    assert result.value < 1.0
    assert result.spent <= 6 * 5000
    assert result.recommendation is not None
    assert executed["opt"].best is not None
    assert executed["timed"].best is not None


def test_the_blocks_of_the_guide_run():
    assert blocks(CONTRIBUTING, "python")
    run(CONTRIBUTING, "CONTRIBUTING.md")


def test_an_error_in_a_block_names_its_line():
    with pytest.raises(ZeroDivisionError) as caught:
        run("Text.\n\n```python\nx = 1\nx / 0\n```\n", "README.md")
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_commands_are_targets_of_the_makefile(text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    commands = re.findall(r"^make ([a-z-]+)", "\n".join(b for b, _ in blocks(text, "sh")), flags=re.MULTILINE)
    commands += re.findall(r"`make ([a-z-]+)`", text)
    assert {"demo", "test"} <= set(commands)
    assert set(commands) <= targets


def test_files_that_are_named_exist():
    for text in (README, CONTRIBUTING):
        for name in re.findall(r"`((?:src|tests|examples|benchmarks)/[\w./-]+|[A-Z]+\.md)`", text):
            assert (ROOT / name).exists(), name


def documented_keys():
    return [key for row in table_under("## What `why` says") for key in names_in(row[0])]


def test_the_keys_of_why_are_those_of_a_real_run(executed):
    trials = [t for name in ("result", "opt") for t in executed[name].history if t.phase == "model"]
    real = set().union(*(t.why for t in trials))
    assert sorted(documented_keys()) == sorted(real)


def test_the_hyperparameters_of_why_are_those_of_a_real_run(executed):
    row = next(row for row in table_under("## What `why` says") if row[0] == "`hyperparameters`")
    assert set(names_in(row[1])) == set(executed["trial"].why["hyperparameters"])


def test_the_example_of_why_shows_what_the_table_explains(executed):
    (shown,) = [text for text, _ in blocks(README, "text") if "'reason'" in text]
    keys = re.findall(r"^[{ ]'(\w+)':", shown[shown.index("{'reason'") :], flags=re.MULTILINE)
    assert set(keys) <= set(documented_keys())
    assert len(set(keys) & set(executed["trial"].why)) >= 10


def test_the_bound_is_the_optimistic_one(executed):
    why = executed["trial"].why  # of a minimisation
    assert why["ucb"] == pytest.approx(why["mean"] - why["beta"] ** 0.5 * why["std"])


def test_the_strategies_exist():
    for row in table_under("## Strategies"):
        (call,) = names_in(row[0])
        assert isinstance(eval(f"boca.{call}", {"boca": boca}), boca.Strategy)


def test_the_modules_are_those_of_the_package():
    documented = {name for row in table_under("## Architecture") for name in names_in(row[0])}
    package = ROOT / "src" / "boca"
    real = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    real |= {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert documented == real


def test_there_is_a_place_for_results():
    assert README.count("## Benchmarks") == 1
