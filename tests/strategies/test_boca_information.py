"""Equations 4 and 7 stand apart from the strategy; `test_boca.py` checks them against the paper by hand."""

from __future__ import annotations

import numpy as np

from boca.strategies import boca, boca_information
from boca.strategies.boca_information import candidate_fidelities, fidelity_threshold, information_gain, information_gap


def test_the_strategy_uses_these():
    for name in ("candidate_fidelities", "fidelity_threshold", "information_gain", "information_gap"):
        assert getattr(boca, name) is getattr(boca_information, name)


def test_a_fidelity_that_tells_all_has_no_gap_and_no_threshold():
    xi = information_gap(np.array([1.0, 0.6]), np.ones(2), 1.0)
    np.testing.assert_allclose(xi, [0.0, 0.8])
    np.testing.assert_allclose(fidelity_threshold(4.0, xi, np.array([1.0, 0.25]), q=0.5), [0.0, 0.8])


def test_the_target_is_no_candidate():
    cost, tau, xi = np.array([0.5, 1.0]), np.ones(2), np.array([0.5, 0.5])
    assert candidate_fidelities(cost, 1.0, tau, np.zeros(2), xi, 0.1).tolist() == [True, False]


def test_noise_takes_information_away():
    gains = [information_gain(np.ones(1), 1.0, np.ones(1), eta2)[0] for eta2 in (0.01, 0.1, 1.0)]
    assert gains == sorted(gains, reverse=True)
    assert gains[2] == 0.5 * np.log(2.0)
