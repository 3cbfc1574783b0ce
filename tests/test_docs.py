"""What the documentation says is true: its programs run, its commands and files exist, its links lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

import boca
import boca.studyfile
from boca.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in PAGES}
FRONT = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
EVERYWHERE = {**FRONT, **{f"docs/{name}": text for name, text in TEXTS.items()}}

UsageError = typer.BadParameter.__base__  # typer has a copy of click in it, or needs it beside: here is its own

_FENCE = re.compile(
    r"^(?:[ ]*<!-- no-run: (?P<reason>.*?) -->\n\s*?)?"
    r"(?P<indent>[ ]*)```[ ]*(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its source, the line before its first, and why it is not run."""

    language: str
    source: str
    line: int
    reason: str | None


def blocks(text, *languages):
    """Return the fenced blocks of some languages, or of all."""
    return [
        Block(m["language"], textwrap.dedent(m["body"]), text[: m.start("body")].count("\n"), m["reason"])
        for m in _FENCE.finditer(text)
        if not languages or m["language"] in languages
    ]


def execute(text, path):
    """Run the Python blocks of a page from top to bottom in one namespace, and return it; leave out what is marked."""
    namespace = {"__name__": "__main__"}
    for block in blocks(text, "python"):
        if block.reason is None:
            exec(compile("\n" * block.line + block.source, str(path), "exec"), namespace)
    return namespace


def prose(text):
    """Return a page without its blocks, its comments and its code."""
    return re.sub(r"<!--.*?-->|`[^`\n]*`", "", _FENCE.sub("", text), flags=re.DOTALL)


# Programs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A directory of its own, figures without a screen, and no data but those that come with the packages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.delenv("BOCA_DATA", raising=False)
    return tmp_path


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # of MLflow's own tables
@pytest.mark.parametrize("page", [name for name in PAGES if blocks(TEXTS[name], "python")])
def test_the_programs_of_a_page_run(page, elsewhere):
    execute(TEXTS[page], DOCS / page)


