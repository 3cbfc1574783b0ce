"""Functions drawn from a Gaussian process over one fidelity and one variable, as in the BOCA paper [K17].

    symbol   meaning                                                          shape
    -------  ---------------------------------------------------------------  ------
    m        nodes of the grid in each direction, ends included               scalar
    nodes    the grid on [0, 1], the same for z and x                         (m,)
    h_z, h_x length scales of the squared-exponential kernels                 scalar
    S        symmetric root of a kernel matrix, S S = K                       (m, m)
    E        independent standard normal numbers                              (m, m)
    G        the draw, G[i, j] = g(nodes[i], nodes[j])                        (m, m)

Between the nodes the truth is a bicubic spline, not the process: with h_z = 0.01, half the distance of two
nodes, the two differ a lot there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boca.domain.budget import targets
from boca.domain.problem import Problem
from boca.domain.space import Float, FloatArray, Point, Space
from boca.problems.benchmark import Benchmark

_NODES = 50  # in each direction, as in the paper
_H_X = 0.1
_NOISE_VARIANCE = 0.05

# The second numbers of the two streams.  They exceed any trial number, so that no study that pairs the same seed with
# its trial numbers shares a stream with a draw.
_SMOOTH_STREAM, _ROUGH_STREAM = 20_170_001, 20_170_002


def smooth(seed: int) -> Benchmark:
    """Return a draw whose low fidelities say much about the target: h_z = 1."""
    return _sample("gp-smooth", seed, number=_SMOOTH_STREAM, h_z=1.0)


def rough(seed: int) -> Benchmark:
    """Return a draw whose low fidelities say nothing about the target: h_z = 0.01."""
    return _sample("gp-rough", seed, number=_ROUGH_STREAM, h_z=0.01)


@dataclass(frozen=True, eq=False)
class _Surface:
    """g(z, x) as the spline through a draw."""

    spline: Any  # scipy.interpolate.RectBivariateSpline over (z, x)

    def __call__(self, x: Point, z: Point) -> float:
        return float(self.spline.ev(z["z1"], x["x1"]))


def _sample(name: str, seed: int, *, number: int, h_z: float) -> Benchmark:
    from scipy.interpolate import RectBivariateSpline

    nodes = np.linspace(0.0, 1.0, _NODES)
    G = _draw(nodes, h_z, np.random.default_rng([seed, number]))
    surface = _Surface(RectBivariateSpline(nodes, nodes, G, kx=3, ky=3))
    maximizer = {"x1": _argmax(surface, nodes, G[-1])}
    return Benchmark(
        name=name,
        problem=Problem(Space(x1=Float(0.0, 1.0)), Space(z1=Float(0.0, 1.0)), cost=_cost),
        budget=targets(30),
        function=surface,
        optimum=surface(maximizer, {"z1": 1.0}),
        maximizer=maximizer,
        noise_variance=_NOISE_VARIANCE,
        hyperparameters={"kappa0": 1.0, "eta2": _NOISE_VARIANCE, "mean": 0.0, "h_x": [_H_X], "h_z": [h_z]},
        seed=seed,
    )


def _cost(z: Mapping[str, Any]) -> float:
    return float(0.2 + 6 * z["z1"] ** 2)


def _draw(nodes: FloatArray, h_z: float, rng: np.random.Generator) -> FloatArray:  # (m, m)
    """Draw the process on the grid.

    The kernel is a product, so its matrix is a Kronecker product, and S_z E S_x has that covariance.
    """
    E = rng.standard_normal((len(nodes), len(nodes)))
    return _root(nodes, h_z) @ E @ _root(nodes, _H_X)


def _root(nodes: FloatArray, h: float) -> FloatArray:  # (m, m)
    """Return the symmetric root of the kernel matrix.

    It needs no jitter, although the matrix is singular in floating point.  It is unique, unlike eigenvectors, whose
    signs depend on the library, so a seed means the same function on every machine up to rounding.
    """
    K = np.exp(-0.5 * ((nodes[:, None] - nodes[None, :]) / h) ** 2)
    values, V = np.linalg.eigh(K)
    S: FloatArray = (V * np.sqrt(np.maximum(values, 0.0))) @ V.T
    return S


def _argmax(surface: _Surface, nodes: FloatArray, top: FloatArray) -> float:
    """Return the x of the largest g(1, x), `top` being the draw at z = 1.

    On that edge the surface is the cubic spline through `top`, and the stationary points of a cubic spline
    are the roots of quadratics.  All of them and the two ends are compared, so no peak can be missed.
    """
    from scipy.interpolate import CubicSpline

    stationary = CubicSpline(nodes, top, bc_type="not-a-knot").derivative().roots(extrapolate=False)
    candidates = [0.0, 1.0, *(min(max(float(x), 0.0), 1.0) for x in stationary)]
    return max(candidates, key=lambda x: surface({"x1": x}, {"z1": 1.0}))
