"""`boca show`: the studies of a storage, the trials of a study, or one trial and why it was chosen."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Annotated, Any, get_args

import typer

from boca.accounting.ledger import Ledger
from boca.cli import table
from boca.cli.arguments import Json, Url
from boca.cli.look import everything, read
from boca.cli.table import Column
from boca.domain.attempt import Attempt
from boca.domain.errors import InvalidInput, StorageFailed
from boca.domain.failures import causes
from boca.domain.problem import Problem
from boca.domain.trial import State, Trial, sign
from boca.domain.words import duration, expected, moment, option, point, printable, readable, text
from boca.study import spec
from boca.study.recommendation import nothing_best
from boca.study.storage.reader import Damaged, Reader, StoredStudy

_KEYS = {
    "number": lambda trial: trial.number,
    "value": lambda trial: trial.value,
    "cost": lambda trial: trial.cost,
    "seconds": lambda trial: trial.seconds,
}
_COUNTS = ("trials", "complete", "running", "failed")  # of the table of studies
_MOST_REASONS = 5  # of failures that are listed below the trials
_NUMBERS_OF_WHY = ("mean", "std", "ucb", "improvement", "hypervolume", "beta", "xi", "gamma", "c")


def show(
    url: Url,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A study; all studies without it.")] = None,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the last N trials.")] = None,
    best: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the N best at the target and within all limits, the best last."),
    ] = None,
    sort: Annotated[str, typer.Option(metavar="|".join(_KEYS), help="Sort by this; the best value last.")] = "number",
    state: Annotated[str | None, typer.Option(metavar="|".join(get_args(State)), help="Only trials in it.")] = None,
    why: Annotated[
        int | None, typer.Option(metavar="K", help="Trial K in words: what it gave, why it was chosen.")
    ] = None,
    trial: Annotated[int | None, typer.Option(metavar="K", help="Trial K as JSON, with all that decided it.")] = None,
    as_json: Json = False,
) -> None:
    """Show the studies of a storage, the trials of a study, the newest last, or one trial."""
    if name is None:
        _refuse_without_name({"--trial": trial, "--why": why, "--last": last, "--best": best, "--state": state})
        _show_studies(url, as_json)
        return
    study = read(url, name)
    if trial is not None or why is not None:
        _show_trial(study, trial, why, as_json)
        return
    trials = _picked(study, state, best, sort, last)
    if as_json:
        of_each = [everything(one, study.attempts.get(one.number, ())) for one in trials]
        print(json.dumps(of_each, ensure_ascii=False))
    else:
        table.page(_of_trials(study, trials, table.columns_of_terminal()))


def _refuse_without_name(options: dict[str, object]) -> None:
    for option_, value in options.items():
        if value is not None:
            raise InvalidInput(f"{option_} needs the name of a study; got {option_} {value} without NAME.")


# Studies ----------------------------------------------------------------------------------------------------------


def _show_studies(url: str, as_json: bool) -> None:
    with closing(Reader(url)) as reader:
        found = list(reader.studies())
    summaries = [_summary(study) for study in found]
    if as_json:
        print(json.dumps(summaries, ensure_ascii=False))
    else:
        columns = [
            Column("name", [summary["name"] for summary in summaries], is_number=False),
            *(Column(head, [text(summary[head]) for summary in summaries]) for head in _COUNTS),
            Column("best", [_best_of(summary) for summary in summaries]),
        ]
        print("\n".join(table.lines_of(columns)))
        for study in found:
            if not isinstance(study, Damaged) and (spent := _spent(study)):
                print(f"{study.name}: {spent}")
    broken = [summary["broken"] for summary in summaries if summary["broken"]]
    for words in broken:
        print(f"error: {words}", file=sys.stderr)
    if broken:
        raise typer.Exit(2)


def _summary(study: StoredStudy | Damaged) -> dict[str, Any]:
    """Return a study as a row of the table; a damaged one has its name, and what is damaged."""
    if isinstance(study, Damaged):
        return {"name": study.name, **dict.fromkeys((*_COUNTS, "best")), "broken": str(study)}
    found = study.history.best(study.problem)
    counts = {state: sum(t.state == state for t in study.history) for state in get_args(State)}
    best = None if found is None else found.value
    front = {"front": len(study.history.front(study.problem))} if study.problem.objectives else {}
    return {
        "name": study.name,
        "trials": len(study.history),
        **{state: counts[state] for state in _COUNTS[1:]},
        "best": best,
        **front,
        "broken": None,
    }


def _best_of(summary: dict[str, Any]) -> str:
    return f"front of {summary['front']}" if "front" in summary else text(summary["best"])


def _spent(study: StoredStudy) -> str:
    """Return what a study has spent, as a share of its budget; empty if its description is damaged."""
    with suppress(StorageFailed):
        return f"spent {Ledger(study.problem, study.history, spec.limit_of(study.spec)).spent_in_words}"
    return ""


# Trials -----------------------------------------------------------------------------------------------------------


def _picked(study: StoredStudy, state: str | None, best: int | None, sort: str, last: int | None) -> list[Trial]:
    """Return the trials that were asked for, in the order that was asked for."""
    if state is not None and state not in get_args(State):
        raise InvalidInput(f"--state must be one of {', '.join(get_args(State))}; got {state!r}.")
    if sort not in _KEYS:
        raise InvalidInput(f"--sort must be one of {', '.join(_KEYS)}; got {sort!r}.")
    trials = [trial for trial in study.history if state in (None, trial.state)]
    if best is not None:
        if study.problem.objectives:
            raise InvalidInput(
                f"--best {best} needs one objective, and {study.name!r} has {', '.join(study.problem.objectives)}. "
                f"Type `boca best` for its front."
            )
        kept = {t.number for t in study.history.feasible(study.problem)}
        trials = _sorted([t for t in trials if t.number in kept], "value", study)[-best:]
    if sort != "number" or best is None:
        trials = _sorted(trials, sort, study)
    return trials if last is None else trials[-last:]


def _sorted(trials: list[Trial], key: str, study: StoredStudy) -> list[Trial]:
    """Return trials in the order of a key, those without it first; values get better, all else grows."""
    better = sign(study.problem.direction) if key == "value" else 1.0

    def place(trial: Trial) -> tuple[bool, float]:
        value = _KEYS[key](trial)
        return value is not None, 0.0 if value is None else better * value

    return sorted(trials, key=place)


def _of_trials(study: StoredStudy, trials: Sequence[Trial], width: int) -> list[str]:
    """Return trials as lines of at most `width` characters."""
    problem = _problem(study)
    if not study.history:
        return [f"The study {study.name!r} has no trials yet."]
    if not trials:
        return [f"None of the {len(study.history)} trials of {study.name!r} is of this kind."]
    columns = _columns(trials, problem)
    shown = table.fitting(columns, width)
    lines = table.lines_of(shown)
    hidden = [column.head for column in columns[len(shown) :]]
    if problem is not None and problem.fidelity:
        lines += table.wrapped("* at the target", width)
    if hidden:
        words = f"{len(hidden)} columns do not fit: {', '.join(hidden)}. Type --why {trials[-1].number} for one trial."
        lines += table.wrapped(words, width)
    lines += _failures(trials, width)
    if problem is not None:
        lines += table.wrapped(_conclusion(study, problem), width)
    return lines


def _problem(study: StoredStudy) -> Problem | None:
    """Return the problem of a study; None if its description is damaged, which must not hide its trials."""
    with suppress(StorageFailed):
        return study.problem
    return None


def _columns(trials: Sequence[Trial], problem: Problem | None) -> list[Column]:
    is_at_target = problem.is_target if problem is not None and problem.fidelity else lambda z: False
    has_value = problem is None or not problem.objectives
    stars = ["*" if t.outcomes and is_at_target(t.z) else "" for t in trials]
    numbers = [f"{t.number}{star}" for t, star in zip(trials, stars, strict=True)]
    values = [f"{text(t.value)}{'*' if t.value is not None and is_at_target(t.z) else ''}" for t in trials]
    parts = ("outcomes", "z", "x")
    names = [(part, name) for part in parts for name in _names(getattr(trial, part) for trial in trials)]
    return [
        Column("number", [str(trial.number) for trial in trials] if has_value else numbers),
        Column("state", [trial.state for trial in trials], is_number=False),
        *([Column("value", values)] if has_value else []),
        Column("cost", [readable(trial.cost) for trial in trials]),
        *(_column(part, name, trials) for part, name in names),
    ]


def _names(points: Any) -> list[str]:
    """Return the names of points, in their order; a point may lack some."""
    return list(dict.fromkeys(name for one in points for name in one))


def _column(part: str, name: str, trials: Sequence[Trial]) -> Column:
    values = [getattr(trial, part).get(name, "") for trial in trials]
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values if value != "")
    return Column(name, [f"{v:.4g}" if isinstance(v, float) else option(v) for v in values], is_number)


def _failures(trials: Sequence[Trial], width: int) -> list[str]:
    """Return why trials failed, grouped by cause, the most frequent first."""
    found = causes(trials)
    lines = []
    for cause in found[:_MOST_REASONS]:
        count, last = len(cause.trials), cause.last.number
        which = f"Trial {last}" if count == 1 else f"{count} trials, the last {last},"
        lines += table.wrapped(f"{which} failed: {text(cause.reason, 10 * width)}", width)
    if len(found) > _MOST_REASONS:
        lines.append(f"{len(found) - _MOST_REASONS} more reasons for failures")
    return lines


def _conclusion(study: StoredStudy, problem: Problem) -> str:
    found = study.history.best(problem)
    best = nothing_best(problem, study.history) if found is None else f"best {text(found.value)} (trial {found.number})"
    if front := study.history.front(problem) if problem.objectives else []:
        best = f"{len(front)} on the front"
    count = len(study.history)
    return f"{study.name}: {count} trial{'' if count == 1 else 's'}, {best}, {_spent(study)}"


# One trial --------------------------------------------------------------------------------------------------------


def _show_trial(study: StoredStudy, trial: int | None, why: int | None, as_json: bool) -> None:
    if trial is not None and why is not None:
        raise InvalidInput(f"--trial and --why each show one trial; got --trial {trial} and --why {why}. Type one.")
    option_, number = ("--trial", trial) if why is None else ("--why", why)
    count = len(study.history)
    if number is None or not 0 <= number < count:
        raise InvalidInput(
            f"{option_} must be one of the {count} trials of {study.name!r}, which are numbered from 0; got {number}."
        )
    found = study.history[number]
    if why is None or as_json:
        all_of_it = everything(found, study.attempts.get(number, ()))
        print(json.dumps(all_of_it, indent=None if as_json else 2, ensure_ascii=False))
    else:
        table.page(_in_words(found, study.attempts.get(number, ()), table.columns_of_terminal()))


def _feasibility(trial: Trial) -> str:
    """Return what the model expected of every outcome that has a limit."""
    return ", ".join(
        f"{text(name)} {expected(said['mean'], said['std'])} (limit {readable(said['limit'])}, "
        f"probability {said['probability']:.2g})"
        for name, said in trial.why.get("outcomes", {}).items()
        if "limit" in said
    )


def _objectives(trial: Trial) -> str:
    """Return what the model expected of every one of several objectives."""
    said = {name: one for name, one in trial.why.get("outcomes", {}).items() if "limit" not in one}
    return ", ".join(f"{text(name)} {expected(one['mean'], one['std'])}" for name, one in said.items())


def _when(began: float | None, ended: float | None) -> str:
    """Return when something ran, by the clock of this place."""
    if began is None:
        return ""
    if ended is None:
        return f"since {moment(began)}"
    return f"{moment(began)} to {moment(ended)}, {duration(max(ended - began, 0.0))}"


def _where(trial: Trial) -> str:
    asked = "" if trial.host is None else f"process {trial.process} on {trial.host}"
    worker = "" if trial.worker is None else f"worker {trial.worker}"
    version = "" if trial.version is None else f"boca {trial.version}"
    return printable(", ".join(part for part in (asked, worker, version) if part))


def _lost(attempt: Attempt) -> str:
    """Return an attempt that gave no result."""
    when = _when(attempt.began, attempt.ended)
    return printable(f"{when}, process {attempt.process} on {attempt.host}: {attempt.ending}")


def _in_words(trial: Trial, attempts: Sequence[Attempt], width: int) -> list[str]:
    """Return one trial as lines: what it is, what it gave, why it was chosen, and what it printed."""
    numbers = [f"{key} = {readable(trial.why[key])}" for key in _NUMBERS_OF_WHY if key in trial.why]
    parts = [
        ("x", point(trial.x)),
        ("z", point(trial.z)),
        ("value", text(trial.value)),
        ("outcomes", point(trial.outcomes)),
        ("notes", point(trial.notes)),
        ("cost", readable(trial.cost)),
        ("seconds", "" if trial.seconds is None else readable(trial.seconds)),
        ("ran", _when(trial.began, trial.ended)),
        ("on", _where(trial)),
        *(("before", _lost(attempt)) for attempt in attempts),
        ("failed with", printable(trial.reason or "")),
        ("why", trial.why.get("reason", "")),
        ("in numbers", ", ".join(numbers)),
        ("expected", _objectives(trial)),
        ("within limits", _feasibility(trial)),
    ]
    lines = [f"Trial {trial.number}, {trial.state}"]
    for head, words in parts:
        if words:
            first, *rest = table.wrapped(words, width - 14)
            lines += [f"  {head:<12}{first}", *(f"{'':14}{line}" for line in rest)]
    if trial.output:
        lines += ["  output", *(f"    {printable(line)}" for line in trial.output.splitlines())]
    return lines
