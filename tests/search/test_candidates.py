"""From ranked points to a query that may be handed out."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca.search.candidates import best_candidate, first_free

SPACE, FIDELITY = boca.Space(a=boca.Int(0, 4)), boca.Space(n=boca.Int(1, 3))
PROBLEM = boca.Problem(SPACE, FIDELITY, cost=lambda z: float(z["n"]), target={"n": 2})
RANKED = SPACE.to_unit([{"a": a} for a in (3, 1, 3, 4)])


def study(*, running=(), failed=()):
    """Return the history of a study with these (a, n) running, and these a failed three times."""
    optimizer = boca.Optimizer(PROBLEM, budget=None, strategy=boca.RandomSearch(), seed=0)
    for a in failed:
        for n in (1, 2, 3):
            optimizer.enqueue({"a": a}, {"n": n})
            optimizer.fail(optimizer.ask(), "no")
    for a, n in running:
        optimizer.enqueue({"a": a}, {"n": n})
        optimizer.ask()
    return optimizer.history


def chosen(history, ranked=RANKED, n=2, **more):
    u, z, stands_in = best_candidate(PROBLEM, history, ranked, lambda _: {"n": n}, **more)
    return SPACE.from_unit(u)["a"], z["n"], stands_in


def test_the_best_point_is_taken_while_it_is_free():
    assert chosen(study()) == (3, 2, False)
    assert chosen(study(running=[(3, 1)])) == (3, 2, False)  # another fidelity of it is running


def test_a_running_point_makes_way_for_the_next():
    assert chosen(study(running=[(3, 2)])) == (1, 2, False)


def test_a_point_that_failed_three_times_is_taken_at_no_fidelity():
    assert chosen(study(failed=[3])) == (1, 2, False)
    assert chosen(study(failed=[3]), n=1) == (1, 1, False)


def test_the_fidelity_may_depend_on_the_point():
    found = best_candidate(PROBLEM, study(running=[(3, 3)]), RANKED, lambda u: {"n": 3 if u[0] == 0.75 else 1})
    assert (SPACE.from_unit(found.u), found.z) == ({"a": 1}, {"n": 1})


def test_if_all_are_running_the_target_is_the_first_substitute_and_costlier_fidelities_are_the_last():
    everything = [(a, 1) for a in (3, 1, 4)]
    assert chosen(study(running=everything), n=1) == (3, 2, True)
    everything += [(a, 2) for a in (3, 1, 4)]
    assert chosen(study(running=everything), n=1) == (3, 3, True)
    everything = [(a, 2) for a in (3, 1, 4)]
    assert chosen(study(running=everything)) == (3, 1, True)


def test_named_substitutes_come_before_all_others():
    everything = [(a, 2) for a in (3, 1, 4)]
    assert chosen(study(running=everything), others=[{"n": 3}]) == (3, 3, True)


def test_if_everything_is_running_the_best_point_that_may_run_is_repeated():
    everything = [(a, n) for a in (1, 4) for n in (1, 2, 3)]
    assert chosen(study(failed=[3], running=everything)) == (1, 2, False)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_first_free_is_the_point_and_the_fidelity_of_the_best_candidate(n):
    history = study(running=[(3, n)])
    u, z = first_free(PROBLEM, history, RANKED, lambda _: {"n": n})
    np.testing.assert_array_equal(u, RANKED[1])
    assert z == {"n": n}
