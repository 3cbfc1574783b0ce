"""What a refit learned, and its JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import boca
from boca.gp.fit import Standardization
from boca.model.fit_record import FidelityUse, Fit, is_flat, last_fit

PLAIN = Fit((0.1, -1.0, -4.0), 2.0, 0.5, results=7, iteration=3, count=1)
FULL = Fit((0.1, -1.0, -4.0), 2.0, 0.5, 7, 3, 1, is_flat=True, rise=0.3, use=FidelityUse("none", (0.2,), 0.7))


@pytest.mark.parametrize("fit", [PLAIN, FULL])
def test_a_fit_comes_back_from_json(fit):
    assert Fit.from_json(json.loads(json.dumps(fit.to_json(), allow_nan=False))) == fit


def test_keys_that_do_not_apply_are_absent():
    required = {"theta", "location", "scale", "results", "iteration", "count"}
    assert set(PLAIN.to_json()) == required
    assert set(FULL.to_json()) == required | {"flat", "rise", "use"}
    assert set(FULL.to_json()["use"]) == {"kind", "theta", "nats"}


def test_the_standardization_is_that_of_the_refit():
    assert PLAIN.standard == Standardization(2.0, 0.5)


@pytest.mark.parametrize(
    ("scores", "flat"), [([2.0], True), ([3.0, 3.0 * (1 + 1e-15)], True), ([3.0, 3.0 * (1 + 1e-9)], False)]
)
def test_results_that_differ_by_rounding_are_equal(scores, flat):
    assert is_flat(np.array(scores)) == flat


def test_differences_of_the_largest_floats_are_no_overflow():
    assert not is_flat(np.array([-1e308, 1e308]))
    assert not PLAIN.is_outdated(np.array([2.0, 2.5]))


def test_a_fit_is_outdated_by_results_far_outside_its_own():
    assert not PLAIN.is_outdated(np.array([2.0, 2.0 + 0.9e6 * 0.5]))
    assert PLAIN.is_outdated(np.array([2.0, 2.0 - 1.1e6 * 0.5]))


def test_a_fit_of_equal_results_is_outdated_by_a_different_one():
    assert not FULL.is_outdated(np.array([2.0, 2.0]))
    assert FULL.is_outdated(np.array([2.0, 2.1]))


def test_the_last_fit_is_that_of_the_latest_refit():
    optimizer = boca.Optimizer(boca.Problem(boca.Space(x=boca.Float(0, 1))), budget=None, seed=0)
    assert last_fit(optimizer.history) is None
    for k in range(5):
        optimizer.add({"x": k / 4}, None, math.sin(3.0 * k))
    fits = []
    for _ in range(4):
        trial = optimizer.ask()
        optimizer.tell(trial, math.sin(trial.x["x"]))
        fits += [trial.why["fit"]] if "fit" in trial.why else []
    assert last_fit(optimizer.history) == Fit.from_json(fits[-1])
    assert [fit["count"] for fit in fits] == list(range(len(fits)))
