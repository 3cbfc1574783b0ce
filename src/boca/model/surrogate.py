"""From a history to a Gaussian process: how hyper-parameters are learned, and when they are learned again.

The model behind a suggestion is a pure function of the history: hyper-parameters come from the last refit, which is
stored in the `why` of the trial that made it, and everything else from the results in the order in which they were
told.  Replaying a history therefore gives the same model, bit for bit, and there is no cache that could disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from boca.domain.errors import InvalidInput, flags, one_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, finite_number, whole_number
from boca.domain.trial import History, sign
from boca.gp import fit as gp_fit
from boca.gp.kernels import Profile
from boca.model.encoding import Encoding, FidelityKernel
from boca.model.posterior import Data, Model, collect

FITTED = 500  # results from which hyper-parameters are learned, evenly from all: more change them little and cost n^3
TRIED = 150  # the same for a use of the fidelities that is tried and mostly not taken
GUARDED = 8  # results at the target, below which a test of the other fidelities is a toss of a coin
EXTENDED = 2.0  # nats by which a jump and a trend must predict the results at the target better, before they are used
RISING = 2.0  # nats by which noise that grows away from the target must be likelier, before it is believed
_STEEPEST = 20.0  # rise of the noise, in standardised units: no result could be so bad
_RISE_RATE = 2.0  # of the exponential prior on it
_FIRST_RISE = 0.1
_FEW = 100  # results, up to which a rise is tried at every refit
OF_FIDELITIES = ("jump", "trend", "noise_rise")  # hyper-parameters that are there only where they are not zero


@dataclass(frozen=True)
class Surrogate:
    """How a GP is made of a history; the defaults are those of `Boca()`, `Surrogate.paper()` those of the paper."""

    kernel: Profile = "matern52"
    """Kernel of the domain: objectives are seldom infinitely smooth."""
    mean: Literal["gls", "median"] = "gls"
    """Constant mean: generalised least squares weighs clustered results less than the median does."""
    priors: bool = True
    """Maximum a posteriori: pure likelihood pins fidelity bandwidths at a bound in 85-100 % of runs."""
    refit_every: int | None = None
    """Refit after so many iterations; None: after n/15 new results, at least 1 and at most 25."""
    starts: int = 1
    """Random starts of every fit besides the warm one; with priors, one more every fourth refit and at the first."""
    guard: float | None = 0.25
    """Nats by which the results at the target, each left out in turn, must be predicted better without the cheaper
    fidelities before these are switched off; a model that lets the target jump, and all x rise or fall together with
    the fidelity, is tried as well.  None: they are always used as they are."""
    rising_noise: bool = True
    """Let the noise grow with the distance from the target where results speak for it by two nats: a cheap query is
    often a noisy one, and one variance for all would take the target for as noisy."""
    fidelity_kernel: FidelityKernel | None = None
    """A covariance of two fidelities (mappings by name, arrays that broadcast) in place of the squared exponential."""

    def __post_init__(self) -> None:
        one_of(self.kernel, get_args(Profile), "kernel")
        one_of(self.mean, ("gls", "median"), "mean")
        flags(self, "priors", "rising_noise")
        if self.guard is not None and not finite_number(self.guard, "guard") >= 0.0:
            raise InvalidInput(f"guard must be a number of nats, at least 0, or None; got {self.guard!r}.")
        object.__setattr__(self, "starts", whole_number(self.starts, "starts"))
        if self.starts < 0:
            raise InvalidInput(f"starts must not be negative; got {self.starts!r}.")
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
    ) -> Model:
        """Return the GP after this history; it needs at least one complete trial."""
        if hyperparameters is not None:
            return self.known(problem, history, hyperparameters)
        record = last_fit(history)
        if not force_refit and record is not None and not self.is_due(problem, history, record):
            return self.condition(problem, history, record)
        record = self.fit(problem, history, rng, record)
        return replace(self.condition(problem, history, record), fit=record)

    def is_due(self, problem: Problem, history: History, record: Mapping[str, Any]) -> bool:
        """Whether hyper-parameters are to be learned again."""
        return is_outdated(record, history.scores(problem.direction)) or self.is_scheduled(history, record)

    def is_scheduled(self, history: History, record: Mapping[str, Any]) -> bool:
        """Whether enough has happened since a refit, whatever the results are."""
        if self.refit_every is not None:
            return len(history.chosen) - int(record["iteration"]) >= self.refit_every
        n = len(history.finished)
        return n - int(record["results"]) >= min(max(n / 15.0, 1.0), 25.0)

    def condition(self, problem: Problem, history: History, record: Mapping[str, Any]) -> Model:
        """Return the GP with the hyper-parameters of a refit after this history."""
        use = record.get("use", {"kind": "all", "theta": record["theta"]})
        encoding = self._encoding(problem, is_extended=use["kind"] == "extended")
        standard = gp_fit.Standardisation(record["location"], record["scale"])
        rise = float(record.get("rise", 0.0))
        data = collect(encoding, history, standard).with_rise(encoding, rise)
        if use["kind"] == "none":
            data = data.at_target(encoding)
        kappa0, h, eta2 = gp_fit.unpack(np.array(use["theta"]), encoding.kernel)
        mean = None if self.mean == "gls" else float(np.median(data.y))
        guard = use["nats"] if use["kind"] == "none" else None
        return Model(problem, encoding, standard, data, kappa0, h, eta2, mean, rise=rise, guard=guard)

    def known(self, problem: Problem, history: History, hyperparameters: Mapping[str, Any]) -> Model:
        """Return the GP with hyper-parameters that the user knows, after this history."""
        kappa0, eta2, mean, h = _checked(problem, hyperparameters, has_h_z=self.fidelity_kernel is None)
        jump, trend, rise = (float(hyperparameters.get(name, 0.0)) for name in OF_FIDELITIES)
        is_extended = jump > 0.0 or trend > 0.0
        encoding = Encoding(problem, "se", self.fidelity_kernel, is_extended)
        h = np.concatenate([h, [jump, trend / kappa0] if is_extended else []])
        standard = gp_fit.Standardisation(0.0, 1.0)
        data = collect(encoding, history, standard).with_rise(encoding, rise)
        return Model(problem, encoding, standard, data, kappa0, h, eta2, sign(problem.direction) * mean, rise=rise)

    def _encoding(self, problem: Problem, *, is_extended: bool = False) -> Encoding:
        return Encoding(problem, self.kernel, self.fidelity_kernel, is_extended)

    def check(self, problem: Problem, hyperparameters: Mapping[str, Any] | None) -> None:
        """Refuse what does not fit the problem, before anything is paid for."""
        if hyperparameters is not None:
            _checked(problem, hyperparameters, has_h_z=self.fidelity_kernel is None)
        if self.fidelity_kernel is not None:
            Encoding(problem, self.kernel, self.fidelity_kernel).check_fidelity_kernel()

    def fit(
        self,
        problem: Problem,
        history: History,
        rng: np.random.Generator,
        previous: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Learn hyper-parameters; the record is stored with the trial and is all that later models need."""
        encoding = self._encoding(problem)
        scores = history.scores(problem.direction)
        standard = gp_fit.standardise(scores)
        count = int(previous["count"]) + 1 if previous else 0
        prior = encoding.prior(informative=self.priors)
        random_starts = self.starts if not self.priors or count % 4 == 0 else 0
        first = np.array(previous["theta"]) if previous else prior.mean
        starts = [first, *(prior.draw(rng) for _ in range(random_starts))]
        data = collect(encoding, history, standard).thinned(FITTED)
        mean = None if self.mean == "gls" else 0.0
        theta = prior.mean  # what equal results would say by themselves is: constant everywhere, for ever
        if self.priors or not is_flat(scores):
            theta = gp_fit.fit(encoding.kernel, data.X, data.y, prior=prior, starts=starts, noise=data.noise, mean=mean)
        record = {
            "theta": theta.tolist(),
            "location": standard.location,
            "scale": standard.scale,
            "results": len(scores),
            "iteration": len(history.chosen),
            "count": count,
            **({"flat": True} if is_flat(scores) else {}),
        }
        if self.rising_noise and problem.fidelity:
            record |= self._rising(encoding, data, record, previous.get("rise", 0.0) if previous else 0.0)
        use = self._use(problem, history, record, previous.get("use") if previous else None)
        return record if use is None else {**record, "use": use}

    def _rising(self, encoding: Encoding, data: Data, record: Mapping[str, Any], previous: float) -> dict[str, Any]:
        """Return theta and the rise of the noise where a rise is likelier by two nats, or was and still is at all.

        It is tried at every refit with few results, where that is cheap and urgent, later at every fourth, and at
        every one while it is there.
        """
        away = encoding.away(data.X)
        is_due = bool(previous) or len(data.y) <= _FEW or record["count"] % 4 == 0
        if not is_due or len(np.unique(away)) < 2:
            return {}
        plain = encoding.prior(informative=self.priors)
        prior = plain.with_rise(highest=_STEEPEST, rate=_RISE_RATE)
        mean = None if self.mean == "gls" else 0.0
        known = np.zeros(len(data.y)) if data.noise is None else data.noise
        likelihood = partial(
            gp_fit.log_likelihood, kernel=encoding.kernel, X=data.X, y=data.y, noise=known, mean=mean, away=away
        )
        flat = np.array([*record["theta"], 0.0])
        plainer, slope = gp_fit.log_posterior(likelihood, prior, flat)
        if not previous and slope[-1] <= 0.0:  # it falls from zero on: one look, and a fit is saved
            return {}
        theta = gp_fit.fit_theta(likelihood, prior=prior, starts=[np.array([*flat[:-1], previous or _FIRST_RISE])])
        likelier, _ = gp_fit.log_posterior(likelihood, prior, theta)
        if not likelier - plainer > (0.0 if previous else RISING):
            return {}
        return {"theta": theta[:-1].tolist(), "rise": float(theta[-1])}

    def _use(
        self, problem: Problem, history: History, record: Mapping[str, Any], previous: Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        """Return how the cheaper fidelities are used, where not as they are: an explicit test of what they say.

        Results at the target are predicted, each left out in turn.  First the model is chosen: as it is, or with a jump
        and a trend, which cost as much as a refit to learn and are tried where cheaper results help little, and at
        every fourth refit.  Then the same model, with the same hyper-parameters, predicts from the results at the
        target alone: if that is better, the others are worse than useless.  What was taken is kept until it is no
        longer better.
        """
        if self.guard is None or not problem.fidelity:
            return None
        standard = gp_fit.Standardisation(record["location"], record["scale"])
        encoding = self._encoding(problem)
        rise = float(record.get("rise", 0.0))
        data = collect(encoding, history, standard).with_rise(encoding, rise).thinned(FITTED)
        if not GUARDED <= np.sum(encoding.is_target(data.X)) < len(data.y):
            return None
        kept = None if previous is None else previous["kind"]
        use, together, harm = None, *self._with_and_without(encoding, data, np.array(record["theta"]))
        if self.fidelity_kernel is None and (kept is not None or harm > -EXTENDED or record["count"] % 4 == 0):
            extended = self._encoding(problem, is_extended=True)
            wider = collect(extended, history, standard).with_rise(extended, rise).thinned(FITTED)
            tried = self._fitted("extended", extended, wider, record, previous)
            better, its_harm = self._with_and_without(extended, wider, np.array(tried["theta"]))
            if better - together > (0.0 if kept == "extended" else EXTENDED):
                use, harm = {**tried, "nats": better - together}, its_harm
        if harm > (0.0 if kept == "none" else self.guard):
            use = {**self._fitted("none", encoding, data.at_target(encoding), record, previous), "nats": harm}
        return use

    def _fitted(
        self, kind: str, encoding: Encoding, data: Data, record: Mapping[str, Any], previous: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return a use of the cheaper fidelities with what was learned for it."""
        prior = encoding.prior(informative=self.priors)
        is_kept = previous is not None and previous["kind"] == kind
        first = previous["theta"] if previous is not None and is_kept else record["theta"]
        first = np.concatenate([first, np.full(len(prior.mean) - len(first), 0.1)])
        mean = None if self.mean == "gls" else 0.0
        some = data if is_kept else data.thinned(TRIED)
        theta = gp_fit.fit(encoding.kernel, some.X, some.y, prior=prior, starts=[first], noise=some.noise, mean=mean)
        return {"kind": kind, "theta": theta.tolist()}

    def _with_and_without(self, encoding: Encoding, data: Data, theta: FloatArray) -> tuple[float, float]:
        """Return the log density of the results at the target, and how much higher it is without all others.

        Each is left out in turn.  Nothing but the results differs: hyper-parameters learned from a few results predict
        these few too well, and a comparison with such would find fault with anything.
        """
        together = self._left_out(encoding, data, theta)
        return together, self._left_out(encoding, data.at_target(encoding), theta) - together

    def _left_out(self, encoding: Encoding, data: Data, theta: FloatArray) -> float:
        """Return the log density of the results at the target, each given all others of these data."""
        mean = None if self.mean == "gls" else 0.0
        gp = gp_fit.build(encoding.kernel, data.X, data.y, theta, noise=data.noise, mean=mean)
        return float(np.sum(gp.left_out()[encoding.is_target(data.X)]))


def is_flat(scores: FloatArray) -> bool:
    """Whether all results are equal but for rounding: they say nothing about bandwidths."""
    return bool(np.ptp(0.5 * scores) <= 0.5 * gp_fit.ROUNDING * np.max(np.abs(scores)))


def is_outdated(record: Mapping[str, Any], scores: FloatArray) -> bool:
    """Whether the last refit saw equal results alone, and they are not now, or none so far away as there is now."""
    if record.get("flat") and not is_flat(scores):
        return True
    farthest = float(np.max(np.abs(0.5 * scores - 0.5 * record["location"])))
    return farthest > 1e6 * (0.5 * float(record["scale"]))


def last_fit(history: History) -> dict[str, Any] | None:
    """Return what the latest refit stored, or None before the first."""
    return next((t.why["fit"] for t in reversed(history.chosen) if "fit" in t.why), None)


def _checked(problem: Problem, given: Mapping[str, Any], *, has_h_z: bool) -> tuple[float, float, float, FloatArray]:
    """Return kappa0, eta2, mean and all bandwidths of a mapping that a user wrote."""
    sizes = {"h_x": len(problem.space)} | ({"h_z": len(problem.fidelity)} if has_h_z else {})
    optional = {"h_z"} if not (has_h_z and problem.fidelity) else set()
    if problem.fidelity:
        optional |= {*OF_FIDELITIES} if has_h_z else {"noise_rise"}
    wanted = {"kappa0", "eta2", "mean", *sizes}
    if not isinstance(given, Mapping) or set(given) - optional != wanted - optional:
        allowed = f", and with {sorted(optional - wanted)} at will" if optional - wanted else ""
        raise InvalidInput(f"hyperparameters must be a mapping with the keys {sorted(wanted)}{allowed}; got {given!r}.")
    for name in optional & {*given} - {"h_z"}:
        if not finite_number(given[name], f"hyperparameters[{name!r}]") >= 0.0:
            raise InvalidInput(f"hyperparameters[{name!r}] must not be negative; got {given[name]!r}.")
    kappa0, eta2, mean = (
        finite_number(given[name], f"hyperparameters[{name!r}]") for name in ("kappa0", "eta2", "mean")
    )
    h: list[float] = []
    for name, size in sizes.items():
        values = np.atleast_1d(given.get(name, [])).tolist()
        if len(values) != size:
            raise InvalidInput(
                f"hyperparameters[{name!r}] must have {size} bandwidths, one a parameter; got {values!r}."
            )
        h += [finite_number(value, f"hyperparameters[{name!r}]") for value in values]
    if not (kappa0 > 0 and eta2 >= 0 and all(value > 0 for value in h)):
        raise InvalidInput(f"hyperparameters need kappa0 > 0, eta2 >= 0 and bandwidths > 0; got {dict(given)!r}.")
    return kappa0, eta2, mean, np.array(h)
