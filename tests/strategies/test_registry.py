"""The strategies by name: every public one is there, and a name leads back to its class."""

from __future__ import annotations

import pytest

import boca
from boca import strategies
from boca.strategies.registry import CLASSES, NAMES, STRATEGIES


def test_every_public_strategy_has_a_name():
    public = {getattr(strategies, name) for name in strategies.__all__} - {strategies.Strategy}
    assert public <= set(NAMES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_name_makes_a_strategy(name):
    assert isinstance(STRATEGIES[name](), strategies.Strategy)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_one_name(name):
    assert NAMES[CLASSES[name]] == name
    assert len(NAMES) == len(CLASSES)


def test_the_parts_of_strategies_have_names_too():
    assert NAMES[boca.Surrogate] == "surrogate"
    assert NAMES[strategies.Theorem] == "theorem"
