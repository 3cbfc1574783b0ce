"""The studies that a server offers: those of some databases, and those of some study files.

Reading opens a database so that nothing can be written to it.  Writing needs the whole problem.  A study file has it; a
database has all but code, so a study with code in it can be changed through its file alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from boca.domain.errors import InvalidInput, StorageFailed
from boca.domain.problem import Problem
from boca.domain.space import Space
from boca.plots.study import StudyView, stored
from boca.study import spec as specs
from boca.study.optimizer import Optimizer
from boca.study.storage.location import location, sqlite_path
from boca.study.storage.reader import Damaged, Reader, understood
from boca.studyfile import StudyFile, load

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Place:
    """Where studies are: a database with all its studies, or a study file with its one."""

    given: str
    """As it was typed."""
    url: str
    file: StudyFile | None = None

    @classmethod
    def of(cls, given: str) -> Place:
        """Return the place of a study file, a database file or a URL; an existing database can be read."""
        if given.endswith(".toml"):
            file = load(given)
            return cls(given, file.storage, file)
        place = cls(given, location(given))
        with closing(Reader(place.url)) as reader:
            reader.studies()
        return place

    @property
    def has_begun(self) -> bool:
        """Whether there is a database: that of a study file is made by its first run."""
        from pathlib import Path

        path = sqlite_path(self.url)
        return path is None or Path(path).is_file()

    def names(self) -> list[str]:
        """Return the studies that are offered here, also damaged ones and one that has not begun."""
        if self.file is not None:
            return [self.file.name]
        with closing(Reader(self.url)) as reader:
            return [study.name for study in reader.studies()]


class Studies:
    """All studies that are offered, by name."""

    def __init__(self, places: Sequence[str]) -> None:
        self.places = [Place.of(given) for given in places]
        self._open: dict[tuple[str, str], Optimizer] = {}

    def close(self) -> None:
        for optimizer in self._open.values():
            optimizer.storage.close()
        self._open.clear()

    def offered(self) -> Iterator[tuple[Place, str]]:
        """Yield every study with its place."""
        for place in self.places:
            for name in place.names():
                yield place, name

    def find(self, name: str | None) -> tuple[Place, str]:
        """Return where the study of a name is; no name is needed if there is one study."""
        offered = list(self.offered())
        known = ", ".join(repr(other) for _, other in offered) or "none"
        if name is None and len(offered) != 1:
            raise InvalidInput(
                f"study is missing, and may be left out only if the server has one study; it has: {known}. Name one."
                if offered
                else "study is missing, and this server has no studies yet. Start it with a study file: "
                "boca mcp study.toml --write."
            )
        found = [(place, other) for place, other in offered if name in (None, other)]
        if not found:
            raise InvalidInput(f"There is no study {name!r}. This server has: {known}.")
        if len(found) > 1:
            where = " and ".join(place.given for place, _ in found)
            raise InvalidInput(f"More than one study has the name {name!r}: in {where}. Start one server for each.")
        return found[0]

    def view(self, name: str | None) -> StudyView:
        """Return a study as it is now, for reading."""
        place, name = self.find(name)
        if not place.has_begun:
            raise InvalidInput(
                f"The study {name!r} has not begun: there is no database yet. Type boca run {place.given}, or "
                "start the server with --write and call ask."
            )
        with closing(Reader(place.url)) as reader:
            found = reader.study(name)
        with understood(name):
            view = stored(name, found.spec, found.history)
        if place.file is None or view.lacks is None or place.file.strategy is None:
            return view
        return replace(view, strategy=place.file.strategy, lacks=None)  # the file has the code that the database lacks

    def optimizer(self, name: str | None) -> Optimizer:
        """Return a study that can be changed, or say why it cannot."""
        place, name = self.find(name)
        key = (place.url, name)
        if key not in self._open:
            self._open[key] = self._opened(place, name)
        return self._open[key]

    def forget(self, name: str | None) -> None:
        """Open a study anew when it is next needed: its database may have been replaced."""
        place, name = self.find(name)
        optimizer = self._open.pop((place.url, name), None)
        if optimizer is not None:
            optimizer.storage.close()

    def _opened(self, place: Place, name: str) -> Optimizer:
        if place.file is not None:
            file = place.file
            return Optimizer(
                file.problem, budget=file.budget, strategy=file.strategy, seed=file.seed, storage=place.url, name=name
            )
        with closing(Reader(place.url)) as reader:
            found = reader.study(name)
        with understood(name):
            view = stored(name, found.spec, found.history)
        problem = whole_problem(name, found.spec)
        if view.lacks is not None or view.strategy is None:
            raise InvalidInput(_has_code(name, "a strategy"))
        seed = int(found.spec["seed"])
        return Optimizer(problem, budget=view.limit, strategy=view.strategy, seed=seed, storage=place.url, name=name)  # type: ignore[arg-type]

    def trouble(self, name: str) -> str | None:
        """Return why a study cannot be read; None if it can."""
        try:
            self.view(name)
        except (Damaged, StorageFailed, InvalidInput) as error:
            return str(error)
        return None


def whole_problem(name: str, described: Mapping[str, Any]) -> Problem:
    """Return the problem of a stored description with all that decides what is handed out, or refuse.

    A cost that is the product of the fidelities' shares, and a constraint that is an expression, are what the
    description says if they have its fingerprint.  All other code is not stored.
    """
    problem = specs.problem_of(described)
    if "candidates" in described:
        raise InvalidInput(_has_code(name, "a list of candidates"))
    if problem.space.constraints:
        space = _constrained(name, problem.space)
        problem = _with_space(problem, space)
    made = specs.describe(problem, None, seed=0, limit=None)
    if made["cost"] != described["cost"]:
        raise InvalidInput(_has_code(name, "a declared cost"))
    return problem


def _constrained(name: str, described: Space) -> Space:
    """Return the space with its constraints read from their words."""
    space = Space(dict(described))
    for constraint in described.constraints:
        try:
            space = space.where(constraint.words)
        except InvalidInput as error:
            raise InvalidInput(_has_code(name, "a constraint")) from error
        if space.constraints[-1].fingerprint != constraint.fingerprint:
            raise InvalidInput(_has_code(name, "a constraint"))
    return space


def _with_space(problem: Problem, space: Space) -> Problem:
    aims: dict[str, Any] = {"direction": problem.direction}
    if problem.objectives:
        aims = {"outcomes": problem.objectives, "reference": problem.reference}
    return Problem(
        space,
        problem.fidelity,
        cost=problem.cost if problem.fidelity and problem.has_declared_cost else None,
        target=problem.target,
        **aims,
        deterministic=problem.deterministic,
        first=problem.first,
        subject_to=problem.subject_to,
        objective=problem.objective,
    )


def _has_code(name: str, what: str) -> str:
    return (
        f"The study {name!r} has {what} that is not stored, so it can be read here and not changed. "
        "Start the server with its study file: boca mcp study.toml --write."
    )
