"""When trials ran and on which worker, as JSON for the page."""

from __future__ import annotations

import time
from typing import Any

from boca.dashboard.watch import WatchedStudy
from boca.plots.axis import Note
from boca.plots.timeline_data import of_trials

LAST = 500  # trials on the page: more bars could not be told apart, and would slow it down


def timeline(shown: WatchedStudy) -> dict[str, Any] | None:
    """Return the last trials as bars in lanes; None if it is not known when any of them ran."""
    found = of_trials(shown.problem, list(shown.history), last=LAST, now=time.time())
    if isinstance(found, Note):
        return None
    return {
        "lanes": list(found.lanes),
        "lane": list(found.lane),
        "began": found.began.tolist(),
        "ended": found.ended.tolist(),
        "number": [trial.number for trial in found.trials],
        "state": [trial.state for trial in found.trials],
        "at_target": found.at_target.tolist(),
        "utilization": found.utilization,
        "of": sum(trial.began is not None for trial in shown.history),
    }
