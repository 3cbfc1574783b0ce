"""Evaluations that pass through steps: what happens to them beside their reports, and the chains that they form.

A trial whose fidelities have `Steps` may report at every step, be stopped, leave checkpoints, and be continued by a
later trial from one of these.  The later trial has a number, a cost and reasons of its own; the curve is the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

RunEventKind: TypeAlias = Literal["continued", "checkpoint", "dropped", "again", "stopped", "differs"]
"""What happens to a run beside its reports:

- "continued": it was handed out to go on from a checkpoint that another trial left at `step`;
- "checkpoint": it left a checkpoint at `step`;
- "dropped": its checkpoint was deleted;
- "again": it was handed out again after its process died or was shut down, to go on from `step`;
- "stopped": it was told at `step` to stop;
- "differs": `step` was reported again with another value.
"""


@dataclass(frozen=True)
class RunEvent:
    """Something that happened to a run beside its reports.

    Args:
        kind: what happened.
        step: the step that the run had reached, or that the checkpoint is of.
        path: where the checkpoint is.
        seconds: how long the evaluation had taken by then; None if it is not known.
        why: the reasons of a stop.
        seen: of a stop, the last event that its decision read.
        told: the event that stored it; None before it is stored.
    """

    kind: RunEventKind
    step: int
    path: str | None = None
    seconds: float | None = None
    why: Mapping[str, Any] = field(default_factory=dict)
    seen: int | None = None
    told: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, without what does not apply; the class takes this back by keywords."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != {}}


@dataclass(frozen=True)
class Verdict:
    """Whether a run should go on, with the reasons: what `keep_going` of a strategy or of a rule returns.

    A plain True or False will do where there are no reasons to give.
    """

    go_on: bool
    why: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.go_on
