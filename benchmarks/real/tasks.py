"""The tasks by name, the half to tune on and the half to check on.

A setting of the library is chosen on the names in `TUNE` alone, and confirmed on those in `CHECK`.  Each list of a
family was divided by position: first, third, fifth, ... to tune on, the others to check on.

    boca bench run --problem benchmarks.real.tasks:lcbench_34539      # without the accounting of this package
    python -m benchmarks.real run --task lcbench_34539                # with it
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.real import data, live, made, taskset, yahpo
from benchmarks.real.task import Task
from boca.domain.errors import InvalidInput

PATH = "benchmarks.real.tasks:"

_YAHPO = {
    "lcbench": "34539 126026 146212 167149 167181 167190 168330 168868 189862 189909",
    "rbv2_rpart": "41138 40981 1220 40927 1462 6332 23381 1478",
    "rbv2_xgboost": "40923 470 1487 40966 40975 1461 31 1067",
    "iaml_glmnet": "1489 1067",
}

FAMILIES: dict[str, tuple[str, ...]] = {
    **{scenario: tuple(f"{scenario}_{name}" for name in names.split()) for scenario, names in _YAHPO.items()},
    "taskset": tuple(f"taskset_{k}" for k in range(6)),
    "tables": tuple(made.PLANS),
    "live": tuple(live.SEARCHES),
}

OF_YAHPO = tuple(name for scenario in _YAHPO for name in FAMILIES[scenario])

TUNE = tuple(name for names in FAMILIES.values() for name in names[::2])
CHECK = tuple(name for names in FAMILIES.values() for name in names[1::2])
NAMES = tuple(name for names in FAMILIES.values() for name in names)

CURVES = tuple(name for family in ("lcbench", "taskset", "tables") for name in FAMILIES[family])
"""The tasks whose trainings pass through steps."""

# Eight tasks of the half to check on for the peers that take long.
EIGHT = (
    *("lcbench_126026", "lcbench_167149", "rbv2_rpart_40981", "rbv2_xgboost_470", "rbv2_xgboost_40966"),
    *("iaml_glmnet_1067", "taskset_1", "trees_diabetes"),
)


def get(name: str, seed: int = 0) -> Task:
    """Return the task of this name."""
    family = next(family for family, names in FAMILIES.items() if known(name) in names)
    if family == "live":
        return live.task(name, seed)
    if family == "tables":
        return made.task(name, seed)
    if family == "taskset":
        return taskset.task(int(name.removeprefix("taskset_")), seed)
    return yahpo.task(family, name.removeprefix(f"{family}_"), seed)


def known(name: str) -> str:
    """Return the name of a task, or say which there are."""
    if name not in NAMES:
        raise InvalidInput(f"{name!r} is not a task. A task is one of {', '.join(NAMES)}. Type one of these names.")
    return name


def at_path(path: str, seed: int) -> Task:
    """Return the task of an import path, as cells have it."""
    return get(path.removeprefix(PATH), seed)


def available(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names whose data are on this machine."""

    def is_here(name: str) -> bool:
        if name in FAMILIES["live"]:
            return True
        return data.table(name).exists() if name in FAMILIES["tables"] else data.has_shared()

    return tuple(name for name in names if is_here(name))


def knows_seconds(name: str) -> bool:
    """Whether a task can be run with a budget in seconds that are not waited for, long beside those of choosing."""
    return name in OF_YAHPO


def __getattr__(name: str) -> Callable[[int], Task]:
    """Let `benchmarks.real.tasks:NAME` be an import path of a function from a seed to a task."""
    if name not in NAMES:
        raise AttributeError(name)
    return partial(get, name)
