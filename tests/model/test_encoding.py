"""Features of points, the kernel on them, and a user's kernel on fidelities."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.model.encoding import Encoding

PHI = {
    "se": lambda r: math.exp(-r * r / 2.0),
    "matern52": lambda r: (1.0 + math.sqrt(5.0) * r + 5.0 * r * r / 3.0) * math.exp(-math.sqrt(5.0) * r),
}


def by_source(a, b):
    return np.where(a["source"] == b["source"], 1.0, 0.5)


@pytest.mark.parametrize(
    ("fidelity", "words"),
    [
        (boca.Space(src=boca.Choice(["a", "b"]), n=boca.Int(1, 9)), r"KeyError\('source'\).*are: 'src', 'n'\."),
        (None, r"KeyError\('source'\).*are: none, so leave fidelity_kernel out"),
    ],
)
def test_a_kernel_with_a_misspelt_name_is_told_the_names(fidelity, words):
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), fidelity, target={"src": "b"} if fidelity else None)
    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=by_source))
    with pytest.raises(InvalidInput, match=words):
        boca.Optimizer(problem, budget=boca.targets(3), strategy=strategy)


@pytest.mark.parametrize("name", [None, "se", "matern52"])
def test_the_kernel_on_fidelities_has_a_name(name):
    """Numbers get the kernel of that name; options stay squared exponential."""
    fidelity = boca.Space(z=boca.Float(0.0, 1.0), source=boca.Choice(["lab", "field"]), m=boca.Int(0, 4))
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), fidelity, target={"source": "field"})
    known = {"kappa0": 2.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3], "h_z": [0.5, 0.8, 2.0]}
    history = boca.Optimizer(problem, budget=None, seed=0)
    history.add({"a": 0.5}, problem.target, 1.0)
    surrogate = boca.Surrogate(fidelity_kernel=name)
    model = surrogate.model(problem, history.history, np.random.default_rng(0), hyperparameters=known)
    Z = np.array([[1.0, 1.0, 1.0], [0.2, 1.0, 0.5], [0.2, 0.0, 0.5]])
    k, own, star = model.encoding.fidelity_covariance(model.h, Z)
    r = math.hypot(0.8 / 0.5, 0.5 / 2.0)
    expected = [1.0, PHI[name or "se"](r), PHI[name or "se"](r) * math.exp(-0.5 / 0.8**2)]
    np.testing.assert_allclose(k, expected, rtol=1e-9)
    np.testing.assert_array_equal(own, np.ones(3))
    assert star == 1.0


def test_a_name_that_is_no_kernel_is_refused():
    with pytest.raises(InvalidInput, match="fidelity_kernel"):
        boca.Surrogate(fidelity_kernel="cubic")


@pytest.fixture(params=["se", "matern52"])
def encoding(request):
    space = boca.Space(
        kind=boca.Choice(["a", "b", "c"]), x=boca.Float(0.0, 2.0), flag=boca.Choice([True, False]), n=boca.Int(0, 4)
    )
    fidelity = boca.Space(source=boca.Choice(["web", "lab", "field", "dream"]), z=boca.Float(0.0, 1.0))
    problem = boca.Problem(space, fidelity, cost=lambda z: 1.0 + z["z"], target={"source": "lab"})
    return Encoding(problem, request.param)


def test_choices_correlate_by_being_the_same_or_not(encoding):
    """exp(-[a != b] / (2 h^2)) for each, beside the numeric ones, with h in the order of the space."""
    h = np.array([0.7, 0.4, 1.3, 0.9, 0.5, 0.6])  # kind, x, flag, n, source, z
    xs = [
        {"kind": "a", "x": 0.5, "flag": True, "n": 1},
        {"kind": "b", "x": 0.5, "flag": True, "n": 1},
        {"kind": "c", "x": 0.5, "flag": False, "n": 4},
        {"kind": "a", "x": 1.7, "flag": False, "n": 1},
        {"kind": "a", "x": 0.5, "flag": True, "n": 1},
    ]
    zs = [
        {"source": "lab", "z": 1.0},
        {"source": "web", "z": 1.0},
        {"source": "dream", "z": 0.2},
        {"source": "web", "z": 0.2},
        {"source": "field", "z": 0.9},
    ]
    F = encoding.features(encoding.problem.space.to_unit(xs), encoding.problem.fidelity.to_unit(zs))
    K = encoding.kernel.value(h, F, F)
    for i, (x, z) in enumerate(zip(xs, zs, strict=True)):
        for j, (y, w) in enumerate(zip(xs, zs, strict=True)):
            numeric = PHI[encoding.profile](math.hypot((x["x"] - y["x"]) / 2.0 / 0.4, (x["n"] - y["n"]) / 4.0 / 0.9))
            differ = (
                (x["kind"] != y["kind"]) / 0.7**2
                + (x["flag"] != y["flag"]) / 1.3**2
                + (z["source"] != w["source"]) / 0.5**2
            )
            expected = numeric * math.exp(-differ / 2.0) * math.exp(-(((z["z"] - w["z"]) / 0.6) ** 2) / 2.0)
            assert K[i, j] == pytest.approx(expected, rel=1e-12)


def test_numeric_features_are_unit_coordinates_and_options_have_indicators(encoding):
    U = encoding.problem.space.snap(np.random.default_rng(1).random((50, 4)))
    F = encoding.x_features(U)
    assert F.shape == (50, encoding.x_width) == (50, 2 + 3 + 2)
    np.testing.assert_array_equal(F[:, :2], U[:, encoding.x_numeric])
    np.testing.assert_array_equal(np.argmax(F[:, 2:5], axis=1) / 2.0, U[:, 0])
    np.testing.assert_array_equal(np.argmax(F[:, 5:], axis=1), U[:, 2])
    np.testing.assert_allclose((F[:, 2:5] ** 2).sum(axis=1), 0.5)  # so that two options are at distance one


def test_a_kernel_on_fidelities_by_name_sees_the_users_own_units():
    fidelity = boca.Space(N=boca.Int(10, 1000, log=True), s=boca.Choice(["u", "v"]))
    problem = boca.Problem(boca.Space(x=boca.Float(0, 1)), fidelity, cost=lambda z: z["N"], target={"s": "v"})

    def kernel(a, b):
        return (1.0 + np.minimum(a["N"], b["N"]) / 1000.0) * np.where(a["s"] == b["s"], 1.0, 0.5)

    encoding = Encoding(problem, "se", kernel)
    zs = [{"N": 10, "s": "u"}, {"N": 500, "s": "v"}, {"N": 1000, "s": "u"}]
    F = encoding.features(problem.space.to_unit([{"x": 0.1}, {"x": 0.1}, {"x": 0.4}]), fidelity.to_unit(zs))
    K = encoding.kernel.value(np.array([0.3]), F, F)
    for i, (x, z) in enumerate(zip((0.1, 0.1, 0.4), zs, strict=True)):
        for j, (y, w) in enumerate(zip((0.1, 0.1, 0.4), zs, strict=True)):
            expected = math.exp(-(((x - y) / 0.3) ** 2) / 2.0) * (1.0 + min(z["N"], w["N"]) / 1000.0)
            expected *= 1.0 if z["s"] == w["s"] else 0.5
            assert K[i, j] == pytest.approx(expected / 2.0, rel=1e-12)  # 2 is the user's variance at the target
    np.testing.assert_allclose(encoding.kernel.diagonal(np.array([0.3]), F), np.diagonal(K), rtol=1e-12)


def test_distance_counts_a_choice_as_a_whole_step():
    fidelity = boca.Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["rough", "fine"]))
    problem = boca.Problem(
        boca.Space(x=boca.Float(0.0, 1.0)), fidelity, target={"a": 1.0, "kind": "fine"}, cost=lambda z: 1.0 + z["a"]
    )
    for is_extended in (False, True):
        encoding = Encoding(problem, "matern52", None, is_extended)
        zs = [{"a": 1.0, "kind": "fine"}, {"a": 0.0, "kind": "rough"}, {"a": 0.0, "kind": "fine"}]
        away = encoding.distance_from_target(
            encoding.features(problem.space.to_unit([{"x": 0.2}] * 3), fidelity.to_unit(zs))
        )
        np.testing.assert_allclose(away, [0.0, 1.0, math.sqrt(0.5)], atol=1e-12)


def test_distance_counts_a_choice_as_a_whole_step_also_under_a_kernel_of_the_user():
    fidelity = boca.Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["fine", "rough", "wild"]))
    problem = boca.Problem(
        boca.Space(x=boca.Float(0.0, 1.0)), fidelity, target={"a": 1.0, "kind": "fine"}, cost=lambda z: 1.0 + z["a"]
    )
    zs = [
        {"a": 1.0, "kind": "fine"},
        {"a": 1.0, "kind": "rough"},
        {"a": 1.0, "kind": "wild"},
        {"a": 0.5, "kind": "rough"},
    ]
    for kernel in (None, lambda a, b: np.where(a["kind"] == b["kind"], 1.0, 0.5)):
        encoding = Encoding(problem, "matern52", kernel)
        away = encoding.distance_from_target(
            encoding.features(problem.space.to_unit([{"x": 0.2}] * 4), fidelity.to_unit(zs))
        )
        np.testing.assert_allclose(away, np.sqrt([0.0, 0.5, 0.5, 0.625]), atol=1e-12)
