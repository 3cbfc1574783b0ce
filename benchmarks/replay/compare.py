"""Make every recorded decision again with the working tree, and compare it with what the pinned commit answered.

    python -m benchmarks.replay.compare build/replay/studies [--case NAME]... [--jobs 2] [--tolerance 1e-9]

A decision is given the recorded history, budget, seed and number, so that a difference has no consequences: every
decision stands for itself.  Compared are x, z and every key of `why` but the sentence; then the budget that today's
accounts make of the history, and the recommendation after the last result.  The exit status is 1 after a difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.replay import adapter, recorded
from benchmarks.replay.cases import NAMED, Case


@dataclass
class Outcome:
    """What became of one case."""

    case: str
    equal: int = 0
    close: int = 0
    differing: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    first: str = ""
    """The first difference that is not rounding, or else the first one, in words."""

    def count(self, place: str, wrong: list[tuple[str, object, object]], tolerance: float) -> None:
        """Count one thing that was compared."""
        beyond = [d for d in wrong if not recorded.is_close(d[1], d[2], tolerance)]
        if not wrong:
            self.equal += 1
            return
        if not self.first or (beyond and not self.differing):
            path, old, new = (beyond or wrong)[0]
            self.first = f"{place}: {path}\n    old {_short(old)}\n    new {_short(new)}"
        self.differing, self.close = self.differing + bool(beyond), self.close + (not beyond)


@dataclass
class Total:
    """What became of all cases."""

    outcomes: list[Outcome] = field(default_factory=list)

    def __str__(self) -> str:
        equal, close, differing = (sum(getattr(o, name) for o in self.outcomes) for name in _COUNTS)
        return (
            f"{len(self.outcomes)} cases: {equal} comparisons equal in every bit, {close} within the tolerance, "
            f"{differing} different"
        )

    @property
    def strangers(self) -> list[str]:
        """The cases that were recorded with other versions of what decides about the last bits."""
        return [o.case for o in self.outcomes if o.versions != recorded.versions()]

    @property
    def is_well(self) -> bool:
        return all(not o.differing for o in self.outcomes)


_COUNTS = ("equal", "close", "differing")


def replayed(study: Mapping[str, Any], case: Case) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
    """Yield every recorded decision and the same one made by the working tree, as JSON and without the sentence."""
    chooser = adapter.strategy(*case.strategy)
    if hasattr(chooser, "check"):
        chooser.check(case.problem)
    for decision in study["decisions"]:
        past = adapter.history(recorded.seen_by(study, decision["seen"]))
        rng = np.random.default_rng([study["seed"], decision["number"]])
        yield decision, as_json(adapter.suggest(chooser, case.problem, past, decision["budget"], rng))


def as_json(suggestion: Mapping[str, Any]) -> dict[str, Any]:
    """Return x, z and why as JSON gives them back, the sentence apart: a new sentence is no other decision."""
    chosen = json.loads(json.dumps({key: suggestion[key] for key in ("x", "z", "why")}))
    chosen["why"].pop("reason", None)
    return dict(chosen)


def compare(study: Mapping[str, Any], tolerance: float = 0.0) -> Outcome:
    """Make all decisions of a study again."""
    case, outcome = NAMED[study["case"]], Outcome(study["case"], versions=study["versions"])
    for decision, new in replayed(study, case):
        place = f"{case.name}, decision {decision['number']} after event {decision['seen']}"
        outcome.count(place, list(recorded.differences(as_json(decision), new)), tolerance)
        past = adapter.history(recorded.seen_by(study, decision["seen"]))
        accounts = adapter.budget(case.problem, past, case.budget)
        outcome.count(f"{place}, its budget", list(recorded.differences(decision["budget"], accounts)), tolerance)
    if "recommendation" in study:
        past = adapter.history(recorded.seen_by(study, float("inf")))
        found = adapter.recommendation(case.problem, past, adapter.strategy(*case.strategy))
        wrong = list(recorded.differences(study["recommendation"], found))
        outcome.count(f"{case.name}, the recommendation", wrong, tolerance)
    return outcome


def compare_all(paths: Iterable[Path], *, tolerance: float, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of every file in order."""
    work = partial(_compare_file, tolerance=tolerance)
    if jobs == 1:
        yield from map(work, paths)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, paths)


def _compare_file(path: Path, tolerance: float) -> Outcome:
    return compare(recorded.load(path), tolerance)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]} ..."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay.compare", description=__doc__.splitlines()[0])
    parser.add_argument("studies", type=Path, metavar="DIR", help="what record.py has written")
    parser.add_argument("--case", action="append", choices=list(NAMED), metavar="NAME", help="may be repeated")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, metavar="R", help="relative differences that pass (default: none)"
    )
    given = parser.parse_args()
    paths = [given.studies / f"{name}.json.xz" for name in given.case or NAMED]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        parser.error(f"{given.studies} has no {', '.join(missing)}; record them first (make replay)")
    total = Total()
    for outcome in compare_all(paths, tolerance=given.tolerance, jobs=given.jobs):
        total.outcomes.append(outcome)
        counts = "  ".join(f"{name} {getattr(outcome, name):4}" for name in _COUNTS)
        print(f"{outcome.case:24} {counts}", flush=True)
        if outcome.first:
            print(f"  {outcome.first}", flush=True)
    if total.strangers:
        print(f"Recorded with other versions than {recorded.versions()}: {', '.join(total.strangers)}")
    print(total)
    return 0 if total.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
