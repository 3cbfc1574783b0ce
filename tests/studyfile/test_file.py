"""A study as a file: what it may say, what it means, and what is said about everything else."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys

import cloudpickle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

import boca
from boca import AtLeast, AtMost, Choice, Float, Int, Space
from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput
from boca.model.surrogate import Surrogate
from boca.strategies import Theorem
from boca.strategies.registry import STRATEGIES
from boca.studyfile import Powers, StudyFile, load
from boca.studyfile.command import Command
from boca.studyfile.keys import KEYS

EXAMPLE = """\
name = "svm"
direction = "maximize"
storage = "sqlite:///study.db"        # default: NAME.db beside the file
objective = "objective:accuracy"      # module found from the file's folder; or: command = "..."
cost = { N = 1, T = 1 }               # lambda = N^1 T^1; or "measured"; or "objective:cost"
budget = { targets = 30 }             # or { seconds = 600 } or { cost = 1e6 }
seed = 0
workers = 2
[space]
C = { type = "float", low = 1e-2, high = 1e3, log = true }
kernel = { type = "choice", choices = ["rbf", "poly"] }
[fidelity]
N = { type = "int", low = 100, high = 1000 }
T = { type = "int", low = 5, high = 50, target = 50 }
"""

OBJECTIVE = """\
import dataclasses
import helpers

def accuracy(x, z): return helpers.scale * x["C"] + z["N"]
def plain(x): return x["C"]
def cost(z): return 2.0 * z["N"]
def broken(z): return z["M"]
def far_below(z): return -1.0

class Model:
    @staticmethod
    def score(x, z): return 3.0

class Mine:
    def suggest(self, problem, history, budget, rng): ...

@dataclasses.dataclass(frozen=True)
class Tuned:
    width: float
    deep: bool = False
    def suggest(self, problem, history, budget, rng): ...

class Picky:
    def __init__(self): raise RuntimeError("never")

