"""Rules for `stop=` of `maximize` and `minimize`, which end a study, and for `stop_runs=`, which end single runs."""

from boca.execution.stopping import NotWorthIt
from boca.strategies.run_stopping import StopHopeless

__all__ = ["NotWorthIt", "StopHopeless"]
