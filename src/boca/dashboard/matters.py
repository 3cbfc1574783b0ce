"""Which parameters matter, as the page is told: the same numbers as the plot, as columns."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from boca.plots.axis import Note
from boca.plots.importance_data import Importance, Share

_MAX_ROWS = 20  # parameters; the others matter less


def columns(found: Importance | Note) -> dict[str, Any] | None:
    """Return the indices of the first parameters as JSON; None if there are none."""
    if isinstance(found, Note):
        return None
    return {
        "names": list(found.names[:_MAX_ROWS]),
        "has_interval": found.has_interval,
        "is_warped": found.is_warped,
        "views": [
            {"words": view.words, "first": _share(view.first), "total": _share(view.total)} for view in found.views
        ],
    }


def _share(share: Share) -> dict[str, list[float]]:
    return {field.name: getattr(share, field.name)[:_MAX_ROWS].tolist() for field in fields(share)}
