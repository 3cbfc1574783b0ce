"""A study as a file: everything that a run needs, in TOML.

    name = "svm"
    objective = "objective:accuracy"      # a function in objective.py beside the file; or command = "..."
    cost = { N = 1, T = 1 }               # N^1 T^1; or "measured", or "objective:cost"
    budget = { targets = 30 }             # or { seconds = 600 }, or { cost = 1e6 }
    subject_to = { size = { at_most = 3 } }   # limits on further outcomes, which the objective then returns by name
    value = "loss"                        # the outcome that is optimized, if more than one has no limit
    outcomes = { loss = "minimize", size = "minimize", recall = { at_least = 0.9 } }   # in place of the last two
    reference = { loss = 1.0 }            # of several objectives: the worst values that are of interest

    [space]
    C = { type = "float", low = 1e-2, high = 1e3, log = true }

    [fidelity]
    N = { type = "int", low = 100, high = 1000 }
    T = { type = "int", low = 5, high = 50, target = 50 }

A mistake is an error when the file is loaded, before anything is spent, and names the key.
"""

from __future__ import annotations

import inspect
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from boca.domain import shorthand
from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput, one_of
from boca.domain.outcomes import AtLeast, AtMost, OutcomeLimit
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import (
    Parameter,
    Point,
    Space,
    finite_number,
    non_negative_number,
    parameter_from_json,
    positive_number,
    whole_number,
)
from boca.execution.checkpoints import checked_place
from boca.execution.options import OnError
from boca.execution.runs import takes_run
from boca.strategies import Strategy
from boca.strategies.base import check
from boca.strategies.registry import STRATEGIES
from boca.studyfile import hints
from boca.studyfile.command import Command
from boca.studyfile.importing import imported, nearest
from boca.studyfile.keys import KEYS, KINDS
from boca.studyfile.listed import candidates
from boca.studyfile.place import Place, placed
from boca.studyfile.settings import Table, configured, only

_LIMITS: Mapping[str, type[AtMost] | type[AtLeast]] = {"at_most": AtMost, "at_least": AtLeast}
_UNITS = ("targets", "seconds", "cost")
_STOP_GRACE = 10.0  # seconds from SIGTERM to SIGKILL: enough to write a checkpoint
_LARGEST_SEED = 2**63 - 1  # the largest integer of a database


@dataclass(frozen=True)
class StudyFile:
    """What a file says, with defaults for what it leaves out."""

    name: str
    """By default the name of the file without its suffix."""
    problem: Problem
    budget: Limit
    strategy: Strategy | None
    """None is the default of the library."""
    seed: int | None
    """None draws one when the study is created."""
    workers: int | None
    """How many evaluations may run at once; 1 by default, and with a cluster as many as it has."""
    storage: str
    """A URL; by default the file NAME.db beside the study file."""
    objective: Callable[..., Any]
    """A function of x and z, or of x alone without fidelities."""
    timeout: float | None
    """Seconds after which an evaluation has failed; None for no limit."""
    max_retries: int
    """How often an evaluation is tried again after its process died; 2 by default."""
    grace: float
    """Seconds for running trials to finish after SIGTERM; 0 by default."""
    checkpoints: Path | None
    """The folder for checkpoints; by default beside the database."""
    keep_checkpoints: int | None
    """How many checkpoints of trials that have ended are kept at most; None for as many as decisions can use."""
    on_error: OnError
    """Whether a failed trial lets the run continue, or ends it."""
    place: Place
    """Where evaluations run."""
    folder: Path
    """The folder of the file."""


_KEYS = tuple(KEYS)


@dataclass(frozen=True)
class Powers:
    """A cost that is a product of powers of the fidelities."""

    exponents: tuple[tuple[str, float], ...]

    def __call__(self, z: Mapping[str, Any]) -> float:
        return math.prod(math.pow(z[name], exponent) for name, exponent in self.exponents)


def load(path: str | os.PathLike[str]) -> StudyFile:
    """Read a study from a file, check it, and import what it names.

    If the folders of two files have modules of the same name, run the first study before the second is loaded: worker
    processes of the first would import the modules of the second.
    """
    try:
        return _study(_read(Path(path)), Path(os.path.abspath(path)))
    except InvalidInput as error:
        raise InvalidInput(f"{os.fspath(path)}: {error}") from error


