"""Which member of the family of warps a refit uses: the one that predicts the results at the target best.

    symbol   meaning
    b, s     anchor and spread of a warp; s = share * S
    S        distance from b to the median of the results at the target, and near it
    share    one of `SHARES`, from the identity to the strongest warp

Each result at the target is left out in turn, and its log density is taken in the units in which it was told, with the
Jacobian of the map.  A warp must be better by a nat for each step from the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray
from boca.gp import fit as gp_fit
from boca.model.dataset import Dataset, evenly
from boca.model.encoding import Encoding
from boca.model.warp import Warp

SHARES = (math.inf, 1.0, 0.3, 0.1, 0.05)
"""Of S: the identity first, the strongest warp last."""
SHARE_BEFORE_EVIDENCE = 0.3  # while there are too few results at the target to choose by
NEEDS_AT_TARGET = 6  # results: with fewer, leaving one out says nothing
CHOSEN_FROM_RESULTS = 80  # spread over all: every member takes a fit of its own
_FEWEST_NEAR = 5  # results from which b and S are computed: those at the target, or the nearest ones
_NATS_A_STEP = 1.0  # from the identity, so that chance does not choose a warp
_NOISE_DEVIATIONS = 2.0  # that s spans at least, so that noise is not magnified
_CHOSEN_AT_EVERY_REFIT_UP_TO = 40  # results: later, every fourth refit chooses again
_CHOSEN_EVERY_REFITS = 4


@dataclass(frozen=True)
class WarpChoice:
    """The choice at one refit."""

    dataset: Dataset  # in the units in which values were told
    encoding: Encoding
    mean: float | None  # of the GP; None estimates it
    informative: bool

    def near(self) -> FloatArray:  # (k,)
        """Return the results at the target, or the five nearest to it if there are fewer; failures are left out."""
        data = self.dataset
        told = ~data.failed
        away = self.encoding.distance_from_target(self.encoding.features(data.U, data.Z))[told]
        scores = data.scores[told]
        order = np.argsort(away, kind="stable")
        return scores[order[: max(_FEWEST_NEAR, int(np.sum(away == 0.0)))]]

    def member(self, share: float, noise: float) -> Warp | None:
        """Return the member of the family with this share; None for the identity.

        Args:
            share: one of `SHARES`.
            noise: the deviation of the noise near the best result, in the units of the values.
        """
        near = self.near()
        if not math.isfinite(share) or not len(near):
            return None
        anchor = float(np.max(near))
        with np.errstate(over="ignore"):
            spread = max(share * (anchor - float(np.median(near))), _NOISE_DEVIATIONS * noise)
        least = max(gp_fit.RELATIVE_ROUNDING * abs(anchor), gp_fit.SMALLEST_SCALE)
        return Warp(anchor, spread, share) if least < spread < math.inf else None

    def is_due(self, count: int) -> bool:
        """Whether a refit chooses again, `count` being the number of refits before."""
        return len(self.dataset.scores) <= _CHOSEN_AT_EVERY_REFIT_UP_TO or count % _CHOSEN_EVERY_REFITS == 0

    def best_share(self, start: FloatArray, noise: float, last: float | None = None) -> float:
        """Return the share that predicts the results at the target best.

        Args:
            start: where the fits begin.
            noise: the deviation of the noise near the best result, in the units of the values.
            last: the share so far; only it, its neighbors and the identity are tried.
        """
        steps = list(range(len(SHARES)))
        if last is not None:
            here = SHARES.index(last)
            steps = [k for k in range(len(SHARES)) if k == 0 or abs(k - here) <= 1]
        scores = {}
        for k in steps:  # each fit begins where that of its neighbor ended
            density, start = self._score(self.member(SHARES[k], noise), start)
            scores[k] = density - _NATS_A_STEP * k
        return SHARES[max(scores, key=lambda k: (scores[k], -k))]

    def has_evidence(self) -> bool:
        at_target = self.encoding.is_target(self.encoding.features(self.dataset.U, self.dataset.Z))
        return int(np.sum(at_target & ~self.dataset.failed)) >= NEEDS_AT_TARGET

    def _score(self, warp: Warp | None, start: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density of the results at the target, each given all others, in units as told, and theta."""
        warped = self.dataset.warped(warp)
        standard = gp_fit.standardize(warped.judged)
        data = warped.encoded(self.encoding, standard)
        rows = evenly(len(data.y), CHOSEN_FROM_RESULTS)
        some, failed, scores = data.select(rows), warped.failed[rows], self.dataset.scores[rows]
        prior = self.encoding.prior(informative=self.informative)
        theta = gp_fit.fit(
            self.encoding.kernel,
            some.X,
            some.y,
            prior=prior,
            starts=[start],
            noise=some.noise,
            mean=self.mean,
            roughly=True,
        )
        gp = gp_fit.build(self.encoding.kernel, some.X, some.y, theta, noise=some.noise, mean=self.mean)
        judged = some.is_target & ~failed
        slope = np.ones_like(scores) if warp is None else warp.slope(scores)
        density = gp.leave_one_out()[judged] + np.log(slope[judged]) - math.log(standard.scale)
        return float(np.sum(density)), theta