mine, tuned, number = Mine(), Tuned(0.5), 7
"""

SHORT = {
    "objective": "objective:plain",
    "budget": {"targets": 3},
    "space": {"C": {"type": "float", "low": 0.1, "high": 10}},
}
LONG = {
    **SHORT,
    "objective": "objective:accuracy",
    "fidelity": {"N": {"type": "int", "low": 1, "high": 9}},
}


def toml(value):
    """Return a value as TOML, tables in line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an objective, and a process that forgets it afterwards."""
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "helpers.py").write_text("scale = 10.0\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        home = getattr(sys.modules[name], "__file__", None)
        if home and str(tmp_path) in home:
            del sys.modules[name]


def study(folder, document, name="study.toml"):
    file = folder / name
    file.write_text(
        document if isinstance(document, str) else "\n".join(f"{k} = {toml(v)}" for k, v in document.items())
    )
    return load(file)


def refusal(folder, document):
    """Return what is said about a file that is refused, without the name of the file."""
    with pytest.raises(InvalidInput) as caught:
        study(folder, document)
    message = str(caught.value)
    prefix = f"{folder / 'study.toml'}: "
    assert message.startswith(prefix)
    return message.removeprefix(prefix)


# A file that works ----------------------------------------------------------------------------------------------------


def test_the_example_says_what_it_seems_to_say(folder):
    loaded = study(folder, EXAMPLE)
    problem = loaded.problem
    assert loaded.name == "svm"
    assert problem.space == Space(C=Float(1e-2, 1e3, log=True), kernel=Choice(["rbf", "poly"]))
    assert problem.fidelity == Space(N=Int(100, 1000), T=Int(5, 50))
    assert problem.target == {"N": 1000, "T": 50}
    assert problem.direction == "maximize"
    assert problem.has_declared_cost
    assert problem.cost({"N": 200, "T": 10}) == 2000.0
    assert loaded.budget == Limit(30, "targets")
    assert loaded.strategy is None
    assert (loaded.seed, loaded.workers, loaded.timeout, loaded.max_retries) == (0, 2, None, 2)
    assert loaded.folder == folder
    assert loaded.storage == f"sqlite:///{folder}/study.db"
    assert loaded.objective({"C": 1.0, "kernel": "rbf"}, {"N": 100, "T": 5}) == 110.0


def test_the_example_runs(folder):
    loaded = study(folder, EXAMPLE)
    result = boca.maximize(
        loaded.objective,
        loaded.problem.space,
        loaded.problem.fidelity,
        cost=loaded.problem.cost,
        target=loaded.problem.target,
        budget=boca.targets(2),
        strategy=boca.RandomSearch(),
        seed=loaded.seed,
    )
    assert result.value > 1000


def test_what_is_left_out_has_a_default(folder):
    loaded = study(folder, SHORT, name="my.study.toml")
    assert loaded == dataclasses.replace(
        loaded, name="my.study", strategy=None, seed=None, workers=1, timeout=None, max_retries=2
    )
    assert loaded.storage == f"sqlite:///{folder}/my.study.db"
    assert loaded.problem.direction == "maximize"
    assert loaded.problem.cost({}) == 1.0
    assert loaded.problem.fidelity == Space()
    assert study(folder, {**LONG}).problem.has_declared_cost is False


def test_every_setting_is_taken(folder):
    loaded = study(folder, {**SHORT, "direction": "minimize", "timeout": 600, "max_retries": 0, "seed": 2**63 - 1})
    assert (loaded.problem.direction, loaded.timeout, loaded.max_retries) == ("minimize", 600.0, 0)
    assert loaded.seed == 2**63 - 1


@pytest.mark.parametrize("unit", ["targets", "seconds", "cost"])
def test_every_unit_of_a_budget_is_taken(folder, unit):
    assert study(folder, {**SHORT, "budget": {unit: 1e6}}).budget == Limit(1e6, unit)


def test_a_study_is_frozen_and_found_from_a_relative_path(folder, monkeypatch):
    study(folder, EXAMPLE)
    monkeypatch.chdir(folder)
    loaded = load("study.toml")
    assert isinstance(loaded, StudyFile)
    assert loaded.folder == folder
    assert loaded.storage == f"sqlite:///{folder}/study.db"
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.seed = 1


def test_a_mark_at_the_beginning_and_other_ends_of_lines_do_no_harm(folder):
    (folder / "study.toml").write_bytes(b"\xef\xbb\xbf" + EXAMPLE.replace("\n", "\r\n").encode())
    assert load(folder / "study.toml").name == "svm"


# Cost and target ------------------------------------------------------------------------------------------------------


def test_first_points_and_repeating_values_are_taken(folder):
    plain = study(folder, SHORT).problem
    assert (plain.deterministic, plain.first) == (False, [])
    name = next(iter(plain.space))
    given = {"deterministic": True, "first": [{name: plain.middle[name]}]}
    made = study(folder, SHORT | given).problem
    assert made.deterministic
    assert made.first == [plain.middle]
    assert "deterministic must be True or False" in refusal(folder, SHORT | {"deterministic": 3})
    assert "first" in refusal(folder, SHORT | {"first": [{"unknown": 3}]})


def test_a_cost_is_powers_or_a_function_or_measured(folder):
    assert study(folder, {**LONG, "cost": {"N": -1.5}}).problem.cost({"N": 4}) == 0.125
    assert study(folder, {**LONG, "cost": "objective:cost"}).problem.cost({"N": 4}) == 8.0
    assert not study(folder, {**LONG, "cost": "measured"}).problem.has_declared_cost


def test_a_cost_of_powers_travels():
    powers = Powers((("N", 1.0), ("T", 2.0)))
    assert pickle.loads(pickle.dumps(powers))({"N": 3, "T": 2}) == 12.0


def test_a_target_may_lie_inside_and_a_choice_needs_one(folder):
    fidelity = {"N": {"type": "int", "low": 1, "high": 9, "target": 5}}
    assert study(folder, {**LONG, "fidelity": fidelity}).problem.target == {"N": 5}
    source = {"type": "choice", "choices": ["rig", "model"]}
    message = refusal(folder, {**LONG, "fidelity": {"s": source}})
    assert message.startswith("fidelity.s.target is missing")
    assert "['rig', 'model']" in message
    named = {"s": {**source, "target": "rig"}}
    assert study(folder, {**LONG, "fidelity": named}).problem.target == {"s": "rig"}


# Storage --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("sqlite:///a/study.db", "sqlite:///{folder}/a/study.db"),
        ("sqlite+pysqlite:///s.db?timeout=3", "sqlite+pysqlite:///{folder}/s.db?timeout=3"),
        ("sqlite:////data/study.db", "sqlite:////data/study.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite://", "sqlite://"),
        ("postgresql+psycopg://me:secret@host/db", "postgresql+psycopg://me:secret@host/db"),
    ],
)
def test_a_file_of_the_storage_is_meant_from_the_folder(folder, given, stored):
    assert study(folder, {**SHORT, "storage": given}).storage == stored.format(folder=folder)


@pytest.mark.parametrize("name", ["a b", "50%", "x%20y", "what?", "#1", "ü"])
def test_the_storage_is_the_file_that_the_name_says(folder, name):
    (folder / name).mkdir()
    (folder / name / "objective.py").write_text("def plain(x): return 1.0")
    loaded = study(folder / name, {**SHORT, "name": name})
    assert make_url(loaded.storage).database == f"{folder}/{name}/{name}.db"
    assert make_url(loaded.storage).query == {}


# Import paths ---------------------------------------------------------------------------------------------------------


def test_a_name_within_a_class_and_a_module_within_a_package_are_found(folder):
    assert study(folder, {**LONG, "objective": "objective:Model.score"}).objective({}, {}) == 3.0
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "module.py").write_text("def f(x): return 4.0")
    assert study(folder, {**SHORT, "objective": "package.module:f"}).objective({}) == 4.0


def test_what_is_not_beside_the_file_is_found_on_the_ordinary_path(folder):
    import math

    assert study(folder, {**SHORT, "objective": "math:fsum"}).objective is math.fsum


def test_the_objective_travels_to_a_process_with_the_same_path(folder):
    loaded = study(folder, EXAMPLE)
    assert sys.path[0] == str(folder)
    script = (
        "import json, pickle, sys; path, hexed = json.load(sys.stdin); sys.path[:] = path; "
        "print(pickle.loads(bytes.fromhex(hexed))({'C': 1.0}, {'N': 5}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([sys.path, cloudpickle.dumps(loaded.objective).hex()]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(run.stdout) == 15.0


def test_two_studies_may_each_have_an_objective(folder):
    first = study(folder, EXAMPLE).objective
    other = folder / "other"
    other.mkdir()
    (other / "objective.py").write_text("import helpers\ndef accuracy(x, z): return helpers.scale")
    (other / "helpers.py").write_text("scale = -1.0\n")
    second = study(other, EXAMPLE).objective
    assert second({}, {}) == -1.0
    point = {"C": 1.0}, {"N": 5}
    assert first(*point) == 15.0
    again = study(folder, EXAMPLE).objective
    assert again(*point) == 15.0
    assert pickle.loads(cloudpickle.dumps(again))(*point) == 15.0


def test_a_module_whose_name_is_taken_is_refused_not_mistaken(folder):
    (folder / "json.py").write_text("def f(x): return 1.0")
    assert "Rename json.py" in refusal(folder, {**SHORT, "objective": "json:f"})
    (folder / "time.py").write_text("def f(x): return 1.0\n")
    assert "Rename time.py" in refusal(folder, {**SHORT, "objective": "time:f"})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("objectiv:plain", "there is no module 'objectiv' (did you mean 'objective'?)."),
        ("objective.inner:plain", "there is no module 'objective.inner'"),
        ("objective:plane", "'objective' has no 'plane' (did you mean 'plain'?)."),
        ("objective:Model.run", "'objective' has no 'run'"),
        ("objective:number", "must be a function; got 7."),
        ("objective:accuracy", "must be callable as f(x); it is not: missing a required argument: 'z'."),
        ("objective", "must be an import path such as 'package.module:name'; got 'objective'."),
        ("objective.py:plain:x", "must be an import path such as 'package.module:name'; got 'objective.py:plain:x'."),
        ("./objective:plain", "must be an import path such as 'package.module:name'; got './objective:plain'."),
        (":plain", "must be an import path"),
        ("objective:", "must be an import path"),
    ],
)
def test_an_objective_that_is_not_there_is_refused(folder, path, message):
    said = refusal(folder, {**SHORT, "objective": path})
    assert said.startswith("objective")
    assert repr(path) in said
    assert message in said


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ny = = 2\n", "SyntaxError: invalid syntax (bad.py, line 2)."),
        ("import sys\n\n1 / 0\n", "ZeroDivisionError: division by zero (bad.py, line 3)."),
        ("import not_installed\n", "ModuleNotFoundError: No module named 'not_installed' (bad.py, line 1)."),
        ("from math import nothing\n", "ImportError: cannot import name 'nothing' from 'math'"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (bad.py, line 2)."),
        ("raise KeyError\n", "KeyError (bad.py, line 1)."),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_with_its_line(folder, source, message):
    (folder / "bad.py").write_text(source)
    said = refusal(folder, {**SHORT, "objective": "bad:f"})
    assert said.startswith("objective 'bad:f' cannot be imported: ")
    assert message in said


# Commands -------------------------------------------------------------------------------------------------------------


def test_a_command_is_run_in_the_folder(folder):
    document = {key: value for key, value in LONG.items() if key != "objective"}
    (folder / "train.py").write_text("import sys; print(sum(map(float, sys.argv[1:])))")
    loaded = study(folder, {**document, "command": f"'{sys.executable}' -I train.py {{C}} {{N}}"})
    assert isinstance(loaded.objective, Command)
    assert loaded.objective({"C": 0.5}, {"N": 3}) == 3.5
    assert pickle.loads(pickle.dumps(loaded.objective)) == loaded.objective
    message = refusal(folder, {**document, "command": "train {C} {n}"})
    assert message == "command may have the placeholders {C}, {N}; got {n}."


# Strategies -----------------------------------------------------------------------------------------------------------


def test_every_strategy_has_a_name(folder):
    made = {name: study(folder, {**LONG, "strategy": name}).strategy for name in STRATEGIES}
    assert made == {
        "boca": boca.Boca(),
        "boca-paper": boca.Boca.paper(),
        "gp-ucb": boca.GPUCB(),
        "gp-ei": boca.GPEI(),
        "mf-gp-ucb": boca.MFGPUCB(),
        "mf-sko": boca.MFSKO(),
        "random": boca.RandomSearch(),
    }
    assert study(folder, {**LONG, "strategy": {"name": "boca"}}).strategy == boca.Boca()


@pytest.mark.parametrize(
    ("table", "strategy"),
    [
        ({"name": "boca", "max_shrink": 2, "reserve_last": False}, boca.Boca(max_shrink=2.0, reserve_last=False)),
        ({"name": "boca-paper", "maximizer": "sobol"}, boca.Boca.paper(maximizer="sobol")),
        ({"name": "boca", "theorem": {"delta": 0.2}}, boca.Boca(theorem=Theorem(delta=0.2))),
        ({"name": "gp-ei", "surrogate": {"starts": 5}}, boca.GPEI(dataclasses.replace(Surrogate.paper(), starts=5))),
        ({"name": "mf-sko", "fidelities": [{"N": 2}]}, boca.MFSKO(fidelities=[{"N": 2}])),
        ({"name": "boca:Boca", "first_c": 0.5}, boca.Boca(first_c=0.5)),
    ],
)
def test_the_fields_of_a_strategy_can_be_set(folder, table, strategy):
    made = study(folder, {**LONG, "strategy": table}).strategy
    assert made == strategy
    assert [type(v) for v in vars(made).values()] == [type(v) for v in vars(strategy).values()]


def test_a_strategy_of_ones_own_is_an_instance_or_a_class(folder):
    mine = study(folder, {**LONG, "strategy": "objective:mine"}).strategy
    assert mine is sys.modules["objective"].mine
    assert type(study(folder, {**LONG, "strategy": "objective:Mine"}).strategy).__name__ == "Mine"
    tuned = {"name": "objective:Tuned", "width": 1, "deep": True}
    assert vars(study(folder, {**LONG, "strategy": tuned}).strategy) == {"width": 1.0, "deep": True}
    tuned["name"] = "objective:tuned"
    assert vars(study(folder, {**LONG, "strategy": tuned}).strategy) == {"width": 1.0, "deep": True}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bocca", "strategy must be one of boca, boca-paper, gp-ucb, gp-ei, mf-gp-ucb, mf-sko, random, or an import "
                  "path such as 'module:name'; got 'bocca' (did you mean 'boca'?)."),
        (3, "strategy must be one of boca, "),
        ({"max_shrink": 2.0}, "strategy.name is missing; got {'max_shrink': 2.0}. Give one of boca, "),
        ({"name": "boca", "max_shrnk": 2.0}, "got 'max_shrnk' (did you mean 'max_shrink'?)."),
        ({"name": "boca", "max_shrink": "2"}, "strategy.max_shrink must be a finite number; got '2'."),
        ({"name": "boca", "max_shrink": 0.5}, "strategy: max_shrink must be at least 1; got 0.5."),
        ({"name": "boca", "max_shrink": True}, "strategy.max_shrink must be a finite number; got True."),
        ({"name": "boca", "max_shrink": 10**400}, "strategy.max_shrink must be a finite number; got 1000"),
        ({"name": "boca", "reserve_last": "no"}, "strategy.reserve_last must be true or false; got 'no'."),
        ({"name": "boca", "reserve_last": 1}, "strategy.reserve_last must be true or false; got 1."),
        ({"name": "boca", "maximizer": "grid"}, "strategy.maximizer must be one of ['sobol', 'direct']; got 'grid'."),
        ({"name": "boca", "surrogate": "se"}, "strategy.surrogate must be a table; got 'se'."),
        ({"name": "boca", "surrogate": {"kernl": "se"}}, "got 'kernl' (did you mean 'kernel'?)."),
        ({"name": "boca", "surrogate": {"starts": -1}}, "strategy.surrogate: starts must be at least 0; got -1."),
        ({"name": "boca", "surrogate": {"refit_every": 1.5}}, "surrogate.refit_every must be an integer; got 1.5."),
        ({"name": "boca", "surrogate": {"fidelity_kernel": "a:b"}}, "surrogate.fidelity_kernel must be a Callable"),
        ({"name": "boca", "hyperparameters": {"eta": 1}}, "strategy: "),
        ({"name": "boca", "hyperparameters": 4}, "strategy.hyperparameters must be a table; got 4."),
        ({"name": "mf-sko", "fidelities": [{"M": 2}]}, "strategy: "),
        ({"name": "mf-sko", "fidelities": "all"}, "strategy.fidelities must be a Sequence; got 'all'."),
        ({"name": "random", "width": 2}, "strategy may have the keys (none); got 'width'."),
        ("objective:number", "strategy = 'objective:number' must be an object with a method suggest; got 7."),
        ("objective:Model", "must be an object with a method suggest"),
        ("objective:nothing", "strategy 'objective:nothing' does not exist"),
        ("objective:Picky", "strategy cannot be created with {}: RuntimeError: never."),
        ("objective:Tuned", "strategy cannot be created with {}: TypeError: "),
        ({"name": "objective:mine", "width": 2}, "strategy may have settings only if it is a dataclass"),
    ],
)  # fmt: skip
def test_a_strategy_that_cannot_be_made_is_refused(folder, given, message):
    assert message in refusal(folder, {**LONG, "strategy": given})


# Refusals -------------------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.toml: The file cannot be read: No such file or directory\."):
        load(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match=r"The file cannot be read: Is a directory\."):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a"\nseed 3\n', "line 2"),
        ('name = "a"\nname = "b"\n', "line 2"),
        ('a = 1\n\nname = "a', "line 3"),
        ("space = {", "line 1"),
        ("a = [\n1,\n", "line 3"),
        ("seed = " + "9" * 5000, "reasonable size"),
        ("a = " + "[" * 5000, "reasonable size"),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(folder, text, message):
    said = refusal(folder, text)
    assert said.startswith("The file must be TOML")
    assert message in said


def test_what_is_not_text_is_told_with_its_line(folder):
    (folder / "study.toml").write_bytes(b'a = 1\nname = "\xff"\n')
    with pytest.raises(InvalidInput, match=r"The file must be text in UTF-8; line 2 is not\."):
        load(folder / "study.toml")


C = SHORT["space"]["C"]
N = LONG["fidelity"]["N"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # keys
        ({"sed": 3}, "got 'sed' (did you mean 'seed'?)."),
        ({"zzz": 3}, f"A study may have the keys {', '.join(KEYS)}; got 'zzz'."),
        ({"space": {"C": {**C, "lo": 3}}}, "C may have the keys type, low, high, log, when; got 'lo' (did you mean"),
        ({"fidelity": {"N": {**N, "tarket": 3}}}, "N may have the keys type, low, high, log, target; got 'tarket'"),
        ({"space": {"C": {"type": "choice", "choices": [1, 2], "low": 3}}}, "keys type, choices, when; got 'low'"),
        ({"budget": {"target": 3}}, "budget may have the keys targets, seconds, cost; got 'target' (did you"),
        # single values
        ({"name": 3}, "name must be a string that is not empty; got 3."),
        ({"name": " "}, "name must be a string that is not empty; got ' '."),
        ({"direction": "up"}, "direction must be 'maximize' or 'minimize', 'max' or 'min'; got 'up'."),
        ({"seed": -1}, "seed must be at least 0; got -1."),
        ({"seed": 2**63}, "seed must be at most 9223372036854775807; got 9223372036854775808."),
        ({"seed": 0.5}, "seed must be an integer; got 0.5."),
        ({"seed": "0"}, "seed must be a finite number; got '0'."),
        ({"workers": 0}, "workers must be at least 1; got 0."),
        ({"workers": True}, "workers must be an integer; got True."),
        ({"max_retries": -1}, "max_retries must be at least 0; got -1."),
        ({"timeout": 0}, "timeout must be positive; got 0."),
        ({"timeout": "1 h"}, "timeout must be a finite number; got '1 h'."),
        ({"timeout": float("inf")}, "timeout must be a finite number; got inf."),
        ({"storage": "study.db"}, "storage must be a URL such as 'sqlite:///study.db'; got 'study.db'."),
        ({"storage": "sqlite://study.db"}, "storage needs three slashes before a file"),
        ({"storage": 3}, "storage must be a"),
        ({"name": "a/b"}, "name = 'a/b' cannot be the name of a file. Give storage"),
        # the objective
        ({"command": "train"}, "A study must have exactly one of objective and command; got objective and command."),
        ({"objective": None}, "A study must have exactly one of objective and command; got none."),
        ({"objective": 3}, "objective must be a string that is not empty; got 3."),
        ({"objective": None, "command": ""}, "command must be a string that is not empty; got ''."),
        ({"objective": None, "command": "'a"}, "command must be quoted as for a shell"),
        # the budget
        ({"budget": None}, "budget is missing. Give for instance budget = { targets = 30 }."),
        ({"budget": {}}, "budget must have exactly one of targets, seconds, cost; got {}."),
        ({"budget": {"targets": 3, "cost": 4}}, "one of targets, seconds, cost; got {'targets': 3, 'cost': 4}."),
        ({"budget": 30}, "budget must be a table such as { targets = 30 }; got 30."),
        ({"budget": {"targets": 0}}, "budget.targets must be positive; got 0."),
        ({"budget": {"seconds": "60"}}, "budget.seconds must be a finite number; got '60'."),
        # the space
        ({"space": None}, "A study must have a table [space] with at least one parameter; got none."),
        ({"space": {}}, "A study must have a table [space] with at least one parameter; got none."),
        ({"space": 3}, "space must be a table such as"),
        ({"space": {"C": 3}}, 'space.C must be a table such as { type = "float", low = 0.1, high = 10 }; got 3.'),
        ({"space": {"C": C, "workers": 2}}, "got 2. The key 'workers' of the study belongs above [space]."),
        ({"space": {"C": {"low": 1, "high": 2}}}, "space.C.type is missing"),
        ({"space": {"C": {**C, "type": "real"}}}, "C.type must be one of ['float', 'int', 'choice']; got 'real'."),
        ({"space": {"C": {**C, "type": [1]}}}, "space.C.type must be one of"),
        ({"space": {"C": {"type": "int", "low": 1}}}, "space.C.high is missing; got {'type': 'int', 'low': 1}."),
        ({"space": {"C": {"type": "choice"}}}, "space.C.choices is missing"),
        ({"space": {"C": {**C, "low": 10}}}, "space.C: Float needs low < high; got low=10.0, high=10.0."),
        ({"space": {"C": {**C, "low": "1"}}}, "space.C: Float low must be a finite number; got '1'."),
        ({"space": {"C": {**C, "low": 0, "log": True}}}, "space.C: Float on a log scale needs low > 0; got low=0.0."),
        ({"space": {"C": {**C, "log": "yes"}}}, "space.C: log must be true or false; got 'yes'."),
        ({"space": {"C": {**C, "type": "int"}}}, "space.C: Int low must be an integer; got 0.1."),
        ({"space": {"C": {"type": "choice", "choices": "ab"}}}, "space.C: Choice needs a list of options; got 'ab'."),
        ({"space": {"C": {"type": "choice", "choices": ["a"]}}}, "Choice needs at least two options; got ['a']."),
        ({"space": {"C": {**C, "target": 3}}}, "space.C is not a fidelity and has no target; got target = 3."),
        ({"space": {"": C}}, "name must be a non-empty string"),
        # the fidelity
        ({"fidelity": {"N": {**N, "target": 10}}}, "fidelity.N.target must lie in [1, 9]; got 10."),
        ({"fidelity": {"C": N}}, "A name may be in space or in fidelity, not in both; got ['C'] in both."),
        # the cost
        ({"cost": {"M": 1}}, "cost may name the fidelities N; got 'M'."),
        ({"cost": {"C": 1}}, "cost may name the fidelities N; got 'C'."),
        ({"cost": {}}, "cost must have an exponent for at least one fidelity; got {}."),
        ({"cost": {"N": "1"}}, "cost.N must be a finite number; got '1'."),
        ({"cost": {"N": 1e5}}, "at z={'N': 9} it raised OverflowError('math range error')."),
        ({"cost": {"N": -1e5}}, "cost(z) must be a positive finite number; got 0.0 at z={'N': 9}."),
        ({"cost": {"N": 1}, "fidelity": {"N": {**N, "low": 0}}}, "of positive numbers; got Int(low=0"),
        ({"cost": {"N": 1}, "fidelity": {"N": {"type": "choice", "choices": [1, 2], "target": 2}}}, "of positive"),
        ({"cost": 3}, "cost must be 'measured', a table of exponents such as { N = 1 }, or an import path"),
        ({"cost": "mesured"}, "cost must be 'measured', a table of exponents such as { N = 1 }, or an import path"),
        ({"cost": "objective:number"}, "cost = 'objective:number' must be a function of z; got 7."),
        ({"cost": "objective:nothing"}, "cost 'objective:nothing' does not exist"),
        ({"cost": "objective:broken"}, "cost(z) must return a positive number for every fidelity; at z={'N': 9}"),
        ({"cost": "objective:far_below"}, "cost(z) must be a positive finite number; got -1.0 at z={'N': 9}."),
        ({"cost": "measured", "fidelity": {}}, "cost = 'measured' needs a [fidelity]"),
    ],
)  # fmt: skip
def test_an_error_names_the_key_the_value_and_what_is_allowed(folder, change, message):
    document = {key: value for key, value in {**LONG, **change}.items() if value is not None}
    assert message in refusal(folder, document)


def test_a_name_and_no_storage_may_be_anything_that_a_file_may_be_called(folder):
    assert study(folder, {**SHORT, "name": "a/b", "storage": "sqlite:///c.db"}).name == "a/b"


ANYTHING = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "measured", "objective:plain", "boca", "é:é"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "low", "high", "name", "N", "C", "targets"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(table, path=()):
    """Yield the path of every value in a document."""
    for key, value in table.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


FULL = {
    **LONG,
    "name": "n",
    "cost": {"N": 1},
    "seed": 1,
    "workers": 1,
    "timeout": 1,
    "max_retries": 1,
    "storage": "sqlite:///s.db",
    "direction": "minimize",
    "strategy": {"name": "boca", "max_shrink": 2.0, "surrogate": {"starts": 1}, "hyperparameters": {"eta2": 1.0}},
}


@settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(list(places(FULL))), ANYTHING)
def test_whatever_stands_in_a_place_there_is_a_study_or_a_sentence(folder, place, value):
    document = json.loads(json.dumps(FULL))
    table = document
    for key in place[:-1]:
        table = table[key]
    table[place[-1]] = value
    try:
        loaded = study(folder, document)
    except InvalidInput as error:
        said = str(error)
    else:
        assert isinstance(loaded, StudyFile)
        return
    assert said.endswith(".")
    assert "\n" not in said


# Conditions and constraints -------------------------------------------------------------------------------------------

CONDITIONAL = """
objective = "objective:plain"
budget = { targets = 3 }
where = ["C + degree <= 9", "C >= 0.5"]