def _read(file: Path) -> Table:
    try:
        text = file.read_bytes().decode("utf-8-sig")  # some editors begin a file with a byte order mark
        return tomllib.loads(text)
    except OSError as error:
        raise InvalidInput(f"The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"The file must be text in UTF-8; line {line} is not.") from error
    except tomllib.TOMLDecodeError as error:
        where = str(error).replace("at end of document", f"at line {text.count(chr(10)) + 1}, the end of the document")
        raise InvalidInput(f"The file must be TOML: {where}.{hints.of_syntax(text, where)}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise InvalidInput(f"The file must be TOML of a reasonable size: {error}.") from error


def _study(document: Table, file: Path) -> StudyFile:
    """Check everything that needs no import first, then import the user's code."""
    only(document, _KEYS, "A study")
    folder = str(file.parent)
    name = _string(document.get("name", file.stem), "name")
    space, _ = _space(document, "space")
    if "candidates" in document:
        space = candidates(document["candidates"], dict(space), folder)
    space = _constrained(space, document.get("where", []))
    fidelity, target = _space(document, "fidelity")
    aims = _aims(document)
    budget = _budget(document.get("budget"))
    seed = None if "seed" not in document else _whole(document["seed"], "seed", least=0, most=_LARGEST_SEED)
    place = placed(document)
    workers = _workers(document, place)
    on_error = cast(OnError, document.get("on_error", "fail"))
    one_of(on_error, get_args(OnError), "on_error")
    max_retries = _whole(document.get("max_retries", 2), "max_retries", least=0)
    timeout = None if "timeout" not in document else positive_number(document["timeout"], "timeout")
    grace = non_negative_number(document.get("grace", 0.0), "grace")
    stop_grace = non_negative_number(document.get("stop_grace", _STOP_GRACE), "stop_grace")
    checkpoints = _checkpoints(document.get("checkpoints"), folder)
    keep = document.get("keep_checkpoints")
    keep_checkpoints = None if keep is None else _whole(keep, "keep_checkpoints", least=0)
    storage = _storage(document.get("storage"), folder, name)
    cost = _cost(document.get("cost"), fidelity, folder)
    problem = Problem(
        space,
        fidelity,
        cost=cost,
        target=target,
        deterministic=document.get("deterministic", False),
        first=document.get("first", ()),
        subject_to=_limits(document.get("subject_to", {}), "subject_to"),
        **aims,
    )
    strategy = _strategy(document.get("strategy"), problem, folder)
    objective = _objective(document, problem, folder, place, stop_grace)
    return StudyFile(
        name,
        problem,
        budget,
        strategy,
        seed,
        workers,
        storage,
        objective,
        timeout,
        max_retries,
        grace,
        checkpoints,
        keep_checkpoints,
        on_error,
        place,
        file.parent,
    )


# Single values --------------------------------------------------------------------------------------------------------


def _table(value: object, what: str, example: str) -> Table:
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a table such as {example}; got {value!r}.")
    return value


def _string(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{what} must be a string that is not empty; got {value!r}.")
    return value


def _whole(value: object, what: str, *, least: int, most: float = math.inf) -> int:
    number = whole_number(value, what)
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidInput(f"{what} must be {limit}; got {value!r}.")
    return number


def _workers(document: Table, place: Place) -> int | None:
    """Return how many evaluations run at once; None for as many as a cluster has."""
    if "workers" not in document and place.kind != "here":
        return None
    return _whole(document.get("workers", 1), "workers", least=1)


# Space, fidelity, cost, budget ----------------------------------------------------------------------------------------


def _space(document: Table, part: Literal["space", "fidelity"]) -> tuple[Space, Point]:
    """Return a space, and the targets of its parameters, which only fidelities have."""
    table = _table(document.get(part, {}), part, '{ C = { type = "float", low = 0.1, high = 10 } }')
    if part == "space" and not table and "candidates" not in document:
        raise InvalidInput("A study must have a table [space] with at least one parameter; got none.")
    parameters, target = {}, {}
    for name, value in table.items():
        what = f"{part}.{name}"
        if name in _KEYS and not isinstance(value, dict):
            raise InvalidInput(
                f"{what} must be a table; got {value!r}. The key {name!r} of the study belongs above [{part}]."
            )
        keys = _table(value, what, '{ type = "float", low = 0.1, high = 10 }')
        parameter = parameters[name] = _parameter(keys, what, is_fidelity=part == "fidelity")
        if "target" in keys:
            target[name] = parameter.validate(keys["target"], f"{what}.target")
        elif part == "fidelity" and not parameter.is_ordered:
            options = list(parameter.options)
            raise InvalidInput(f"{what}.target is missing, and a choice has no upper bound. Give one of {options}.")
    try:
        return Space(parameters), target
    except InvalidInput as error:
        raise InvalidInput(f"{part}: {error}") from error


def _constrained(space: Space, given: object) -> Space:
    """Return the space with the constraints that are listed as text."""
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise InvalidInput(f'where must be a list of constraints such as ["a + b <= 1"]; got {given!r}.')
    for text in given:
        try:
            space = space.where(text)
        except InvalidInput as error:
            raise InvalidInput(f"where: {error}") from error
    return space


def _parameter(table: Table, what: str, *, is_fidelity: bool) -> Parameter:
    kinds = [kind for kind in KINDS if is_fidelity or kind != "steps"]
    if "type" not in table:
        some = ", ".join(map(repr, kinds[:-1]))
        raise InvalidInput(f"{what}.type is missing; got {table!r}. Give {some} or {kinds[-1]!r}.")
    kind = table["type"]
    one_of(kind, KINDS if kind == "steps" else kinds, f"{what}.type")  # the problem refuses steps in x, and says why
    if "target" in table and not is_fidelity:
        raise InvalidInput(
            f"{what} is not a fidelity and has no target; got target = {table['target']!r}. Leave it out."
        )
    needed = ["choices"] if kind == "choice" else ["low", "high"]
    optional = [*([] if kind == "choice" else ["log"]), "target" if is_fidelity else "when"]
    only(table, ["type", *needed, *optional], what)
    for key in needed:
        if key not in table:
            raise InvalidInput(f"{what}.{key} is missing; got {table!r}.")
    try:
        if not isinstance(table.get("log", False), bool):
            raise InvalidInput(f"log must be true or false; got {table['log']!r}.")
        return parameter_from_json({"log": False, **table})
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error


def _aims(document: Table) -> dict[str, Any]:
    """Return what is optimized, as `Problem` takes it."""
    if "outcomes" not in document:
        value = None if "value" not in document else _string(document["value"], "value")
        aims = {"direction": shorthand.direction(document.get("direction", "maximize")), "objective": value}
        return aims | ({"reference": document["reference"]} if "reference" in document else {})
    both = [key for key in ("direction", "value") if key in document]
    if both:
        raise InvalidInput(
            f"{both[0]} = {document[both[0]]!r} and outcomes are both given, and outcomes says what is optimized and "
            f"in which direction. Leave {both[0]} out."
        )
    table = _table(document["outcomes"], "outcomes", '{ loss = "minimize", size = "minimize" }')
    limits = _limits({name: aim for name, aim in table.items() if isinstance(aim, dict)}, "outcomes")
    return {
        "outcomes": {name: limits.get(name, aim) for name, aim in table.items()},
        "reference": document.get("reference"),
    }


def _limits(given: object, part: str) -> dict[str, OutcomeLimit]:
    """Return the limits on outcomes."""
    example = "{ latency = { at_most = 20.0 } }"
    found: dict[str, OutcomeLimit] = {}
    for name, value in _table(given, part, example).items():
        what = f"{part}.{name}"
        table = _table(value, what, "{ at_most = 20.0 }")
        only(table, [*_LIMITS, "at"], what)
        kinds = [kind for kind in _LIMITS if kind in table]
        if len(kinds) != 1:
            raise InvalidInput(f"{what} must have exactly one of {' and '.join(_LIMITS)}; got {table!r}.")
        try:
            found[name] = _LIMITS[kinds[0]](table[kinds[0]], table.get("at", "target"))
        except InvalidInput as error:
            raise InvalidInput(f"{what}: {error}") from error
    return found


def _cost(given: object, fidelity: Space, folder: str) -> CostFunction | None:
    """Return the cost function; None measures it, and without fidelities every query costs one unit."""
    if given is None:
        return None
    if given == "measured":
        if not fidelity:
            raise InvalidInput(
                "cost = 'measured' needs a [fidelity]. Leave it out: without fidelities every query costs 1."
            )
        return None
    if isinstance(given, dict):
        return _powers(given, fidelity)
    if not isinstance(given, str) or ":" not in given:
        raise InvalidInput(
            "cost must be 'measured', a table of exponents such as { N = 1 }, or an import path such as "
            f"'objective:cost'; got {given!r}."
        )
    function = imported(given, "cost", folder)
    if not callable(function):
        raise InvalidInput(f"cost = {given!r} must be a function of z; got {function!r}.")
    return cast(CostFunction, function)


def _powers(given: Table, fidelity: Space) -> Powers:
    positive = [name for name, p in fidelity.items() if p.ends is not None and p.ends[0] > 0]
    if not given:
        raise InvalidInput("cost must have an exponent for at least one fidelity; got {}.")
    for name in given:
        if name not in fidelity:
            known = ", ".join(fidelity) or "(none)"
            raise InvalidInput(f"cost may name the fidelities {known}; got {name!r}{nearest(name, fidelity)}.")
        if name not in positive:
            raise InvalidInput(
                f"cost.{name} needs a fidelity of positive numbers; got {fidelity[name]!r}. "
                "Give a function instead, such as cost = 'objective:cost'."
            )
    return Powers(tuple((name, finite_number(exponent, f"cost.{name}")) for name, exponent in given.items()))


def _budget(given: object) -> Limit:
    if given is None:
        raise InvalidInput("budget is missing. Give for instance budget = { targets = 30 }.")
    table = _table(given, "budget", "{ targets = 30 }")
    hint = hints.of_budget(table)
    if hint:
        raise InvalidInput(f"budget may have the keys {', '.join(_UNITS)}; got {table!r}.{hint}")
    only(table, _UNITS, "budget")
    if len(table) != 1:
        raise InvalidInput(f"budget must have exactly one of {', '.join(_UNITS)}; got {table!r}.")
    ((unit, amount),) = table.items()
    return Limit(positive_number(amount, f"budget.{unit}"), unit)  # type: ignore[arg-type]


# Objective and storage ------------------------------------------------------------------------------------------------


def _objective(document: Table, problem: Problem, folder: str, place: Place, stop_grace: float) -> Callable[..., Any]:
    given = [key for key in ("objective", "command") if key in document]
    if len(given) != 1:
        raise InvalidInput(
            f"A study must have exactly one of objective and command; got {' and '.join(given) or 'none'}."
        )
    path = _string(document[given[0]], given[0])
    if given == ["command"]:
        returns_outcomes = bool(problem.outcomes) or problem.objective is not None
        kept = document.get("trial_folders")
        runs = None if kept is None else os.path.join(folder, _string(kept, "trial_folders"))
        names = (*problem.space.names, *problem.fidelity)
        return Command(path, folder, names, returns_outcomes, place.environment, runs, stop_grace)
    if "trial_folders" in document:
        raise InvalidInput(
            f"trial_folders = {document['trial_folders']!r} is for a command; this study has objective = {path!r}. "
            "Leave it out, and create a folder in the function."
        )
    objective = imported(path, "objective", folder)
    if not callable(objective):
        raise InvalidInput(f"objective = {path!r} must be a function; got {objective!r}.")
    has_run = takes_run(objective, problem)
    arguments = ("x", "z", "run") if has_run else ("x", "z") if problem.fidelity else ("x",)
    try:
        inspect.signature(objective).bind(*arguments)
    except TypeError as error:
        call = f"f({', '.join(arguments)})"
        raise InvalidInput(f"objective = {path!r} must be callable as {call}; it is not: {error}.") from error
    except ValueError:  # some functions written in C have no signature
        pass
    return cast(Callable[..., Any], objective)


def _checkpoints(given: object, folder: str) -> Path | None:
    """Return the folder for checkpoints; one that is not absolute is relative to the folder of the study."""
    return None if given is None else checked_place(os.path.join(folder, _string(given, "checkpoints")))


def _storage(given: object, folder: str, name: str) -> str:
    """Return the URL of the database; the path of a file is relative to the folder of the study."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from boca.study.storage.location import file_url

    if given is None:
        if "/" in name or "\0" in name:
            raise InvalidInput(f"name = {name!r} cannot be the name of a file. Give storage, or another name.")
        return file_url(os.path.join(folder, f"{name}.db"))
    try:
        url = make_url(_string(given, "storage"))
    except (ArgumentError, ValueError) as error:
        raise InvalidInput(f"storage must be a URL such as 'sqlite:///study.db'; got {given!r}.") from error
    if url.get_backend_name() != "sqlite":
        return str(given)
    if url.host:
        raise InvalidInput(f"storage needs three slashes before a file; got {given!r}. Give 'sqlite:///study.db'.")
    path = url.database or ":memory:"
    if path == ":memory:" or path.startswith("file:") or os.path.isabs(path):
        return str(given)
    return file_url(os.path.join(folder, path), driver=url.drivername, query=str(given).partition("?")[2])


# The strategy ---------------------------------------------------------------------------------------------------------


def _strategy(given: object, problem: Problem, folder: str) -> Strategy | None:
    if given is None:
        return None
    settings = dict(given) if isinstance(given, dict) else {"name": given}
    if "name" not in settings:
        raise InvalidInput(f"strategy.name is missing; got {given!r}. Give one of {', '.join(STRATEGIES)}.")
    name = settings.pop("name")
    if isinstance(name, str) and ":" in name:
        base = imported(name, "strategy", folder)
    elif isinstance(name, str) and name in STRATEGIES:
        base = STRATEGIES[name]()
    else:
        hint = nearest(name, STRATEGIES) if isinstance(name, str) else ""
        raise InvalidInput(
            f"strategy must be one of {', '.join(STRATEGIES)}, or an import path such as 'module:name'; "
            f"got {name!r}{hint}."
        )
    strategy = configured(base, settings, "strategy")
    if not isinstance(strategy, Strategy) or isinstance(strategy, type):
        raise InvalidInput(f"strategy = {name!r} must be an object with a method suggest; got {strategy!r}.")
    try:
        check(strategy, problem)
    except InvalidInput as error:
        raise InvalidInput(f"strategy: {error}") from error
    except Exception as error:
        raise InvalidInput(f"strategy = {given!r} fails with {type(error).__name__}: {error}.") from error
    return strategy
