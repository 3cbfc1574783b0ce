"""The table of docs/paper.md is complete and true: equations, functions, tests and departures."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from dataclasses import fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import pytest

import boca

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


NUMBERED = r"(?:eq\.|theorem|lemma|definition|assumption|remark) \d+"

# Every label of the paper's source, and the row or the page that answers it.
LABELS = {
    "fig:fidelSpace": "figure 1",
    "fig:gpBWSample": "figure 2",
    "fig:toy": "figure 3",
    "fig:branin": "figure 4a",
    "fig:sn": "figure 4b",
    "fig:news": "figure 4c",
    "fig:real": "figure 4a",
    "alg:mfgpucbtwo": "Algorithm 1",
    "alg:gpucb": "Algorithm 2",
    "eqn:gpPost": "eq. 1",
    "eqn:SnDefn": "eq. 2",
    "eqn:mfkernel": "eq. 3",
    "eqn:inffunc": "eq. 4",
    "eqn:munsigman": "eq. 5",
    "eqn:mfucb": "eq. 6",
    "eqn:candfidelst": "eq. 7",
    "eqn:gpucbregret": "eq. 8",
    "eqn:Xcalrho": "eq. 9",
    "thm:regret": "theorem 1",
    "def:infGain": "definition 2",
    "asm:kernelAssumption": "assumption 3",
    "thm:gpucb": "theorem 4",
    "lem:gaussConcentration": "lemma 5",
    "lem:IGformula": "lemma 6",
    "lem:varbound": "lemma 7",
    "eqn:Xcalrhon": "eq. 10",
    "thm:main": "theorem 8",
    "eqn:Hcaln": "eq. 11",
    "eqn:Qt": "eq. 12",
    "eqn:thetat": "eq. 13",
    "eqn:Fcaln": "eq. 14",
    "eqn:Tnbreakdown": "no number: the three counts that lemma 12 and eq. 11 bound",
    "lem:ucblemma": "lemma 9",
    "lem:smoothnesslemma": "lemma 10",
    "lem:inffuncbound": "lemma 11",
    "lem:gtrthetatbound": "lemma 12",
    "lem:mfvarbound": "lemma 13",
    "lem:IGBoundLemma": "lemma 14",
    "eqn:Rn": "eq. 15",
    "rem:construction": "remark 15",
    "rem:qchoice": "remark 16",
    "eqn:sumprobgtr": "eq. 16",
    "eqn:termprobgtr": "eq. 17",
    "eqn:SLambdaDefn": "sec. 2.2",
}
SECTIONS = "intro prelims mfgpucb fidelSelection theory experiments synthetic sn news conclusion ancillary gpucbReview"
SECTIONS += (
    " technical analysis setup techLemmas mainproof gtrthetatbound appExperiments appImplementation appSynthetic"
)
COMMENTED_OUT = {"sec:implementation", "sec:extensions"}


def rows():
    """Return the rows of the table of equations as lists of cells."""
    section = PAPER.split("## Equations\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names_in(text):
    return re.findall(r"`([^`]+)`", text)


def tag_of(row):
    """Return the tag that the code must carry for a row: that of an equation, a theorem or an appendix."""
    what = re.match(rf"({NUMBERED}|sec\. [\d.]+|app\. [A-Z]\.\d+)", row[0])
    assert what is not None, row[0]
    return f"[K17, {what[1]}]"


def found(path):
    """Return the function, class or property that a dotted path names."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            thing = inspect.getattr_static(thing, name)
        return thing.func if isinstance(thing, cached_property) else thing
    raise AssertionError(f"{path} does not exist")


IMPLEMENTED = [row for row in rows() if names_in(row[1])]


def test_every_numbered_statement_of_the_paper_has_a_row():
    numbered = {match[0] for row in rows() if (match := re.match(NUMBERED, row[0]))}
    assert numbered == {answer for answer in LABELS.values() if re.fullmatch(NUMBERED, answer)}
    assert {f"eq. {n}" for n in range(1, 18)} <= numbered
    statements = [int(name.split()[1]) for name in numbered if not name.startswith("eq.")]
    assert sorted(statements) == list(range(1, 17))
    assert any(row[0].startswith("sec. 2.2") for row in rows())


@pytest.mark.skipif("BOCA_PAPER_SOURCE" not in os.environ, reason="the source of the paper is not part of the project")
def test_the_list_of_labels_is_that_of_the_source():
    source = Path(os.environ["BOCA_PAPER_SOURCE"]).read_text(encoding="utf-8")
    labels = set(re.findall(r"\\label\{([^}]+)\}", source))
    assert labels == set(LABELS) | {f"sec:{name}" for name in SECTIONS.split()} | COMMENTED_OUT


def test_the_page_names_every_figure_and_algorithm():
    for answer in LABELS.values():
        if answer.startswith(("figure", "Algorithm 1")):
            number = answer.split()[1]
            assert re.search(rf"--figure {number}\b", PAPER) or f"Algorithm {number}" in PAPER, answer


def test_every_result_with_an_error_is_in_a_row_of_the_benchmarks():
    """Means, ratios and medians of the answers are those of docs/benchmarks.md, to the digit."""
    rows_there = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    answers = PAPER.split("## Figure 3 and 4a", 1)[1]
    quoted = re.findall(r"[+-]?[\d.]+(?:e-\d+)? ± [\d.]+(?:e-\d+)?", answers.replace("\n", " "))
    assert len(quoted) > 30
    assert [each for each in quoted if each.rstrip(".") not in rows_there] == []
    cells = [cell for line in answers.splitlines() if line.startswith("|") for cell in line.split("|")[2:]]
    alone = [re.sub(r"[+-]?[\d.e-]+ ± [\d.e-]+|above 0\.1", "", cell) for cell in cells]
    medians = {each for cell in alone for each in re.findall(r"0\.\d+|\d\.\de-05", cell)}
    assert len(medians) > 20
    assert [each for each in medians if f"({each})" not in rows_there] == []


