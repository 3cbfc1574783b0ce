"""Steps: a kind of their own, where they may stand, and what they must cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.domain.space import parameter_from_json

X = boca.Space(a=boca.Float(0.0, 1.0))


def problem(**more):
    fidelity = boca.Space(n=boca.Int(10, 100), epochs=boca.Steps(2, 52))
    return boca.Problem(X, fidelity, **{"cost": lambda z: z["n"] * (3 + z["epochs"])} | more)


def test_steps_are_a_kind_of_their_own_with_the_lattice_of_int():
    steps, integer = boca.Steps(1, 52), boca.Int(1, 52)
    assert steps != integer
    assert steps.kind == "steps"
    assert repr(steps) == "Steps(low=1, high=52, log=False)"
    u = np.linspace(0.0, 1.0, 977)
    assert steps.snap(u).tolist() == integer.snap(u).tolist()
    assert [steps.from_unit(v) for v in u] == [integer.from_unit(v) for v in u]
    assert parameter_from_json(steps.to_json()) == steps
    assert parameter_from_json(boca.Steps(1, 64, log=True).to_json()) == boca.Steps(1, 64, log=True)


def test_steps_may_be_typed_as_a_range():
    assert boca.Space(epochs=(1, 52, "steps"))["epochs"] == boca.Steps(1, 52)
    with pytest.raises(InvalidInput, match=r"'log'.*got 'steps'"):
        boca.Space(epochs=(1.0, 52, "steps"))


def test_steps_begin_at_one():
    with pytest.raises(InvalidInput, match=r"low is 0.*Type boca.Steps\(1, 5\)"):
        boca.Steps(0, 5)


def test_steps_are_refused_outside_of_the_fidelities_and_twice():
    with pytest.raises(InvalidInput, match=r"space has 'epochs' as Steps"):
        boca.Problem(boca.Space(epochs=boca.Steps(1, 5)))
    with pytest.raises(InvalidInput, match=r"'b' and 'c' as Steps, and at most one"):
        boca.Problem(X, boca.Space(b=boca.Steps(1, 5), c=boca.Steps(1, 5)), target={})


def test_a_declared_cost_must_rise_with_the_steps():
    with pytest.raises(InvalidInput, match=r"1\.0 at epochs=1 and 1\.0 at epochs=2.*boca\.Int"):
        boca.Problem(X, boca.Space(epochs=boca.Steps(1, 5)), cost=lambda z: 1.0)
    with pytest.raises(InvalidInput, match=r"at epochs=30 and .* at epochs=31 \(with n=100\)"):
        problem(cost=lambda z: z["epochs"] if z["n"] < 100 else min(z["epochs"], 30))
    assert problem().steps == "epochs"
    assert boca.Problem(X).steps is None


def test_going_on_costs_what_comes_after_the_step():
    p = problem()
    z = {"n": 50, "epochs": 20}
    assert p.cost_from(z) == p.cost(z) == 50 * 23
    assert p.cost_from(z, 8) == 50 * 12
    assert p.at_step(z, 8) == {"n": 50, "epochs": 8}
    assert p.step(z) == 20
    assert p.cost_from({"n": 50, "epochs": 1}) == p.cost({"n": 50, "epochs": 2}) / 2  # below the lowest: a share
    assert p.is_modelled(z)
    assert not p.is_modelled({"n": 50, "epochs": 1})


@pytest.mark.parametrize("target", [None, {"epochs": 2}])
def test_the_assumed_cost_rises_with_the_steps_wherever_the_target_is(target):
    p = boca.Problem(X, boca.Space(epochs=boca.Steps(1, 1000)), target=target)
    costs = [p.assumed_cost({"epochs": s}) for s in range(1, 1001)]
    assert all(a < b for a, b in itertools.pairwise(costs))
