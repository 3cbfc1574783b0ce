"""The map of the values: increasing, smooth, with an inverse, and shown so that a stranger can compute it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from boca.model.warp import Warp

WARP = Warp(anchor=2.0, spread=0.5, share=0.1)
VALUES = np.array([-1e6, -50.0, 0.0, 1.0, 1.9, 2.0, 2.1, 7.0, 1e5])


def test_it_is_the_formula_below_the_anchor_and_a_line_above():
    below = VALUES <= 2.0
    np.testing.assert_allclose(WARP.apply(VALUES[below]), -np.log(1.0 + (2.0 - VALUES[below]) / 0.5), rtol=1e-14)
    np.testing.assert_allclose(WARP.apply(VALUES[~below]), (VALUES[~below] - 2.0) / 0.5, rtol=1e-14)


def test_it_rises_everywhere_and_the_inverse_leads_back():
    warped = WARP.apply(VALUES)
    assert np.all(np.diff(warped) > 0.0)
    np.testing.assert_allclose(WARP.inverse(warped), VALUES, rtol=1e-12, atol=1e-12)


def test_the_slope_is_the_derivative_and_has_no_step_at_the_anchor():
    y = np.array([-3.0, 0.5, 1.999, 2.001, 4.0])
    step = 1e-6
    numeric = (WARP.apply(y + step) - WARP.apply(y - step)) / (2.0 * step)
    np.testing.assert_allclose(WARP.slope(y), numeric, rtol=1e-6)
    assert WARP.slope(np.array([2.0]))[0] == 1.0 / 0.5
    assert np.max(WARP.slope(VALUES)) == 1.0 / 0.5


def test_a_wide_warp_is_nearly_a_line():
    wide = Warp(anchor=2.0, spread=1e8, share=math.inf)
    y = np.linspace(-5.0, 2.0, 9)
    np.testing.assert_allclose(wide.apply(y) * 1e8, y - 2.0, rtol=1e-6)


def test_values_at_the_ends_of_the_floats_stay_finite():
    huge = Warp(anchor=1e308, spread=1e300, share=1.0)
    assert np.all(np.isfinite(huge.apply(np.array([-1e308, 0.0, 1e308]))))
    assert math.isfinite(float(WARP.inverse(-1e6)))


def test_it_is_stored_and_read_in_every_bit():
    odd = Warp(anchor=1 / 3, spread=math.pi, share=0.3)
    assert Warp.from_json(json.loads(json.dumps(odd.to_json()))) == odd


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_a_stranger_computes_it_from_its_description(turn):
    """The description is in the units as told: the expressions in it are the map, for values on either side."""
    shown = json.loads(json.dumps(WARP.described(turn)))
    for score in (-3.0, 0.0, 1.5, 2.0, 2.5, 4.0):
        y = turn * score
        expression = shown["below"] if y < shown["anchor"] else shown["above"]
        names = {"y": y, "anchor": shown["anchor"], "spread": shown["spread"], "log": math.log}
        by_hand = eval(expression, {"__builtins__": {}}, names)
        assert by_hand == pytest.approx(turn * float(WARP.apply(np.array(score))), abs=1e-14)


def test_the_sentence_has_both_numbers():
    sentence = WARP.described(-1.0)["sentence"]
    assert "0.5" in sentence
    assert "-2" in sentence
