"""What the tools answer."""

from __future__ import annotations

import json

import boca
from boca.agents import answers
from boca.agents.studies import Studies
from boca.plots.study import study

PROBLEM = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 10)), cost=lambda z: z["n"])


def made(**more):
    return boca.Optimizer(PROBLEM, budget=boca.targets(5), seed=0, strategy=boca.RandomSearch(), **more)


def test_a_study_without_results_is_described():
    status = answers.status(study(made()), queued=2)
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert status["queued"] == 2
    assert status["best"] == {"number": None, "words": "no trial is complete at the target"}
    assert answers.recommended(study(made()))["x"] is None
    assert answers.recommended(study(made()))["words"]


def test_trials_are_the_last_the_best_or_those_in_a_state():
    opt = made()
    for value in (1.0, 3.0, 2.0):
        opt.tell(opt.ask(), value)
    opt.fail(opt.ask(), "no")
    view = study(opt)

    def numbers(last=20, best=None, state=None):
        return [t["number"] for t in answers.history(view, last=last, best=best, state=state)["trials"]]

    assert numbers() == [0, 1, 2, 3]
    assert numbers(last=2) == [2, 3]
    assert numbers(best=2) == [1, 2]
    assert numbers(state="failed") == [3]
    failed = answers.history(view, last=1, best=None, state=None)["trials"][0]
    assert failed["failure"] == "no"
    assert "value" not in failed


def test_the_answer_on_one_trial_has_all_of_its_reasons():
    opt = made()
    trial = opt.tell(opt.ask(), 1.0, output="x" * 5000)
    answer = answers.why(trial, PROBLEM)
    assert answer["why"] == trial.why
    assert len(answer["output"]) == 2000


def test_a_study_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    from cli.studies import damage

    url = f"sqlite:///{tmp_path}/s.db"
    for name in ("good", "bowl"):
        opt = made(storage=url, name=name)
        opt.tell(opt.ask(), 1.0)
        opt.storage.close()
    damage(tmp_path / "s.db", "UPDATE boca_studies SET spec = '{}' WHERE name = 'bowl'")
    listed = {line["study"]: line for line in answers.listing(Studies([str(tmp_path / "s.db")]))}
    assert listed["good"]["complete"] == 1
    assert "damaged" in listed["bowl"]["note"]
