"""Outcomes, notes and variances as a user tells them, on every storage and through files."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import boca
from boca import AtLeast, AtMost, Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import InvalidInput
from boca.study import trial_io
from boca.study.spec import describe, differences, problem_of, remade
from boca.study.storage.reader import Reader

SPACE, FIDELITY = Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0))


def problem(**more):
    given = {"subject_to": {"latency": AtMost(20.0), "size": AtMost(3.0, at="any")}, "direction": "minimize"} | more
    return Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], **given)


def optimizer(of=None, **more):
    return Optimizer(of or problem(), **{"budget": targets(50), "strategy": RandomSearch(), "seed": 0} | more)


def told(opt, loss, latency, size=1.0, **more):
    return opt.tell(opt.ask(), {"loss": loss, "latency": latency, "size": size}, **more)


def test_an_infeasible_trial_is_complete_and_not_the_best():
    opt = optimizer()
    told(opt, 1.0, 19.0)
    told(opt, 0.1, 21.0)
    told(opt, 0.2, 19.0, 3.5)
    assert [t.state for t in opt.history] == ["complete"] * 3
    assert opt.best.number == 0
    assert opt.history[1].value == 0.1
    assert opt.history[1].outcomes == {"latency": 21.0, "size": 1.0}
    assert [o.outcome for o in opt.history[1].observations] == ["latency", "size", "value"]


def test_a_missing_outcome_is_not_known_to_be_feasible():
    opt = optimizer()
    told(opt, 0.1, None)
    assert opt.best is None
    told(opt, None, 10.0)
    assert opt.best is None
    assert (opt.history[1].value, opt.history[1].state) == (None, "complete")
    told(opt, 3.0, 10.0)
    assert opt.best.number == 2


@pytest.mark.parametrize(
    "wrong", [1.0, {"loss": 1.0}, {"loss": math.nan, "latency": 1.0, "size": 1.0}, {}, {"a": 1, "b": 2}]
)
def test_a_wrong_result_changes_nothing(wrong):
    opt = optimizer()
    trial = opt.ask()
    with pytest.raises(InvalidInput, match="Nothing was changed"):
        opt.tell(trial, wrong)
    assert opt.history[0].state == "running"
    opt.tell(trial, {"loss": 1.0, "latency": 1.0, "size": 1.0})


def test_variances_go_to_their_outcomes():
    opt = optimizer()
    trial = told(opt, 1.0, 19.0, noise={"loss": 0.25, "latency": 4.0})
    assert (trial.noise, trial.noises) == (0.25, {"latency": 4.0})


def test_notes_are_kept_and_weigh_nothing():
    plain, noted = optimizer(), optimizer()
    told(plain, 1.0, 2.0)
    told(noted, 1.0, 2.0, notes={"curve": np.array([1.0, 2.0]), "host": "n1"})
    assert noted.history[0].notes == {"curve": [1.0, 2.0], "host": "n1"}
    assert noted.ask().x == plain.ask().x
    copied = noted.history[0]
    copied.notes["host"] = "n2"
    assert noted.history[0].notes["host"] == "n1"


def test_notes_of_a_number_alone():
    opt = Optimizer(Problem(SPACE), budget=None, seed=0)
    assert opt.tell(opt.ask(), 2.5, notes={"epochs": 7}).notes == {"epochs": 7}
    named = Optimizer(Problem(SPACE, objective="loss"), budget=None, seed=0)
    assert named.add({"a": 0.5}, None, {"loss": 1.0, "epochs": 3}).notes == {"epochs": 3}


def test_a_database_keeps_all_of_it(place):
    opt = place.optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=0)
    told(opt, 0.1, 21.0, notes={"host": "n1", "curve": [1, 2]}, noise={"latency": 0.5})
    told(opt, 0.2, None)
    told(opt, None, 3.0)
    again = place.optimizer(problem(), budget=targets(50), strategy=RandomSearch(), seed=0)
    assert [t.to_json() for t in again.history] == [t.to_json() for t in opt.history]
    assert again.history[0].notes == {"host": "n1", "curve": [1, 2]}
    assert again.history[0].noises == {"latency": 0.5}
    assert again.ask().number == 3


def test_a_reader_sees_limits_outcomes_and_notes(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    opt = optimizer(storage=url)
    told(opt, 0.1, 21.0, notes={"host": "n1"})
    told(opt, 0.3, 20.0)
    reader = Reader(url)
    stored = reader.study("study")
    assert stored.problem.subject_to == opt.problem.subject_to
    assert stored.history.best(stored.problem).number == 1
    assert stored.history[0].notes == reader.heavy(stored.row, 0)["notes"] == {"host": "n1"}


def test_a_study_with_limits_differs_from_one_without():
    made = {"strategy": boca.Boca(), "seed": 1}

    def described(**more):
        of = problem(**more)
        return describe(of, made["strategy"], seed=1, limit=None)

    bare, limited = described(subject_to=None), described()
    assert "subject_to" not in bare
    for one, other in ((bare, limited), (limited, bare), (limited, described(subject_to={"latency": AtMost(21.0)}))):
        assert list(differences(one, other)) == ["subject_to"]
    order = {"size": AtMost(3.0, at="any"), "latency": AtMost(20.0)}
    assert differences(limited, described(subject_to=order)) == {}
    named = described(objective="loss")
    assert list(differences(limited, named)) == ["objective"]
    again = problem_of(json.loads(json.dumps(named)))
    assert (again.subject_to, again.objective) == (problem().subject_to, "loss")
    assert problem_of({**described(subject_to={"recall": AtLeast(0.9)})}).subject_to == {"recall": AtLeast(0.9)}


def test_a_resumed_study_must_have_the_same_limits(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    optimizer(storage=url)
    for other in (problem(subject_to=None), problem(subject_to={"latency": AtMost(5.0)})):
        with pytest.raises(InvalidInput, match="subject_to was"):
            optimizer(other, storage=url)


def test_a_field_that_is_off_is_what_older_studies_have():
    spec = describe(Problem(SPACE), boca.Boca(), seed=0, limit=None)
    settings = spec["strategy"]
    older = {name: value for name, value in settings.items() if name != "success"}
    assert differences(spec | {"strategy": older}, spec) == {}
    assert "fields" in differences(spec | {"strategy": older}, spec | {"strategy": settings | {"success": True}})
    assert remade(older) == boca.Boca()


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_files_give_back_what_was_written(tmp_path, format):
    opt = optimizer()
    told(opt, 0.1, 21.0, notes={"host": "n1"}, noise={"loss": 0.5, "latency": 0.25})
    told(opt, None, 3.0)
    told(opt, 0.5, None)
    file = tmp_path / f"trials.{format}"
    file.write_text(trial_io.text(opt.history, format))
    for source in (file, opt.history):
        other = optimizer()
        other.add_all(source)
        for old, new in zip(opt.history, other.history, strict=True):
            assert (new.x, new.value, new.outcomes, new.noise, new.noises) == (
                *(old.x, old.value, old.outcomes, old.noise, old.noises),
            )
            assert dict(new.notes) == dict(old.notes)


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_a_second_import_of_outcomes_changes_nothing(tmp_path, place):
    source = optimizer()
    for latency in (21.0, 22.0, None):
        source.add({"a": 0.5}, None, {"loss": None if latency else 0.1, "latency": latency}, notes={"host": "n1"})
    opt = optimizer(storage=f"sqlite:///{tmp_path}/s.db" if place == "sqlite" else None, name="s")
    first = opt.add_all(source.history)
    assert [t.outcomes for t in first] == [{"latency": 21.0}, {"latency": 22.0}, {}]
    assert [t.number for t in opt.add_all(source.history)] == [0, 1, 2]
    assert [(t.value, t.notes) for t in opt.history] == [(v, {"host": "n1"}) for v in (None, None, 0.1)]


def test_one_wrong_outcome_imports_nothing(tmp_path):
    file = tmp_path / "trials.jsonl"
    good = {"x": {"a": 0.5}, "value": 1.0, "outcomes": {"latency": 2.0}}
    wrong = good | {"outcomes": {"latency": "fast"}}
    file.write_text("\n".join(json.dumps(line) for line in (good, wrong)))
    opt = optimizer()
    with pytest.raises(InvalidInput, match=r"line 2 of trials.jsonl: outcome.latency is 'fast'"):
        opt.add_all(file)
    assert len(opt.history) == 0


def test_best_and_recommendation_heed_limits_and_constraints_together():
    space = Space(a=Float(0.0, 1.0)).where(lambda x: x["a"] <= 0.8, "a <= 0.8")
    opt = Optimizer(
        Problem(space, subject_to={"c": AtMost(0.7)}, deterministic=True), budget=None, strategy=RandomSearch(), seed=0
    )
    for a in (0.3, 0.5, 0.75, 0.95):
        opt.add({"a": a}, None, {"value": a, "c": 1.0 - a if a > 0.9 else a})
    assert opt.best.x == {"a": 0.5}
    advised = opt.recommend()
    assert (advised.x, advised.mean, advised.std, advised.verified, advised.feasible) == ({"a": 0.5}, 0.5, 0.0, True, 1)


def test_a_table_made_by_hand_may_use_plain_names(tmp_path):
    file = tmp_path / "trials.csv"
    file.write_text("a,n,loss,latency,size\n0.5,1.0,0.25,19,2\n0.6,0.5,0.3,,2\n")
    opt = optimizer(problem(objective="loss"))
    opt.add_all(file)
    assert [(t.value, t.outcomes) for t in opt.history] == [
        (0.25, {"latency": 19.0, "size": 2.0}),
        (0.3, {"size": 2.0}),
    ]


def test_an_outcome_without_a_limit_here_becomes_a_note():
    opt = optimizer()
    told(opt, 0.1, 21.0, 2.0)
    other = optimizer(problem(subject_to={"size": AtMost(3.0)}))
    other.add_all(opt.history)
    assert other.history[0].outcomes == {"size": 2.0}
    assert other.history[0].notes == {"latency": 21.0}


# The best under noise -------------------------------------------------------------------------------------------------


def lucky(noise):
    """A study whose luckiest value is impossible: f is at least 0."""
    opt = Optimizer(Problem(SPACE, direction="minimize"), budget=None, seed=0)
    for k, a in enumerate(np.linspace(0.0, 1.0, 21)):
        opt.add({"a": float(a)}, None, (a - 0.25) ** 2 + (0.001 if k % 2 else 0.0), noise=noise and 1e-6)
    opt.add({"a": 0.9}, None, -0.3, noise=noise)
    return opt


def test_with_variances_told_the_luckiest_value_is_not_the_best():
    opt = lucky(0.09)
    assert opt.best.x["a"] == pytest.approx(0.25, abs=0.051)
    assert opt.best.value == opt.history[opt.best.number].value >= 0.0
    assert lucky(None).best.value == -0.3


def test_without_a_variance_above_zero_values_decide():
    opt = Optimizer(Problem(SPACE, direction="minimize"), budget=None, seed=0)
    for a, value in ((0.1, 1.0), (0.5, -2.0)):
        opt.add({"a": a}, None, value, noise=0.0)
    assert opt.best.value == -2.0
