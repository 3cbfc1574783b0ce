"""What the report says of costs, and its warnings, which appear exactly when they should."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import boca
from boca import Choice, Float, History, Int, Space, report
from boca.domain.reasons import Reasons
from boca.plots.study import stored, study
from boca.report import sentences
from boca.study.spec import describe
from report.made import PROBLEM, Page, healthy, kept, made, of, run
from support.strategies import EARLIER


def test_a_study_of_another_version_has_a_report_that_says_so():
    def seen(change):
        described = describe(PROBLEM, EARLIER, seed=0, limit=None)
        change(described["strategy"])
        return stored("s", described, History(healthy()))

    def newer(strategy):
        strategy["surrogate"] |= {"new_field": 1}
        strategy["another"] = 2

    assert (
        "it ignores surrogate.new_field, another, which this version does not know"
        in sentences.warnings(seen(newer))[0]
    )
    assert "another" in Page(report.html(seen(newer))).sections["searched"]
    older = seen(lambda strategy: strategy["surrogate"].pop("guard"))
    assert sentences.warnings(older) == [
        "Another version of boca made the study, so the model is not quite the same: it uses this version's "
        "surrogate.guard, which the other did not have."
    ]
    assert older.recommendation is not None
    other = seen(lambda strategy: strategy["surrogate"].update(kernel="of tomorrow"))
    assert other.model is None
    assert "of tomorrow" in other.why_no_model
    assert sentences.warnings(seen(lambda strategy: None)) == []


def test_costs_are_what_was_spent_and_no_claim_of_what_was_saved():
    trials = [made(k, z={"n": 1.0 + k}, cost=3.0 * (1.0 + k)) for k in range(6)]
    problem = boca.Problem(PROBLEM.space, PROBLEM.fidelity, cost=lambda z: 3.0 * z["n"])
    assert sentences.costs(kept(of(trials, problem))) == ("6 trials cost 63 cost units.")


def test_a_learned_cost_is_in_seconds():
    trials = [made(k, z={"n": 1.0 + k}, cost=3.0 * (1.0 + k), seconds=3.0 * (1.0 + k)) for k in range(6)]
    seen = kept(of(trials, boca.Problem(PROBLEM.space, PROBLEM.fidelity)))
    assert sentences.costs(seen) == "6 trials cost 63 s."


def test_seconds_are_called_seconds():
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Int(1, 9)))
    opt = boca.Optimizer(problem, budget=boca.seconds(100), strategy=boca.RandomSearch(), seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0, seconds=2.0)
    said = sentences.costs(study(opt))
    assert f"3 trials cost {opt.spent:.3g} of 100 s." in said


def test_without_fidelities_nothing_is_said_of_them():
    opt = boca.Optimizer(
        boca.Problem(Space(a=Float(0, 1))), budget=boca.targets(5), strategy=boca.RandomSearch(), seed=0
    )
    run(opt, 5, lambda t: t.x["a"])
    said = sentences.costs(study(opt))
    assert said == "5 trials cost 5 of 5 target evaluations."
    assert sentences.warnings(study(opt)) == []


def test_a_healthy_study_has_no_warnings():
    assert sentences.warnings(of(healthy())) == []


@pytest.mark.parametrize(
    ("trials", "says"),
    [
        ([made(k, z={"n": 2.0 + k % 3}) for k in range(8)], ["at the target"]),
        (
            [made(k) for k in range(8)],
            ["The fidelity n never moved: all 8 trials had 10, which is the target"],
        ),
        (
            [made(k, z={"n": 3.0}) for k in range(8)],
            ["at the target", "never moved: all 8 trials had 3, which is not"],
        ),
        ([made(k) for k in range(3)], []),  # too few to say so
        (
            [*healthy(), made(8, state="failed", value=None, reason="it broke")],
            ["1 of 9 trials failed, the last with: it broke"],
        ),
        ([*healthy(), made(8, state="running", value=None, told=None)], ["1 trial is still running"]),
        (
            [made(k, z=t.z, h=(10.0, 1.0)) for k, t in enumerate(healthy())],
            ["The length scale of a is at its upper bound"],
        ),
        (
            [made(k, z=t.z, h=(0.01, 1.0)) for k, t in enumerate(healthy())],
            ["The length scale of a is at its lower bound"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 10.0)) for k, t in enumerate(healthy())],
            ["The length scale of the fidelity n is at its upper"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 0.01)) for k, t in enumerate(healthy())],
            ["The length scale of the fidelity n is at its lower", "The lower fidelities say little about the target"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 0.2)) for k, t in enumerate(healthy())],
            ["the median information gap of 4 trials below it is 1.000"],
        ),
        ([made(k, z=t.z, h=(0.5, 0.5)) for k, t in enumerate(healthy())], []),
    ],
)
def test_warnings_appear_exactly_when_they_should(trials, says):
    found = sentences.warnings(of(trials))
    assert len(found) == len(says), found
    for warning, part in zip(found, says, strict=True):
        assert part in warning


def test_a_strength_of_zero_is_no_length_scale():
    trials = []
    for trial in healthy():
        theta = [0.0, math.log(0.5), 0.0, math.log(0.01), 0.0, 0.0]  # neither jump nor trend
        fit = trial.why["fit"] | {"use": {"kind": "extended", "theta": theta, "nats": 3.0}}
        trials.append(replace(trial, reasons=Reasons.of(trial.why | {"fit": fit})))
    seen = of(trials)
    assert seen.model.encoding.is_extended
    assert sentences.warnings(seen) == []


def test_what_the_optimizer_says_is_said_once():
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Int(1, 9)), cost=lambda z: z["n"])
    opt = boca.Optimizer(problem, budget=boca.targets(3), strategy=boca.RandomSearch(), seed=0)
    opt.fail(opt.ask(), "it broke")
    assert report.warnings(opt) == list(opt.warnings)
    assert sum("it broke" in warning for warning in sentences.warnings(study(opt))) == 1


def test_a_budget_in_targets_is_shown_with_the_seconds_of_evaluation():
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Int(1, 9)), cost=lambda z: 100.0 * z["n"])
    opt = boca.Optimizer(problem, budget=boca.targets(3), strategy=boca.RandomSearch(), seed=0)
    for _ in range(2):
        opt.tell(opt.ask(), 1.0, seconds=1.25)
    assert f"2 trials cost {opt.spent / 900:.3g} of 3 target evaluations (2.5 s of evaluation)." in sentences.costs(
        study(opt)
    )


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (Float(0.001, 1, log=True), "a number from 0.001 to 1, on a log scale"),
        (Int(1, 3), "an integer from 1 to 3"),
        (Choice(["rbf", None, 3]), "one of rbf, None, 3"),
    ],
)
def test_the_range_of_every_kind_of_parameter_has_words(parameter, words):
    assert sentences.kind(parameter) == words


def test_costs_have_three_digits():
    trials = [made(k, cost=1.23456789) for k in range(3)]
    assert "1.23456" not in sentences.costs(of(trials))
