"""A recorded study as a file: every trial once, and of every decision what it was given and what it answered.

This module knows nothing of `boca`, so that both commits read the same file in the same way.

    case, commit      which case of `cases.py`, and the commit that made it
    versions          of Python, NumPy and SciPy: others may round differently
    seed              of the study; the random stream of a decision is `default_rng([seed, number])`
    trials            as they ended; `expected` is the cost while the trial ran; `why` only if no decision has it
    decisions         `seen`, the last event before the decision; the four numbers of the budget; `x`, `z`, `why`
    recommendation    after the last event: `x`, `mean`, `std`, `verified`; absent if it is not compared
"""

from __future__ import annotations

import json
import lzma
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

_WHILE_RUNNING = {"state": "running", "value": None, "noise": None, "seconds": None, "reason": None, "told": None}


def versions() -> dict[str, str]:
    """Return what decides about the last bits, apart from the machine."""
    return {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}


def load(path: Path) -> Any:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def save(path: Path, content: object) -> None:
    """Write the file at once, so that a recording which is stopped leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    text = json.dumps(content, separators=(",", ":"))
    beside.write_bytes(lzma.compress(text.encode(), preset=9))
    beside.replace(path)


def seen_by(study: Mapping[str, Any], seen: float) -> list[dict[str, Any]]:
    """Return the trials as they were after event `seen`, as the fields of a trial."""
    known = {d["trial"]: d["why"] for d in study["decisions"] if "trial" in d}
    trials = []
    for stored in study["trials"]:
        if stored["asked"] > seen:
            continue
        trial = {"why": known.get(stored["number"])} | stored
        expected = trial.pop("expected", trial["cost"])
        if trial["told"] is None or trial["told"] > seen:
            trial |= {"cost": expected} | _WHILE_RUNNING
        trials.append(trial)
    return sorted(trials, key=lambda t: t["number"])


def differences(old: object, new: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield the path, the old and the new value of every leaf that differs in a bit or in its type."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(old.get(key, "absent"), new.get(key, "absent"), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{path}[{k}]")
    elif repr(old) != repr(new):
        yield path, old, new


def is_close(old: object, new: object, tolerance: float) -> bool:
    """Whether two leaves are the same but for a relative difference of this size."""
    if not (isinstance(old, float) and isinstance(new, float)):
        return repr(old) == repr(new)
    return abs(old - new) <= tolerance * max(abs(old), abs(new))
