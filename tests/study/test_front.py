"""Recommendations of a front, and several objectives in every storage, file and description."""

from __future__ import annotations

import json

import pytest

from boca import AtLeast, Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import BocaError, InvalidInput
from boca.study import trial_io
from boca.study.spec import describe, differences, problem_of

SPACE, FIDELITY = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0))
OUTCOMES = {"loss": "minimize", "speed": "maximize", "recall": AtLeast(0.5)}


def problem(**more):
    return Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], **({"outcomes": OUTCOMES} | more))


def told(x, z):
    off = 0.1 * (1.0 - z["n"])
    return {"loss": x["a"] + x["b"] + off, "speed": x["a"] - x["b"] - off, "recall": 1.0 - 0.6 * x["b"]}


def filled(of=None, count=12, **more):
    opt = Optimizer(of or problem(), budget=targets(50), strategy=RandomSearch(), seed=0, **more)
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, told(trial.x, trial.z), noise={"loss": 1e-4})
    return opt


def test_recommendations_are_points_that_none_is_expected_to_dominate():
    opt = filled()
    found = opt.recommend()
    assert found
    for one in found:
        assert set(one.mean) == set(one.std) == {"loss", "speed"}
        assert one.verified
        assert one.feasible > 0.5
        assert not any(
            other.mean["loss"] < one.mean["loss"] - 1e-9 and other.mean["speed"] > one.mean["speed"] + 1e-9
            for other in found
        )
        assert "loss" in one.words
        assert "run at the target" in one.words
    assert [one.mean["loss"] for one in found] == sorted(one.mean["loss"] for one in found)
    assert "recommended" in found[0]._repr_html_()


def test_before_the_first_result_there_is_none():
    assert Optimizer(problem(), budget=targets(5), seed=0).recommend() == []


def test_a_deterministic_study_recommends_what_was_seen():
    of = problem(deterministic=True)
    opt = filled(of)
    found = opt.recommend()
    seen = {(t.outcomes["loss"], t.outcomes["speed"]) for t in opt.front}
    assert {(one.mean["loss"], one.mean["speed"]) for one in found} <= seen
    assert all(one.std == {"loss": 0.0, "speed": 0.0} for one in found)


def test_an_infeasible_point_is_not_recommended():
    opt = filled(problem(outcomes=OUTCOMES | {"recall": AtLeast(0.99)}))
    assert all(one.feasible >= 0.5 for one in opt.recommend())


def test_a_study_is_stored_and_resumed(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = filled(storage=url, name="s")
    again = Optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=0, storage=url, name="s")
    assert [t.to_json() for t in again.history] == [t.to_json() for t in first.history]
    assert again.history[0].value is None
    assert again.history[0].noises == {"loss": 1e-4}
    assert [t.number for t in again.front] == [t.number for t in first.front]
    turned = {"speed": "maximize", "loss": "minimize", "recall": AtLeast(0.5)}
    Optimizer(problem(outcomes=turned), budget=targets(50), strategy=RandomSearch(), storage=url, name="s")
    other = problem(outcomes=OUTCOMES | {"speed": "minimize"})
    with pytest.raises(BocaError, match="outcomes was"):
        Optimizer(other, budget=targets(50), strategy=RandomSearch(), storage=url, name="s")


def test_every_storage_keeps_objectives(place):
    opt = place.optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=0)
    for _ in range(3):
        trial = opt.ask()
        opt.tell(trial, told(trial.x, trial.z))
    again = place.optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=0)
    assert [t.outcomes for t in again.history] == [told(t.x, t.z) for t in opt.history]
    assert [t.value for t in again.history] == [None] * 3
    assert [t.number for t in again.front] == [t.number for t in opt.front]


def test_a_description_is_read_back():
    of = problem(reference={"loss": 3.0})
    described = json.loads(json.dumps(describe(of, RandomSearch(), seed=0, limit=None)))
    back = problem_of(described)
    assert dict(back.objectives) == dict(of.objectives)
    assert (back.subject_to, back.reference, back.direction) == (of.subject_to, of.reference, None)
    other = describe(problem(), RandomSearch(), seed=0, limit=None)
    assert differences(described, other) == {"reference": 'reference was {"loss": 3.0} and is absent'}
    plain = describe(Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"]), RandomSearch(), seed=0, limit=None)
    assert "outcomes" not in plain
    assert set(differences(plain, other)) == {"direction", "outcomes", "subject_to"}


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_results_go_to_a_file_and_back(tmp_path, format):
    opt = filled()
    path = tmp_path / f"results.{format}"
    path.write_text(trial_io.text(opt.history, format))
    other = Optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=1)
    other.add_all(path)
    assert [t.outcomes for t in other.history] == [t.outcomes for t in opt.history]
    assert [t.noises for t in other.history] == [t.noises for t in opt.history]
    assert len(other.front) == len(opt.front)


def test_tables_go_to_pandas_and_back():
    opt = filled()
    table = opt.history.to_dataframe()
    assert table["value"].isna().all()
    assert {"outcome.loss", "outcome.speed", "outcome.recall", "noise.loss"} <= set(table)
    other = Optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=1)
    other.add_all(table)
    assert [t.outcomes for t in other.history] == [t.outcomes for t in opt.history]
    bare = table[["x.a", "x.b", "z.n", "outcome.loss", "outcome.speed"]].rename(columns=lambda c: c.split(".")[1])
    third = Optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=1)
    third.add_all(bare)
    assert third.history[0].outcomes == {k: opt.history[0].outcomes[k] for k in ("loss", "speed")}
    with pytest.raises(InvalidInput, match="none of the outcomes"):
        third.add_all(table[["x.a", "x.b", "z.n"]])


def test_a_lone_number_is_refused_and_changes_nothing():
    opt = Optimizer(problem(), budget=targets(5), strategy=RandomSearch(), seed=0)
    trial = opt.ask()
    with pytest.raises(InvalidInput, match=r"mapping with the objectives \['loss', 'speed'\].*Nothing was changed"):
        opt.tell(trial, 1.0)
    assert opt.history[0].state == "running"
