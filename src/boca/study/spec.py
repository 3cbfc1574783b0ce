"""What a study stores of its problem: enough to check that a resumed study is the same, readable without the code."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import numpy as np

from boca.domain.budget import Limit
from boca.domain.candidates import Candidates
from boca.domain.outcomes import AtLeast, AtMost
from boca.domain.problem import Problem
from boca.domain.space import Space, parameter_from_json
from boca.strategies.registry import CLASSES, NAMES

_COSTS_COMPARED_AT = 16  # fidelities at which a cost function shows what it is
_KINDS: dict[str, type[AtMost] | type[AtLeast]] = {"at_most": AtMost, "at_least": AtLeast}

_OPTIONAL = frozenset(
    {"where", "candidates", "deterministic", "first", "subject_to", "objective", "outcomes", "reference", "stop_runs"}
)
CHANGEABLE = frozenset({"budget", "fields", "steps", "stop_runs"})
"""The parts that may differ with `allow_change`: results remain valid with a larger budget and in a newer version."""


def describe(
    problem: Problem, strategy: object, *, seed: int, limit: Limit | None, stop_runs: object = None
) -> dict[str, Any]:
    """Return everything that a resumed study must have in common with the first one, as JSON."""
    description = {
        "space": _plain_space(problem.space),
        "fidelity": _plain_space(problem.fidelity),
        "target": problem.target,
        "direction": problem.direction,
        "cost": _cost(problem),
        "target_cost": problem.target_cost if problem.has_declared_cost else None,
        "strategy": plain(strategy),
        "seed": seed,
        "budget": None if limit is None else asdict(limit),
    }
    if problem.deterministic:
        description["deterministic"] = True
    if problem.first:
        description["first"] = problem.first
    if problem.subject_to:
        description["subject_to"] = _limits(problem)
    if problem.objectives:
        description["outcomes"] = dict(problem.objectives)
    if problem.reference:
        description["reference"] = dict(sorted(problem.reference.items()))
    if problem.objective is not None:
        description["objective"] = problem.objective
    if stop_runs is not None:
        description["stop_runs"] = plain(stop_runs)
    description |= _restrictions(problem.space)
    return dict(json.loads(json.dumps(description, allow_nan=False)))


def _restrictions(space: Space) -> dict[str, Any]:
    """Return the parts that only a space with known constraints, or a list of candidates, has."""
    parts: dict[str, Any] = {}
    if space.constraints:
        parts["where"] = [{"words": each.words, "fingerprint": each.fingerprint} for each in space.constraints]
    if isinstance(space, Candidates):
        parts["candidates"] = {
            "rows": space.fingerprint,
            "labels": list(space.labels),
            "lacking": [name for name, may in zip(space, space.optional, strict=True) if may],
            "repeat": space.repeat,
        }
    return parts


def problem_of(spec: Mapping[str, Any]) -> Problem:
    """Return the problem of a description.

    A declared cost is code and is not stored, except what a query at the target costs.  A query elsewhere is assumed to
    cost its share of that, as before the first result.  What a trial did cost is stored with the trial.
    """
    space, fidelity = (
        Space({name: parameter_from_json(values) for name, values in spec[part].items()})
        for part in ("space", "fidelity")
    )
    words = [(each["words"], each["fingerprint"]) for each in spec.get("where", [])]
    rows = spec.get("candidates", {})
    space = space.described(words, labels=rows.get("labels", ()), optional=rows.get("lacking", ()))
    more: dict[str, Any] = {
        "deterministic": spec.get("deterministic", False),
        "first": spec.get("first", ()),
        "subject_to": {name: _KINDS[kind](bound, at) for name, (kind, bound, at) in spec.get("subject_to", {}).items()},
        "objective": spec.get("objective"),
        "reference": spec.get("reference"),
        **({"outcomes": spec["outcomes"]} if "outcomes" in spec else {"direction": spec["direction"]}),
    }
    bare = Problem(space, fidelity, target=spec["target"], **more)
    target_cost = spec["target_cost"]
    if target_cost is None:
        return bare

    def cost(z: Mapping[str, Any]) -> float:
        return float(target_cost * bare.assumed_cost(z))

    return Problem(space, fidelity, cost=cost, target=spec["target"], **more)


def _limits(problem: Problem) -> dict[str, list[Any]]:
    """Return the limits on outcomes as kind, bound and where they hold; their order is not stored."""
    kinds = {kind: name for name, kind in _KINDS.items()}
    limits = sorted(problem.subject_to.items())
    return {name: [kinds[type(limit)], limit.bound, limit.at] for name, limit in limits}


def limit_of(spec: Mapping[str, Any]) -> Limit | None:
    """Return the budget of a description."""
    return None if spec["budget"] is None else Limit(**spec["budget"])


def differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, str]:
    """Return what differs between two descriptions, one clause per part; empty if they agree.

    A description has every field of its strategy.  A field that only one of the two has did not exist in the version
    that made the other; such fields are a part of their own, "fields", unless they are off.
    """
    found = {}
    old, new = _only(stored["strategy"], given["strategy"]), _only(given["strategy"], stored["strategy"])
    if old or new:
        found["fields"] = _fields(old, new)
    if steps := _become_steps(stored["fidelity"], given["fidelity"]):
        found["steps"] = f"{steps} was an Int and is Steps"
        stored = {**stored, "fidelity": given["fidelity"]}
    for part in dict.fromkeys([*stored, *given]):
        if part in ("target_cost", "first_budget"):
            continue  # the fingerprint of the cost covers the one, to twelve digits; the other is never given
        was, now = stored.get(part), given.get(part)
        if part == "strategy":
            was, now = _common(was, now), _common(now, was)
        if part == "outcomes" and was == now:
            continue  # by name: their order is of no weight
        if _exactly(was) != _exactly(now):
            found[part] = _changed(part, was, now)
    if "cost" in found:
        if "measured" in (stored["cost"], given["cost"]):
            found["cost"] = f"cost was {_kind_of_cost(stored['cost'])} and is {_kind_of_cost(given['cost'])}"
        elif {"fidelity", "target"} & found.keys():
            del found["cost"]  # the same function has other values at other fidelities
        else:
            found["cost"] = "cost has other values at the same fidelities"
    return found


def _become_steps(was: Any, now: Any) -> str | None:
    """Return the fidelity that became `Steps` of the same bounds, if nothing else differs."""
    for name, parameter in now.items() if isinstance(was, dict) and list(was) == list(now) else ():
        if parameter["type"] == "steps" and was[name] == {**parameter, "type": "int"}:
            rest = ({k: v for k, v in one.items() if k != name} for one in (was, now))
            return name if _exactly(next(rest)) == _exactly(next(rest)) else None
    return None


def _changed(part: str, was: Any, now: Any) -> str:
    """Return in words how a part differs; a part that only one study has is absent in the other."""
    may_lack = part in _OPTIONAL
    before = "absent" if was is None and may_lack else _short(was, now)
    after = "absent" if now is None and may_lack else _short(now, was)
    return f"{part} was {before} and is {after}"


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return in words which fields of a strategy were added and removed between two versions."""
    came = f"strategy has {json.dumps(new)}, new since the study was made"
    went = f"strategy had {json.dumps(old)}, which this version does not have"
    return "; ".join([*([came] if new else []), *([went] if old else [])])


