"""The studies of the replay gate: what is optimized, by which strategy, and everything that happens on the way.

Values, noise, seconds and failures follow from the case and the number of the trial alone, so that a study can be made
again.  Strategies are written with the names and the options of the pinned commit; `adapter.strategy` translates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boca import Choice, Float, Int, Problem, Space, seconds, targets

X, Z = Mapping[str, Any], Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Case:
    """A study and its script; numbers are those of trials, which start at 0."""

    name: str
    problem: Problem
    strategy: tuple[str, dict[str, Any]]
    value: Callable[[X, Z], float]
    budget: Any = field(default_factory=lambda: targets(5))
    seed: int = 1
    steps: int = 50
    """Trials at most, the imported ones not counted."""
    workers: int = 1
    batch: int = 0
    """Trials that are asked for at once; 0 asks for one at a time."""
    order: str = "first"
    """Which running trial gets its result: the first, the last, or one at random."""
    noise: Callable[[Z], float] = lambda z: 0.0
    """The deviation of the noise."""
    tells_noise: bool = False
    fails: Callable[[int], bool] = lambda number: False
    lost: Callable[[int], bool] = lambda number: False
    """Trials whose worker dies once, so that they have a second attempt."""
    imported: int = 0
    """Results before the first trial; every third one at the target, every second one with a cost."""
    at_target: Callable[[int], bool] = lambda k: k % 3 == 0
    elsewhere: float = 1.0
    """How far towards the upper end the fidelities of the other imported results lie, in unit coordinates."""
    late: int = 0
    """Results that are imported after half of the steps."""
    queued: tuple[tuple[int, X, Z | None], ...] = ()
    """Before which trial a point is queued, and the point."""
    took: Callable[[Z], float] = lambda z: 1.0
    """The seconds of an evaluation."""
    charged: Callable[[Z], float] | None = None
    """The cost that is told with a result, if it is not the expected one."""


# Objectives -----------------------------------------------------------------------------------------------------------


def units(problem: Problem, x: X, z: Z) -> tuple[np.ndarray, np.ndarray]:
    """Return x in unit coordinates, and how far every fidelity is from the target."""
    w = problem.fidelity.to_unit([z, problem.target])
    return problem.space.to_unit([x])[0], np.abs(w[0] - w[1])


def bowl(problem: Problem) -> Callable[[X, Z], float]:
    """Return a bowl with ripples, lower and tilted away from the target."""
    turn = 1.0 if problem.direction == "maximize" else -1.0

    def value(x: X, z: Z) -> float:
        u, away = units(problem, x, z)
        ripple = 0.2 * math.cos(7.0 * float(u[0])) * math.sin(5.0 * float(u[-1]) + 1.0)
        bias = 0.3 * float(away.sum()) * (1.0 + 0.5 * float(u[0]))
        return turn * (10.0 - 3.0 * float(np.sum((u - 0.35) ** 2)) + ripple - bias)

    return value


def unrelated(problem: Problem) -> Callable[[X, Z], float]:
    """Return an objective whose cheaper fidelities are another function."""

    def value(x: X, z: Z) -> float:
        u, away = units(problem, x, z)
        if float(away.sum()) > 0.0:
            return math.sin(8.0 * float(u[0]) + 1.0) * math.cos(7.0 * float(u[-1]))
        return -float(np.sum((u - 0.35) ** 2)) + 0.1 * math.cos(9.0 * float(u[0]))

    return value


def shifted(problem: Problem) -> Callable[[X, Z], float]:
    """Return an objective that jumps at the target and falls away from it, by the same amount for all x."""

    def value(x: X, z: Z) -> float:
        u, away = units(problem, x, z)
        shift = 3.0 * float(away.any()) + 4.0 * float(away.sum())
        return -float(np.sum((u - 0.35) ** 2)) + 0.1 * math.cos(9.0 * float(u[0])) - shift

    return value


def close(a: Mapping[str, Any], b: Mapping[str, Any]) -> Any:
    """A fidelity kernel as a user writes it: rougher than the squared exponential."""
    return np.exp(-0.7 * np.abs(np.asarray(a["n"]) - np.asarray(b["n"])))


def alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> Any:
    """The same for a number and an option."""
    options = np.where(np.asarray(a["mode"]) == np.asarray(b["mode"]), 1.0, 0.6)
    return options * np.exp(-((np.asarray(a["n"]) - np.asarray(b["n"])) ** 2))


# Problems -------------------------------------------------------------------------------------------------------------

PLANE = Space(a=Float(-1.0, 3.0), b=Float(1e-3, 1e3, log=True))
FLAT = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
EVERY_KIND = Space(k=Int(-3, 12), l=Int(1, 1000, log=True), kind=Choice(["one", "two", "three"]), w=Float(0.0, 1.0))


def quadratic(z: Z) -> float:
    return 0.05 + 0.95 * float(z["n"]) ** 2


def product(z: Z) -> float:
    return float((0.1 + z["n"]) * z["m"] * math.sqrt(z["s"]))


ONE = Problem(PLANE, Space(n=Float(0.0, 1.0)), cost=quadratic)
TWO = Problem(PLANE, Space(n=Float(0.0, 1.0), m=Int(2, 9)), cost=lambda z: 1.0 + z["m"] * (0.5 + z["n"]) ** 2)
THREE = Problem(FLAT, Space(n=Float(0.0, 1.0), m=Int(1, 8), s=Int(10, 1000, log=True)), cost=product)
FOUR = Problem(
    FLAT,
    Space(n=Float(0.0, 1.0), m=Float(0.0, 1.0), s=Float(0.0, 1.0), t=Int(1, 3)),
    cost=lambda z: 1.0 + 3.0 * z["n"] + z["m"] * z["s"] + z["t"],
)
NONE = Problem(FLAT, direction="minimize")
KINDS = Problem(EVERY_KIND, Space(n=Float(0.0, 1.0)), cost=lambda z: 0.2 + z["n"])
SOURCES = Problem(
    Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)),
    Space(source=Choice(["coarse", "medium", "fine"])),
    cost=lambda z: {"coarse": 2.0, "medium": 5.0, "fine": 10.0}[z["source"]],
    target={"source": "fine"},
)
MIXED = Problem(
    Space(a=Float(0.0, 1.0), kind=Choice(["one", "two"])),
    Space(n=Float(0.1, 1.0), mode=Choice(["quick", "full"])),
    target={"mode": "full"},
    direction="minimize",
)
INSIDE = Problem(
    FLAT, Space(n=Float(0.1, 1.0)), cost=lambda z: float(z["n"]), target={"n": 0.7303}, direction="minimize"
)
LOW = Problem(FLAT, Space(tol=Float(1e-4, 1e-1, log=True)), target={"tol": 1e-4}, direction="minimize")
MEASURED = Problem(FLAT, Space(n=Int(10, 40, log=True)), direction="minimize")
FEW = Problem(Space(kind=Choice(["one", "two"]), k=Int(1, 3)), Space(n=Int(1, 3)), cost=lambda z: float(z["n"]))
SIX = Problem(
    Space({f"x{i}": Float(0.0, 1.0) for i in range(6)}), Space(n=Float(0.0, 1.0)), cost=lambda z: 0.1 + 0.9 * z["n"]
)
UNIT = Problem(FLAT, Space(n=Float(0.0, 1.0)), cost=quadratic)
NEAR = Problem(FLAT, Space(n=Float(0.0, 1.0)), cost=lambda z: 0.3 + 0.7 * z["n"])
LINE = Problem(Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0)), cost=lambda z: 0.05 + 0.95 * z["n"])

KNOWN = {"kappa0": 2.0, "eta2": 0.01, "mean": 9.0, "h_x": [0.3, 0.4]}
TERMS = {
    "kappa0": 3.0,
    "eta2": 0.01,
    "mean": 9.0,
    "h_x": [0.3, 0.4],
    "terms": [
        {"levels": [[2.0, 2.0, 2.0]] * 3, "h_x": [0.3, 0.4]},
        {"levels": [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], "h_x": [0.5, 0.5]},
        {"levels": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.5]], "h_x": [0.2, 0.9]},
    ],
}
OFF = {"learn_maximum": False, "improve_at_target": False, "improve_on_draws": False, "doubt_fidelities": False}


def boca(**options: Any) -> tuple[str, dict[str, Any]]:
    return "Boca", options


def paper(**options: Any) -> tuple[str, dict[str, Any]]:
    return "Boca.paper", options


def size(z: Z) -> float:
    """Seconds that grow with an integer fidelity."""
    return 0.02 * float(z["n"]) ** 1.5


def mode(z: Z) -> float:
    return float(z["n"]) * (3.0 if z["mode"] == "full" else 0.8)


def plain(name: str, problem: Problem, strategy: tuple[str, dict[str, Any]], **script: Any) -> Case:
    return Case(name, problem, strategy, script.pop("value", bowl(problem)), **script)


CASES: tuple[Case, ...] = (
    # Boca, by problem
    plain("boca-p1", ONE, boca(), budget=targets(10), steps=70),
    plain("boca-p0", NONE, boca(), budget=targets(36), noise=lambda z: 0.05),
    plain("boca-p2-ints", TWO, boca(), budget=targets(16), noise=lambda z: 0.1),
    plain("boca-p3", THREE, boca(), budget=targets(12), noise=lambda z: 0.05),
    plain("boca-p4-workers", FOUR, boca(), budget=targets(24), workers=3, order="random"),
    plain(
        "boca-every-kind",
        KINDS,
        boca(),
        budget=targets(16),
        noise=lambda z: 0.1,
        queued=((5, {"k": 4, "l": 100, "kind": "two", "w": 0.25}, {"n": 0.5}),),
    ),
    plain("boca-sources", SOURCES, boca(), budget=targets(18)),
    plain("boca-target-inside", INSIDE, boca(), budget=targets(14)),
    plain("boca-target-low", LOW, boca(), budget=targets(18), took=lambda z: 0.3 * (z["tol"] / 1e-4) ** -0.4),
    plain("boca-six-variables", SIX, boca(), budget=targets(20), noise=lambda z: 0.02),
    plain("boca-long", LINE, boca(), budget=targets(60), steps=140, noise=lambda z: 0.1, seed=2),
    # Boca, by cost and budget
    plain("boca-measured-targets", MEASURED, boca(), budget=targets(16), took=size),
    plain(
        "boca-measured-seconds", MEASURED, boca(), budget=seconds(90), took=size, workers=2, lost=lambda k: k in (6, 9)
    ),
    plain("boca-measured-choice", MIXED, boca(), budget=targets(18), took=mode, imported=4),
    plain(
        "boca-declared-seconds",
        ONE,
        boca(),
        budget=seconds(20),
        took=lambda z: 2.0 * quadratic(z),
        workers=2,
        order="last",
    ),
    plain("boca-cost-told", ONE, boca(), budget=6.0, charged=lambda z: 1.2 * quadratic(z)),
    plain("boca-no-budget", ONE, boca(), budget=None),
    plain("boca-poor", ONE, boca(), budget=targets(1.3)),
    plain("boca-no-target", ONE, boca(), budget=targets(0.6)),
    # Boca, by events
    plain(
        "boca-failures",
        NEAR,
        boca(),
        budget=targets(14),
        fails=lambda k: k in (0, 1, 5, 6, 7, 11, 15),
        queued=tuple((k, {"a": 0.5, "b": 1.0}, None) for k in (5, 6, 7)),
    ),
    plain("boca-workers", NEAR, boca(), budget=targets(18), workers=4, order="last", noise=lambda z: 0.1),
    plain("boca-batches", UNIT, boca(), budget=targets(12), batch=5, fails=lambda k: k % 9 == 8),
    plain(
        "boca-imported",
        ONE,
        boca(),
        budget=targets(10),
        imported=12,
        late=3,
        workers=2,
        queued=(
            (2, {"a": 0.25, "b": 2.0}, {"n": 0.5}),
            (4, {"a": 1.5, "b": 0.1}, None),
            (5, {"a": 1.5, "b": 0.1}, None),
        ),
    ),
    plain(
        "boca-noise-told",
        NEAR,
        boca(),
        budget=targets(14),
        noise=lambda z: 0.05 + 0.2 * (1.0 - z["n"]),
        tells_noise=True,
        imported=5,
    ),
    plain("boca-few-points", FEW, boca(), budget=targets(30), workers=8, order="random", fails=lambda k: k in (3, 4)),
    plain("boca-flat", ONE, boca(), budget=targets(5), value=lambda x, z: 7.25, steps=20),
    plain("boca-huge", ONE, boca(), budget=targets(5), value=lambda x, z: 1e200 * bowl(ONE)(x, z), steps=20),
    # Boca, by what the model finds out
    plain("boca-guard", UNIT, boca(), value=unrelated(UNIT), noise=lambda z: 0.01, imported=45, budget=targets(24)),
    plain(
        "boca-extended",
        UNIT,
        boca(),
        value=shifted(UNIT),
        noise=lambda z: 0.01,
        imported=72,
        at_target=lambda k: k < 12,
        elsewhere=0.6,
        budget=targets(24),
        steps=30,
    ),
    plain(
        "boca-extended-workers",
        UNIT,
        boca(),
        value=shifted(UNIT),
        noise=lambda z: 0.01,
        imported=60,
        at_target=lambda k: k < 12,
        elsewhere=0.6,
        budget=targets(24),
        steps=20,
        workers=3,
        seed=3,
    ),
    plain("boca-misleading", NEAR, boca(), value=unrelated(NEAR), noise=lambda z: 0.01, budget=targets(30)),
    plain(
        "boca-rising-noise",
        LINE,
        boca(),
        noise=lambda z: math.sqrt(0.0025 + 0.6 * (1.0 - z["n"])),
        imported=60,
        budget=targets(24),
        workers=2,
    ),
    plain(
        "boca-rising-noise-p3",
        THREE,
        boca(),
        noise=lambda z: 0.05 + 1.5 * (1.0 - z["n"]),
        imported=80,
        budget=targets(12),
        steps=20,
        seed=8,
    ),
    plain(
        "boca-many",
        UNIT,
        boca(),
        noise=lambda z: 0.1 + 0.2 * (1.0 - z["n"]),
        imported=300,
        budget=targets(40),
        steps=20,
        fails=lambda k: k == 302,
    ),
    plain(
        "boca-1200",
        UNIT,
        boca(),
        noise=lambda z: 0.1,
        imported=1196,
        budget=targets(150),
        steps=10,
        workers=2,
        fails=lambda k: k == 1198,
    ),
    plain(
        "boca-1200-p0",
        NONE,
        boca(surrogate={"refit_every": 50}),
        noise=lambda z: 0.1,
        imported=1230,
        budget=targets(150),
        steps=6,
    ),
    # Boca, by options
    plain("boca-no-guard", TWO, boca(surrogate={"guard": None, "rising_noise": False}), budget=targets(12)),
    plain("boca-fidelity-kernel", ONE, boca(surrogate={"fidelity_kernel": close}), imported=24, budget=targets(14)),
    plain(
        "boca-fidelity-kernel-choice",
        MIXED,
        boca(surrogate={"fidelity_kernel": alike}),
        imported=16,
        budget=targets(14),
        took=mode,
    ),
    plain("boca-known", ONE, boca(hyperparameters={**KNOWN, "h_z": [0.8]}), budget=targets(12)),
    plain(
        "boca-known-extended",
        ONE,
        boca(hyperparameters={**KNOWN, "h_z": [0.8], "jump": 0.2, "trend": 0.5, "noise_rise": 0.1}),
        budget=targets(12),
    ),
    plain(
        "boca-known-kernel", ONE, boca(hyperparameters=KNOWN, surrogate={"fidelity_kernel": close}), budget=targets(12)
    ),
    plain("boca-direct", NEAR, boca(maximizer="direct"), budget=targets(12), steps=30),
    plain("boca-all-off", NEAR, boca(**OFF), budget=targets(14)),
    plain("boca-learn-only", NEAR, boca(**OFF | {"learn_maximum": True}), budget=targets(14)),
    plain("boca-improve-only", NEAR, boca(**OFF | {"improve_at_target": True}), budget=targets(14)),
    plain("boca-draws-only", NEAR, boca(**OFF | {"improve_on_draws": True}), budget=targets(12)),
    plain("boca-doubt-only", NEAR, boca(**OFF | {"doubt_fidelities": True}), budget=targets(14)),
    plain("boca-no-learn", NEAR, boca(learn_maximum=False), budget=targets(14)),
    plain("boca-no-improve", NEAR, boca(improve_at_target=False), budget=targets(14)),
    plain("boca-no-draws", NEAR, boca(improve_on_draws=False), budget=targets(14)),
    plain("boca-no-doubt", NEAR, boca(doubt_fidelities=False), budget=targets(14)),
    plain(
        "boca-uniform",
        NEAR,
        boca(
            start_design="uniform",
            start_fidelities="uniform",
            reserve_last=False,
            max_shrink=1.0,
            first_c=2.0,
            information_per_cost=False,
        ),
        budget=targets(14),
    ),
    plain(
        "boca-start-at-target",
        ONE,
        boca(start_fidelities="target", max_shrink=8.0, theorem={"delta": 0.2, "a": 2.0}),
        budget=targets(20),
        steps=36,
    ),
    plain(
        "boca-se-likelihood",
        NEAR,
        boca(surrogate={"kernel": "se", "mean": "median", "priors": False, "refit_every": 3, "starts": 2}),
        budget=targets(12),
    ),
    # the paper's
    plain("paper-p1", ONE, paper(), budget=targets(6), steps=60),
    plain("paper-p0", NONE, paper(), budget=targets(30), fails=lambda k: k == 4),
    plain("paper-p3", THREE, paper(maximizer="sobol"), budget=targets(10), workers=2),
    plain(
        "paper-measured", MEASURED, paper(maximizer="sobol"), budget=targets(12), took=size, fails=lambda k: k % 7 == 6
    ),
    plain("paper-theorem", NEAR, paper(theorem={}), budget=targets(6), steps=20),
    plain(
        "paper-known",
        ONE,
        paper(maximizer="sobol", hyperparameters={**KNOWN, "h_z": [0.8]}),
        budget=targets(8),
        steps=64,
        imported=3,
    ),
    # the others
    plain("gp-ucb", ONE, ("GPUCB", {}), budget=targets(32), workers=2, order="last", steps=34),
    plain(
        "gp-ucb-known",
        NONE,
        ("GPUCB", {"hyperparameters": KNOWN | {"mean": -9.0}, "maximizer": "sobol"}),
        budget=targets(24),
        fails=lambda k: k == 5,
    ),
    plain("gp-ei", ONE, ("GPEI", {}), budget=targets(32), steps=34),
    plain("gp-ei-every-kind", KINDS, ("GPEI", {"maximizer": "sobol"}), budget=targets(30), imported=9),
    plain("gp-ei-measured", MEASURED, ("GPEI", {"maximizer": "sobol", "surrogate": {}}), budget=targets(16), took=size),
    plain("mf-gp-ucb", ONE, ("MFGPUCB", {}), budget=targets(10), steps=40),
    plain(
        "mf-gp-ucb-list",
        MEASURED,
        ("MFGPUCB", {"fidelities": [{"n": 12}, {"n": 20}], "maximizer": "sobol"}),
        budget=targets(16),
        took=size,
        workers=2,
        fails=lambda k: k in (4, 9),
    ),
    plain(
        "mf-gp-ucb-known",
        ONE,
        ("MFGPUCB", {"hyperparameters": KNOWN, "maximizer": "sobol"}),
        budget=targets(10),
        imported=4,
    ),
    plain("mf-gp-ucb-sources", SOURCES, ("MFGPUCB", {"maximizer": "sobol", "surrogate": {}}), budget=targets(16)),
    plain("mf-sko", ONE, ("MFSKO", {}), budget=targets(8), steps=34),
    plain(
        "mf-sko-sources",
        SOURCES,
        ("MFSKO", {"maximizer": "sobol"}),
        budget=targets(14),
        workers=2,
        fails=lambda k: k == 6,
    ),
    plain(
        "mf-sko-known",
        ONE,
        ("MFSKO", {"maximizer": "sobol", "hyperparameters": {**KNOWN, "h_z": [0.8]}}),
        budget=targets(10),
    ),
    plain(
        "mf-sko-terms", ONE, ("MFSKO", {"maximizer": "sobol", "hyperparameters": TERMS}), budget=targets(10), imported=6
    ),
    plain("mf-sko-p0", NONE, ("MFSKO", {"maximizer": "sobol"}), budget=targets(32)),
    plain(
        "mf-sko-measured",
        MEASURED,
        ("MFSKO", {"maximizer": "sobol"}),
        budget=targets(12),
        took=size,
        noise=lambda z: 0.05,
        tells_noise=True,
    ),
    plain("random", ONE, ("RandomSearch", {}), budget=targets(20), workers=3, order="random"),
    plain("random-few-points", FEW, ("RandomSearch", {}), budget=targets(30), workers=8, fails=lambda k: k % 3 == 2),
)

NAMED = {case.name: case for case in CASES}
