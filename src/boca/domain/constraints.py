"""Known constraints: which points of a space may be evaluated, decided by a function of the user.

Of a constraint, a study stores the words and a fingerprint: its answers at `FIXED_POINTS` points of the space.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput

if TYPE_CHECKING:
    from boca.domain.space import Space

FloatArray: TypeAlias = NDArray[np.float64]
Test: TypeAlias = Callable[[dict[str, Any]], bool]

FIXED_POINTS = 1024  # at which a constraint shows what it is
TRIES = 2**17  # for a point that satisfies every constraint
_BLOCK = 4096  # of these tries at a time


@dataclass(frozen=True)
class Constraint:
    """One constraint with its words; `test` is None where only the words are known."""

    test: Test | None
    words: str
    fingerprint: str

    @classmethod
    def checked(cls, test: object, words: object, space: Space) -> Constraint:
        """Return the constraint, after it answered at the fixed points and in every branch of the space."""
        return cls.of_answers(test, words, [space.from_unit(u) for u in shown_at(space)], space.names)

    @classmethod
    def of_answers(
        cls, test: object, words: object, points: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> Constraint:
        """Return the constraint with the fingerprint of its answers at some points of a space with these names."""
        if not callable(test):
            raise InvalidInput(
                f"A constraint must be a function of x; got {test!r}. "
                "Type space.where(lambda x: x['a'] <= 1, 'a <= 1')."
            )
        if not isinstance(words, str) or not words.strip():
            raise InvalidInput(
                f"A constraint must have words, which a study stores; got {words!r}. "
                "Type space.where(lambda x: x['a'] <= 1, 'a <= 1')."
            )
        made = cls(test, words, "")
        answers = [made.holds(point, names) for point in points]
        return cls(test, words, hashlib.sha256(np.packbits(answers).tobytes()).hexdigest()[:16])

    def holds(self, point: Mapping[str, Any], names: Sequence[str] = ()) -> bool:
        """Whether the constraint holds at a point; one whose function is not known does."""
        if self.test is None:
            return True
        try:
            answer = self.test(dict(point))
        except KeyError as error:
            name = error.args[0] if error.args else None
            if name in names:
                raise InvalidInput(
                    f"The constraint {self.words!r} reads {name!r}, which is inactive at {dict(point)!r}. "
                    f"It must return True there if it has nothing to say: type `{name!r} not in x or ...`."
                ) from error
            raise InvalidInput(_raised(self.words, point, error)) from error
        except Exception as error:
            raise InvalidInput(_raised(self.words, point, error)) from error
        if not isinstance(answer, bool | np.bool_):
            raise InvalidInput(
                f"The constraint {self.words!r} must return True or False; it returned {answer!r} at {dict(point)!r}. "
                "Return a comparison, such as x['a'] <= 1."
            )
        return bool(answer)


def _raised(words: str, point: Mapping[str, Any], error: Exception) -> str:
    return f"The constraint {words!r} must return True or False at every point; at {dict(point)!r} it raised {error!r}."


@cache
def fixed_points(d: int) -> FloatArray:  # (FIXED_POINTS, d)
    """Return points that are evenly spread over the unit cube, and always the same."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(d, scramble=False).random_base2(FIXED_POINTS.bit_length() - 1))


def shown_at(space: Space) -> FloatArray:  # (k, d)
    """Return the points at which a constraint shows what it is: the fixed ones, and one of every layout."""
    points = space.snap(fixed_points(len(space)))
    if not space.optional.any():
        return points
    layouts = np.vstack([branch.layouts for branch in space.branches])[:FIXED_POINTS]
    return np.vstack([points, space.snap(np.where(np.isnan(layouts), 0.5, layouts))])


def example_of(space: Space, given: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a point that satisfies every constraint, or refuse the space.

    Args:
        space: with all its constraints.
        given: the point that the user knows.
        before: the point that satisfied the earlier constraints.
    """
    if given is not None:
        point = space.validate(given, "example")
        violated = space.violated(point)
        if violated is not None:
            raise InvalidInput(
                f"example is {point!r}, where {violated.words!r} does not hold; it must satisfy every constraint. "
                "Give a point that does."
            )
        return point
    if before is not None and space.violated(before) is None:
        return dict(before)
    found = first_feasible(space, skip=0, tries=TRIES)
    if found is None:
        words = " and ".join(repr(constraint.words) for constraint in space.constraints)
        raise InvalidInput(
            f"No point that satisfies {words} was found in {TRIES:,} tries; a space must have one. "
            f"If you know one, type space.where(..., example={{{next(iter(space))!r}: ...}})."
        )
    return space.from_unit(found[1])


def first_feasible(
    space: Space, *, skip: int, tries: int, seed: int | None = None
) -> tuple[int, FloatArray] | None:  # -> index, (d,)
    """Return the first point of a Sobol sequence that satisfies every constraint, with its index; None if none does.

    Args:
        space: with its constraints.
        skip: the index at which to begin.
        tries: how many points to look at.
        seed: of the scrambling; None does not scramble.
    """
    from scipy.stats import qmc

    engine = qmc.Sobol(len(space), scramble=seed is not None, rng=np.random.default_rng(seed))
    if skip:
        engine.fast_forward(skip)
    block = 1
    while tries > 0:
        block = min(4 * block, _BLOCK, tries)
        U = space.snap(engine.random(block))
        for i, u in enumerate(U):
            if space.violated(space.from_unit(u)) is None:
                return skip + i, u
        skip, tries = skip + block, tries - block
    return None
