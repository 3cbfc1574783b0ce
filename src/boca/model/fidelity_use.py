"""Two tests of the cheaper fidelities, made at refits.

Does the noise grow away from the target?  And what predicts the results at the target best: the usual model, one with a
jump at the target and a trend towards it, or one without the cheaper fidelities?
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from boca.domain.space import FloatArray
from boca.gp import fit as gp_fit
from boca.gp.noise import Noise
from boca.model.dataset import Dataset, TrainingData
from boca.model.encoding import Encoding
from boca.model.fit_record import FidelityUse, Fit, UseKind

FITTED_RESULTS = 500  # from which hyperparameters are learned, spread over all: a fit costs their number cubed
TRIAL_RESULTS = 150  # likewise for a use of the fidelities that is tried: it is mostly not taken
GUARD_NEEDS_AT_TARGET = 8  # results at the target: with fewer, a test of the cheaper ones is decided by chance
EXTENSION_NATS = 2.0  # by which a jump and a trend must predict the results at the target better before they are used
RISE_NATS = 2.0  # by which noise that grows away from the target must be likelier before it is used
_RISE_TRIED_UP_TO_RESULTS = 100  # at every refit, because a test of few is cheap; with more, at every fourth
_TESTS_EVERY_REFITS = 4  # of what was not taken so far: a test costs as much as a refit
_RISE_SEARCH_START = 0.1  # of the variance of the values: small, but far enough from the bound at zero to move
_STRENGTH_SEARCH_START = 0.1  # likewise for a jump and a trend


@dataclass(frozen=True)
class FidelityTests:
    """Both tests, with the settings that they share."""

    dataset: Dataset
    encoding: Encoding
    mean: float | None  # of the GP; None estimates it
    informative: bool
    most_results: int = FITTED_RESULTS  # that a test sees

    def rising(self, data: TrainingData, fit: Fit, previous: float) -> tuple[FloatArray, float] | None:
        """Return theta and the rise of the noise if a rise is likelier by `RISE_NATS`; else None.

        A rise that was taken before is kept while it is likelier at all.  With few results, or while there is a rise,
        every refit tries; otherwise every fourth does.
        """
        terms = self.encoding.noise
        shapes = [term.shape(data.X) for term in terms]
        is_due = bool(previous) or len(data.y) <= _RISE_TRIED_UP_TO_RESULTS or fit.count % _TESTS_EVERY_REFITS == 0
        if not is_due or all(len(np.unique(shape)) < 2 for shape in shapes):
            return None
        prior = self.encoding.prior(informative=self.informative, noise=terms)
        known = np.zeros(len(data.y)) if data.noise is None else data.noise
        likelihood = partial(
            gp_fit.log_likelihood,
            kernel=self.encoding.kernel,
            X=data.X,
            y=data.y,
            noise=known,
            mean=self.mean,
            shapes=shapes,
        )
        flat = np.array([*fit.theta, *[0.0] * len(terms)])
        plainer, slope = gp_fit.log_posterior(likelihood, prior, flat)
        if not previous and slope[-1] <= 0.0:  # the posterior falls from zero on, so no fit is needed
            return None
        first = np.array([*fit.theta, previous or _RISE_SEARCH_START])
        theta = gp_fit.fit_theta(likelihood, prior=prior, starts=[first])
        likelier, _ = gp_fit.log_posterior(likelihood, prior, theta)
        if not likelier - plainer > (0.0 if previous else RISE_NATS):
            return None
        strength = gp_fit.Theta.split(self.encoding.kernel, theta).noise
        return theta[: -len(strength)], float(strength[0])

    def use(self, fit: Fit, previous: FidelityUse | None, *, guard: float) -> FidelityUse | None:
        """Return how the cheaper fidelities are used; None for the usual way.

        Results at the target are predicted, each left out in turn.  First the model is chosen: the usual one, or one
        with a jump and a trend.  That costs as much as a refit, so it is tried if cheaper results help little, and at
        every fourth refit.  Then the chosen model, with the same hyperparameters, predicts from the results at the
        target alone.  If that is better, the cheaper results do harm, and are left out.  A use is kept while it is
        better at all.
        """
        noise = Noise.from_strengths(self.encoding.noise, [fit.rise or 0.0] * len(self.encoding.noise))
        data = self.dataset.encoded(self.encoding, fit.standard).with_noise(noise).thinned(self.most_results)
        if not GUARD_NEEDS_AT_TARGET <= np.sum(data.is_target) < len(data.y):
            return None
        kept = None if previous is None else previous.kind
        use, (together, harm) = None, self.with_and_without(self.encoding, data, np.array(fit.theta))
        is_due = kept is not None or harm > -EXTENSION_NATS or fit.count % _TESTS_EVERY_REFITS == 0
        if self.encoding.fidelity_kernel is None and is_due:
            extended = self.encoding.extended()
            wider = self.dataset.encoded(extended, fit.standard).with_noise(noise).thinned(self.most_results)
            theta = self._theta_of("extended", extended, wider, fit, previous)
            better, its_harm = self.with_and_without(extended, wider, theta)
            if better - together > (0.0 if kept == "extended" else EXTENSION_NATS):
                use, harm = FidelityUse("extended", tuple(theta.tolist()), better - together), its_harm
        if harm > (0.0 if kept == "none" else guard):
            theta = self._theta_of("none", self.encoding, data.at_target(), fit, previous)
            use = FidelityUse("none", tuple(theta.tolist()), harm)
        return use

    def _theta_of(
        self, kind: UseKind, encoding: Encoding, data: TrainingData, fit: Fit, previous: FidelityUse | None
    ) -> FloatArray:
        """Learn the hyperparameters that belong to a use of the cheaper fidelities."""
        prior = encoding.prior(informative=self.informative)
        is_kept = previous is not None and previous.kind == kind
        first = np.array(previous.theta if previous is not None and is_kept else fit.theta)
        first = np.concatenate([first, np.full(len(prior.mean) - len(first), _STRENGTH_SEARCH_START)])
        some = data if is_kept else data.thinned(TRIAL_RESULTS)
        return gp_fit.fit(
            encoding.kernel, some.X, some.y, prior=prior, starts=[first], noise=some.noise, mean=self.mean
        )

    def with_and_without(self, encoding: Encoding, data: TrainingData, theta: FloatArray) -> tuple[float, float]:
        """Return the log density of the results at the target, and how much higher it is without all others.

        Each is left out in turn.  The hyperparameters are the same, because those learned from a few results predict
        these few too well.
        """
        together = self.leave_one_out(encoding, data, theta)
        return together, self.leave_one_out(encoding, data.at_target(), theta) - together

    def leave_one_out(self, encoding: Encoding, data: TrainingData, theta: FloatArray) -> float:
        """Return the log density of the results at the target, each given all others in `data`."""
        gp = gp_fit.build(encoding.kernel, data.X, data.y, theta, noise=data.noise, mean=self.mean)
        return float(np.sum(gp.leave_one_out()[data.is_target]))
