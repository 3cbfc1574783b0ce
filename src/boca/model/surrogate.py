"""How the hyperparameters of the GP are learned from a history, and when they are learned again.

The model behind a suggestion is a pure function of the history: hyperparameters come from the last refit, which is
stored in the `why` of the trial that made it, and everything else from the results in the order in which they were
told.  So replaying a history gives the same model, bit for bit, and no cache can disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from boca.model.dataset import Dataset
from boca.model.encoding import Encoding, FidelityKernel
from boca.model.fidelity_use import FITTED_RESULTS, FidelityTests
from boca.model.fit_record import Fit, is_flat, last_fit
from boca.model.posterior import Model

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
    fidelity_kernel: FidelityKernel | None = None
    """A covariance of two fidelities (mappings by name, of arrays that broadcast); None: the squared exponential."""

    def __post_init__(self) -> None:
        one_of(self.kernel, get_args(Profile), "kernel")
        one_of(self.mean, ("gls", "median"), "mean")
        flags(self, "priors", "rising_noise")
        if self.guard is not None and finite_number(self.guard, "guard") < 0.0:
            raise InvalidInput(f"guard must be at least 0 nats, or None to keep all fidelities; got {self.guard!r}.")
        object.__setattr__(self, "starts", whole_number(self.starts, "starts"))
        if self.starts < 0:
            raise InvalidInput(f"starts must be at least 0; got {self.starts!r}.")
        if self.refit_every is not None and not finite_number(self.refit_every, "refit_every") >= 1:
            raise InvalidInput(f"refit_every must be at least 1, or None; got {self.refit_every!r}.")

    @classmethod
    def paper(cls) -> Surrogate:
        return cls(kernel="se", mean="median", priors=False, refit_every=25, starts=2, guard=None, rising_noise=False)

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
        dataset = Dataset.from_history(problem, history, failures=failures)
        if hyperparameters is not None:
            return self.known(dataset, hyperparameters)
        return self.learned(dataset, history, rng, force_refit=force_refit)

    def learned(
        self, dataset: Dataset, history: History, rng: np.random.Generator, *, force_refit: bool = False
    ) -> Model:
        """Return the GP of a dataset, with the hyperparameters of its last refit in the history, or of one now."""
        fit = last_fit(history, dataset.outcome)
        if not force_refit and fit is not None and not self.is_due(dataset, fit):
            return self.condition(dataset, fit)
        fit = self.fit(dataset, rng, fit)
        return replace(self.condition(dataset, fit), fit=fit)

    def is_due(self, dataset: Dataset, fit: Fit) -> bool:
        """Whether hyperparameters are to be learned again."""
        return fit.is_outdated(dataset.scores) or self.is_scheduled(
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
        data = dataset.encoded(encoding, fit.standard).with_noise(noise)
        guard = None
        if use is not None and use.kind == "none":
            data, guard = data.at_target(), use.nats
        kappa0, h, eta2 = gp_fit.unpack(np.array(theta), encoding.kernel)
        mean = None if self.mean == "gls" else float(np.median(data.y))
        return Model(
            dataset.problem, encoding, fit.standard, data, kappa0, h, eta2, mean, noise_terms=noise, guard=guard
        )

    def known(self, dataset: Dataset, hyperparameters: Mapping[str, Any]) -> Model:
        """Return the GP of these results with hyperparameters that the user gave."""
        problem = dataset.problem
        given = self._checked(problem, hyperparameters)
        (kappa0,), (eta2,), (mean,) = given["kappa0"], given["eta2"], given["mean"]
        encoding = self._known_encoding(problem)
        if not any(any(given[block.name]) for block in encoding.kernel.blocks):
            encoding = replace(encoding, is_extended=False)
        scales = [value for name in ("h_x", "h_z") for value in given.get(name, [])]
        strengths = [
            value / kappa0 if block.unit == "signal" else value
            for block in encoding.kernel.blocks
            for value in given[block.name]
        ]
        noise = Noise.from_strengths(encoding.noise, [given[term.block.name][0] for term in encoding.noise])
        standard = gp_fit.Standardization(0.0, 1.0)
        data = dataset.encoded(encoding, standard).with_noise(noise)
        h = np.array([*scales, *strengths])
        turn = sign(problem.direction)
        return Model(problem, encoding, standard, data, kappa0, h, eta2, turn * mean, noise_terms=noise)

    def _encoding(self, problem: Problem) -> Encoding:
        return Encoding(problem, self.kernel, self.fidelity_kernel)

    def _known_encoding(self, problem: Problem) -> Encoding:
        """Return the encoding for hyperparameters that the user gives, with every optional component."""
        is_extended = bool(problem.fidelity) and self.fidelity_kernel is None
        return Encoding(problem, "se", self.fidelity_kernel, is_extended)

    def _checked(self, problem: Problem, given: Mapping[str, Any]) -> dict[str, list[float]]:
        encoding = self._known_encoding(problem)
        blocks = [*encoding.blocks, *(term.block for term in encoding.noise)]
        return numbers.checked(given, blocks, ignored=("h_z",) if self.fidelity_kernel else ())

    def check(self, problem: Problem, hyperparameters: Mapping[str, Any] | None) -> None:
        """Refuse settings that do not fit the problem, before a trial runs."""
        if hyperparameters is not None:
            self._checked(problem, hyperparameters)
        if self.fidelity_kernel is not None:
            self._encoding(problem).check_fidelity_kernel()

    def fit(self, dataset: Dataset, rng: np.random.Generator, previous: Fit | None) -> Fit:
        """Learn hyperparameters; later models need only what is returned, which is stored with the trial."""
        problem, scores = dataset.problem, dataset.scores
        encoding = self._encoding(problem)
        standard = gp_fit.standardize(scores)
        if dataset.bound is not None and is_flat(scores):  # equal results say nothing of the scale; the limit does
            standard = gp_fit.Standardization(standard.location, abs(dataset.bound - standard.location) or 1.0)
        count = previous.count + 1 if previous else 0
        prior = encoding.prior(informative=self.priors)
        random_starts = self.starts if not self.priors or count % _RANDOM_STARTS_EVERY_REFITS == 0 else 0
        first = np.array(previous.theta) if previous else prior.mean
        starts = [first, *(prior.draw(rng) for _ in range(random_starts))]
        data = dataset.encoded(encoding, standard).thinned(FITTED_RESULTS)
        mean = None if self.mean == "gls" else 0.0
        theta = prior.mean  # equal results carry no information about length scales
        if self.priors or not is_flat(scores):
            theta = gp_fit.fit(encoding.kernel, data.X, data.y, prior=prior, starts=starts, noise=data.noise, mean=mean)
        fit = Fit(
            tuple(theta.tolist()),
            standard.location,
            standard.scale,
            results=len(scores),
            iteration=dataset.iterations,
            count=count,
            is_flat=is_flat(scores),
        )
        tests = FidelityTests(dataset, encoding, mean, self.priors)
        if self.rising_noise and problem.fidelity:
            found = tests.rising(data, fit, (previous.rise or 0.0) if previous else 0.0)
            if found is not None:
                fit = replace(fit, theta=tuple(found[0].tolist()), rise=found[1])
        if self.guard is not None and problem.fidelity:
            fit = replace(fit, use=tests.use(fit, previous.use if previous else None, guard=self.guard))
        return fit