def test_an_error_in_a_block_names_its_line(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        execute("Text.\n\n```python\nx = 1\nx / 0\n```\n", tmp_path / "page.md")
    assert caught.traceback[-1].lineno + 1 == 5


def test_a_marked_block_is_left_out_and_an_indented_one_is_not(tmp_path):
    page = "<!-- no-run: no cluster -->\n```python\n1 / 0\n```\n\n!!! note\n\n    ```python\n    seen = 1\n    ```\n"
    assert [block.reason for block in blocks(page, "python")] == ["no cluster", None]
    assert execute(page, tmp_path / "page.md")["seen"] == 1


def test_every_block_is_seen():
    for name, text in EVERYWHERE.items():
        fences = re.findall(r"^[ ]*```", text, flags=re.MULTILINE)
        assert len(fences) == 2 * len(blocks(text)), f"{name}: a fence is not closed, or closed with another indent"
        unknown = {block.language for block in blocks(text)} - {"python", "sh", "toml", "text", "json", "yaml"}
        assert not unknown, f"{name}: blocks in another language are not checked by any test here: {unknown}"


@pytest.mark.parametrize("name", [name for name, text in EVERYWHERE.items() if blocks(text, "yaml")])
def test_yaml_that_is_shown_can_be_read(name):
    yaml = pytest.importorskip("yaml")
    for block in blocks(EVERYWHERE[name], "yaml"):
        assert all(isinstance(document, dict) for document in yaml.safe_load_all(block.source))


def listed():
    """Return what the list of blocks that are not run has: page, reason, first line."""
    table = tomllib.loads((DOCS / "no_run.toml").read_text(encoding="utf-8"))
    return [(entry["page"], entry["reason"], entry["begins"]) for entry in table.get("block", [])]


def test_the_list_of_blocks_that_are_not_run_is_that_of_the_marks():
    marked = [
        (name, block.reason, block.source.strip().splitlines()[0])
        for name, text in TEXTS.items()
        for block in blocks(text)
        if block.reason is not None
    ]
    assert sorted(marked) == sorted(listed())
    assert sum(text.count("<!-- no-run") for text in EVERYWHERE.values()) == len(marked), "a mark is before no block"
    assert all(len(reason) > 10 for _, reason, _ in listed())


# Files and commands ---------------------------------------------------------------------------------------------------


STUDIES = [
    pytest.param(block.source, id=f"{name}:{block.line}")
    for name, text in EVERYWHERE.items()
    for block in blocks(text, "toml")
    if re.search(r"^name =", block.source, flags=re.MULTILINE)
]


@pytest.mark.parametrize("source", STUDIES)
def test_a_study_that_is_shown_loads(source, tmp_path):
    paths = re.findall(r'^(objective|cost|strategy) = "(\w+):(\w+)"', source, flags=re.MULTILINE)
    for key, module, name in paths:  # what they name is the reader's own
        stub = (
            f"from boca import RandomSearch as {name}\n"
            if key == "strategy"
            else f"def {name}(x, z=None): return 1.0\n"
        )
        with (tmp_path / f"{module}.py").open("a", encoding="utf-8") as file:
            file.write(stub)
    file = tmp_path / "study.toml"
    file.write_text(source, encoding="utf-8")
    try:
        assert boca.studyfile.load(file).name
    finally:
        for _, module, _ in paths:
            sys.modules.pop(module, None)


def commands(text):
    """Return the commands of the shell blocks of a page, as lists of words without where their output goes."""
    lines = "\n".join(block.source for block in blocks(text, "sh")).replace("\\\n", " ").splitlines()
    split = (shlex.split(line, comments=True) for line in lines)
    return [words[: words.index(">")] if ">" in words else words for words in split if words]


def wrong_with(words):
    """Return what is wrong with a call of the command `boca`; None if nothing is."""
    command, rest = typer.main.get_command(app), words[1:]
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            known = {name for parameter in command.params for name in parameter.opts}
            return None if rest and rest[0] in known | {"--help"} else f"no such command: {words}"
        command, rest = command.commands[rest[0]], rest[1:]
    options = {name for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")}
    unknown = [word for word in rest if word.startswith("-") and word.split("=")[0] not in options]
    try:
        command.make_context("boca", list(rest), resilient_parsing=False)
    except UsageError as error:
        return f"{words}: {error.format_message()}"
    return f"unknown options: {unknown} in {words}" if unknown else None


def test_the_commands_that_are_shown_exist():
    called = [(name, words) for name, text in EVERYWHERE.items() for words in commands(text) if words[0] == "boca"]
    assert len(called) >= 10
    assert [(name, wrong) for name, words in called if (wrong := wrong_with(words))] == []


def containers(text):
    """Return the commands of the containers in the YAML blocks of a page, which are Jobs of Kubernetes."""
    yaml = importlib.import_module("yaml")
    jobs = [yaml.safe_load(block.source) for block in blocks(text, "yaml")]
    return [one["command"] for job in jobs for one in job["spec"]["template"]["spec"]["containers"]]


def test_the_commands_of_containers_exist():
    called = [(name, words) for name, text in EVERYWHERE.items() for words in containers(text)]
    assert called
    assert all(words[0] == "boca" for _, words in called)
    assert [(name, wrong) for name, words in called if (wrong := wrong_with(words))] == []


@pytest.mark.parametrize("line", ["boca swim", "boca show", "boca run study.toml --pony", "boca bench swim", "boca"])
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong_with(line.split())


def test_targets_and_scripts_that_are_shown_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for name, text in EVERYWHERE.items():
        for words in commands(text):
            if words[0] == "make":
                assert words[1] in targets, f"{name}: {words}"
        for path in re.findall(r"`((?:src|tests|examples|benchmarks)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{name}: {path}"


# Links and names ------------------------------------------------------------------------------------------------------


def anchors(text):
    """Return what the headings of a page are called in links."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    slugs = {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}
    return slugs | set(re.findall(r"^::: ([\w.]+)$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_links_lead_somewhere(name):
    here = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(EVERYWHERE[name])):
        if re.match(r"\w+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (here.parent / path).resolve() if path else here
        assert file.exists(), f"{name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{name} links to {target}"


def documented():
    """Return the names that the reference has."""
    return {name for text in TEXTS.values() for name in re.findall(r"^::: ([\w.]+)$", text, flags=re.MULTILINE)}


def test_the_reference_has_every_public_name():
    modules = ("callbacks", "executors", "problems", "strategies", "study.storage", "studyfile", "testing")
    wanted = {f"boca.{name}" for name in boca.__all__} | {f"boca.{name}" for name in modules}
    assert wanted <= documented()


@pytest.mark.parametrize("name", sorted(documented()))
def test_the_names_of_the_reference_exist(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        assert found.__doc__, f"{name} has no docstring"
        return
    raise AssertionError(name)


# What pages say of decisions and strategies ---------------------------------------------------------------------------


def table_under(page, heading):
    """Return the rows of the first table under a heading, as lists of cells, without its head."""
    section = TEXTS[page].split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def named(page, heading):
    """Return the names in the first column of a table."""
    return [name for row in table_under(page, heading) for name in re.findall(r"`([^`]+)`", row[0])]


@pytest.fixture(scope="module")
def run_of_why():
    return execute(TEXTS["guide/why.md"], DOCS / "guide/why.md")


def test_the_keys_of_why_are_those_of_a_real_run(run_of_why):
    real = set().union(*(trial.why for trial in run_of_why["opt"].history))
    # of misleading fidelities, of strategies with a list of them, of spaces that are no box, of limits, and of batches
    elsewhere = {"guard", "level", "sobol_index", "feasible", "outcomes", "batch"}
    elsewhere |= {"probe", "at_bound"}  # of turns at the target that explore, of length scales that are at a bound
    elsewhere |= {"improvement", "hypervolume", "reference"}  # of several objectives
    keys = named("guide/why.md", "## Every key")
    assert len(keys) == len(set(keys))
    assert set(keys) == real | elsewhere


def test_the_hyperparameters_of_why_are_those_of_a_real_run(run_of_why):
    keys = set(named("guide/why.md", "### Hyperparameters"))
    for trial in run_of_why["opt"].history:
        assert set(trial.why.get("hyperparameters", ())) <= keys
    assert set(run_of_why["trial"].why["hyperparameters"]) >= keys - {"jump", "trend", "noise_rise", "curve_noise"}


def test_the_example_of_why_shows_what_the_table_explains(run_of_why):
    (shown,) = [block.source for block in blocks(TEXTS["guide/why.md"], "text") if "'reason'" in block.source]
    keys = set(re.findall(r"^[{ ]'(\w+)':", shown[shown.index("{'reason'") :], flags=re.MULTILINE))
    assert keys <= set(named("guide/why.md", "## Every key"))
    assert len(keys & set(run_of_why["trial"].why)) >= 10


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
def test_the_bound_is_the_optimistic_one(direction, sign):
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), direction=direction)
    unwarped = boca.Boca(surrogate=boca.Surrogate(warp=False))
    opt = boca.Optimizer(problem, budget=boca.targets(6), strategy=unwarped, seed=0)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, (trial.x["a"] - 0.3) ** 2)
    decided = [trial.why for trial in opt.history if "ucb" in trial.why]
    assert decided
    for why in decided:
        assert why["ucb"] == pytest.approx(why["mean"] + sign * why["beta"] ** 0.5 * why["std"])


def test_the_strategies_exist():
    calls = named("guide/strategies.md", "# Strategies")
    assert {call.split("(")[0].split(".")[0] for call in calls} == {
        name for name in boca.__all__ if hasattr(getattr(boca, name), "suggest") and name != "Strategy"
    }
    for call in calls:
        assert isinstance(eval(f"boca.{call}", {"boca": boca}), boca.Strategy)


# The site -------------------------------------------------------------------------------------------------------------


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n", 1)[1]
    assert sorted(re.findall(r"- (?:[\w -]+: )?([\w/-]+\.md)$", menu, flags=re.MULTILINE)) == PAGES


def test_the_site_builds_and_needs_no_other(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="((?:https?:)?//[^"]+)"', html)
        assert not fetched, f"{page.name} fetches {fetched}"
