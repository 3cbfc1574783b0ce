"""What version 1 of the tables meant: for the migration from it, and for reading it unmigrated.

A trial had one value, in its own row, and a strategy was stored by its import path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

TABLES = ("boca_meta", "boca_studies", "boca_trials", "boca_queue")

# The names under which version 1 stored what has a registered name now.
_REGISTERED = {
    "boca.strategies.boca.Boca": "boca",
    "boca.strategies.boca.Theorem": "theorem",
    "boca.strategies.gp_ucb.GPUCB": "gp-ucb",
    "boca.strategies.gp_ei.GPEI": "gp-ei",
    "boca.strategies.mf_gp_ucb.MFGPUCB": "mf-gp-ucb",
    "boca.strategies.mf_sko.MFSKO": "mf-sko",
    "boca.strategies.random.RandomSearch": "random",
    "boca.surrogate.Surrogate": "surrogate",
}


def described(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a study in today's words."""
    return {**spec, "strategy": _renamed(spec.get("strategy"))}


def _renamed(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_renamed(inner) for inner in stored]
    if not isinstance(stored, dict):
        return stored
    renamed = {name: _renamed(inner) for name, inner in stored.items()}
    if isinstance(stored.get("type"), str) and stored["type"] in _REGISTERED:
        renamed["type"] = _REGISTERED[stored["type"]]
    return _in_turns(renamed) if renamed.get("type") == "boca" else renamed


def _in_turns(boca: dict[str, Any]) -> dict[str, Any]:
    """Return a `Boca` with the aims and turns that its four booleans stood for; all sixteen combinations have some.

    A study from before one of the booleans existed has no aims or no turns: they are new fields to it.
    """
    switches = ("learn_maximum", "improve_at_target", "improve_on_draws", "doubt_fidelities")
    learn, improve, draw, check = (boca.pop(name, None) for name in switches)
    if learn is not None:
        boca["aims"] = ["ucb", "max_value"] if learn else ["ucb"]
    if None not in (improve, draw, check):
        draws = "log_noisy_ei" if draw else "log_ei"
        turns = ["log_ei", "aim", draws] if improve else ["aim"] * 3
        turns.append("ucb_alone" if check else "aim")
        boca["target_turns"] = next(turns[:k] for k in (1, 2, 4) if turns == turns[:k] * (4 // k))
    return boca


def pending(trials: Iterable[tuple[int, int, int | None, str]]) -> dict[int, tuple[int, ...]]:
    """Return by number which trials the choice of each trial counted as running.

    A model's choice has them in `why`.  Of the others, which had no model, those count that were running then.
    """
    rows = list(trials)
    found = {}
    for number, asked, _, why in rows:
        said = json.loads(why).get("pending")
        running = (n for n, began, told, _ in rows if began < asked and (told is None or told > asked))
        found[number] = tuple(said) if isinstance(said, list) else tuple(running)
    return found
