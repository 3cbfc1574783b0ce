"""What the README and the guide for contributors say is true: their programs run, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the README keeps a study beside the program
    executed = run(README, "README.md")
    assert len(blocks(README, "python")) >= 3
    result, cost = executed["result"], executed["cost"]
    assert result.value > 0.98
    assert result.spent <= 8 * cost({"images": 1797})
    assert sum(trial.z["images"] == 1797 for trial in result.history) < len(result.history) / 2
    assert result.recommendation is not None
    assert executed["opt"].best is not None
    assert len(executed["begun"].history) == 3 < len(executed["done"].history)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 170


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
