"""The posterior after a history: a Gaussian process over (x, z), with the conversion back to the user's units.

symbol   meaning
d, p     parameters of the domain and of the fidelity space
s        shrink: the length scales h_x are divided by it
mu, sigma  posterior mean and deviation of f = g(z*, .), in standardized units, larger being better
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray, IntArray
from boca.domain.trial import Trial, sign
from boca.gp import fit as gp_fit
from boca.gp.fitc import build_fitc, farthest_points
from boca.gp.model import GP, PosteriorSlice
from boca.gp.noise import NO_NOISE, Noise
from boca.model.dataset import TrainingData
from boca.model.encoding import Encoding
from boca.model.fit_record import Fit
from boca.model.hyperparameters import as_told, finite
from boca.model.warp import Warp

EXACT_UP_TO = 1200  # results: up to here the posterior is exact, beyond it would cost seconds per suggestion
ACTIVE_RESULTS = 800  # through which the posterior is approximated beyond that
ALL_VALUED_UP_TO = 64  # results: up to here bounds cost no less than values, and every candidate is valued
LEADING_RESULTS = 128  # that bound a candidate's variance, if there are more than twice as many
BEST_AMONG_RESULTS = 256  # whose x have their means computed, if there are more: those with the highest estimates
_NO_REACH = 1e-9  # length scale of a fidelity that is switched off, so that it is uncorrelated with the target


class Posterior(Protocol):
    """The posterior of f = g(z*, .): all that recommendations, plots and reports know of a model."""

    @property
    def problem(self) -> Problem: ...
    def moments(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> mu (m,), sigma (m,)
    def value_as_told(self, standardized: float, /) -> float:
        """Return a mean or a bound in the user's units."""
        ...

    def interval_as_told(self, mean: float, deviation: float, /) -> float:
        """Return half of the interval of one deviation either side of a mean, in the user's units."""
        ...

    def hyperparameters(self) -> dict[str, Any]:
        """Return the numbers that define the model of f in the user's units."""
        ...

    def learned(self) -> dict[str, Any]:
        """Return what a refit for this posterior learned, as keys of `why`; empty if it uses an earlier refit."""
        ...

    def described(self) -> dict[str, Any]:
        """Return the maps that stand between the values and the GP, as keys of `why`."""
        ...


