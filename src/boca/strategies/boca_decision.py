"""A decision of BOCA as a record, and its only renderings: the numbers of `why`, and the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Model
from boca.search.candidates import STAND_IN
from boca.strategies.base import explain

Aim: TypeAlias = Literal["ucb", "max_value"]
"""What x is chosen by: the upper confidence bound, or the information about the value of the maximum."""

Turn: TypeAlias = Literal["aim", "log_ei", "log_noisy_ei", "ucb_alone"]
"""What chooses x at the target: the aim itself, improvement over the best mean or over draws of it, or the bound of the
results at the target alone."""

_WHERE: dict[Aim, str] = {
    "ucb": "where the upper confidence bound is highest",
    "max_value": "where most is learned about the maximum",
}


@dataclass(frozen=True)
class Decision:
    """The point and the fidelity of one query, with everything that explains them."""

    problem: Problem
    history: History
    model: Model
    """The posterior that `why` shows."""
    u: FloatArray  # (d,)
    z: Point
    aim: Aim
    acquisition: Aim | Turn | Literal["mean"]
    """What chose x: the aim, or whose turn it was at the target."""
    beta: float
    xi: float
    gamma: float
    """Threshold at z in standardised units, without c."""
    c: float
    cost_share: float
    """Of the target's cost."""
    guard: float | None
    """Nats by which the target is predicted better without the cheaper fidelities, if they are switched off."""
    asked_at: tuple[FloatArray, float] | None = None
    """The x that asked for the target, and the shrink that it was chosen with, if this query goes elsewhere."""
    stands_in: bool = False
    """Whether z only stands in for the fidelity that was wanted."""

    @property
    def is_at_target(self) -> bool:
        return self.problem.is_target(self.z)

    def suggestion(self) -> Suggestion:
        return Suggestion(self.problem.space.from_unit(self.u), self.z, self.why())

    def why(self) -> dict[str, Any]:
        """Return the decision in numbers, in the user's units, and in a sentence."""
        is_last = self.acquisition == "mean"
        told = explain(
            self.model,
            self.history,
            self.u,
            phase="final" if is_last and self.is_at_target else "model",
            reason=self.sentence(),
            beta=self.beta,
            acquisition=self.acquisition,
            xi=self.xi,
            gamma=self.model.deviation_as_told(self.gamma),
            c=self.c,
            shrink=self.model.shrink,
            **({} if self.guard is None else {"guard": self.guard}),
        )
        if self.asked_at is not None:
            u, shrink = self.asked_at
            told["fidelity_by"] = {"x": self.problem.space.from_unit(u), "shrink": shrink}
        return told

    def sentence(self) -> str:
        """Return why the point is where it is, and why at this fidelity."""
        if self.stands_in:
            return STAND_IN
        match self.acquisition:
            case "mean":
                return "The last affordable target evaluation, kept for the point that the model expects to be best."
            case "log_ei" | "log_noisy_ei":
                return self._of_improvement()
            case "ucb_alone":
                return (
                    f"{self._nothing_cheaper}; this evaluation goes where the results at the target alone would send "
                    "it, as a test of the cheaper ones."
                )
            case _:
                return self._of_aim()

    def _of_aim(self) -> str:
        where = _WHERE[self.aim]
        if not self.problem.fidelity:
            return f"The point {where}."
        if self.is_at_target and self.guard is not None:
            return f"{self._off}."
        if self.is_at_target:
            return (
                f"The target fidelity, {where}: every cheaper fidelity is known well enough there, or says too little "
                "about the target."
            )
        return (
            f"A fidelity at {self.cost_share:.3g} of the target's cost, {where}: the cheapest one that is still "
            f"uncertain there. It leaves an information gap of {self.xi:.2g} (0 is the target itself, 1 is no "
            "information)."
        )

    def _of_improvement(self) -> str:
        there = "the point with the largest expected improvement"
        if not self.problem.fidelity:
            return f"{there.capitalize()}."
        if self.guard is not None:
            return f"{self._off}; this evaluation goes to {there}."
        return f"{self._nothing_cheaper}; this evaluation goes to {there}."

    @property
    def _nothing_cheaper(self) -> str:
        return f"The target fidelity: no cheaper one had enough to teach {_WHERE[self.aim]}"

    @property
    def _off(self) -> str:
        return (
            "The target fidelity: the cheaper ones are switched off, because results at the target are predicted "
            f"better without them (by {self.guard:.2g} nats)"
        )
