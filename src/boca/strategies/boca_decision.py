"""A decision of BOCA as a record, and how it is shown: the numbers of `why`, and the sentence in it."""

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
"""How x is chosen: by the upper confidence bound, or by the information about the value of the maximum."""

Turn: TypeAlias = Literal["aim", "log_ei", "log_noisy_ei", "ucb_alone"]
"""How x is chosen at the target: as the aim does, by improvement over the best mean or over draws of f, or by the bound
from the results at the target alone."""

_WHERE: dict[Aim, str] = {
    "ucb": "where the upper confidence bound is highest",
    "max_value": "where a query tells most about the maximum",
}


@dataclass(frozen=True)
class Decision:
    """The point and the fidelity of one query, with the numbers that explain them."""

    problem: Problem
    history: History
    model: Model
    """The posterior that `why` shows."""
    u: FloatArray  # (d,)
    z: Point
    aim: Aim
    acquisition: Aim | Turn | Literal["mean"]
    """How x was chosen: by the aim, or as the turn at the target says; "mean" for the last query."""
    beta: float
    xi: float
    gamma: float
    """Threshold at z in standardized units, without c."""
    c: float
    cost_share: float
    """Cost of z as a share of the target's."""
    guard: float | None
    """Nats by which the results at the target are predicted better without the cheaper fidelities, if they are off."""
    asked_at: tuple[FloatArray, float] | None = None
    """The x for which the target was chosen, and the shrink of that choice, if the query goes to another x."""
    stands_in: bool = False
    """Whether z replaces the chosen fidelity, which is running."""

    @property
    def is_at_target(self) -> bool:
        return self.problem.is_target(self.z)

    def suggestion(self) -> Suggestion:
        return Suggestion(self.problem.space.from_unit(self.u), self.z, self.why())

    def why(self) -> dict[str, Any]:
        """Return the decision as numbers in the user's units and as a sentence."""
        is_last = self.acquisition == "mean"
        why = explain(
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
            why["fidelity_by"] = {"x": self.problem.space.from_unit(u), "shrink": shrink}
        return why

    def sentence(self) -> str:
        """Return why this point and this fidelity were chosen."""
        if self.stands_in:
            return STAND_IN
        match self.acquisition:
            case "mean":
                return "The last affordable target evaluation, kept for the point that the model expects to be best."
            case "log_ei" | "log_noisy_ei":
                return self._improvement_sentence()
            case "ucb_alone":
                return (
                    f"{self._no_cheaper_one}; this evaluation tests the cheaper results: it goes to the point that "
                    "the results at the target alone would choose."
                )
            case _:
                return self._aim_sentence()

    def _aim_sentence(self) -> str:
        where = _WHERE[self.aim]
        if not self.problem.fidelity:
            return f"The point {where}."
        if self.is_at_target and self.guard is not None:
            return f"{self._switched_off}."
        if self.is_at_target:
            return (
                f"The target fidelity, {where}: every cheaper fidelity is known well enough there, or tells too little "
                "about the target."
            )
        return (
            f"A fidelity at {self.cost_share:.3g} of the target's cost, {where}: the cheapest one that is still "
            f"uncertain there. Its information gap is {self.xi:.2g} (0: the target itself, 1: no information)."
        )

    def _improvement_sentence(self) -> str:
        there = "the point with the largest expected improvement"
        if not self.problem.fidelity:
            return f"{there.capitalize()}."
        if self.guard is not None:
            return f"{self._switched_off}; this evaluation goes to {there}."
        return f"{self._no_cheaper_one}; this evaluation goes to {there}."

    @property
    def _no_cheaper_one(self) -> str:
        return f"The target fidelity: no cheaper one is informative enough {_WHERE[self.aim]}"

    @property
    def _switched_off(self) -> str:
        return (
            "The target fidelity: the cheaper ones are switched off, because the model predicts the results at the "
            f"target better without them (by {self.guard:.2g} nats)"
        )
