"""What must not matter does not: the unit of cost, the unit and the sign of the values, the unit of a parameter.

Units that differ by a power of two change no bit of any mantissa, so the runs must agree exactly, ask for ask.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import boca

STRATEGIES = {
    "boca": boca.Boca(),
    "paper": boca.Boca.paper(maximizer="sobol"),
    "gp_ucb": boca.GPUCB(maximizer="sobol"),
    "gp_ei": boca.GPEI(maximizer="sobol"),
}
EVERY = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def g(x, z):
    bonus = {"u": 0.0, "v": 0.5, "w": 0.3}[x["kind"]]
    return bonus + math.sin(x["n"] / 6.0) - (x["x"] - 0.4) ** 2 + 0.3 * z["s"] * x["x"] + 0.02 * z["m"]


def make(*, cost_unit=1.0, direction="maximize", x_unit=1.0):
    return boca.Problem(
        boca.Space(kind=boca.Choice(["u", "v", "w"]), n=boca.Int(0, 30), x=boca.Float(0.0, x_unit)),
        boca.Space(s=boca.Float(0.0, 1.0), m=boca.Int(1, 8)),
        cost=lambda z: cost_unit * (0.05 + z["s"] ** 2) * z["m"],
        direction=direction,
    )


def play(problem, strategy, objective=g, *, trials=24, budget=None, noise=None):
    """Run some trials, two of them out together now and then, one failed, and return them."""
    optimizer = boca.Optimizer(problem, budget=budget or boca.targets(10), strategy=strategy, seed=11)
    while len(optimizer.history) < trials and (trial := optimizer.ask()) is not None:
        batch = [trial, optimizer.ask()] if trial.number % 7 == 4 else [trial]
        for one in filter(None, reversed(batch)):
            if one.number == 5:
                optimizer.fail(one, "no luck")
            else:
                optimizer.tell(one, objective(one.x, one.z), noise=noise if one.number % 3 == 0 else None)
    history = optimizer.history
    assert sum(t.phase == "model" for t in history) >= 5
    return history


@cache
def plain_run(strategy, noise=None):
    return play(make(), strategy, noise=noise)


def asks(history):
    return [(t.x, t.z, t.phase) for t in history]


# Cost -------------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("unit", [2.0**-20, 1024.0])
def test_the_unit_of_cost_does_not_matter(strategy, unit):
    plain = plain_run(strategy)
    scaled = play(make(cost_unit=unit), strategy)
    assert asks(scaled) == asks(plain)
    assert [t.cost for t in scaled] == [unit * t.cost for t in plain]
    assert [t.why for t in scaled] == [t.why for t in plain]


@EVERY
def test_a_budget_in_cost_units_scales_with_them(strategy):
    plain = play(make(), strategy, budget=70.0)
    assert asks(play(make(cost_unit=64.0), strategy, budget=64.0 * 70.0)) == asks(plain)


@EVERY
@pytest.mark.parametrize("unit", [3.7, 1e-5])
def test_other_units_of_cost_agree_up_to_rounding(strategy, unit):
    plain, scaled = plain_run(strategy)[:16], play(make(cost_unit=unit), strategy, trials=16)
    assert len(plain) == len(scaled)
    for a, b in zip(plain, scaled, strict=True):
        assert a.x["kind"] == b.x["kind"]
        assert a.x["n"] == b.x["n"]
        assert a.x["x"] == pytest.approx(b.x["x"], abs=1e-6)
        assert a.z == pytest.approx(b.z)


# Values -----------------------------------------------------------------------------------------------------------


def numbers(why):
    """Return the parts of a decision by the power of the unit of y that they carry: none, one or two.

    Under a warp, the model has no unit.
    """
    known = why["hyperparameters"]
    told = [why["mean"], why["std"], why["ucb"]]
    of_model, squared = [known["mean"], why.get("gamma", 0.0)], [known["kappa0"], known["eta2"]]
    if "warp" in why:
        told += [why["warp"]["anchor"], why["warp"]["spread"]]
        return np.array(of_model + squared), np.array(told), np.array([])
    return np.array([]), np.array(told + of_model), np.array(squared)


@EVERY
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**40])
def test_the_unit_of_the_values_does_not_matter(strategy, unit):
    plain = plain_run(strategy, 0.01)
    scaled = play(make(), strategy, lambda x, z: unit * g(x, z), noise=0.01 * unit * unit)
    assert asks(scaled) == asks(plain)
    for a, b in zip(plain, scaled, strict=True):
        if a.phase != "start":
            for power, (of_a, of_b) in enumerate(zip(numbers(a.why), numbers(b.why), strict=True)):
                np.testing.assert_array_equal(of_b, unit**power * of_a)


def dyadic(x, z):
    """g on a grid of 2^-20, so that adding 16 rounds nothing away."""
    return round(g(x, z) * 2.0**20) * 2.0**-20


@EVERY
@pytest.mark.parametrize("shift", [16.0, -1024.0])
def test_an_offset_of_the_values_does_not_matter(strategy, shift):
    """The deviation of shifted values rounds differently, so each decision is compared on the same results."""
    problem = make()
    history = play(problem, strategy, dyadic)
    for end in (6, 11, 17):
        twins = []
        for offset in (0.0, shift):
            optimizer = boca.Optimizer(problem, budget=boca.targets(10), strategy=strategy, seed=end)
            for t in history[:end]:
                if t.value is not None:
                    optimizer.add(t.x, t.z, t.value + offset, cost=10.0)  # enough to end the start
            twins.append(optimizer.ask())
        plain, shifted = twins
        assert plain.phase == shifted.phase == "model"
        assert shifted.x["kind"] == plain.x["kind"]
        assert shifted.x["n"] == plain.x["n"]
        assert shifted.x["x"] == pytest.approx(plain.x["x"], abs=1e-4)
        assert shifted.z == plain.z
        assert shifted.why["mean"] == pytest.approx(plain.why["mean"] + shift, abs=1e-4)
        assert shifted.why["std"] == pytest.approx(plain.why["std"], rel=1e-3)


# Direction --------------------------------------------------------------------------------------------------------


@EVERY
def test_minimizing_is_maximizing_the_negative_ask_for_ask(strategy):
    up = plain_run(strategy, 0.01)
    down = play(make(direction="minimize"), strategy, lambda x, z: -g(x, z), noise=0.01)
    assert asks(down) == asks(up)
    for a, b in zip(up, down, strict=True):
        if a.phase == "start":
            continue
        assert b.why["mean"] == -a.why["mean"]
        assert b.why["ucb"] == -a.why["ucb"]
        assert b.why["std"] == a.why["std"]
        assert b.why["hyperparameters"]["mean"] == -a.why["hyperparameters"]["mean"]
        assert b.why["hyperparameters"]["kappa0"] == a.why["hyperparameters"]["kappa0"]
        assert b.why["hyperparameters"]["h_x"] == a.why["hyperparameters"]["h_x"]


def test_the_two_functions_that_run_an_objective_mirror_each_other():
    space, fidelity = make().space, make().fidelity

    def cost(z):
        return (0.05 + z["s"] ** 2) * z["m"]

    best = boca.maximize(g, space, fidelity, cost=cost, budget=boca.targets(3), seed=2)
    worst = boca.minimize(lambda x, z: -g(x, z), space, fidelity, cost=cost, budget=boca.targets(3), seed=2)
    assert asks(worst.history) == asks(best.history)
    assert worst.x == best.x
    assert worst.value == -best.value
    assert worst.recommendation.x == best.recommendation.x
    assert worst.recommendation.mean == -best.recommendation.mean


def test_a_known_process_is_mirrored_by_its_mean():
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.75, "h_x": [0.5, 0.5, 0.5], "h_z": [1.0, 1.0]}
    up = play(make(), boca.Boca(hyperparameters=known))
    mirrored = boca.Boca(hyperparameters=known | {"mean": -0.75})
    down = play(make(direction="minimize"), mirrored, lambda x, z: -g(x, z))
    assert asks(down) == asks(up)


# Parameters -------------------------------------------------------------------------------------------------------


@EVERY
def test_the_unit_of_a_parameter_does_not_matter(strategy):
    plain = plain_run(strategy)
    scaled = play(make(x_unit=256.0), strategy, lambda x, z: g(x | {"x": x["x"] / 256.0}, z))
    assert [t.x | {"x": t.x["x"] / 256.0} for t in scaled] == [t.x for t in plain]
    assert [t.z for t in scaled] == [t.z for t in plain]


@EVERY
def test_names_do_not_matter(strategy):
    old = make()
    new = boca.Problem(
        boca.Space({f"name {name}": parameter for name, parameter in old.space.items()}),
        boca.Space({f"name {name}": parameter for name, parameter in old.fidelity.items()}),
        cost=lambda z: old.cost({name.removeprefix("name "): value for name, value in z.items()}),
    )

    def renamed(x, z):
        return g(*({name.removeprefix("name "): value for name, value in point.items()} for point in (x, z)))

    plain, other = plain_run(strategy), play(new, strategy, renamed)
    assert [list(t.x.values()) for t in other] == [list(t.x.values()) for t in plain]
    assert [list(t.z.values()) for t in other] == [list(t.z.values()) for t in plain]
