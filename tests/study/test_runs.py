"""Runs: reports, stops and continuing, through the optimizer, on every storage."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput, InvalidTrial
from boca.study import runs, trial_io
from boca.study.storage import Lease, Owner
from support import places

FIDELITY = {"n": boca.Int(10, 100), "epochs": boca.Steps(2, 20)}


def cost(z):
    return z["n"] * (3 + z["epochs"])


def problem(**more):
    return boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(**FIDELITY), **{"cost": cost} | more)


@dataclass(frozen=True)
class Scripted:
    """Suggest what a script says, and stop where it says so."""

    script: tuple = ()
    stop_at: int | None = None
    said: list = field(default_factory=list)

    def suggest(self, problem, history, budget, rng):
        x, z, continues = self.script[len(history)]
        return boca.Suggestion(dict(x), dict(z), {"reason": "The script says so.", "phase": "start"}, continues)

    def keep_going(self, problem, history, trial, rng):
        self.said.append((trial.reached, rng.random()))
        return self.stop_at is None or boca.Verdict(trial.reached < self.stop_at, {"reason": "Enough."})


@pytest.fixture(params=["memory", "sqlite"])
def place(request, tmp_path):
    with places.on(request.param, tmp_path) as here:
        yield here


def study(place, *script, budget=None, stop_at=None, **more):
    script = script or (({"a": 0.5}, {"n": 50, "epochs": 20}, None),) * 9
    strategy = Scripted(tuple(script), stop_at)
    return place.optimizer(problem(**more), budget=budget, strategy=strategy, seed=3), strategy


def at(step, n=50):
    return {"n": n, "epochs": step}


def told(trial):
    return [(o.z["epochs"], o.value) for o in trial.observations]


# Reports -------------------------------------------------------------------------------


def test_reports_are_observations_at_their_steps_and_the_last_one_is_the_value(place):
    opt, _ = study(place)
    trial = opt.ask()
    assert opt.report(trial, 1, 0.1)
    assert opt.report(trial, 2, 0.2)
    assert opt.report(trial, 7, 0.7, noise=0.01)
    running = opt.running[0]
    assert (running.z, running.value, running.reached) == (at(20), None, 7)
    assert told(running) == [(1, 0.1), (2, 0.2), (7, 0.7)]
    done = opt.tell(trial, None)
    assert (done.state, done.z, done.value, done.noise, done.planned) == ("complete", at(7), 0.7, 0.01, at(20))
    assert done.cost == cost(at(7)) == opt.spent
    assert [o.told for o in done.observations] == [2, 3, 4]
    assert done.told == 5
    assert opt.history.curve(opt.problem, done) == [(1, 0.1), (2, 0.2), (7, 0.7)]
    assert opt.best is None


def test_a_number_is_the_report_at_z(place):
    opt, _ = study(place)
    trial = opt.ask()
    opt.report(trial, 5, 0.5)
    done = opt.tell(trial, 0.9)
    assert (done.z, done.value, done.cost) == (at(20), 0.9, cost(at(20)))
    assert told(done) == [(5, 0.5), (20, 0.9)]


def test_after_the_last_step_a_number_repeats_the_report(place, caplog):
    opt, _ = study(place)
    trial = opt.ask()
    assert not opt.report(trial, 20, 0.9)  # there is nowhere to go on to
    done = opt.tell(trial, 0.9 + 1e-15)
    assert told(done) == [(20, 0.9)]
    assert not done.events
    again = opt.ask()
    opt.report(again, 20, 0.9)
    other = opt.tell(again, 0.8)
    assert told(other) == [(20, 0.9)]
    assert [e.kind for e in other.events] == ["differs"]


@pytest.mark.parametrize(
    ("step", "value", "words"),
    [
        (5, 0.1, r"step 5, and reported step 5 before"),
        (4, 0.1, r"step 4, and reported step 5 before"),
        (21, 0.1, r"step 21, and was handed out to end at epochs=20"),
        (6.5, 0.1, r"step must be an integer; got 6.5"),
        (6, math.nan, r"step 6: .*got nan"),
        (6, "good", r"step 6: .*got 'good'"),
    ],
)
def test_a_wrong_report_names_the_step_and_loses_nothing(place, step, value, words):
    opt, _ = study(place)
    trial = opt.ask()
    opt.report(trial, 5, 0.5)
    with pytest.raises(InvalidInput, match=words):
        opt.report(trial, step, value)
    assert told(opt.running[0]) == [(5, 0.5)]
    assert opt.report(trial, 6, 0.6)
    assert opt.tell(trial, None).value == 0.6


def test_a_report_needs_steps_and_a_running_trial(place):
    opt = boca.Optimizer(boca.Problem(boca.Space(a=(0.0, 1.0))), budget=None, strategy=boca.RandomSearch())
    trial = opt.ask()
    with pytest.raises(InvalidInput, match=r"no fidelity of this problem is Steps"):
        opt.report(trial, 1, 0.5)
    with pytest.raises(InvalidInput, match=r"opt\.fail"):
        opt.tell(trial, None)
    opt, _ = study(place)
    trial = opt.ask()
    opt.tell(trial, 0.3)
    with pytest.raises(InvalidTrial, match="already has its result"):
        opt.report(trial, 1, 0.5)


def test_a_failure_keeps_the_reports_and_is_charged_for_them(place):
    opt, _ = study(place)
    trial = opt.ask()
    opt.report(trial, 5, 0.5)
    failed = opt.fail(trial, "It diverged.")
    assert (failed.state, failed.value, failed.z, failed.cost) == ("failed", None, at(5), cost(at(5)))
    assert told(failed) == [(5, 0.5)]
    assert np.isnan(opt.history.scores("maximize")).all()


def test_a_report_does_not_invalidate_a_choice(place):
    opt, _ = study(place)
    trial = opt.ask()
    before = opt.storage.read().event
    opt.report(trial, 5, 0.5)
    draft = opt.ask(check=lambda draft: opt.report(trial, 6, 0.6))
    assert draft.seen == before + 1
    assert draft.number == 1
    assert draft.pending == (0,)
    read = opt.history.read_by(draft)
    assert [told(t) for t in read] == [[(5, 0.5)]]
    assert read[0].state == "running"


# Stops ---------------------------------------------------------------------------------


def test_a_stop_is_stored_with_its_reasons_and_decided_again_in_a_replay(place):
    opt, strategy = study(place, stop_at=6)
    trial = opt.ask()
    said = [opt.report(trial, step, 0.1 * step) for step in (1, 2, 4, 6)]
    assert said == [True, True, True, False]
    assert list(dict.fromkeys(step for step, _ in strategy.said)) == [
        2,
        4,
        6,
    ]  # nothing is decided below the lowest step
    assert not opt.report(trial, 7, 0.7)  # it had not noticed
    done = opt.tell(trial, 0.7)
    assert (done.state, done.z, done.cost) == ("complete", at(7), cost(at(7)))
    assert (done.stop.step, done.stop.why) == (6, {"reason": "Enough."})
    read = opt.history.as_of(done.stop.seen)
    assert (read[0].state, read[0].reached, told(read[0])) == ("running", 6, told(done)[:4])
    found = runs.decided_again([strategy], opt.problem, opt.history, done, opt.seed)
    assert found == boca.Verdict(False, done.stop.why)
    assert strategy.said[-1] == strategy.said[-2]


def test_the_rule_of_the_study_is_asked_if_the_strategy_has_none():
    with pytest.raises(InvalidInput, match="stop_runs is 3"):
        boca.Optimizer(problem(), budget=None, stop_runs=3)
    opt = boca.Optimizer(problem(), budget=None, strategy=boca.RandomSearch(), stop_runs=Scripted(stop_at=4), seed=0)
    trial = opt.ask()
    assert opt.report(trial, 3, 0.1)
    assert not opt.report(trial, 4, 0.1)


# Continuing ----------------------------------------------------------------------------


def test_a_continuation_has_a_number_and_a_cost_of_its_own(place):
    x = {"a": 0.25}
    opt, _ = study(place, (x, at(5), None), (x, at(12), 0), (x, at(20), 1), budget=boca.targets(1))
    first = opt.ask()
    assert (first.start, first.checkpoint, first.continues) == (0, None, None)
    opt.report(first, 5, 0.5)
    opt.saved(first, 5, "here/0")
    opt.tell(first, None)
    second = opt.ask()
    assert (second.number, second.start, second.checkpoint, second.continues) == (1, 5, "here/0", 0)
    assert second.cost == cost(at(12)) - cost(at(5)) == opt.budget.reserved
    with pytest.raises(InvalidInput, match=r"step 5, and continues from step 5"):
        opt.report(second, 5, 0.5)
    opt.report(second, 10, 0.6)
    opt.saved(second, 9, "here/1")
    opt.tell(second, 0.7)
    third = opt.ask()
    assert (third.start, third.checkpoint, third.continues) == (9, "here/1", 1)
    assert opt.report(third, 10, 0.6)  # again: the checkpoint is older
    assert opt.report(third, 12, 0.75)  # again, with another value: the first one stays
    done = opt.tell(third, 0.9)
    assert [e.kind for e in done.events] == ["continued", "differs"]
    history = opt.history
    assert [t.number for t in history.chain(done)] == [0, 1, 2]
    assert history.curve(opt.problem, done) == [(5, 0.5), (10, 0.6), (12, 0.7), (20, 0.9)]
    assert opt.spent == cost(at(20)) + 3 * 50  # of steps 10 to 12 twice
    assert opt.best is None  # the target has n = 100


def test_what_cannot_be_continued_is_refused(place):
    x = {"a": 0.25}
    opt, _ = study(place, (x, at(5), None), (x, at(12), 0))
    trial = opt.ask()
    opt.saved(trial, 5, "here")
    opt.tell(trial, 0.5)
    opt.drop(0)
    with pytest.raises(InvalidInput, match="has the checkpoint None"):
        opt.ask()
    for script, words in (
        (({"a": 0.3}, at(12), 0), "Only 'epochs' may differ"),
        ((x, at(12, 60), 0), "Only 'epochs' may differ"),
        ((x, at(5), 0), "must be beyond both"),
        ((x, at(9), 7), "this study has 1 trials"),
    ):
        opt = boca.Optimizer(problem(), budget=None, strategy=Scripted(((x, at(5), None), script)), seed=0)
        trial = opt.ask()
        opt.saved(trial, 5, "here")
        opt.tell(trial, 0.5)
        with pytest.raises(InvalidInput, match=words):
            opt.ask()


def test_no_two_running_trials_share_x_and_the_other_fidelities(place):
    opt = boca.Optimizer(
        boca.Problem(boca.Space(a=boca.Choice(["one", "two"])), boca.Space(**FIDELITY), cost=cost),
        budget=None,
        strategy=boca.RandomSearch(),
        seed=1,
    )
    running = [opt.ask() for _ in range(6)]
    assert len({(t.x["a"], t.planned["n"]) for t in running}) == 6


def test_a_trial_with_a_run_survives_json(place):
    opt, _ = study(place, stop_at=4)
    trial = opt.ask()
    opt.saved(trial, 3, "here")
    opt.report(trial, 4, 0.5)
    done = opt.tell(trial, None)
    assert boca.Trial.from_json(json.loads(json.dumps(done.to_json()))) == done


# Imports and exports --------------------------------------------------------------------------------------------------


def test_a_curve_is_imported_once(place):
    opt, _ = study(place)
    curve = {1: 0.1, 5: 0.5, 20: 0.9}
    first = opt.add({"a": 0.25}, {"n": 50}, curve, cost=7.0, noise=0.01)
    assert (first.state, first.z, first.value, first.noise, first.cost, first.added) == (
        "complete", at(20), 0.9, 0.01, 7.0, True,
    )  # fmt: skip
    assert told(first) == [(1, 0.1), (5, 0.5), (20, 0.9)]
    assert len({o.told for o in first.observations}) == 1
    again = opt.add({"a": 0.25}, {"n": 50}, curve, noise=0.01)
    assert (again.number, len(opt.history)) == (0, 1)
    opt.add({"a": 0.25}, {"n": 50}, {**curve, 6: 0.6}, noise=0.01)
    assert len(opt.history) == 2
    assert opt.add({"a": 0.25}, None, {3: 0.5}).cost == cost(at(3, 100))
    with pytest.raises(InvalidInput, match=r"21"):
        opt.add({"a": 0.25}, None, {21: 0.5})
    with pytest.raises(InvalidInput, match="no fidelity of this problem is Steps"):
        boca.Optimizer(boca.Problem(boca.Space(a=(0.0, 1.0))), budget=None).add({"a": 0.5}, None, {3: 0.5})


@pytest.mark.parametrize("format", ["csv", "jsonl", "table", "history"])
def test_an_export_has_the_reports_and_can_be_imported_again(place, format, tmp_path):
    x = {"a": 0.25}
    opt, _ = study(place, (x, at(5), None), (x, at(12), 0), (x, at(20), None), ({"a": 0.75}, at(20), None))
    first = opt.ask()
    opt.report(first, 1, 0.1)
    opt.report(first, 5, 0.5, noise=0.01)
    opt.saved(first, 5, "here")
    opt.tell(first, None)
    second = opt.ask()
    opt.report(second, 8, 0.6)
    opt.tell(second, 0.7)
    failed = opt.ask()
    opt.report(failed, 4, 0.4)
    opt.fail(failed, "It diverged.")
    opt.report(opt.ask(), 3, 0.3)
    history = opt.history
    table = history.to_dataframe(observations=True)
    assert table["z.epochs"].tolist() == [1, 5, 8, 12, 4, 3]
    assert table["number"].tolist() == [0, 0, 1, 1, 2, 3]
    assert table["value"].tolist() == [0.1, 0.5, 0.6, 0.7, 0.4, 0.3]
    assert table["state"].tolist() == ["complete"] * 4 + ["failed", "running"]
    assert math.isclose(np.nansum(table["cost"]), opt.spent + history[3].cost)
    assert len(history.to_dataframe()) == 4
    source = {"table": table, "history": history}.get(format)
    if source is None:
        source = tmp_path / f"trials.{format}"
        source.write_text(trial_io.text(history, format))
        if format == "jsonl":
            assert len(source.read_text().splitlines()) == 4
    other = boca.Optimizer(problem(), budget=None, seed=0)
    made = other.add_all(source)
    assert [(told(t), t.value, t.cost) for t in made] == [
        ([(1, 0.1), (5, 0.5)], 0.5, history[0].cost),
        ([(8, 0.6), (12, 0.7)], 0.7, history[1].cost),
    ]
    assert made[0].noise == 0.01
    other.add_all(source)
    assert len(other.history) == 2


# After a crash --------------------------------------------------------------------------------------------------------


def test_after_a_crash_steps_that_are_reported_again_keep_their_first_value(place, caplog):
    opt, _ = study(place)
    lease = Lease(owner=dataclasses.replace(Owner.me(), started="in another life"))
    trial = opt.ask(lease=lease)
    for step in (3, 5, 7):
        opt.report(trial, step, 0.1 * step)
    opt.saved(trial, 4, "here")
    (again,) = opt.take_over(Lease())
    assert (again.start, again.checkpoint, again.attempt) == (4, "here", 1)
    with pytest.raises(InvalidTrial, match="attempt 1"):
        opt.report(trial, 8, 0.8)
    assert opt.report(again, 5, 0.5 + 1e-14)
    assert not caplog.records
    assert opt.report(again, 6, 0.6)
    assert opt.report(again, 7, 0.9)
    assert opt.report(again, 8, 0.8)
    assert "two values of step 7" in caplog.text
    done = opt.tell(again, None)
    assert [round(v, 9) for _, v in opt.history.curve(opt.problem, done)] == [0.3, 0.5, 0.6, 0.7, 0.8]
    assert [e.kind for e in done.events] == ["checkpoint", "again", "differs"]
    assert "Trial 0 told two values of one step" in " ".join(opt.warnings)
    assert done.cost == cost(at(8))  # the steps that were done again are no cost


def test_the_seconds_of_a_checkpoint_are_evaluation_and_what_came_after_it_is_overhead():
    measured = boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(**FIDELITY))
    opt = boca.Optimizer(measured, budget=None, strategy=Scripted((({"a": 0.5}, at(20), None),)), seed=0)
    lease = Lease()
    trial = opt.ask(lease=lease)
    stored = opt.storage.record(trial, runs.checkpoint(measured, trial, 8, "here", 3.0))
    before = stored.overhead
    again = opt.storage.retry(dataclasses.replace(trial, overhead=before + 5.0), lease)
    assert again.overhead == pytest.approx(before + 2.0)
    assert again.carried == 3.0
    done = opt.tell(again, 0.5, seconds=4.0)
    assert (done.seconds, done.cost) == (7.0, 7.0)