def _is_same_class(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and "type" in one and one["type"] == other.get("type")


def _only(one: Any, other: Any, path: str = "") -> dict[str, Any]:
    """Return the fields, by path, that a dataclass has in one description and not in the other, unless they are off."""
    found: dict[str, Any] = {}
    made = CLASSES.get(one["type"]) if _is_same_class(one, other) else None
    off = {} if made is None else {name: plain(value) for name, value in off_values(made).items()}
    for name, value in one.items() if _is_same_class(one, other) else ():
        if name in other:
            found |= _only(value, other[name], f"{path}{name}.")
        elif name not in off or off[name] != value:
            found[f"{path}{name}"] = value
    return found


def _common(one: Any, other: Any) -> Any:
    """Return a description with the fields that the other one has too; fields have names and no order."""
    if not _is_same_class(one, other):
        return one
    return {name: _common(one[name], other[name]) for name in sorted(one) if name in other}


def plain(value: object) -> Any:
    """Return settings as JSON: a dataclass by its registered name and its fields, a function by its import path."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        name = NAMES.get(type(value)) or _name(type(value))
        return {"type": name, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    return _name(value if hasattr(value, "__qualname__") else type(value))


def off_values(made: type) -> dict[str, Any]:
    """Return the fields that came later than the first studies, with the value that leaves everything as it was."""
    return {f.name: f.metadata["off"] for f in fields(made) if "off" in f.metadata}


def as_stored(strategy: Any, settings: Any) -> Any:
    """Return a strategy as the version that stored these settings had it: what they lack is off."""
    if not is_dataclass(strategy) or isinstance(strategy, type) or not isinstance(settings, Mapping):
        return strategy
    if settings.get("type") != NAMES.get(type(strategy)):
        return strategy
    off = {name: value for name, value in off_values(type(strategy)).items() if name not in settings}
    inner = {f.name: as_stored(getattr(strategy, f.name), settings.get(f.name)) for f in fields(strategy) if f.init}
    changed = {name: value for name, value in inner.items() if value is not getattr(strategy, name)} | off
    return replace(strategy, **changed) if changed else strategy


def remade(settings: Any) -> Any:
    """Return what `plain` described, with the fields that this version knows; None for what is code.

    Code is a class or a function that is stored by its import path alone.  A field that is missing is off, if it came
    later than the first studies; otherwise it has its default.
    """
    if isinstance(settings, list):
        return [remade(inner) for inner in settings]
    if not isinstance(settings, Mapping):
        return settings
    if "type" not in settings:
        return {name: remade(inner) for name, inner in settings.items()}
    made = CLASSES.get(settings["type"])
    if made is None:
        return None
    given = {f.name: remade(settings[f.name]) for f in fields(made) if f.name in settings}
    return made(**(off_values(made) | given))


def unlike(stored: Any, other: Any) -> tuple[list[str], list[str]]:
    """Return the fields, by path, that only the first and only the second of two descriptions of a strategy have."""
    return list(_only(stored, other)), list(_only(other, stored))


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _plain_space(space: Space) -> dict[str, Any]:
    return {name: parameter.to_json() for name, parameter in space.items()}


def _cost(problem: Problem) -> str:
    """Return a fingerprint of the cost function: its values at some fidelities, to twelve digits."""
    if not problem.has_declared_cost:
        return "measured"
    grid = problem.grid[0]
    some = [grid[i] for i in np.unique(np.linspace(0, len(grid) - 1, _COSTS_COMPARED_AT - 1).round().astype(int))]
    values = [f"{problem.cost(z):.12g}" for z in [*some, problem.target]]
    return hashlib.sha256(" ".join(values).encode()).hexdigest()


def _kind_of_cost(fingerprint: str) -> str:
    return "measured" if fingerprint == "measured" else "declared"


def _exactly(value: object) -> str:
    """Return what distinguishes 1 from true, and one order from another: coordinates have an order."""
    return json.dumps(value)


def _short(value: object, other: object) -> str:
    """Return a part in words; of a mapping, only what differs from the other one."""
    if isinstance(value, dict) and isinstance(other, dict):
        differing = {k: v for k, v in value.items() if k not in other or _exactly(other[k]) != _exactly(v)}
        if not differing and set(value) == set(other):
            return f"in the order {', '.join(value)}"
        value = differing
    return json.dumps(value)
