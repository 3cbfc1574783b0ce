"""Test functions of global optimization with fidelities, as in the appendix of the BOCA paper [K17].

    symbol      meaning                                                   shape
    ----------  --------------------------------------------------------  ------
    x           point of the domain, x1..xd in the order of the paper     d
    z           fidelity, z1..zp, each in [0, 1]; the target is all ones  p
    g(z, x)     the function; at the target it is the textbook one        scalar
    R(x1)       rational factor of Currin
    alpha       heights of the four bumps of Hartmann                     (4,)
    A, P        inverse squared widths and centers of the bumps           (4, d)
    a b c r s t the constants of Branin; b, c and t depend on z

Where the paper has a misprint, the form used is the one that becomes the textbook function at the target.
All are maximized, so Branin, which is usually minimized, has its sign turned.

The optima were found without this code: Hartmann by 300 starts of L-BFGS-B, the best of them polished by
Newton's method in 60-digit decimal arithmetic; Currin by bisection on R' in the same arithmetic; Borehole as
the best of the 256 corners and Branin in closed form, differential evolution agreeing with both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from boca.domain.budget import targets
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Float, FloatArray, Point, Space
from boca.problems.benchmark import Benchmark

_UNIT = (0.0, 1.0)


def currin(seed: int) -> Benchmark:
    """Return the Currin exponential function: d = 2, p = 1.

    At the target it falls in x2, so the maximum lies on the edge x2 = 0; below x2 = 0.02 it is flat to ten
    digits.
    """
    return Benchmark(
        name="currin",
        problem=_problem([_UNIT] * 2, p=1, cost=_currin_cost),
        budget=targets(50),
        function=_currin,
        optimum=13.798722044728434,
        maximizer={"x1": 0.21666666666666667, "x2": 0.0},
        noise_variance=0.5,
        hyperparameters=None,
        seed=seed,
    )


def hartmann3(seed: int) -> Benchmark:
    """Return the Hartmann function of three variables: d = 3, p = 2."""
    return Benchmark(
        name="hartmann3",
        problem=_problem([_UNIT] * 3, p=2, cost=_hartmann3_cost),
        budget=targets(100),
        function=partial(_hartmann, A=_A3, P=_P3),
        optimum=3.8627797873326624,
        maximizer={"x1": 0.11458887665506896, "x2": 0.55564889461693, "x3": 0.8525469846866774},
        noise_variance=0.01,
        hyperparameters=None,
        seed=seed,
    )


def hartmann6(seed: int) -> Benchmark:
    """Return the Hartmann function of six variables: d = 6, p = 4.

    Most searches that miss the maximum end at a second bump, of height 3.2032.
    """
    return Benchmark(
        name="hartmann6",
        problem=_problem([_UNIT] * 6, p=4, cost=_hartmann6_cost),
        budget=targets(200),
        function=partial(_hartmann, A=_A6, P=_P6),
        optimum=3.3223680114155147,
        maximizer={
            "x1": 0.20168951100670543,
            "x2": 0.15001069182345797,
            "x3": 0.476873974221897,
            "x4": 0.2753324304940561,
            "x5": 0.31165161660011326,
            "x6": 0.6573005340656203,
        },
        noise_variance=0.05,
        hyperparameters=None,
        seed=seed,
    )


def borehole(seed: int) -> Benchmark:
    """Return the flow of water through a borehole: d = 8, p = 1.

    It is monotone in every variable, so the maximum is a corner of the box.
    """
    bounds = [
        (0.05, 0.15),
        (100.0, 50_000.0),
        (63_070.0, 115_600.0),
        (990.0, 1110.0),
        (63.1, 116.0),
        (700.0, 820.0),
        (1120.0, 1680.0),
        (9855.0, 12_045.0),
    ]
    corner = (0.15, 100.0, 115_600.0, 1110.0, 116.0, 700.0, 1120.0, 12_045.0)
    return Benchmark(
        name="borehole",
        problem=_problem(bounds, p=1, cost=_borehole_cost),
        budget=targets(200),
        function=_borehole,
        optimum=309.57558766040796,
        maximizer={f"x{j}": value for j, value in enumerate(corner, start=1)},
        noise_variance=5.0,
        hyperparameters=None,
        seed=seed,
    )


def branin(seed: int) -> Benchmark:
    """Return the Branin function with its sign turned: d = 2, p = 3.

    Three points attain the maximum; `maximizer` is the middle one.
    """
    return Benchmark(
        name="branin",
        problem=_problem([(-5.0, 10.0), (0.0, 15.0)], p=3, cost=_branin_cost),
        budget=targets(50),
        function=_branin,
        optimum=-0.3978873577297383,  # -s t = -10/(8 pi): the square vanishes and cos(x1) = -1
        maximizer={"x1": math.pi, "x2": 2.275},
        noise_variance=0.05,
        hyperparameters=None,
        seed=seed,
    )


def _problem(bounds: Sequence[tuple[float, float]], *, p: int, cost: CostFunction) -> Problem:
    space = Space({f"x{j}": Float(low, high) for j, (low, high) in enumerate(bounds, start=1)})
    fidelity = Space({f"z{i}": Float(0.0, 1.0) for i in range(1, p + 1)})
    return Problem(space, fidelity, cost=cost)


def _currin(x: Point, z: Point) -> float:
    x1, x2 = x["x1"], x["x2"]
    decay = math.exp(-0.5 / x2) if x2 > 0 else 0.0  # the limit on the edge, which belongs to the domain
    R = (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)
    return float((1 - (1 - 0.1 * (1 - z["z1"])) * decay) * R)


def _currin_cost(z: Mapping[str, Any]) -> float:
    return float(0.1 + z["z1"] ** 2)


_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_A6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(x: Point, z: Point, *, A: FloatArray, P: FloatArray) -> float:
    alpha = _ALPHA.copy()
    alpha[: len(z)] -= 0.1 * (1 - np.array(list(z.values())))  # fidelity i lowers bump i, the rest stay
    bumps = np.exp(-np.sum(A * (np.array(list(x.values())) - P) ** 2, axis=1))
    return float(alpha @ bumps)


def _hartmann3_cost(z: Mapping[str, Any]) -> float:
    return float(0.05 + 0.95 * z["z1"] ** 3 * z["z2"] ** 2)


def _hartmann6_cost(z: Mapping[str, Any]) -> float:
    return float(0.05 + 0.95 * z["z1"] ** 3 * z["z2"] ** 2 * z["z3"] ** 1.5 * z["z4"])


def _borehole(x: Point, z: Point) -> float:
    x1, x2, x3, x4, x5, x6, x7, x8 = x.values()
    log_ratio = math.log(x2 / x1)
    losses = 2 * x7 * x3 / (log_ratio * x1**2 * x8) + x3 / x5
    head = x3 * (x4 - x6) / log_ratio
    f2 = 2 * math.pi * head / (1 + losses)
    f1 = 5 * head / (1.5 + losses)
    return float(z["z1"] * f2 + (1 - z["z1"]) * f1)


def _borehole_cost(z: Mapping[str, Any]) -> float:
    return float(0.1 + z["z1"] ** 1.5)


def _branin(x: Point, z: Point) -> float:
    x1, x2 = x["x1"], x["x2"]
    a, r, s = 1.0, 6.0, 10.0
    b = 5.1 / (4 * math.pi**2) - 0.01 * (1 - z["z1"])
    c = 5 / math.pi - 0.1 * (1 - z["z2"])
    t = 1 / (8 * math.pi) + 0.05 * (1 - z["z3"])
    g = a * (x2 - b * x1**2 + c * x1 - r) ** 2 + s * (1 - t) * math.cos(x1) + s
    return float(-g)


def _branin_cost(z: Mapping[str, Any]) -> float:
    return float(0.05 + z["z1"] ** 3 * z["z2"] ** 2 * z["z3"] ** 1.5)
