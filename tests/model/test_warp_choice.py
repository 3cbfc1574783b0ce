"""Which warp a refit uses: by what predicts the results at the target, in the units in which they were told."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.gp import fit as gp_fit
from boca.model.dataset import Dataset
from boca.model.encoding import Encoding
from boca.model.warp_choice import NEEDS_AT_TARGET, SHARE_BEFORE_EVIDENCE, SHARES, WarpChoice

SPACE, FIDELITY = boca.Space(a=boca.Float(0, 1), b=boca.Float(0, 1)), boca.Space(z=boca.Float(0, 1))
PROBLEM = boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["z"])


def smooth(x):
    return math.sin(3.0 * x["a"]) + x["b"] * x["b"]


def choice(f, *, at_target=12, cheap=20, failures=0, bias=0.1, problem=PROBLEM):
    """Return the choice after results of f, and of f less a bias at a cheap fidelity."""
    opt = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    rng = np.random.default_rng(3)
    for k in range(at_target + cheap):
        x = {name: float(u) for name, u in zip("ab", rng.random(2), strict=True)}
        z = {"z": 1.0 if k < at_target else 0.3}
        opt.add(x, z, f(x) - (bias if k >= at_target else 0.0))
    for k in range(failures):
        opt.enqueue({"a": 0.9, "b": 0.1 * k})
        opt.fail(opt.ask(), "lost")
    dataset = Dataset.from_history(problem, opt.history, "below")
    return WarpChoice(dataset, Encoding(problem, "matern52"), None, informative=True)


def chosen(f, **more):
    made = choice(f, **more)
    return made.best_share(made.encoding.prior(informative=True).mean, 0.0)


def test_a_smooth_function_keeps_its_values():
    assert chosen(smooth) == math.inf


def test_values_over_many_orders_are_warped():
    assert chosen(lambda x: -math.exp(6.0 * smooth(x))) < math.inf


def test_what_is_chosen_does_not_depend_on_units():
    """Units change the density of every member by the same factor; without the Jacobian, only that of the identity."""
    units = ((1.0, 0.0), (1e3, -7.0), (1e-4, 50.0))
    shares = {chosen(lambda x, a=a, b=b: a * -math.exp(6.0 * smooth(x)) + b, bias=0.1 * a) for a, b in units}
    assert len(shares) == 1


def test_the_anchor_is_the_best_near_the_target_and_the_spread_a_share_of_the_way_to_their_middle():
    made = choice(smooth, at_target=9, cheap=6)
    here = made.near()
    np.testing.assert_array_equal(np.sort(here), np.sort(made.dataset.scores[:9]))
    warp = made.member(0.3, 0.0)
    assert warp.anchor == np.max(here)
    assert warp.spread == pytest.approx(0.3 * (np.max(here) - np.median(here)))
    assert made.member(math.inf, 0.0) is None


def test_with_few_results_at_the_target_the_nearest_ones_count():
    made = choice(smooth, at_target=2)
    assert not made.has_evidence()
    assert len(made.near()) == 5
    assert set(made.dataset.scores[:2]) <= set(made.near())
    assert choice(smooth, at_target=NEEDS_AT_TARGET).has_evidence()
    assert SHARE_BEFORE_EVIDENCE in SHARES


def test_noise_is_not_magnified():
    made = choice(smooth)
    assert made.member(0.05, 10.0).spread == 20.0


def test_equal_results_have_no_warp():
    assert choice(lambda x: 4.0, cheap=0).member(0.3, 0.0) is None


def test_failures_are_left_out():
    """A failure has the worst value; anchor, spread and evidence know nothing of it."""
    plain, failed = choice(smooth, at_target=9), choice(smooth, at_target=9, failures=9)
    assert failed.member(0.3, 0.0) == plain.member(0.3, 0.0)
    assert not choice(smooth, at_target=2, failures=9).has_evidence()


def test_failures_lie_below_all_others_by_half_of_the_range():
    made = choice(smooth, failures=1)
    for warp in (None, made.member(0.1, 0.0)):
        warped = made.dataset.warped(warp)
        told = warped.scores[~warped.failed]
        assert warped.scores[-1] == pytest.approx(np.min(told) - 0.5 * np.ptp(told))
        np.testing.assert_array_equal(warped.judged, told)
        np.testing.assert_array_equal(warped.variances[~warped.failed], 0.0)
        assert warped.variances[-1] == pytest.approx((0.25 * np.ptp(told)) ** 2)
        assert gp_fit.standardize(warped.judged) == gp_fit.standardize(told)
