"""Cosmological parameters from Type Ia supernovae, as in the BOCA paper [K17].

    symbol   meaning                                                                     shape
    -------  --------------------------------------------------------------------------  ------
    H0       Hubble constant, km/s/Mpc                                                   scalar
    Omega_M, Omega_Lambda   densities of matter and of dark energy                       scalar
    Omega_k  curvature, 1 - Omega_M - Omega_Lambda                                       scalar
    N        supernovae used, the first N in one fixed random order                      scalar
    G        grid points of the integral, ends included                                  scalar
    z        redshift                                                                    (N,)
    mu       distance modulus that was observed, sigma its standard error                (N,)
    E(z)     expansion rate over H0: E^2 = Omega_M (1+z)^3 + Omega_k (1+z)^2 + Omega_Lambda
    I(z)     integral of 1/E from 0 to z, by the trapezoid rule                          (N,)
    d_L(z)   luminosity distance, (1+z) (c/H0) S(I), in Mpc                              (N,)

S(I) is sinh(sqrt(Omega_k) I) / sqrt(Omega_k), with sin and -Omega_k where Omega_k < 0, and I where it is 0: the
Robertson-Walker metric.  The objective is the mean of log Normal(mu; 5 log10(d_L) + 25, sigma^2) over the N supernovae.

Every point of the box 60 <= H0 <= 80, 0 <= Omega_M, Omega_Lambda <= 1 is a possible universe.  With a = 1 + z >= 1,
E^2 = Omega_M a^2 (a-1) + a^2 - Omega_Lambda (a^2-1) >= a^2 - (a^2-1) = 1.  Hence I <= z <= 1.755, and because
Omega_k >= -1 the argument of the sine stays below pi.  Outside the box this may fail: see `log_likelihood`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boca.domain.budget import seconds
from boca.domain.problem import Problem
from boca.domain.space import Float, FloatArray, Int, Point, Space
from boca.problems import data
from boca.problems.benchmark import Benchmark

_SPEED_OF_LIGHT = 299_792.458  # km/s
_ORDER = 20_170_003  # seeds the order of the supernovae, which are grouped by survey in the file
_LEAST_LOG_DENSITY = -1000.0  # of a supernova that is impossible; no point of the box comes near it
_BLOCK = 1 << 15  # numbers in a temporary array, so that it stays in the cache of the processor


def supernova(seed: int) -> Benchmark:
    """Return the likelihood of the supernovae of Davis et al. (2007): d = 3, p = 2."""
    table = data.supernovae(data.locate("supernova"))
    order = np.random.default_rng(_ORDER).permutation(len(table))
    return Benchmark(
        name="supernova",
        problem=Problem(
            Space(H0=Float(60.0, 80.0), Omega_M=Float(0.0, 1.0), Omega_Lambda=Float(0.0, 1.0)),
            Space(N=Int(50, 192), G=Int(100, 1_000_000, log=True)),
            cost=_cost,
        ),
        budget=seconds(90),
        function=_Likelihood(table[order]),
        optimum=None,
        maximizer=None,
        noise_variance=0.0,
        hyperparameters=None,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """g(z, x) for one table of supernovae, in the order in which they are used."""

    table: FloatArray  # (192, 3)

    def __call__(self, x: Point, z: Point) -> float:
        return log_likelihood(self.table[: z["N"]], x["H0"], x["Omega_M"], x["Omega_Lambda"], G=z["G"])


def _cost(z: Mapping[str, Any]) -> float:
    return float(z["N"] * z["G"])


def log_likelihood(
    table: FloatArray,  # (N, 3)
    H0: float,
    Omega_M: float,
    Omega_Lambda: float,
    *,
    G: int,
    block: int = _BLOCK,
) -> float:
    """Return the mean log-density of the supernovae; the columns of the table are z, mu and sigma.

    The log-density of one supernova is never below -1000.  It is -1000 if no distance exists: if E^2 is not positive
    somewhere on the grid, which means that the universe bounced and was never as small as 1/(1+z), or if d_L is not
    positive.  So the value is finite for every finite argument.

    Args:
        table: The supernovae used, one row each.
        H0: Hubble constant, km/s/Mpc.
        Omega_M: Density of matter.
        Omega_Lambda: Density of dark energy.
        G: Grid points of the integral.
        block: Numbers in a temporary array.
    """
    z, mu, sigma = table.T
    d_L = luminosity_distance(z, H0, Omega_M, Omega_Lambda, G=G, block=block)
    possible = d_L > 0  # not where d_L is NaN
    modulus = 5 * np.log10(np.where(possible, d_L, 1.0)) + 25
    densities = -0.5 * ((mu - modulus) / sigma) ** 2 - np.log(sigma) - 0.5 * math.log(2 * math.pi)
    return float(np.mean(np.where(possible, np.maximum(densities, _LEAST_LOG_DENSITY), _LEAST_LOG_DENSITY)))


def luminosity_distance(
    z: FloatArray,  # (N,)
    H0: float,
    Omega_M: float,
    Omega_Lambda: float,
    *,
    G: int,
    block: int = _BLOCK,
) -> FloatArray:  # (N,)
    """Return d_L in Mpc; NaN if E^2 is not positive on the grid.

    Args:
        z: Redshifts.
        H0: Hubble constant, km/s/Mpc.
        Omega_M: Density of matter.
        Omega_Lambda: Density of dark energy.
        G: Grid points of the integral.
        block: Numbers in a temporary array.
    """
    Omega_k = 1 - Omega_M - Omega_Lambda
    distance = _integral(z, Omega_M, Omega_k, G, block)
    root = math.sqrt(abs(Omega_k))  # sinh(root I)/root is exact to rounding however small the root, but for 0
    if Omega_k > 0:
        distance = np.sinh(root * distance) / root
    elif Omega_k < 0:
        distance = np.sin(root * distance) / root
    return np.asarray((1 + z) * (_SPEED_OF_LIGHT / H0) * distance)


def _integral(z: FloatArray, Omega_M: float, Omega_k: float, G: int, block: int) -> FloatArray:  # (N,)
    """Return the integral of 1/E from 0 to each z by the trapezoid rule on G points; NaN where E^2 <= 0.

    With t = u z and u from 0 to 1, E^2 = 1 + b1 u + b2 u^2 + b3 u^3, by Omega_M + Omega_k + Omega_Lambda = 1.
    """
    b1 = ((3 * Omega_M + 2 * Omega_k) * z)[:, None]
    b2 = ((3 * Omega_M + Omega_k) * z**2)[:, None]
    b3 = (Omega_M * z**3)[:, None]
    total = np.zeros(len(z))
    columns = min(G, block)
    rows = max(1, block // columns)
    space = np.empty((rows, columns))
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, G, columns):
            u = np.arange(start, min(start + columns, G)) / (G - 1)
            for first in range(0, len(z), rows):
                some = slice(first, first + rows)
                E = space[: len(z[some]), : len(u)]
                np.multiply(b3[some], u, out=E)
                E += b2[some]
                E *= u
                E += b1[some]
                E *= u
                E += 1.0
                np.sqrt(E, out=E)
                np.reciprocal(E, out=E)
                total[some] += E.sum(axis=1)
        ends = 1 + 1 / np.sqrt(1 + (b1 + b2 + b3)[:, 0])
        total = (total - 0.5 * ends) * z / (G - 1)
    return np.where(np.isfinite(total), total, math.nan)
