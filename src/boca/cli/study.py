"""Subcommands for study files: `init` writes one, `check` looks whether it would run, `schema` helps editors."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from boca.domain.errors import BocaError, InvalidInput, StorageFailed
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.words import option, point, printable, readable, text
from boca.execution.executors import Outcome, engine
from boca.execution.executors.handle import Begun, Kept, Plan
from boca.execution.runs import takes_run
from boca.study.storage.location import without_password
from boca.study.storage.reader import Reader
from boca.studyfile import StudyFile, load, template
from boca.studyfile.keys import schema as json_schema

_OUTPUT_LINES = 10  # of what the tried evaluation printed, the last ones


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("study.toml"),
    command: Annotated[bool, typer.Option("--command", help="The objective is a program, not a function.")] = False,
) -> None:
    """Write a study file with every key explained, and an objective to replace; nothing is overwritten."""
    objective = file.with_name("evaluate.sh" if command else "objective.py")
    for one in (file, objective):
        if one.exists():
            raise InvalidInput(
                f"{str(one)!r} already exists, and init overwrites nothing. Name a file in another folder."
            )
    try:
        file.write_text(template.text(file.name, command=command), encoding="utf-8")
        objective.write_text(template.COMMAND if command else template.FUNCTION, encoding="utf-8")
        if command:
            objective.chmod(0o755)
    except OSError as error:
        raise InvalidInput(
            f"{error.filename} cannot be written: {error.strerror}. Name a file in another folder."
        ) from error
    print(f"Wrote {file} and {objective}. Next: boca check {file} --try")


def schema() -> None:
    """Print the JSON schema of study files, with which editors complete and check them."""
    print(json.dumps(json_schema(), indent=2))


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study, in TOML.")],
    try_one: Annotated[bool, typer.Option("--try", help="Run one evaluation, the cheapest; it is not stored.")] = False,
) -> None:
    """Check a study file without storing anything: its space, what an evaluation costs, and where it would run.

    Exit status: 0 if the study would run, 1 if the tried evaluation failed, 2 for a mistake in the file.
    """
    study = load(file)
    for line in _described(study):
        print(printable(line))
    if not try_one:
        return
    x, z = study.problem.middle, _cheapest(study.problem)
    print(printable(f"Trying {', '.join(words for words in (point(x), point(z)) if words)} ..."), flush=True)
    outcome = _tried(study, x, z)
    reason = outcome.error or _wrong(study.problem, outcome, z)
    for line in outcome.output.splitlines()[-_OUTPUT_LINES:]:
        print(f"  {printable(line)}")
    if reason is not None:
        print(printable(f"It failed after {readable(outcome.seconds)} s: {reason}"))
        raise typer.Exit(1)
    print(printable(f"It returned {text(outcome.value)} in {readable(outcome.seconds)} s."))


def _described(study: StudyFile) -> Iterator[str]:
    problem = study.problem
    count = len(problem.space.names)
    yield f"{study.name}: {problem.aims} over {count} parameter{'' if count == 1 else 's'}"
    yield from _parameters("space", problem.space)
    if problem.fidelity:
        yield from _parameters("fidelity", problem.fidelity, problem.target)
    yield from (f"  {name} {limit}" for name, limit in problem.subject_to.items())
    yield from _costs(study)
    yield f"  {_place(study)}"
    yield f"  {_storage(study)}"


def _parameters(part: str, space: Mapping[str, Any], target: Point | None = None) -> Iterator[str]:
    yield f"  [{part}]"
    for name, parameter in space.items():
        aim = "" if target is None else f", target {option(target[name])}"
        yield f"    {name} = {parameter!r}{aim}"


def _costs(study: StudyFile) -> Iterator[str]:
    """Return what the ends of the fidelity space cost, and what the budget buys."""
    problem, limit = study.problem, study.budget
    unit = {"targets": "target evaluations", "seconds": "s", "cost": "cost units"}[limit.unit]
    yield f"  budget: {readable(limit.amount)} {unit}"
    if not problem.has_declared_cost:
        yield "  cost: measured in seconds, and learned"
        return
    if not problem.fidelity:
        yield f"  cost: {readable(problem.target_cost)} per evaluation"
        return
    cheapest = _cheapest(problem)
    least, most = problem.cost(cheapest), problem.target_cost
    yield f"  cost: {readable(least)} at the cheapest ({point(cheapest)}), {readable(most)} at the target"
    if limit.unit != "seconds":
        total = limit.amount * (most if limit.unit == "targets" else 1.0)
        many = readable(total / least)
        yield f"  which buys {readable(total / most)} evaluations at the target, or {many} of the cheapest"


def _cheapest(problem: Problem) -> Point:
    """Return the cheapest fidelity of the grid; by assumption, if the cost is measured."""
    fidelities, _ = problem.grid
    price = problem.cost if problem.has_declared_cost else problem.assumed_cost
    return dict(fidelities[min(range(len(fidelities)), key=lambda i: price(fidelities[i]))])


def _place(study: StudyFile) -> str:
    if study.place.kind != "here":
        count = "all its workers" if study.workers is None else f"{study.workers} at once"
        return f"runs on {study.place.kind} at {study.place.address}, {count}"
    memory = "" if study.place.memory is None else f", each with at most {readable(study.place.memory / 1e9)} GB"
    return f"runs in {study.workers} worker process{'' if study.workers == 1 else 'es'} of this machine{memory}"


def _storage(study: StudyFile) -> str:
    """Return where the study is stored, and what is there by now."""
    place = f"stored in {without_password(study.storage)}"
    try:
        with closing(Reader(study.storage)) as reader:
            found = {row.name: row for row in reader.read(reader.rows)}
    except InvalidInput:
        return f"{place}, which does not exist yet"
    except StorageFailed as error:
        return f"{place}; {error}"
    if study.name not in found:
        return f"{place}, which has no study of this name"
    count = found[study.name].trials
    return f"{place}, where it has {count} trial{'' if count == 1 else 's'}: boca run would resume it"


def _tried(study: StudyFile, x: Point, z: Point) -> Outcome:
    """Evaluate one point where the study would run; of an evaluation that reports, the last report may be the value."""
    has_run, told = takes_run(study.objective, study.problem), Kept()
    with study.place.opened(1) as executor, tempfile.TemporaryDirectory(prefix="boca-try-") as folder:
        workers = engine(executor, study.objective, takes_fidelity=bool(study.problem.fidelity), workers=1)
        run = Begun(_plan(study.problem, z, folder), told) if has_run else None
        try:
            outcome = workers.submit(x, z, timeout=study.timeout, run=run).result()
        finally:
            workers.close(now=True)
    reports = [*told.told, *outcome.told]
    return replace(outcome, value=reports[-1][1]) if outcome.ended and reports else outcome


def _plan(problem: Problem, z: Point, folder: str) -> Plan:
    """Return what a run is to do that is only tried: from scratch, with checkpoints that nothing goes on from."""
    mailbox = Path(folder) / "talk" / "try"
    mailbox.parent.mkdir()
    return Plan("try", 0, 0, start=0, end=problem.step(z), folder=folder, mailbox=str(mailbox))


def _wrong(problem: Problem, outcome: Outcome, z: Point) -> str | None:
    """Return what is wrong with what an evaluation returned."""
    try:
        problem.returned(outcome.value, z)
    except BocaError as error:
        return str(error)
    return None
