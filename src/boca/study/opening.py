"""A study in a database: made, or resumed if the stored one was made with the same settings."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.study.spec import CHANGEABLE, as_stored, differences, plain
from boca.study.storage import Storage

if TYPE_CHECKING:
    from boca.study.storage.sql import Database


DEFAULT_NAME = "study"
"""The name of a study without one."""

log = logging.getLogger("boca")


def warn_of_no_name() -> None:
    """Say under which name a study is stored if the user gave none."""
    log.warning(
        "This study has a storage and no name: it is stored as %r, and so is every other study there without a name. "
        "Give name='svm', for example.",
        DEFAULT_NAME,
    )


@dataclass(frozen=True)
class OpenedStudy:
    """A study that is open, with what its record says of it."""

    storage: Storage
    seed: int
    first: Limit | None
    """The budget that the study was made with, if it has another now."""
    strategy: Any
    """The one that was given; fields that the stored study does not have are off, unless a change was permitted."""


def open_study(
    url: str,
    name: str,
    given: Mapping[str, Any],
    *,
    problem: Problem,
    strategy: object = None,
    keeps_seed: bool,
    allow_change: bool,
) -> OpenedStudy:
    """Return the study of this name in a database: a new one, or a stored one that fits.

    Args:
        url: of the database.
        name: of the study.
        given: the description of the study that is asked for.
        strategy: the one that `given` describes.
        problem: compares budgets in different units.
        keeps_seed: take the seed of the stored study, whatever the given one is.
        allow_change: permit what `CHANGEABLE` names to differ, and store it.
    """
    from boca.study.storage.reader import described
    from boca.study.storage.sql import Database

    if not isinstance(url, str):
        raise InvalidInput(f"storage is {url!r}, and must be a URL such as 'sqlite:///study.db', or None.")
    if not isinstance(name, str) or not 0 < len(name) <= 255:
        raise InvalidInput(f"name is {name!r}, and must be a string of 1 to 255 characters.")
    database = Database(url)
    try:
        made_by = strategy
        if not allow_change:
            made_by = as_stored(strategy, described(name, database.create(name, dict(given)))["strategy"])
        asked = {**given, "strategy": plain(made_by)} if made_by is not strategy else dict(given)
        seed, first = _agreed(database, name, asked, problem, keeps_seed, allow_change)
        return OpenedStudy(database.study(name), seed, first, made_by)
    except BaseException:
        database.close()
        raise


def _agreed(
    database: Database, name: str, given: dict[str, Any], problem: Problem, keeps_seed: bool, allow_change: bool
) -> tuple[int, Limit | None]:
    """Make the study, or check that the stored one fits; return its seed and its first budget."""
    from boca.study.storage.reader import described

    stored = described(name, database.create(name, given))
    if keeps_seed:
        given["seed"] = stored["seed"]
    wrong = differences(stored, given)
    if "budget" in wrong:
        wrong["budget"] = f"budget was {_in_words(stored['budget'])} and is {_in_words(given['budget'])}"
    first = stored.get("first_budget", stored["budget"] if "budget" in wrong else None)
    if first is not None:
        given["first_budget"] = first
    if wrong and allow_change and wrong.keys() <= CHANGEABLE:
        if "budget" in wrong:
            _refuse_narrower(problem, stored["budget"], given["budget"])
        database.change(name, given)
    elif wrong:
        raise InvalidInput(_refusal(name, wrong))
    return int(given["seed"]), None if first is None else Limit(**first)


def _refusal(name: str, wrong: Mapping[str, str]) -> str:
    permitted = ""
    if wrong.keys() <= CHANGEABLE:
        permitted = ", or pass allow_change=True to enlarge the budget or adopt this version's strategy fields"
        if wrong.keys() & {"steps", "stop_runs"}:
            permitted = ", or pass allow_change=True to adopt these"
    return (
        f"Study {name!r} already exists with different settings: {'; '.join(wrong.values())}. "
        f"A study is resumed with its original settings. Pass those, or use another name{permitted}."
    )


def _refuse_narrower(problem: Problem, stored: dict[str, Any] | None, given: dict[str, Any] | None) -> None:
    """Refuse a smaller budget, and one that cannot be compared: seconds with anything else."""
    if given is None:
        return
    worth = {
        "targets": problem.target_cost if problem.has_declared_cost else math.nan,
        "cost": 1.0,
        "seconds": math.nan,
    }
    is_same_unit = stored is not None and given["unit"] == stored["unit"]
    before, now = (
        (c and c["amount"] * (1.0 if is_same_unit else worth[c["unit"]])) or math.inf for c in (stored, given)
    )
    if not now >= before:
        raise InvalidInput(
            f"budget is {_in_words(given)}, and was {_in_words(stored)}; allow_change permits a larger one only."
        )


def _in_words(limit: dict[str, Any] | None) -> str:
    units = {"targets": "target evaluations", "cost": "cost units", "seconds": "seconds"}
    return "unlimited" if limit is None else f"{limit['amount']:.6g} {units[limit['unit']]}"