@dataclass(frozen=True)
class Model:
    """A GP over (x, z), with the conversion back to the user's units."""

    problem: Problem
    encoding: Encoding
    standard: gp_fit.Standardization
    data: TrainingData
    kappa0: float
    h: FloatArray
    eta2: float
    mean: float | None
    fit: Fit | None = None
    """What a refit for this model learned; None if it uses an earlier refit."""
    noise_terms: Noise = NO_NOISE
    """The noise beside its constant variance."""
    guard: float | None = None
    """Nats by which the target is predicted better without the other fidelities, if they are switched off for it."""
    shrink: float = 1.0
    exact_results: int = EXACT_UP_TO
    at_bound: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The parameters whose learned length scales are at a bound, under "h_x" and "h_z": the data do not say them."""
    warp: Warp | None = None
    """The map of the values that comes before location and scale."""
    before: Model | None = None
    """The model before the last of the running trials began: its factor is extended, and its mean stays."""

    def shrunk(self, s: float) -> Model:
        """Return the model with the length scales h_x divided by s, which is less certain between the results."""
        if s == 1.0:
            return self
        h = self.h.copy()
        h[: len(self.problem.space)] /= s
        return replace(self, h=h, shrink=self.shrink * s, before=None)

    def joined(self, trials: Sequence[Trial], curves: FloatArray | None = None) -> Model:
        """Return the model with further running trials; their points are appended to the factor of this one.

        `curves` has the number of the curve of each.
        """
        if not trials:
            return self
        U = self.problem.space.to_unit([t.x for t in trials])
        pending = self.encoding.features(U, self.problem.fidelity.to_unit([t.planned for t in trials]), curves)
        is_target = self.encoding.is_target(pending)
        counts = is_target if self.guard is not None else np.ones(len(pending), dtype=bool)
        data = self.data.joined(pending[counts], is_target[counts])
        return replace(self, data=data, fit=None, before=self)

    def at_target(self) -> Model:
        """Return the model of the results at the target alone, with the same hyperparameters but their own mean."""
        data = self.data.at_target()
        mean = None if self.mean is None else float(np.median(data.y))
        return replace(self, data=data, mean=mean, before=None)

    @cached_property
    def gp(self) -> GP:
        """The posterior given all results, those most correlated with the target first: the first bound variances."""
        if self.before is not None:
            new = self.data.pending[len(self.before.data.pending) :]
            return self.before.gp.fantasize(new, self.noise_terms.variance(new))
        data = self.data.select(np.argsort(-self._target_correlations(self.data.X), kind="stable"))
        condition = GP.build if len(data.y) <= self.exact_results else partial(build_fitc, active=self._active(data))
        gp = condition(
            self.encoding.kernel,
            data.X,
            data.y,
            kappa0=self.kappa0,
            h=self.h,
            eta2=self.eta2,
            m=self.mean,
            noise=data.noise,
        )
        return gp.fantasize(data.pending, self.noise_terms.variance(data.pending))

    def _target_correlations(self, X: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        """Return the correlation of every result's fidelity with the target."""
        here = X.copy()
        here[:, : self.encoding.x_width] = 0.0
        star = np.concatenate([np.zeros(self.encoding.x_width), self.encoding.target])
        return self.encoding.kernel.value(self.h, here, star[None, :])[:, 0]

    def _active(self, data: TrainingData) -> IntArray:  # (ACTIVE_RESULTS,) at most
        """Return the results of the active set: the best at the target, then others far from each other."""
        at_target = np.flatnonzero(data.is_target)
        count = min(ACTIVE_RESULTS, self.exact_results)
        best = at_target[np.argsort(-data.y[at_target], kind="stable")][: count // 2]
        return np.sort(farthest_points(self.encoding.kernel, self.h, data.X, best, count))

    @cached_property
    def target_slice(self) -> PosteriorSlice:
        """The posterior of f = g(z*, .) as a function of x.  [K17, eq. 5]"""
        return PosteriorSlice(self.gp, self.encoding.x_width, self.encoding.target)

    def given_draws(self, U: FloatArray, normal: FloatArray) -> tuple[PosteriorSlice, FloatArray]:  # (a, d), (a, k)
        """Return the posterior of f given draws of it at U, one per column of `normal`, and the draws (a, k)."""
        x = self.encoding.x_features(U)
        gp, values = self.gp.given_draws(np.hstack([x, np.tile(self.encoding.target, (len(x), 1))]), normal)
        return PosteriorSlice(gp, self.encoding.x_width, self.encoding.target), values

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu (m,), sigma (m,)
        mean, variance = self.target_slice.moments(self.encoding.x_features(U))
        return mean, np.sqrt(variance)

    def means(self, U: FloatArray) -> FloatArray:  # (m, d) -> mu (m,)
        return self.target_slice.means(self.encoding.x_features(U))

    def noise(self, A: FloatArray) -> FloatArray:  # (m, D) -> (m,)
        """Return the variance of the noise of a query."""
        return self.gp.eta2 + self.noise_terms.variance(A)

    def at(self, u: FloatArray, Z: FloatArray) -> FloatArray:  # (d,), (m, p) -> (m, D)
        """Return the features of one x at many fidelities."""
        x = self.encoding.x_features(u[None, :])
        return np.hstack([np.repeat(x, len(Z), axis=0), self.encoding.z_features(Z)])

    @cached_property
    def queried(self) -> FloatArray:  # (k, d)
        """The x of all results, each once, in unit coordinates."""
        return _distinct(self.data.U)

    def anchors(self, count: int = 5) -> FloatArray:  # (count, d)
        """Return the queried x with the highest posterior means at the target, the best first."""
        return self._best_queried[:count]

    @cached_property
    def _best_queried(self) -> FloatArray:  # (k, d)
        if self.before is not None:
            return self.before._best_queried
        U = self.data.U
        if len(U) > BEST_AMONG_RESULTS:  # the mean given a single result needs no solve
            estimate = self._target_correlations(self.data.X) * (self.data.y - self.gp.m)
            U = U[np.sort(np.argsort(-estimate, kind="stable")[:BEST_AMONG_RESULTS])]
        x = _distinct(U)
        return x[np.argsort(-self.means(x), kind="stable")]

    def approximate_moments(
        self, U: FloatArray, exact: int
    ) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu, sigma (m,)
        """Return mu and sigma: exact at the `exact` points with the highest bounds, upper bounds elsewhere."""
        leading = leading_count(self.target_slice)
        if leading is None:
            return self.moments(U)
        mean, variance = self.target_slice.upper_bounds(self.encoding.x_features(U), leading)
        sigma = np.sqrt(variance)
        highest = np.argsort(-(mean + 2.0 * sigma), kind="stable")[:exact]
        mean[highest], sigma[highest] = self.moments(U[highest])
        return mean, sigma

    def diameter(self) -> float:
        """Return the L1 diameter of the domain, each dimension divided by its length scale; of its widest branch."""
        own = self.h[: len(self.problem.space)]
        return max(float(np.sum(1.0 / own[branch.active])) for branch in self.problem.space.branches)

    def value_as_told(self, standardized: float) -> float:
        """Return a mean or a bound in the user's units."""
        warped = self._warped_units(standardized)
        score = warped if self.warp is None else float(self.warp.inverse(warped))
        return finite(sign(self.problem.direction) * score)

    def interval_as_told(self, mean: float, deviation: float) -> float:
        """Return half of the interval of one deviation either side of a mean, in the user's units."""
        if self.warp is None:
            return finite(self.standard.scale * deviation)
        low, high = (self.value_as_told(mean + side * deviation) for side in (-1.0, 1.0))
        return finite(abs(0.5 * high - 0.5 * low))

    def deviation_as_told(self, standardized: float) -> float:
        """Return a deviation in the units of the values as told, or of the warped ones if there is a warp."""
        return finite(self.standard.scale * standardized)

    def _warped_units(self, standardized: float) -> float:
        return self.standard.location + self.standard.scale * standardized

    def hyperparameters(self) -> dict[str, Any]:
        """Return the numbers that define this GP: with the results, they are the model.

        They are in the units of the values as told, or of the warped ones.  Strengths that are zero are absent.
        """
        scale, kappa0 = self.standard.scale, self.kappa0
        values = {"kappa0": [kappa0], "eta2": [self.gp.eta2]} | self._kernel_values() | self._noise_values()
        shown: dict[str, Any] = {}
        for block in [*self.encoding.blocks, *(term.block for term in self.encoding.noise)]:
            if block.name == "fade_length" and block.name not in values:
                continue  # of a part that is not there
            of_block = values.get(block.name, [0.0])
            if not block.is_strength or any(of_block):
                shown[block.name] = as_told(block, of_block, kappa0=kappa0, scale=scale)
            if block.name == "eta2":
                shown["mean"] = finite(sign(self.problem.direction) * self._warped_units(self.gp.m))
        return shown

    def warnings(self) -> dict[str, Any]:
        """Return what a reader of the length scales should know, as keys of `why`."""
        return {"at_bound": {name: list(of) for name, of in self.at_bound.items()}} if self.at_bound else {}

    def learned(self) -> dict[str, Any]:
        return {} if self.fit is None else {"fit": self.fit.to_json()}

    def described(self) -> dict[str, Any]:
        warp = {} if self.warp is None else {"warp": self.warp.described(sign(self.problem.direction))}
        named = self.encoding.landmarks if self.guard is None else []
        if not named:
            return warp
        Z = self.problem.fidelity.to_unit([z for _, _, z in named])
        k, own, star = self.encoding.fidelity_covariance(self.h, Z)
        pairs = zip(named, k / np.sqrt(own * star), strict=True)
        said = ", ".join(f"{name} {value:.3g} has {agreement:.2f}" for (name, value, _), agreement in pairs)
        return warp | {"kernel": f"Agreement with the target, as learned from the results (1 is full): {said}."}

    def _kernel_values(self) -> dict[str, list[float]]:
        """Return the values in h by block; fidelities that are switched off have no reach."""
        blocks = [block for block in self.encoding.blocks if block.name not in ("kappa0", "eta2")]
        ends = np.cumsum([block.size for block in blocks])
        values = {block.name: part.tolist() for block, part in zip(blocks, np.split(self.h, ends), strict=False)}
        if self.guard is not None:
            for name in {"h_z", "fade", "trend"} & values.keys():
                values[name] = [_NO_REACH if name == "h_z" else 0.0] * len(values[name])
        if not any(values.get("fade", ())):
            values.pop("fade_length", None)
        return values

    def _noise_values(self) -> dict[str, list[float]]:
        if self.guard is not None:  # at the target, the components are zero
            return {}
        pairs = zip(self.noise_terms.terms, self.noise_terms.strengths, strict=True)
        return {term.block.name: [value] for term, value in pairs}


def leading_count(posterior: PosteriorSlice) -> int | None:
    """Return how many results bound the variance; None if bounds would cost no less than values."""
    n = len(posterior.gp.X)
    if n <= ALL_VALUED_UP_TO:
        return None
    return n if n <= 2 * LEADING_RESULTS else LEADING_RESULTS


def _distinct(U: FloatArray) -> FloatArray:  # (n, d) -> (k, d)
    """Return the distinct rows, in the order of their first occurrence."""
    _, first = np.unique(U, axis=0, return_index=True)
    return U[np.sort(first)]
