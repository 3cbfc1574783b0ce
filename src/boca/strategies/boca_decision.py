"""A decision of BOCA as a record, and how it is shown: the numbers of `why`, and the sentence in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boca.domain.outcomes import SUCCESS
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion
from boca.model.feasibility import Feasibility
from boca.model.posterior import Model
from boca.search.candidates import STAND_IN
from boca.strategies.base import explain
from boca.strategies.boca_limits import FEASIBILITY


@dataclass(frozen=True)
class Decision:
    """The point and the fidelity of one query, with the numbers that explain them."""

    problem: Problem
    history: History
    model: Model
    """The posterior that `why` shows."""
    u: FloatArray  # (d,)
    z: Point
    acquisition: str
    """How x was chosen: by an aim, or by a turn at the target; "mean" for the last query."""
    where: str
    """Where the aim of this iteration is highest, in words."""
    instead: str | None
    """What the evaluation does instead of going there, in words."""
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
    because: str | None = None
    """Why the target, if not because of the cheaper fidelities."""
    stands_in: bool = False
    """Whether z replaces the chosen fidelity, which is running."""
    is_probe: bool = False
    """Whether it explores below the target, where the aim would explore at it."""
    is_last: bool = False
    """Whether it is the query that the last of the budget was kept for; one by the mean always is."""
    feasibility: Feasibility | None = None
    """What is known of the outcomes that have limits, and of success."""

    @property
    def is_at_target(self) -> bool:
        return self.problem.is_target(self.z)

    def suggestion(self) -> Suggestion:
        return Suggestion(self.problem.space.from_unit(self.u), self.z, self.why())

    def why(self) -> dict[str, Any]:
        """Return the decision as numbers in the user's units and as a sentence."""
        why = explain(
            self.model,
            self.history,
            self.u,
            phase="final" if (self.is_last or self.acquisition == "mean") and self.is_at_target else "model",
            reason=" ".join(part for part in (self.sentence(), self._feasible_sentence()) if part),
            beta=self.beta,
            acquisition=self.acquisition,
            xi=self.xi,
            gamma=self.model.deviation_as_told(self.gamma),
            c=self.c,
            shrink=self.model.shrink,
            **({} if self.guard is None else {"guard": self.guard}),
            **({"probe": True} if self.is_probe else {}),
            **self.model.warnings(),
        )
        if self.asked_at is not None:
            u, shrink = self.asked_at
            why["fidelity_by"] = {"x": self.problem.space.from_unit(u), "shrink": shrink}
        return why | self._feasible

    @cached_property
    def _feasible(self) -> dict[str, Any]:
        """What `why` says of the outcomes."""
        return {} if self.feasibility is None else self.feasibility.why(self.u)

    def _feasible_sentence(self) -> str:
        """Return how likely x is feasible at the target, outcome by outcome."""
        if not self._feasible:
            return ""
        outcomes = self._feasible["outcomes"]
        each = [f"{'to succeed' if n == SUCCESS else n} {said['probability']:.2g}" for n, said in outcomes.items()]
        p = self._feasible["feasible"]
        return f"The probability that it is feasible at the target is {p:.2g} ({', '.join(each)})."

    def sentence(self) -> str:
        """Return why this point and this fidelity were chosen."""
        if self.stands_in:
            return STAND_IN
        if self.acquisition == "mean":
            return "The last affordable target evaluation, kept for the point that the model expects to be best."
        if self.is_last:
            return f"The last affordable target evaluation, kept for the point {self._where_last}."
        if self.is_probe:
            return (
                f"A fidelity at {self.cost_share:.3g} of the target's cost, {self.where}: the target would be chosen, "
                "but early in the budget, exploring below it is cheaper, and shows again what cheap queries tell."
            )
        if self.instead is None:
            return self._aim_sentence()
        if not self.problem.fidelity:
            return f"This evaluation {self.instead}."
        because = self.because or (self._no_cheaper_one if self.guard is None else self._switched_off)
        return f"{because}; this evaluation {self.instead}."

    @property
    def _where_last(self) -> str:
        return self.where if self.acquisition == FEASIBILITY else "where the largest feasible improvement is expected"

    def _aim_sentence(self) -> str:
        where = self.where
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

    @property
    def _no_cheaper_one(self) -> str:
        return f"The target fidelity: no cheaper one is informative enough {self.where}"

    @property
    def _switched_off(self) -> str:
        return (
            "The target fidelity: the cheaper ones are switched off, because the model predicts the results at the "
            f"target better without them (by {self.guard:.2g} nats)"
        )
