"""The tables: JSON without NaN, one version, and rows that go with their study."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from boca.domain.errors import StorageFailed
from boca.study.storage import schema


@pytest.fixture
def engine():
    made = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)

    @sa.event.listens_for(made, "connect")
    def enforce(connection, record):
        connection.execute("PRAGMA foreign_keys = ON")

    yield made
    made.dispose()


def test_json_keeps_every_digit_and_refuses_nan():
    column = schema.Json()
    value = {"a": 0.1 + 0.2, "b": [None, True]}
    stored = column.process_bind_param(value, None)
    assert column.process_result_value(stored, None) == value
    assert column.process_bind_param(schema.Dumped("{}"), None) == "{}"
    assert column.process_bind_param("{}", None) == '"{}"'  # a text that is no JSON yet
    with pytest.raises(ValueError, match="JSON compliant"):
        column.process_bind_param(float("nan"), None)
    with pytest.raises(StorageFailed, match="damaged"):
        column.process_result_value("{", None)


def test_the_version_is_one_number(engine):
    with engine.begin() as connection:
        assert schema.version_of(connection) is None
        schema.create(connection)
        assert schema.version_of(connection) == schema.VERSION
        connection.execute(schema.meta.insert().values(version=7))
        with pytest.raises(StorageFailed, match=rf"boca_meta holds \[{schema.VERSION}, 7\]"):
            schema.version_of(connection)


def test_trials_observations_and_queue_go_with_their_study(engine):
    with engine.begin() as connection:
        schema.create(connection)
        connection.execute(schema.studies.insert().values(id=1, name="one", spec={}, created=0.0, trials=1, event=2))
        trial = {"x": {}, "planned": {}, "cost": 1.0, "phase": "start", "why": {}, "overhead": 0.0, "asked": 1}
        trial |= {"seen": 0, "pending": [], "attempt": 0, "token": "t", "state": "complete", "event": 2}
        connection.execute(schema.trials.insert().values(study=1, number=0, **trial))
        connection.execute(schema.observations.insert().values(study=1, trial=0, position=0, value=1.0, told=2))
        connection.execute(schema.queue.insert().values(study=1, x={}, z={}, token="t"))
        connection.execute(schema.studies.delete())
        for table in (schema.trials, schema.observations, schema.queue):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0


def test_an_observation_needs_its_trial(engine):
    with engine.begin() as connection:
        schema.create(connection)
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(schema.observations.insert().values(study=1, trial=0, position=0, value=1.0, told=2))


def test_tables_of_a_newer_version_are_refused():
    schema.refuse_newer(schema.VERSION)
    with pytest.raises(StorageFailed, match=f"version {schema.VERSION + 1}, from a newer boca"):
        schema.refuse_newer(schema.VERSION + 1)
