"""How the hyperparameters of the GP are learned from a history, and when they are learned again.

The model behind a suggestion is a pure function of the history: hyperparameters come from the last refit, which is
stored in the `why` of the trial that made it, and everything else from the results in the order in which they were
told.  So replaying a history gives the same model, bit for bit, and no cache can disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from boca.domain.errors import InvalidInput, flags, one_of
from boca.domain.problem import Problem
from boca.domain.space import finite_number, whole_number
from boca.domain.trial import History, sign
from boca.gp import fit as gp_fit
from boca.gp.kernels import Profile
from boca.gp.noise import Noise
from boca.model import hyperparameters as numbers
from boca.model.dataset import Dataset, Failures
from boca.model.encoding import Encoding, FidelityAxis, FidelityKernel, scales_at_bounds
from boca.model.fidelity_use import FITTED_RESULTS, FidelityTests
from boca.model.fit_record import Fit, is_flat, last_fit
from boca.model.posterior import EXACT_UP_TO, Model
from boca.model.warp import Warp
from boca.model.warp_choice import SHARE_BEFORE_EVIDENCE, WarpChoice

PAPER_RESULTS = 4000  # the capital of hartmann6 buys at most so many queries, and that of the paper's others fewer
_RESULTS_PER_NEW_ONE = 15.0  # a refit is due when this share of the results is new: the others hardly change the fit
_MOST_RESULTS_BETWEEN_REFITS = 25.0  # as many as in the paper, however many results there are
_RANDOM_STARTS_EVERY_REFITS = 4  # with priors, whose posterior seldom has a second maximum


@dataclass(frozen=True)
class Surrogate:
    """How a GP is made from a history.  The defaults are those of `Boca()`; `Surrogate.paper()` has the paper's."""

    kernel: Profile = "matern52"
    """Kernel on the domain: objectives are seldom infinitely smooth, as the squared exponential assumes."""
    mean: Literal["gls", "median"] = "gls"
    """Constant mean: generalized least squares weighs clustered results less than the median does."""
    priors: bool = True
    """Maximum a posteriori: pure likelihood pins the length scales of fidelities at a bound in 85-100 % of runs."""
    refit_every: int | None = None
    """Refit after this many iterations; None refits after n/15 new results, at least 1 and at most 25."""
    starts: int = 1
    """Random starts of a fit beside the previous optimum; with priors, only at the first and every fourth refit."""
    guard: float | None = 0.25
    """Switch the cheaper fidelities off if results at the target, each left out in turn, are predicted better without
    them by this many nats.  A model with a jump at the target and a trend towards it is tried too.  None: never."""
    rising_noise: bool = True
    """Let the noise grow with the distance from the target if that is likelier by two nats: cheap queries are often
    noisy, and with one variance for all the target would seem as noisy."""
    warp: bool = field(default=True, metadata={"off": False})
    """Look at the values through an increasing map if that predicts the results at the target better: otherwise the
    cliff between the worst quarter of a real space and the rest decides what the model learns."""
    failures: Failures = field(default="below", metadata={"off": "worst"})
    """What a failure is worth: the worst value, or half of the range less, so that the search keeps away from it."""
    fidelity_axis: FidelityAxis = field(default="learned", metadata={"off": "as_declared"})
    """How the model sees fidelities that are positive numbers, such as epochs, unless there is a `fidelity_kernel`.
    "learned": on a log scale with a power that is learned, so that what the first epoch says is no verdict on the
    others, and with a trend towards the target that all x share.  "fading": with a part of the kernel that vanishes at
    the target, too."""
    learn_inactive: bool = field(default=True, metadata={"off": False})
    """Learn how far active is from inactive, in a space with conditions, by one length scale of its own: otherwise the
    length scale of each parameter decides."""
    fidelity_kernel: FidelityKernel | Profile | None = None
    """A kernel by name ("se", "matern52"), or a covariance of two fidelities (mappings by name, of arrays that
    broadcast); None: the squared exponential."""
    fitted_results: int = field(default=FITTED_RESULTS, metadata={"off": FITTED_RESULTS})
    """Learn hyperparameters from at most so many results, spread over all: a fit costs their number cubed."""
    exact_results: int = field(default=EXACT_UP_TO, metadata={"off": EXACT_UP_TO})
    """Infer exactly from up to so many results, and through few of them beyond: exact inference costs their number
    cubed for every suggestion."""

    def __post_init__(self) -> None:
        one_of(self.kernel, get_args(Profile), "kernel")
        one_of(self.fidelity_axis, get_args(FidelityAxis), "fidelity_axis")
        one_of(self.mean, ("gls", "median"), "mean")
        flags(self, "priors", "rising_noise", "warp", "learn_inactive")
        one_of(self.failures, get_args(Failures), "failures")
        if isinstance(self.fidelity_kernel, str):
            one_of(self.fidelity_kernel, get_args(Profile), "fidelity_kernel")
        for name in ("fitted_results", "exact_results"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
            if getattr(self, name) < 1:
                raise InvalidInput(
                    f"{name} must be at least 1 result; got {getattr(self, name)!r}. Leave it out for the default."
                )
        if self.guard is not None and finite_number(self.guard, "guard") < 0.0:
            raise InvalidInput(f"guard must be at least 0 nats, or None to keep all fidelities; got {self.guard!r}.")
        object.__setattr__(self, "starts", whole_number(self.starts, "starts"))
        if self.starts < 0:
            raise InvalidInput(f"starts must be at least 0; got {self.starts!r}.")
        if self.refit_every is not None and not finite_number(self.refit_every, "refit_every") >= 1:
            raise InvalidInput(f"refit_every must be at least 1, or None; got {self.refit_every!r}.")

    @classmethod
    def paper(cls) -> Surrogate:
        """Return the model of the paper's appendix, which sets no limit to the number of results."""
        return cls(
            kernel="se",
            mean="median",
            priors=False,
            refit_every=25,
            starts=2,
            guard=None,
            rising_noise=False,
            warp=False,
            failures="worst",
            fidelity_axis="as_declared",
            learn_inactive=False,
            fitted_results=PAPER_RESULTS,
            exact_results=PAPER_RESULTS,
        )

    def model(
        self,
        problem: Problem,
        history: History,
        rng: np.random.Generator,
        *,
        hyperparameters: Mapping[str, Any] | None = None,
        force_refit: bool = False,
        failures: bool = True,
    ) -> Model:
        """Return the GP after a history, which needs at least one trial with a value.

        Without `failures`, failed trials carry no value.
        """
        dataset = Dataset.from_history(problem, history, self.failures if failures else None)
        if hyperparameters is not None:
            return self.known(dataset, hyperparameters)
        return self.learned(dataset, history, rng, force_refit=force_refit)

    def learned(
        self, dataset: Dataset, history: History, rng: np.random.Generator, *, force_refit: bool = False
    ) -> Model:
        """Return the GP of a dataset, with the hyperparameters of its last refit in the history, or of one now."""
        fit = last_fit(history, dataset.outcome)
        if fit is not None and not self._is_own(fit, dataset.problem):
            fit = None
        if not force_refit and fit is not None and not self.is_due(dataset, fit):
            return self.condition(dataset, fit)
        fit = self.fit(dataset, rng, fit)
        return replace(self.condition(dataset, fit), fit=fit)

    def _is_own(self, fit: Fit, problem: Problem) -> bool:
        """Whether a fit has as many hyperparameters as this model: a strategy before it may have had another one."""
        return len(fit.theta) == sum(block.size for block in self._encoding(problem).blocks)

    def is_due(self, dataset: Dataset, fit: Fit) -> bool:
        """Whether hyperparameters are to be learned again."""
        return fit.is_outdated(dataset.warped(fit.warp).judged) or self.is_scheduled(
            dataset.iterations - fit.iteration, len(dataset.scores), since=fit.results
        )

    def is_scheduled(self, iterations: int, results: int, *, since: int) -> bool:
        """Whether there are enough new iterations or results since a refit.

        Args:
            iterations: how many trials a model has chosen since the refit.
            results: how many results there are.
            since: how many results there were at the refit.
        """
        if self.refit_every is not None:
            return iterations >= self.refit_every
        return results - since >= min(max(results / _RESULTS_PER_NEW_ONE, 1.0), _MOST_RESULTS_BETWEEN_REFITS)

    def condition(self, dataset: Dataset, fit: Fit) -> Model:
        """Return the GP of these results with the hyperparameters of a refit."""
        encoding = self._encoding(dataset.problem)
        use, theta = fit.use, fit.theta if fit.use is None else fit.use.theta
        if use is not None and use.kind == "extended":
            encoding = encoding.extended()
        noise = Noise.from_strengths(encoding.noise, [fit.rise or 0.0] * len(encoding.noise))
        data = dataset.warped(fit.warp).encoded(encoding, fit.standard).with_noise(noise)
        guard = None
        if use is not None and use.kind == "none":
            data, guard = data.at_target(), use.nats
        kappa0, h, eta2 = gp_fit.unpack(np.array(theta), encoding.kernel)
        mean = None if self.mean == "gls" else float(np.median(data.y))
        return Model(
            dataset.problem,
            encoding,
            fit.standard,
            data,
            kappa0,
            h,
            eta2,
            mean,
            noise_terms=noise,
            guard=guard,
            exact_results=self.exact_results,
            at_bound=scales_at_bounds(dataset.problem, encoding.blocks, theta),
            warp=fit.warp,
        )

    def known(self, dataset: Dataset, hyperparameters: Mapping[str, Any]) -> Model:
        """Return the GP of these results with hyperparameters that the user gave."""
        problem = dataset.problem
        given = self._checked(problem, hyperparameters)
        (kappa0,), (eta2,), (mean,) = given["kappa0"], given["eta2"], given["mean"]
        encoding = self._known_encoding(problem, hyperparameters)
        if not any(any(given[block.name]) for block in encoding.kernel.blocks if block.name in ("jump", "trend")):
            encoding = replace(encoding, is_extended=False)
        scales = [value for name in ("h_x", "h_z") for value in given.get(name, [])]
        strengths = [
            value / kappa0 if block.unit == "signal" else math.log(value) if block.unit == "log" else value
            for block in encoding.kernel.blocks
            for value in given[block.name]
        ]
        noise = Noise.from_strengths(encoding.noise, [given[term.block.name][0] for term in encoding.noise])
        standard = gp_fit.Standardization(0.0, 1.0)
        data = dataset.warped(None).encoded(encoding, standard).with_noise(noise)
        h = np.array([*scales, *strengths])
        turn = sign(problem.direction)
        return Model(
            problem,
            encoding,
            standard,
            data,
            kappa0,
            h,
            eta2,
            turn * mean,
            noise_terms=noise,
            exact_results=self.exact_results,
        )

    def _encoding(self, problem: Problem) -> Encoding:
        return Encoding(
            problem,
            self.kernel,
            self._covariance,
            axis="as_declared" if self.fidelity_kernel else self.fidelity_axis,
            fidelity_profile=self._fidelity_profile,
            has_curves=problem.steps is not None and self._covariance is None,
            learns_inactive=self.learn_inactive,
        )

    @property
    def _covariance(self) -> FidelityKernel | None:
        """The covariance of fidelities that the user wrote, if any."""
        return None if isinstance(self.fidelity_kernel, str) else self.fidelity_kernel

    @property
    def _fidelity_profile(self) -> Profile:
        return self.fidelity_kernel if isinstance(self.fidelity_kernel, str) else "se"

    def _known_encoding(self, problem: Problem, given: Mapping[str, Any]) -> Encoding:
        """Return the encoding for hyperparameters that the user gives, with every optional component."""
        is_extended = bool(problem.fidelity) and self._covariance is None
        axis: FidelityAxis = "fading" if "fade" in given else "learned" if "axis" in given else "as_declared"
        has_curves = problem.steps is not None and self._covariance is None
        return Encoding(problem, "se", self._covariance, is_extended, axis, self._fidelity_profile, has_curves)

    def _checked(self, problem: Problem, given: Mapping[str, Any]) -> dict[str, list[float]]:
        encoding = self._known_encoding(problem, given if isinstance(given, Mapping) else {})
        blocks = [*encoding.blocks, *(term.block for term in encoding.noise)]
        return numbers.checked(given, blocks, ignored=("h_z",) if self._covariance else ())

    def check(self, problem: Problem, hyperparameters: Mapping[str, Any] | None) -> None:
        """Refuse settings that do not fit the problem, before a trial runs."""
        if hyperparameters is not None:
            self._checked(problem, hyperparameters)
        if self._covariance is not None:
            self._encoding(problem).check_fidelity_kernel()

    def fit(self, dataset: Dataset, rng: np.random.Generator, previous: Fit | None) -> Fit:
        """Learn hyperparameters; later models need only what is returned, which is stored with the trial."""
        problem = dataset.problem
        encoding = self._encoding(problem)
        count = previous.count + 1 if previous else 0
        mean = None if self.mean == "gls" else 0.0
        warp = self._warp(WarpChoice(dataset, encoding, mean, self.priors), previous, count) if self.warp else None
        dataset = dataset.warped(warp)
        scores = dataset.judged
        standard = gp_fit.standardize(scores)
        if dataset.bound is not None and is_flat(scores):  # equal results say nothing of the scale; the limit does
            standard = gp_fit.Standardization(standard.location, abs(dataset.bound - standard.location) or 1.0)
        prior = encoding.prior(informative=self.priors)
        random_starts = self.starts if not self.priors or count % _RANDOM_STARTS_EVERY_REFITS == 0 else 0
        first = np.array(previous.theta) if previous else prior.mean
        starts = [first, *(prior.draw(rng) for _ in range(random_starts))]
        data = dataset.encoded(encoding, standard).thinned(self.fitted_results)
        theta = prior.mean  # equal results carry no information about length scales
        if self.priors or not is_flat(scores):
            theta = gp_fit.fit(encoding.kernel, data.X, data.y, prior=prior, starts=starts, noise=data.noise, mean=mean)
        fit = Fit(
            tuple(theta.tolist()),
            standard.location,
            standard.scale,
            results=len(dataset.scores),
            iteration=dataset.iterations,
            count=count,
            is_flat=is_flat(scores),
            warp=warp,
        )
        tests = FidelityTests(dataset, encoding, mean, self.priors, self.fitted_results)
        if self.rising_noise and problem.fidelity:
            found = tests.rising(data, fit, (previous.rise or 0.0) if previous else 0.0)
            if found is not None:
                fit = replace(fit, theta=tuple(found[0].tolist()), rise=found[1])
        if self.guard is not None and problem.fidelity:
            fit = replace(fit, use=tests.use(fit, previous.use if previous else None, guard=self.guard))
        return fit

    @staticmethod
    def _warp(choice: WarpChoice, previous: Fit | None, count: int) -> Warp | None:
        """Return the warp of a refit; between two choices its share stays, and its numbers follow the results."""
        noise = 0.0 if previous is None else _noise_near_best(choice.encoding, previous)
        if not choice.has_evidence():
            share = SHARE_BEFORE_EVIDENCE
        elif previous is None or choice.is_due(count):
            start = choice.encoding.prior(informative=True).mean if previous is None else np.array(previous.theta)
            share = choice.best_share(start, noise, None if previous is None else _share(previous))
        else:
            share = _share(previous)
        return choice.member(share, noise)


def _share(fit: Fit) -> float:
    """Return the share of a fit's warp."""
    return math.inf if fit.warp is None else fit.warp.share


def _noise_near_best(encoding: Encoding, fit: Fit) -> float:
    """Return the deviation of the noise near the best result that a fit learned, in the units of the values."""
    _, _, eta2 = gp_fit.unpack(np.array(fit.theta), encoding.kernel)
    deviation = math.sqrt(eta2) * fit.scale
    return deviation if fit.warp is None else deviation * fit.warp.spread
