"""The joint model of MF-SKO in dense algebra, and settings to compare it in."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.gp.fit import JITTER, Standardization
from boca.model.dataset import TrainingData
from boca.model.encoding import Encoding
from boca.strategies.mf_sko_model import JointPosterior, autoregressive, log_likelihood

NUMBERS = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(-2.0, 2.0))
MIXED = boca.Space(kind=boca.Choice(["u", "v", "w"]), b=boca.Float(-2.0, 2.0), n=boca.Int(0, 5))
SPACES = {"numbers": NUMBERS, "mixed": MIXED}
EVERY_SPACE = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
EVERY_M = pytest.mark.parametrize("M", [1, 2, 3])


class Dense:
    """A sum of terms B_t[a, b] exp(-|x - x'|_t^2 / 2), conditioned on results and on what is out."""

    def __init__(self, space, B, h, eta2, m, points, y, noise=None):
        self.space, self.B, self.h, self.m = space, np.array(B), np.array(h), m
        self.points = points  # (x, level), those without a y last
        n = len(y)
        K = self.k(points, points) + eta2 * np.eye(len(points))
        K[:n, :n] += np.diag(np.zeros(n) if noise is None else noise)
        self.n, self.K, self.y = n, K, np.array(y)

    def k(self, a, b):
        i, j = np.array([m for _, m in a], dtype=int), np.array([m for _, m in b], dtype=int)
        total = np.zeros((len(a), len(b)))
        for B, h in zip(self.B, self.h, strict=True):
            s = np.zeros((len(a), len(b)))
            for width, (name, parameter) in zip(h, self.space.items(), strict=True):
                if isinstance(parameter, boca.Choice):
                    s += np.array([[x[name] != y[name] for y, _ in b] for x, _ in a]) / width**2
                else:
                    u, v = (np.array([x[name] for x, _ in points], dtype=float) for points in (a, b))
                    s += ((u[:, None] - v[None, :]) / (parameter.high - parameter.low) / width) ** 2
            total += B[np.ix_(i, j)] * np.exp(-0.5 * s)
        return total

    def means(self, a):
        told = self.points[: self.n]
        return self.m + self.k(a, told) @ np.linalg.solve(self.K[: self.n, : self.n], self.y - self.m)

    def covariance(self, a):
        cross = self.k(self.points, a)
        return self.k(a, a) - cross.T @ np.linalg.solve(self.K, cross)

    def of_levels(self, x):
        """Return the mean at the target, and the covariance matrix of all levels, at one x."""
        a = [(x, m) for m in range(self.B.shape[1])]
        return float(self.means(a[-1:])[0]), self.covariance(a)


def by_hand(kappa):
    """f_a = f_0 + delta_1 + ... + delta_a: two levels share the terms that both reach."""
    M = len(kappa)
    return [[[kappa[t] if t <= min(a, b) else 0.0 for b in range(M)] for a in range(M)] for t in range(M)]


Setting = namedtuple("Setting", "space M theta kappa h eta2 xs level y noise pending pending_level")


def setting(space, M, *, n=14, noisy=True, out=2):
    """Return hyperparameters and results at all levels, drawn anyhow."""
    rng = np.random.default_rng([M, len(space)])
    d = len(space)
    kappa, h, eta2 = np.array([1.7, 0.4, 0.15])[:M], rng.uniform(0.3, 1.2, (M, d)), 0.03
    theta = np.log(np.concatenate([kappa, h.ravel(), [eta2]]))
    xs = [space.from_unit(u) for u in space.snap(rng.random((n + out, d)))]
    level = np.concatenate([np.arange(n) % M, rng.integers(M, size=out)])
    noise = rng.random(n) if noisy else None
    y = rng.standard_normal(n)
    return Setting(space, M, theta, kappa, h, eta2 + JITTER * kappa.sum(), xs[:n], level, y, noise, xs[n:], level[n:])


def encoding_of(space):
    return Encoding(boca.Problem(space), "se")


def data_of(s):
    encoding = encoding_of(s.space)
    features = [encoding.x_features(s.space.to_unit(xs)) for xs in (s.xs, s.pending)]
    return training_data(s.space.to_unit(s.xs), features[0], s.y, s.noise, features[1])


def training_data(U, X, y, noise, pending):
    """Return data of which nothing says whether it is at the target: a joint model has levels instead."""
    return TrainingData(U, X, y, noise, np.ones(len(y), dtype=bool), pending, np.ones(len(pending), dtype=bool))


def dense_of(s, *, m=0.0):
    points = list(zip([*s.xs, *s.pending], s.level, strict=True))
    return Dense(s.space, by_hand(s.kappa), s.h, s.eta2, m, points, s.y, s.noise)


def posterior_of(s, *, m=0.0, pending=True):
    data, level = data_of(s), s.level
    if not pending:
        data, level = replace(data, pending=data.pending[:0]), level[: len(s.y)]
    encoding = encoding_of(s.space)
    return JointPosterior.build(
        encoding.problem,
        encoding,
        Standardization(0.0, 1.0),
        data,
        level,
        autoregressive(s.kappa),
        s.h,
        s.eta2,
        m,
        None,
    )


def likelihood(s, theta):
    return log_likelihood(theta, encoding_of(s.space), data_of(s), s.level[: len(s.y)], s.M)


def somewhere(space, count, seed=9):
    """Return unit coordinates of points that exist."""
    return space.snap(np.random.default_rng(seed).random((count, len(space))))
