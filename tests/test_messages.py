"""What is said to a user: the value seen, what is allowed, what to type, in the words of the place where it is read.

Each test has the mistake of a newcomer.  Messages of one module alone are tested beside it; these cross rooms.
"""

from __future__ import annotations

import ast
import re
import traceback
from pathlib import Path

import pytest
from typer.testing import CliRunner

import boca
from boca.accounting.ledger import Ledger
from boca.cli import app
from boca.errors import BocaError, Doubtful, ObjectiveFailed

ROOT = Path(__file__).parents[1]
SPACE = boca.Space(lr=(1e-4, 1.0, "log"), depth=(1, 8), kind=["a", "b"])
FIDELITY = boca.Space(n=(1, 100))


def cost(z):
    return z["n"]


def refusal(function, *given, **named):
    with pytest.raises(BocaError) as refused:
        function(*given, **named)
    return str(refused.value)


def told(*arguments):
    """Return what the command says about a mistake."""
    try:
        result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    except BocaError as error:
        return str(error)
    return result.output


def lacks(text, words):
    """Return the words that a text does not have, line breaks aside."""
    plain = " ".join(text.split())
    return [word for word in words if word not in plain]


# In Python ------------------------------------------------------------------------------------------------------------


def test_a_budget_that_was_meant_in_trials():
    with pytest.warns(Doubtful) as caught:
        boca.Optimizer(boca.Problem(SPACE, FIDELITY, cost=cost), budget=20)
    assert lacks(str(caught[0].message), ["budget=20", "0.2 of a target evaluation", "boca.targets(20)"]) == []


def test_a_wrong_name_in_the_objective_of_a_worker_process():
    def objective(x, z):
        return x["learning_rate"]

    with pytest.raises(ObjectiveFailed) as caught:
        boca.minimize(objective, SPACE, FIDELITY, cost=cost, budget=boca.targets(9), executor=2, seed=0)
    words = ["KeyError: 'learning_rate'", "['lr', 'depth', 'kind']", "['n']"]
    assert lacks(str(caught.value), words) == []
    shown = "".join(traceback.format_exception(caught.value))
    assert lacks(shown, ['return x["learning_rate"]', f'File "{__file__}"']) == []


def test_a_swapped_space_and_fidelity():
    space = boca.Space(lr=(1e-4, 1.0, "log"))
    said = refusal(boca.minimize, lambda x, z: 1.0, FIDELITY, space, cost=cost, budget=boca.targets(9))
    assert lacks(said, ["KeyError('n')", "'n' is a parameter of space", "swapped", "The space comes first"]) == []


def test_a_cost_that_was_forgotten(tmp_path):
    settings = {"budget": boca.targets(4), "seed": 0, "storage": f"sqlite:///{tmp_path}/s.db", "name": "s"}
    boca.Optimizer(boca.Problem(SPACE, FIDELITY), **settings).storage.close()
    said = refusal(boca.Optimizer, boca.Problem(SPACE, FIDELITY, cost=cost), **settings)
    assert lacks(said, ["'s' already exists", "cost was measured and is declared", "another name"]) == []
    assert not re.search(r"[0-9a-f]{20}", said), "a fingerprint is of no use to a person"


@pytest.mark.parametrize("direction", ["max", "minimise", "MINIMIZE"])
def test_a_direction_in_short(direction):
    if direction == "MINIMIZE":
        assert lacks(refusal(boca.Problem, SPACE, direction=direction), ["'maximize'", "'min'", "'MINIMIZE'"]) == []
    else:
        assert boca.Problem(SPACE, direction=direction).direction in ("maximize", "minimize")


def test_a_wrong_name_stops_the_run_at_the_first_trial():
    calls = []

    def objective(x, z):
        calls.append(x)
        return x["learning_rate"]

    with pytest.raises(ObjectiveFailed) as caught:
        boca.minimize(objective, SPACE, FIDELITY, cost=cost, budget=boca.targets(9), seed=0)
    assert len(calls) == 1
    assert lacks(str(caught.value), ["KeyError: 'learning_rate'", "['lr', 'depth', 'kind']"]) == []


