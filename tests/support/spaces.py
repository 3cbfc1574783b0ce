"""Random spaces with conditions and known constraints, and points of them, for tests of what must hold on all."""

from __future__ import annotations

import boca
from boca import Choice, Float, Int, Space
from boca.errors import InvalidInput

PIPELINE = Space(
    kernel=Choice(["rbf", "linear", "poly"]),
    C=Float(1e-2, 1e3, log=True),
    gamma=Float(1e-4, 10.0, log=True, when={"kernel": ["rbf"]}),
    degree=Int(2, 5, when={"kernel": ["poly"]}),
    shift=Float(0.0, 1.0, when={"degree": [3, 4]}),
)


def random_space(rng, *, constrained=True, finite=False):
    """Return a space of two to seven parameters; later ones may depend on earlier ones, also nested."""
    parameters = {}
    for j in range(int(rng.integers(2, 8))):
        switches = [name for name, p in parameters.items() if p.levels is not None]
        when = None
        if switches and rng.random() < 0.6:
            chosen = rng.choice(switches, size=min(len(switches), int(rng.integers(1, 3))), replace=False)
            when = {str(name): _some_values(parameters[str(name)], rng) for name in chosen}
        parameters[f"p{j}"] = _parameter(rng, when, finite)
    space = Space(parameters)
    return _constrained(space, rng) if constrained else space


def _parameter(rng, when, finite):
    kind = rng.integers(2 if finite else 4)
    if kind == 0:
        return Choice([f"o{i}" for i in range(int(rng.integers(2, 5)))], when=when)
    if kind == 1:
        return Int(1, int(rng.integers(2, 5 if finite else 30)), log=bool(rng.random() < 0.3), when=when)
    return Float(0.5, 3.0, log=bool(kind == 2), when=when)


def _some_values(parameter, rng):
    values = [parameter.from_unit(float(u)) for u in parameter.axis(parameter.levels)]
    count = int(rng.integers(1, len(values) + 1))
    return [values[i] for i in rng.choice(len(values), size=count, replace=False)]


def _constrained(space, rng):
    """Return the space with up to two constraints: one as text, one as a function that knows of inactive parameters."""
    names = [name for name, p in space.items() if p.is_ordered]
    if len(names) >= 2 and rng.random() < 0.7:
        a, b = rng.choice(names, size=2, replace=False)
        high = space[a].ends[1] + space[b].ends[1]
        space = _tried(space, f"{a} + {b} <= {rng.uniform(0.3, 0.9) * high}", None)
    if names and rng.random() < 0.5:
        name, least = str(rng.choice(names)), rng.uniform(0.0, 0.6)
        limit = space[name].from_unit(least)
        space = _tried(space, lambda x: name not in x or x[name] >= limit, f"{name} is not small")
    return space


def _tried(space, test, words):
    try:
        return space.where(test, words)
    except InvalidInput:  # nothing is feasible
        return space


def random_points(space, rng, count):
    return [space.from_unit(u) for u in space.snap(rng.random((count, len(space))))]


def is_exact(space, x):
    """Whether x has exactly what is active, in the order of the space, with values in range."""
    for name, parameter in space.items():
        when = parameter.when or {}
        active = all(parent in x and x[parent] in values for parent, values in when.items())
        if active != (name in x):
            return False
        if active and parameter.validate(x[name], name) != x[name]:
            return False
    return list(x) == [name for name in space if name in x]


def studied(problem, rng, count, value=None):
    """Return a study in memory with results at random points, whether constraints allow them or not."""
    optimizer = boca.Optimizer(problem, budget=None, seed=int(rng.integers(1000)))
    for x in random_points(problem.space, rng, count):
        optimizer.add(x, None, float(rng.standard_normal()) if value is None else value(x))
    return optimizer


def known_gp(problem):
    return {"kappa0": 1.0, "eta2": 1e-4, "mean": 0.0, "h_x": [0.4] * len(problem.space)}


def grid_of(space):
    """Return every point of a finite space by brute force: all combinations, what is inactive left out, each once."""
    import itertools

    values = [[p.from_unit(float(u)) for u in p.axis(p.levels)] for p in space.values()]
    found = {}
    for combination in itertools.product(*values):
        x = space.validate(dict(zip(space, combination, strict=True)), "x")
        if space.violated(x) is None:
            found[tuple(x.items())] = x
    return list(found.values())
