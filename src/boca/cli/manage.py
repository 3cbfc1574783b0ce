"""Subcommands that change a storage: `retry` and `delete`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from boca.accounting.ledger import Ledger
from boca.cli.arguments import Name, Url
from boca.cli.look import read
from boca.domain.errors import InvalidInput
from boca.domain.trial import History, Trial, point_key
from boca.domain.words import readable
from boca.study import spec
from boca.study.storage import Snapshot
from boca.study.storage.reader import Reader, StoredStudy
from boca.study.storage.sql import Database

_MISSED_SHARE = 1e-12  # share of the budget that sums of costs may miss it by, as in `Budget.affords`


def retry(
    url: Url,
    name: Name,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="K", help="Trials; all failed trials without any.")
    ] = None,
) -> None:
    """Try failed trials again at the next run, as new trials, and running trials whose process is gone.

    A point is skipped if it has succeeded since, is queued, or is running. A running trial is skipped if its driver
    may be alive.
    """
    with closing(_open(url)) as database:
        study = database.study(name)
        now = study.read()
        chosen = _to_retry(now.history, numbers)
        failed, running = _untried(now, chosen), [trial for trial in chosen if trial.state == "running"]
        failed = failed[: study.enqueue_chosen(lambda now: [(t.x, t.z) for t in _untried(now, chosen)])]
        held = [trial for trial in running if not study.hand_back(trial)]
    count = len(failed) + len(running) - len(held)
    for trial in held:
        print(f"Trial {trial.number} is skipped: a driver has it.")
    if count:
        print(f"{count} trial{'' if count == 1 else 's'} will be tried at the next run.")
        _print_what_is_affordable(read(url, name), now.history, failed)
    elif len(chosen) > len(held):
        print("Nothing is left to try: the points that failed have succeeded since, are queued, or are running.")
    elif not chosen:
        print("Nothing is left to try: no trial failed.")


def _print_what_is_affordable(study: StoredStudy, history: History, queued: Sequence[Trial]) -> None:
    """Print how many queued trials the budget covers if that is not all; a learned cost cannot tell."""
    ledger = Ledger(study.problem, history, spec.limit_of(study.spec))
    if not ledger.is_exact or not math.isfinite(ledger.total):
        return
    left, affordable = ledger.left + _MISSED_SHARE * ledger.total, 0
    for trial in queued:
        if trial.cost <= left:
            left, affordable = left - trial.cost, affordable + 1
    if affordable < len(queued):
        print(
            f"The budget covers {affordable} of the {len(queued)} that failed: {readable(max(ledger.left, 0.0))} of "
            f"{ledger.in_words(ledger.total)} are left. Increase the budget in the study file, and run it with "
            "--allow-change."
        )


def _to_retry(history: History, numbers: Sequence[int] | None) -> list[Trial]:
    """Return the trials with these numbers, or all that failed."""
    if not numbers:
        return [trial for trial in history if trial.state == "failed"]
    wrong = [f"{number} (no such trial)" for number in numbers if not 0 <= number < len(history)]
    wrong += [
        f"{number} (complete)"
        for number in numbers
        if 0 <= number < len(history) and history[number].state == "complete"
    ]
    if wrong:
        raise InvalidInput(
            f"Only failed and running trials can be tried again; got {', '.join(wrong)}. The study has "
            f"{len(history)} trials, numbered from 0; leave K out to retry all that failed."
        )
    return [history[number] for number in sorted(set(numbers))]


def _untried(now: Snapshot, chosen: Sequence[Trial]) -> list[Trial]:
    """Return one failed trial for every point that has not succeeded and is neither queued nor running."""
    taken = {(point_key(t.x), point_key(t.z)) for t in now.history if t.state != "failed"}
    taken |= {(point_key(queued.x), point_key(queued.z)) for queued in now.queue}
    failed = {(point_key(t.x), point_key(t.z)): t for t in chosen if t.state == "failed"}
    return [trial for point, trial in failed.items() if point not in taken]


def delete(
    url: Url,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", metavar="", help="Do not ask.")] = False,
) -> None:
    """Delete a study with all its trials."""
    with closing(Reader(url)) as reader:
        count = reader.row(name).trials
    if not yes:
        typer.confirm(f"Delete the study {name!r} with its {count} trials?", abort=True)
    with closing(_open(url)) as database:
        database.delete(name)
    print(f"Deleted {name!r}.")


def _open(url: str) -> Database:
    """Open a storage to change it, after a read-only look that it is one."""
    with closing(Reader(url)) as reader:
        reader.read(lambda _: None)
        return Database(reader.url)
