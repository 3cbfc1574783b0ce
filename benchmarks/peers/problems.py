"""Problems on which nothing here was tuned: fidelities that mislead, cost nothing less, or help in odd ways.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    x, z        point and fidelity; the target z* is z = 1 (all ones)
    f(x)        the objective, g(z*, x); all are maximized
    g(z, x)     what a query at z returns without noise
    c           center: the maximizer of f, known in closed form since every term of f peaks there

    boca bench run --problem benchmarks.peers.problems:unrelated --method boca --method random

Every name here is a function from a seed to a `Benchmark`; the seed picks nothing but the noise.  `ALL` lists those
that make up a comparison.  Leave them as they are: a number of them may only be compared with one of the same problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boca import problems
from boca.domain.budget import seconds, targets
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Choice, Float, Int, Point, Space
from boca.problems import Benchmark

_CENTRE = (0.27, 0.64)
_ELSEWHERE = (0.81, 0.14)


# Fidelities that mislead ------------------------------------------------------------------------------------------


def anti_correlated(seed: int) -> Benchmark:
    """Return g = (2z - 1) f: below z = 1/2 the order of all x is turned round."""
    return _in_the_plane("anti_correlated", lambda x, z: (2 * z["z1"] - 1) * _waves(x, _CENTRE), seed)


def unrelated(seed: int) -> Benchmark:
    """Return g that is another function altogether up to z = 0.9, and blends into f from there."""

    def g(x: Point, z: Point) -> float:
        share = max(0.0, 10 * z["z1"] - 9)
        another = 1.5 * math.sin(9 * x["x1"] + 1) * math.cos(8 * x["x2"] - 2)
        return share * _waves(x, _CENTRE) + (1 - share) * another

    return _in_the_plane("unrelated", g, seed)


def one_region(seed: int) -> Benchmark:
    """Return g that is right at any z where x1 > 1/2, and another function elsewhere, where the maximum is."""

    def g(x: Point, z: Point) -> float:
        wrong = (1 - z["z1"]) / (1 + math.exp(40 * (x["x1"] - 0.5)))
        return (1 - wrong) * _waves(x, _CENTRE) + wrong * _waves(x, _ELSEWHERE, k=2)

    return _in_the_plane("one_region", g, seed)


def late(seed: int) -> Benchmark:
    """Return g with a tilt that vanishes only near the target: 88 % of it is left at z = 0.9."""

    def g(x: Point, z: Point) -> float:
        return _waves(x, _CENTRE) + 2 * (x["x1"] - x["x2"]) * (1 - z["z1"] ** 20)

    return _in_the_plane("late", g, seed)


def common_bias(seed: int) -> Benchmark:
    """Return g = f - 3 (1 - z): a cheap query is too low by the same amount at every x, as good as an expensive one."""
    return _in_the_plane("common_bias", lambda x, z: _waves(x, _CENTRE) - 3 * (1 - z["z1"]), seed)


# Costs that are no help -------------------------------------------------------------------------------------------


def flat_cost(seed: int) -> Benchmark:
    """Return a problem where every fidelity costs the same: nothing is gained below the target."""
    return _in_the_plane("flat_cost", _tilted, seed, cost=_always_one)


def falling_cost(seed: int) -> Benchmark:
    """Return a problem where the target is the cheapest fidelity, and z = 0 costs twice as much."""
    return _in_the_plane("falling_cost", _tilted, seed, cost=_two_less_z)


def dear_side(seed: int) -> Benchmark:
    """Return a problem whose cost is not declared and depends on x too: four times as much at x1 = 1 as at 0.

    An evaluation at the target pretends to take 24 to 96 seconds, and 2,400 seconds are the budget.
    """
    return replace(
        _in_the_plane("dear_side", _tilted, seed),
        problem=Problem(_unit(2), Space(z1=Float(0.1, 1.0))),
        budget=seconds(2400),
        seconds=lambda x, z: 60 * _quadratic(z) * (0.4 + 1.2 * x["x1"]),
    )


# Noise ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoisierBelow(Benchmark):
    """A benchmark of one fidelity whose noise grows below the target: `noise_variance` is that of the target."""

    added_variance: float = 0.0

    def observe(self, x: Mapping[str, Any], z: Mapping[str, Any] | None, rng: np.random.Generator) -> float:
        """Return g(z, x) with noise of variance noise_variance + added_variance (1 - z)."""
        below = 0.0 if z is None else 1.0 - float(z["z1"])
        deviation = math.sqrt(self.noise_variance + self.added_variance * below)
        return self.value(x, z) + deviation * float(rng.standard_normal())


def noisier_below(seed: int) -> Benchmark:
    """Return a problem whose noise has a deviation of 0.1 at the target and of 1 at z = 0."""
    plain = _in_the_plane("noisier_below", _tilted, seed)
    return NoisierBelow(**vars(plain), added_variance=0.99)


def noise_free(seed: int) -> Benchmark:
    """Return a problem without noise: d = 3, p = 1."""
    centre = (*_CENTRE, 0.45)
    return Benchmark(
        name="noise_free",
        problem=Problem(_unit(3), _fidelity(1), cost=_quadratic),
        budget=targets(40),
        function=lambda x, z: _waves(x, centre) + 0.5 * (1 - z["z1"]) * x["x3"],
        optimum=1.0,
        maximizer=_point(centre),
        noise_variance=0.0,
        hyperparameters=None,
        seed=seed,
    )


# Spaces -----------------------------------------------------------------------------------------------------------


def useless_dimension(seed: int) -> Benchmark:
    """Return a problem of two fidelities of which the second one costs, and changes nothing."""
    return replace(
        _in_the_plane("useless_dimension", _tilted, seed),
        problem=Problem(_unit(2), _fidelity(2), cost=lambda z: 0.05 + 0.95 * z["z1"] ** 2 * (0.1 + 0.9 * z["z2"])),
    )


_BEST_N = {"a": 4, "b": 9, "c": 13, "d": 18}
_BEST_RATE = {"a": -0.5, "b": -3.5, "c": -2.5, "d": -1.5}
_LOSS = {"a": 0.4, "b": 0.25, "c": 0.0, "d": 0.15}


def mixed(seed: int) -> Benchmark:
    """Return a problem of an integer, a choice and a rate on a log scale.

    Every kind has an n and a rate of its own that suit it.  Cheap queries like kind "a" best, the target "c".
    """
    space = Space(n=Int(1, 20), kind=Choice(["a", "b", "c", "d"]), rate=Float(1e-4, 1.0, log=True))

    def g(x: Point, z: Point) -> float:
        n, kind, rate = x["n"], x["kind"], x["rate"]
        lure = 0.6 * (1 - z["z1"]) if kind == "a" else 0.0
        return (
            1 - _LOSS[kind] - ((n - _BEST_N[kind]) / 8) ** 2 - 0.5 * (math.log10(rate) - _BEST_RATE[kind]) ** 2 + lure
        )

    return Benchmark(
        name="mixed",
        problem=Problem(space, _fidelity(1), cost=_quadratic),
        budget=targets(40),
        function=g,
        optimum=1.0,
        maximizer={"n": 13, "kind": "c", "rate": 10**-2.5},
        noise_variance=0.01,
        hyperparameters=None,
        seed=seed,
    )


def ten(seed: int) -> Benchmark:
    """Return a problem of ten variables, each tied to the next; cheap queries see only the first five."""
    centre = tuple(0.5 + 0.35 * math.sin(2.0 * j) for j in range(1, 11))

    def g(x: Point, z: Point) -> float:
        steps = np.array(list(x.values())) - np.array(centre)
        weight = np.where(np.arange(10) < 5, 1.0, z["z1"])
        return float(2 - np.sum(weight * steps**2) - 2 * np.sum(weight[1:] * np.diff(steps) ** 2))

    return Benchmark(
        name="ten",
        problem=Problem(_unit(10), _fidelity(1), cost=_quadratic),
        budget=targets(100),
        function=g,
        optimum=2.0,
        maximizer=_point(centre),
        noise_variance=0.01,
        hyperparameters=None,
        seed=seed,
    )


# Known ones with a fifth of their budget, for methods that need minutes per query ------------------------


def short_branin(seed: int) -> Benchmark:
    """Return Branin with a budget of 10 targets instead of 50."""
    return replace(problems.get("branin", seed=seed), name="short_branin", budget=targets(10))


def short_currin(seed: int) -> Benchmark:
    """Return Currin with a budget of 10 targets instead of 50."""
    return replace(problems.get("currin", seed=seed), name="short_currin", budget=targets(10))


ALL: tuple[Callable[[int], Benchmark], ...] = (
    anti_correlated,
    unrelated,
    one_region,
    late,
    common_bias,
    flat_cost,
    falling_cost,
    dear_side,
    noisier_below,
    noise_free,
    useless_dimension,
    mixed,
    ten,
)

# The same f, noise and budget at the target: to a method that queries nothing else they are one problem.
SAME_AT_TARGET = (
    anti_correlated,
    unrelated,
    one_region,
    late,
    common_bias,
    flat_cost,
    falling_cost,
    noisier_below,
    useless_dimension,
)


# What they are made of ----------------------------------------------------------------------------------------------


def _waves(x: Point, centre: Sequence[float], *, k: int = 3) -> float:
    """Return a bowl with ripples, turned over: 1 at the center and less everywhere else, with k tops per unit."""
    steps = [value - c for value, c in zip(x.values(), centre, strict=True)]
    return 1.0 - sum(4 * s**2 + 0.25 * (1 - math.cos(2 * math.pi * k * s)) for s in steps)


def _tilted(x: Point, z: Point) -> float:
    """Return f with a tilt that vanishes steadily towards the target: an ordinary, useful approximation."""
    return _waves(x, _CENTRE) + 0.5 * (1 - z["z1"]) * (x["x1"] - x["x2"])


def _in_the_plane(
    name: str, function: Callable[[Point, Point], float], seed: int, *, cost: CostFunction | None = None
) -> Benchmark:
    """Return a problem of two variables and one fidelity whose f is the rippled bowl."""
    return Benchmark(
        name=name,
        problem=Problem(_unit(2), _fidelity(1), cost=cost or _quadratic),
        budget=targets(40),
        function=function,
        optimum=1.0,
        maximizer=_point(_CENTRE),
        noise_variance=0.01,
        hyperparameters=None,
        seed=seed,
    )


def _unit(d: int) -> Space:
    return Space({f"x{j}": Float(0.0, 1.0) for j in range(1, d + 1)})


def _fidelity(p: int) -> Space:
    return Space({f"z{i}": Float(0.0, 1.0) for i in range(1, p + 1)})


def _point(values: Sequence[float]) -> Point:
    return {f"x{j}": value for j, value in enumerate(values, start=1)}


def _quadratic(z: Mapping[str, Any]) -> float:
    return float(0.05 + 0.95 * z["z1"] ** 2)


def _always_one(z: Mapping[str, Any]) -> float:
    return 1.0


def _two_less_z(z: Mapping[str, Any]) -> float:
    return 2.0 - float(z["z1"])