[space]
kernel = { type = "choice", choices = ["rbf", "poly"] }
C = { type = "float", low = 0.1, high = 10 }
degree = { type = "int", low = 2, high = 5, when = { kernel = ["poly"] } }
"""


def test_conditions_and_constraints_are_read_and_respected(folder):
    (folder / "study.toml").write_text(CONDITIONAL)
    found = load(folder / "study.toml")
    space = found.problem.space
    assert space["degree"] == boca.Int(2, 5, when={"kernel": ["poly"]})
    assert [constraint.words for constraint in space.constraints] == ["C + degree <= 9", "C >= 0.5"]
    optimizer = boca.Optimizer(found.problem, budget=found.budget, seed=0)
    for trial in (optimizer.ask() for _ in range(3)):
        assert space.violated(trial.x) is None
        assert ("degree" in trial.x) == (trial.x["kernel"] == "poly")


@pytest.mark.parametrize(
    ("was", "now", "part"),
    [
        ('where = ["C + degree <= 9", "C >= 0.5"]', 'where = "C >= 0.5"', "where must be a list"),
        ('"C >= 0.5"', '"D >= 0.5"', "'D'"),
        ('"C >= 0.5"', '"C >= 11"', "No point"),
        ('"C >= 0.5"', "\"__import__('os').getcwd() == C\"", "__import__"),
        ('when = { kernel = ["poly"] }', 'when = { kernel = "poly" }', "space.degree: when"),
        ('when = { kernel = ["poly"] }', 'when = { kernel = ["linear"] }', "'linear'"),
        ('when = { kernel = ["poly"] }', 'when = { core = ["poly"] }', "'core'"),
    ],
)
def test_a_condition_or_a_constraint_that_cannot_be_is_refused(folder, was, now, part):
    assert was in CONDITIONAL
    (folder / "study.toml").write_text(CONDITIONAL.replace(was, now))
    with pytest.raises(InvalidInput, match=part):
        load(folder / "study.toml")


def test_a_fidelity_has_no_condition(folder):
    assert "when" in refusal(folder, {**LONG, "fidelity": {"N": {**N, "when": {"C": [1]}}}})


# Limits on outcomes ---------------------------------------------------------------------------------------------------


def limited(tmp_path, lines):
    file = tmp_path / "limited.toml"
    space = "[space]\na = { type = 'float', low = 0, high = 1 }\n"
    file.write_text(f"command = 'program'\nbudget = {{ targets = 3 }}\n{lines}\n{space}")
    return file


def test_limits_stand_in_a_table(tmp_path):
    lines = "value = 'loss'\nsubject_to = { latency = { at_most = 20 }, recall = { at_least = 0.9, at = 'any' } }"
    study = load(limited(tmp_path, lines))
    problem = study.problem
    assert study.objective.returns_outcomes
    assert problem.subject_to == {"latency": AtMost(20.0), "recall": AtLeast(0.9, at="any")}
    assert problem.objective == "loss"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("subject_to = 3", "subject_to must be a table"),
        ("subject_to = { latency = 3 }", "subject_to.latency must be a table"),
        ("subject_to = { latency = { at_least = 1, at_most = 3 } }", "exactly one of at_most and at_least"),
        ("subject_to = { latency = { at = 'any' } }", "exactly one of at_most and at_least"),
        ("subject_to = { latency = { at_mots = 3 } }", "at_mots"),
        ("subject_to = { latency = { at_most = 'x' } }", "subject_to.latency: "),
        ("subject_to = { latency = { at_most = 3, at = 'never' } }", "subject_to.latency: at must be one of"),
        ("strategy = 'gp-ei'\nsubject_to = { latency = { at_most = 3 } }", "does not heed limits"),
        ("value = 3", "value must be a string"),
    ],
)
def test_a_mistake_in_a_limit_names_its_key(tmp_path, lines, words):
    with pytest.raises(InvalidInput, match=words):
        load(limited(tmp_path, lines))