def test_everything_that_can_be_computed_is():
    assert [row[0] for row in rows() if row not in IMPLEMENTED] == []


@pytest.mark.parametrize("row", IMPLEMENTED, ids=lambda row: row[0])
def test_the_functions_exist_and_carry_the_tag(row):
    for path in names_in(row[1]):
        assert tag_of(row) in inspect.getsource(found(path)), path


def test_every_tag_in_the_code_is_in_the_table():
    tags = set()
    for path in (ROOT / "src").rglob("*.py"):
        tags |= set(re.findall(r"\[K17, [^\]]+\]", path.read_text(encoding="utf-8")))
    assert tags == {tag_of(row) for row in IMPLEMENTED}


@pytest.mark.parametrize("row", IMPLEMENTED, ids=lambda row: row[0])
def test_the_tests_exist(row):
    tests = names_in(row[2])
    assert tests
    for test in tests:
        path, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / path).read_text(encoding="utf-8"), re.MULTILINE), test


def test_every_departure_from_the_paper_is_in_the_table():
    ours, theirs = boca.Boca(), boca.Boca.paper()
    departures = {field.name for field in fields(ours) if getattr(ours, field.name) != getattr(theirs, field.name)}
    departures |= {
        field.name
        for field in fields(ours.surrogate)
        if getattr(ours.surrogate, field.name) != getattr(theirs.surrogate, field.name)
    }
    told = {name for row in rows() for name in names_in(row[3])}
    assert departures - {"surrogate"} == told


# Appendix C.1, line by line: what it says, the field, and its value in `Boca.paper()`.
APPENDIX = [
    ("uniform random queries with a tenth of the capital", "start_design", "uniform"),
    ("the fidelities were picked at random from the available ones", "start_fidelities", "uniform"),
    ("hyper-parameters by maximising the marginal likelihood", "surrogate.priors", False),
    ("then updated every 25 iterations", "surrogate.refit_every", 25),
    ("an SE kernel for phi_X", "surrogate.kernel", "se"),
    ("an SE kernel for phi_Z", "surrogate.fidelity_kernel", None),
    ("the mean is the median of the observations", "surrogate.mean", "median"),
    ("one noise variance, learned", "surrogate.rising_noise", False),
    ("one model, whatever the results at the target are", "surrogate.guard", None),
    ("nothing on how the likelihood is maximised: two random starts and the previous optimum", "surrogate.starts", 2),
    ("the likelihood of all observations", "surrogate.fitted_results", 4000),
    ("the posterior given all observations", "surrogate.exact_results", 4000),
    ("the observations as they are", "surrogate.warp", False),
    ("nothing on evaluations that fail: the worst value", "surrogate.failures", "worst"),
    ("and no model of where they do", "success", False),
    ("nor caution in reading one", "success_caution", 0.0),
    ("the fidelities as declared", "surrogate.fidelity_axis", "as_declared"),
    ("no conditions, so no distance of active and inactive", "surrogate.learn_inactive", False),
    ("beta_t = 0.5 d log(2 l t + 1), not that of the theorem", "theorem", None),
    ("the UCB was maximised by DIRECT", "maximizer", "direct"),
    ("x_t maximises the UCB in every iteration", "aims", ("ucb",)),
    ("and at every fidelity, the target too", "target_turns", ("aim",)),
    ("with the length scales that were learned", "max_shrink", 1.0),
    ("nothing on a first point", "start_middle", False),
    ("nor on how costs are spread in the start", "start_spread", False),
    ("tau against c gamma as they are", "relative_deviation", False),
    ("no fourth condition, so no floor in it", "information_floor", 0.0),
    ("the target when no cheaper fidelity passes, not by a clock", "target_every", None),
    ("no cheap point is run again", "verify_cheap", False),
    ("where z* is chosen, the query is at z*", "probe_until", None),
    ("three conditions on z and no fourth", "information_per_cost", False),
    ("every query is evaluated from scratch", "curves", False),
    ("and to its end", "stop_runs", False),
    ("c starts at 1", "first_c", 1.0),
    ("and is updated every 20 iterations", "adapt_c", True),
    ("no query is kept for the end", "reserve_last", False),
    ("nothing on several queries at a time: each is chosen by itself", "share_batch", False),
    ("the GP is learned, but for the first two experiments", "hyperparameters", None),
]


@pytest.mark.parametrize(("line", "name", "value"), APPENDIX, ids=lambda given: str(given)[:40])
def test_the_fields_of_the_paper_are_what_its_appendix_says(line, name, value):
    assert attrgetter(name)(boca.Boca.paper()) == value, line


def test_every_field_has_a_line_of_the_appendix():
    paper = boca.Boca.paper()
    every = {field.name for field in fields(paper)} - {"surrogate"}
    every |= {f"surrogate.{field.name}" for field in fields(paper.surrogate)}
    assert {name for _, name, _ in APPENDIX} == every


def test_pictures_and_commands_exist():
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAPER):
        assert (ROOT / "docs" / picture).exists(), picture
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([a-z-]+)", PAPER, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
