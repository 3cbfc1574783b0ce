"""An observation: what it says by default, and that it does not change."""

from __future__ import annotations

import dataclasses

import pytest

from boca.domain.observation import OBJECTIVE, Observation


def test_by_default_it_is_of_the_objective_and_nothing_else_is_known():
    seen = Observation({"n": 3}, 1.5)
    assert (seen.outcome, seen.noise, seen.seconds, seen.told) == (OBJECTIVE, None, None, None)


def test_it_does_not_change():
    seen = Observation({"n": 3}, 1.5, noise=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.value = 2.0
    assert seen == Observation({"n": 3}, 1.5, noise=0.1)
    assert seen != dataclasses.replace(seen, told=7)
