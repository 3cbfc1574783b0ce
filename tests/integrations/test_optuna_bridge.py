"""Parameters of Optuna as those of boca, and back."""

from __future__ import annotations

from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from boca.integrations import optuna_bridge  # noqa: E402


@pytest.mark.parametrize(
    ("given", "parameter", "distribution"),
    [
        (boca.Float(0.1, 2.0, log=True), boca.Float(0.1, 2.0, log=True), FloatDistribution(0.1, 2.0, log=True)),
        (boca.Int(1, 9), boca.Int(1, 9), IntDistribution(1, 9)),
        (boca.Choice(["a", None]), boca.Choice(["a", None]), CategoricalDistribution(["a", None])),
        (FloatDistribution(0.0, 1.0), boca.Float(0.0, 1.0), FloatDistribution(0.0, 1.0)),
        (IntDistribution(1, 100, log=True), boca.Int(1, 100, log=True), IntDistribution(1, 100, log=True)),
        (CategoricalDistribution((1, 2)), boca.Choice([1, 2]), CategoricalDistribution((1, 2))),
    ],
)
def test_every_kind_is_a_parameter_and_a_distribution(given: Any, parameter: Any, distribution: Any) -> None:
    axis = optuna_bridge.Dimension.of(given, "p")
    assert axis.parameter == parameter
    assert axis.distribution == distribution


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (IntDistribution(5, 50, step=5), [5, 10, 50]),
        (FloatDistribution(0.25, 1.0, step=0.25), [0.25, 0.5, 1.0]),
        (IntDistribution(3, 11, step=4), [3, 7, 11]),
    ],
)
def test_steps_are_counted_and_come_back(given: Any, values: list[float]) -> None:
    axis = optuna_bridge.Dimension.of(given, "p")
    codes = [axis.encode(value, "p") for value in values]
    assert codes == sorted(codes)
    assert codes[1] == codes[0] + 1
    assert [axis.decode(code) for code in codes] == pytest.approx(values)
    with pytest.raises(InvalidInput, match="whole steps"):
        axis.encode(values[0] + 0.1, "p")


def test_multiples_keep_their_ratios() -> None:
    axis = optuna_bridge.Dimension.of(IntDistribution(5, 50, step=5), "p")
    assert axis.encode(50, "p") / axis.encode(5, "p") == 10


def test_what_is_no_parameter_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidInput, match=r"'p' must be boca.Float.*got 3"):
        optuna_bridge.Dimension.of(3, "p")
    with pytest.raises(InvalidInput, match="fidelity must map names to parameters"):
        optuna_bridge.axes_of([1], "fidelity")


def test_a_fingerprint_knows_spaces_their_order_and_the_strategy() -> None:
    a = {"a": optuna_bridge.Dimension.of(boca.Float(0, 1), "a"), "b": optuna_bridge.Dimension.of(boca.Int(1, 2), "b")}
    turned = dict(reversed(a.items()))
    marks = [optuna_bridge.fingerprint(x, {}, s) for x in (a, turned) for s in ({"type": "Boca"}, {"type": "GPEI"})]
    assert len(set(marks)) == 4
    assert marks[0] == optuna_bridge.fingerprint(dict(a), {}, {"type": "Boca"})


def test_a_point_out_of_range_or_incomplete_is_none() -> None:
    x = {"a": optuna_bridge.Dimension.of(boca.Float(0, 1), "a")}
    z = {"n": optuna_bridge.Dimension.of(boca.Int(1, 9), "n")}
    bridge = optuna_bridge.Bridge.of(x, z, {}, None, boca.Boca(), {"direction": "maximize"})
    assert bridge.point({"a": 0.5, "n": 3}) == ({"a": 0.5}, {"n": 3})
    assert bridge.point({"a": 0.5}) is None
    assert bridge.point({"a": 2.0, "n": 3}) is None
    assert bridge.filled({"a": 0.5, "other": 1}) == {"n": 9, "a": 0.5}
