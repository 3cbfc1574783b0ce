"""Rows as trials: observations in their order, and damage that is named."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from boca.domain.errors import InvalidInput
from boca.domain.observation import Observation
from boca.domain.reasons import Reasons
from boca.study.storage import schema
from boca.study.storage.rows import LAYOUTS, trials_of

TRIAL = {
    "study": 1, "event": 2, "x": {"a": 0.5}, "planned": {"n": 4}, "cost": 1.0, "phase": "start",
    "why": {"reason": "Because."}, "overhead": 0.0, "asked": 1, "seen": 0, "pending": [], "attempt": 0, "token": "t",
}  # fmt: skip
WATCHED = [
    {"position": 0, "z": {"n": 1}, "value": 0.1, "told": 2, "seconds": 1.0},
    {"position": 1, "z": {"n": 2}, "value": 0.2, "told": 3, "seconds": 2.0, "noise": 0.5},
    {"position": 2, "z": None, "value": 0.3, "told": 4},
]


@pytest.fixture
def connection():
    engine = sa.create_engine("sqlite://")
    with engine.begin() as open_one:
        schema.create(open_one)
        open_one.execute(schema.studies.insert().values(id=1, name="one", spec={}, created=0.0, trials=0, event=0))
        yield open_one
    engine.dispose()


def stored(connection, *trials):
    """Store trials, each with its observations."""
    for number, (state, observations, changes) in enumerate(trials):
        connection.execute(schema.trials.insert().values(**TRIAL | {"number": number, "state": state} | changes))
        for row in observations:
            connection.execute(schema.observations.insert().values(study=1, trial=number, **row))


def read(connection):
    rows = connection.execute(LAYOUTS[schema.VERSION].select()).all()
    return [trial for _, trial in trials_of(rows, lambda row: Reasons(row.phase, dict))]


def test_observations_come_in_order_each_with_its_trial(connection):
    stored(connection, ("complete", WATCHED[::-1], {}), ("running", [], {}), ("complete", WATCHED[2:], {}))
    first, second, third = read(connection)
    assert [o.value for o in first.observations] == [0.1, 0.2, 0.3]
    assert first.observations[1] == Observation({"n": 2}, 0.2, 0.5, 2.0, "value", 3)
    assert (first.value, first.z) == (0.3, {"n": 4})  # where it was planned
    assert (second.observations, second.value, second.z) == ((), None, {"n": 4})
    assert len(third.observations) == 1


def test_z_is_where_the_last_observation_lies_and_planned_is_what_was_handed_out(connection):
    stored(connection, ("complete", WATCHED[:2], {}))
    (trial,) = read(connection)
    assert (trial.z, trial.planned, trial.value, trial.noise) == ({"n": 2}, {"n": 4}, 0.2, 0.5)


@pytest.mark.parametrize(
    ("state", "observations", "changes", "words"),
    [
        ("complete", [], {}, "value of trial 0 is none"),
        ("running", [], {"start": "a"}, "start of trial 0 is 'a'"),
        ("running", [], {"events": [3]}, "events of trial 0"),
        ("complete", [WATCHED[0] | {"z": [1]}], {}, r"z of trial 0 is '\[1\]'"),
        ("running", [], {"x": [1]}, "x of trial 0"),
        ("running", [], {"pending": {"a": 1}}, "pending of trial 0"),
    ],
)
def test_what_the_library_never_wrote_is_refused_by_name(connection, state, observations, changes, words):
    stored(connection, (state, observations, changes))
    with pytest.raises(InvalidInput, match=words):
        read(connection)
