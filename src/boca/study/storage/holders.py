"""Who holds the running trials of a study, as far as it can be seen from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from boca.study.storage.owner import Owner
from boca.study.storage.reader import Reader, Row
from boca.study.storage.schema import trials
from boca.study.storage.transitions import LET_GO

Life = Literal["alive", "silent", "dead", "left", "by hand"]
"""Whether a driver has the trial and lives; has not renewed its lease; is gone; or left it to the next one.

A trial that was asked for without a driver is held by hand: nothing tells whether anybody works on it.
"""


@dataclass(frozen=True)
class Holder:
    """What holds one running trial."""

    life: Life
    host: str | None
    process: int | None

    @property
    def works(self) -> bool:
        return self.life in ("alive", "by hand")


def holders(reader: Reader, connection: sa.Connection, study: Row) -> dict[int, Holder]:
    """Return the holders of the running trials, by number."""
    columns = (trials.c.number, trials.c.owner, trials.c.driver, trials.c.until)
    found = connection.execute(sa.select(*columns).where(trials.c.study == study.id, trials.c.state == "running"))
    now = reader.now(connection)
    return {row.number: _holder(row.owner, row.driver, row.until, now) for row in found}


def _holder(stored: Mapping[str, Any] | None, driver: str | None, until: float | None, now: float) -> Holder:
    if stored is None or driver is None or until is None:
        return Holder("by hand", None, None)
    owner = Owner(**stored)
    if until == LET_GO or not driver:
        return Holder("left", owner.host, owner.pid)
    if owner.is_here:  # the process tells, whatever the clock says
        return Holder("dead" if owner.is_dead() else "alive", owner.host, owner.pid)
    return Holder("alive" if until >= now else "silent", owner.host, owner.pid)
