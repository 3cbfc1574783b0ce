"""Trials made by hand, for tests that need a history without a study."""

from __future__ import annotations

from boca import Trial
from boca.domain.observation import Observation
from boca.domain.reasons import Reasons


def made(number, x, z, cost=1.0, why=None, state="running", value=None, *, noise=None, told=None, **more):
    """Return a trial with at most one observation, at the fidelity that was handed out."""
    given = {"reason": "A test.", "phase": "start"} if why is None else why
    reasons = given if isinstance(given, Reasons) else Reasons.of(given)
    seen = () if value is None else (Observation(z, value, noise, more.get("seconds"), told=told),)
    return Trial(number, x, z, cost, reasons, state, seen, told=told, **more)
