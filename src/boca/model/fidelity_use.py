"""What the cheaper fidelities are good for: two tests that every refit makes.

Does the noise grow away from the target?  And are the results at the target predicted better by a model that lets the
target jump, and all x rise or fall together with the fidelity, or without the cheaper fidelities at all?
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from boca.domain.space import FloatArray
from boca.gp import fit as gp_fit
from boca.gp.noise import Noise
from boca.model.dataset import Data, Dataset
from boca.model.encoding import Encoding
from boca.model.fit_record import FidelityUse, Fit, Kind

FITTED = 500  # results from which hyper-parameters are learned, evenly from all: more change them little and cost n^3
TRIED = 150  # the same for a use of the fidelities that is tried and mostly not taken
GUARDED = 8  # results at the target, below which a test of the other fidelities is a toss of a coin
EXTENDED = 2.0  # nats by which a jump and a trend must predict the results at the target better, before they are used
RISING = 2.0  # nats by which noise that grows away from the target must be likelier, before it is believed
_RISE_ALWAYS_TRIED_UP_TO = 100  # results: with few, a test is cheap and urgent; later every fourth refit makes one
_FIRST_RISE = 0.1  # where the search for a rise begins, in standardised units


@dataclass(frozen=True)
class FidelityTests:
    """Both tests, with the settings of a surrogate that they depend on."""

    dataset: Dataset
    encoding: Encoding
    mean: float | None  # of the process: None estimates it
    informative: bool

    def rising(self, data: Data, fit: Fit, previous: float) -> tuple[FloatArray, float] | None:
        """Return theta and the rise of the noise if a rise is likelier by two nats, or was and still is at all.

        It is tried at every refit with few results, later at every fourth, and at every one while there is a rise.
        """
        terms = self.encoding.noise
        shapes = [term.shape(data.X) for term in terms]
        is_due = bool(previous) or len(data.y) <= _RISE_ALWAYS_TRIED_UP_TO or fit.count % 4 == 0
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
        if not previous and slope[-1] <= 0.0:  # it falls from zero on: one look, and a fit is saved
            return None
        first = np.array([*fit.theta, previous or _FIRST_RISE])
        theta = gp_fit.fit_theta(likelihood, prior=prior, starts=[first])
        likelier, _ = gp_fit.log_posterior(likelihood, prior, theta)
        if not likelier - plainer > (0.0 if previous else RISING):
            return None
        return theta[:-1], float(theta[-1])

    def use(self, fit: Fit, previous: FidelityUse | None, *, guard: float) -> FidelityUse | None:
        """Return how the cheaper fidelities are used, if not as they are: an explicit test of what they say.

        Results at the target are predicted, each left out in turn.  First the model is chosen: as it is, or with a jump
        and a trend, which cost as much as a refit to learn and are tried when cheaper results help little, and at every
        fourth refit.  Then the same model, with the same hyper-parameters, predicts from the results at the target
        alone: if that is better, the others are worse than useless.  What was taken is kept until it is no longer
        better.
        """
        noise = Noise.of(self.encoding.noise, [fit.rise or 0.0] * len(self.encoding.noise))
        data = self.dataset.encoded(self.encoding, fit.standard).with_noise(noise).thinned(FITTED)
        if not GUARDED <= np.sum(data.is_target) < len(data.y):
            return None
        kept = None if previous is None else previous.kind
        use, (together, harm) = None, self.with_and_without(self.encoding, data, np.array(fit.theta))
        is_due = kept is not None or harm > -EXTENDED or fit.count % 4 == 0
        if self.encoding.fidelity_kernel is None and is_due:
            extended = self.encoding.extended()
            wider = self.dataset.encoded(extended, fit.standard).with_noise(noise).thinned(FITTED)
            theta = self._fitted("extended", extended, wider, fit, previous)
            better, its_harm = self.with_and_without(extended, wider, theta)
            if better - together > (0.0 if kept == "extended" else EXTENDED):
                use, harm = FidelityUse("extended", tuple(theta.tolist()), better - together), its_harm
        if harm > (0.0 if kept == "none" else guard):
            theta = self._fitted("none", self.encoding, data.at_target(), fit, previous)
            use = FidelityUse("none", tuple(theta.tolist()), harm)
        return use

    def _fitted(self, kind: Kind, encoding: Encoding, data: Data, fit: Fit, previous: FidelityUse | None) -> FloatArray:
        """Learn the hyper-parameters of a use of the cheaper fidelities."""
        prior = encoding.prior(informative=self.informative)
        is_kept = previous is not None and previous.kind == kind
        first = np.array(previous.theta if previous is not None and is_kept else fit.theta)
        first = np.concatenate([first, np.full(len(prior.mean) - len(first), 0.1)])
        some = data if is_kept else data.thinned(TRIED)
        return gp_fit.fit(
            encoding.kernel, some.X, some.y, prior=prior, starts=[first], noise=some.noise, mean=self.mean
        )

    def with_and_without(self, encoding: Encoding, data: Data, theta: FloatArray) -> tuple[float, float]:
        """Return the log density of the results at the target, and how much higher it is without all others.

        Each is left out in turn.  Nothing but the results differs: hyper-parameters learned from a few results predict
        these few too well, and a comparison with such would find fault with anything.
        """
        together = self.left_out(encoding, data, theta)
        return together, self.left_out(encoding, data.at_target(), theta) - together

    def left_out(self, encoding: Encoding, data: Data, theta: FloatArray) -> float:
        """Return the log density of the results at the target, each given all others of these data."""
        gp = gp_fit.build(encoding.kernel, data.X, data.y, theta, noise=data.noise, mean=self.mean)
        return float(np.sum(gp.left_out()[data.is_target]))