def test_a_storage_without_a_name(tmp_path, caplog):
    opt = boca.Optimizer(boca.Problem(SPACE), budget=boca.targets(3), storage=f"sqlite:///{tmp_path}/s.db")
    opt.storage.close()
    assert lacks(caplog.text, ["no name", "'study'", "name='svm'"]) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_trials": 20}, ["n_trials", "budget", "boca.targets(20)"]),
        ({"n_jobs": 2}, ["n_jobs", "executor=2"]),
        ({"verbose": 1}, ["verbose", "progress"]),
        ({"constraints_func": print}, ["constraints_func", "subject_to"]),
        ({"n_iter": 7}, ["n_iter", "budget"]),
    ],
)
def test_an_argument_of_another_tool(given, words):
    said = refusal(boca.minimize, lambda x: 1.0, SPACE, budget=boca.targets(3), **given)
    assert lacks(said, words) == []


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"a": (0, 1)}, ["(0, 1)", "(0.0, 1.0)"]),
        ({"a": boca.Float}, ["a"]),
    ],
)
def test_a_range_that_could_mean_two_things(space, words):
    assert lacks(refusal(boca.Space, **space), words) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: boca.Float(0.0, 1.0, log=True), ["log=True", "0"]),
        (lambda: boca.Float(2.0, 1.0), ["low", "high"]),
        (lambda: boca.Problem(SPACE, FIDELITY, target={"n": 500}), ["500", "100"]),
        (lambda: boca.Problem(SPACE, FIDELITY, cost=lambda z: z["m"]), ["KeyError('m')"]),
        (lambda: boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.0), ["positive"]),
    ],
)
def test_a_wrong_problem_names_the_value_and_the_rule(make, words):
    assert lacks(refusal(make), words) == []


@pytest.mark.parametrize("value", [None, float("nan"), "0.5", (0.5, 0.2)])
def test_an_objective_that_returns_no_number(value):
    opt = boca.Optimizer(boca.Problem(SPACE), budget=boca.targets(3), seed=0)
    trial = opt.ask()
    assert lacks(refusal(opt.tell, trial, value), ["finite number", "Nothing was changed", "opt.fail"]) == []
    opt.tell(trial, 1.0)
    assert lacks(refusal(opt.tell, trial, 2.0), ["0"]) == []


# On the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = boca.Problem(boca.Space(a=(0.0, 1.0)), FIDELITY, cost=cost)
    opt = boca.Optimizer(problem, budget=boca.targets(25), seed=0, storage="sqlite:///live.db", name="sig")
    opt.tell(opt.ask(), 1.0, seconds=16.9)
    yield opt
    opt.storage.close()


def test_what_is_spent_has_its_unit_and_its_total(study):
    words = Ledger(study.problem, study.history, study.limit).spent_in_words
    assert re.fullmatch(r"[\d.]+ of 25 target evaluations \(16\.9 s of evaluation\)", words)
    assert words in " ".join(told("show", "live.db", "sig").split())


def test_a_database_that_does_not_exist(study):
    assert lacks(told("show", "lives.db"), ["no file", "'lives.db'"]) == []


def test_a_study_that_does_not_exist(study):
    assert lacks(told("show", "live.db", "sigg"), ["no study 'sigg'", "has: sig"]) == []


def test_a_larger_budget_in_the_words_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'name = "m"\ncommand = "echo {a}"\nbudget = { targets = 2 }\n[space.a]\ntype = "float"\nlow = 0\nhigh = 1\n'
    Path("m.toml").write_text(text)
    assert "best at the target" in told("run", "m.toml")
    Path("m.toml").write_text(text.replace("targets = 2", "targets = 4"))
    said = told("run", "m.toml")
    assert lacks(said, ["'m'", "2 target evaluations", "4 target evaluations", "--allow-change"]) == []
    assert "allow_change" not in said


TOML = """name = "m"
command = "{command}"
budget = {budget}
[space]
a = {{ type = "float", low = {low}, high = 1{more} }}
"""


def run(text, **filled):
    """Run a study file and return what the command says."""
    given = {"command": "echo {a}", "budget": "{ targets = 2 }", "low": 0, "more": ""}
    Path("m.toml").write_text(text.format(**(given | filled)))
    return told("run", "m.toml")


@pytest.mark.parametrize(
    ("filled", "words"),
    [
        ({"low": 0.1, "more": ", log = True"}, ["line 5", "TOML writes true in lower case"]),
        ({"budget": "{ trials = 2 }"}, ["trials", "A trial is no unit", "budget = { targets = 30 }"]),
        ({"more": ", lo = 2"}, ["'lo'", "low"]),
    ],
)
def test_a_mistake_in_a_study_file(filled, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert lacks(run(TOML, **filled), ["m.toml", *words]) == []


def test_a_misspelled_key_of_a_study_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert lacks(run(TOML.replace("budget", "bugdet", 1)), ["'bugdet'", "did you mean 'budget'?"]) == []


def test_a_program_that_fails_says_why_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = Path("m.sh")
    script.write_text("#!/bin/sh\necho 'solver diverged at a=0.81' >&2\nexit 3\n")
    script.chmod(0o755)
    run(TOML, command="./m.sh {a}")
    said = told("show", "m.db", "m")
    assert lacks(said, ["exit status 3: solver diverged at a=0.81"]) == []
    assert "CommandFailed" not in said


def test_a_program_that_hangs_says_for_how_long(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("timeout = 0.3\n" + TOML, command="sleep 60", budget="{ targets = 1 }")
    assert lacks(told("show", "m.db", "m"), ["0.3 s", "killed"]) == []


def test_nobody_reads_class_names_or_lines_of_the_source_in_a_help_text(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    for command in ("run", "show", "best", "export", "backup", "dashboard", "report", "retry", "delete", "mcp"):
        plain = re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", told(command, "--help"))
        assert plain.count("<bool>") <= 1  # that of --help, which is not ours
        assert "]...]" not in plain
        assert re.search(rf"Usage: +\S+ +{command}\b", plain)


def test_advice_is_said_in_words(study):
    found = study.recommend().words
    assert re.search(r"expected .* ± .*; it was (not )?run at the target", found)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["retry", "--help"], ["failed trials", "at the next run", "new trials"]),
        (["run", "--help"], ["--allow-change", "larger budget"]),
        (["dashboard", "--help"], ["16 characters or more", "0 for any free port"]),
        (["show", "--help"], ["--last", "--best", "--sort", "--state", "--why"]),
    ],
)
def test_the_help_says_what_an_option_does(command, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", told(*command))
    assert lacks(plain, words) == []


# Everywhere -----------------------------------------------------------------------------------------------------------

_FOREIGN = re.compile(
    r"gone on with|\bdear(?:er|est)?\b|brought along|several of which|\bmoney\b|leads nowhere|whoever",
    flags=re.IGNORECASE,
)
_TARGETS_AS_UNIT = re.compile(r"(?:\d|^) targets\b")  # also the part of a formatted text behind a number


def strings():
    """Return every text of the source, docstrings included, with its place."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_text_has_words_of_our_own_for_known_things():
    assert [(place, found[0]) for place, text in strings() if (found := _FOREIGN.search(text))] == []


def test_the_unit_of_targets_is_target_evaluations():
    assert boca.targets.__doc__ is not None
    assert "target evaluations" in boca.targets.__doc__
    assert [(place, found[0]) for place, text in strings() if (found := _TARGETS_AS_UNIT.search(text))] == []


def test_a_word_of_our_own_would_be_found():
    assert _FOREIGN.search("The run must be gone on with.")
    assert _TARGETS_AS_UNIT.search("spent 3 of 25 targets")
