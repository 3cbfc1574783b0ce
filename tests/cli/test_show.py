"""`boca show` fits the terminal, whatever the study has, and shows the trials that were asked for."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.cli import show
from boca.domain.reasons import Reasons
from boca.study.storage import Lease, Owner
from cli.studies import said, stored

DIVERGED = "The solver diverged at once. " + "It says so at length. " * 20


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study with twenty parameters, long names and every state, whose sixth trial failed with a long reason."""
    space = {f"parameter_with_a_long_name_{k}": (0.0, 1.0) for k in range(17)}
    space |= {"kind": ["a rather long option of a choice", "another"], "n": (1, 9), "lr": (1e-6, 1.0, "log")}
    problem = boca.Problem(boca.Space(space), boca.Space(steps=(1, 100)), cost=lambda z: z["steps"])
    file = tmp_path_factory.mktemp("wide") / "wide.db"
    opt = boca.Optimizer(
        problem, budget=boca.targets(50), strategy=boca.RandomSearch(), seed=0, storage=f"sqlite:///{file}", name="wide"
    )
    for k in range(30):
        if k % 3:
            point = problem.space.from_unit(np.random.default_rng(k).random(20))
            opt.enqueue(point, {"steps": 1 + k})
        trial = opt.ask()
        if k in (5, 8, 9):
            opt.fail(trial, DIVERGED if k == 5 else "Out of memory.")
        else:
            opt.tell(trial, (-1.0) ** k * 1.23456789e-7 * (k + 1), seconds=0.5)
    opt.ask()
    yield opt, file
    opt.storage.close()


@pytest.fixture
def wide(made, monkeypatch):
    opt, file = made
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(file.parent)
    return opt


def lines(*options):
    status, text = said("show", "wide.db", "wide", *options)
    assert status == 0
    return text.splitlines()


def numbers(*options):
    """Return the numbers of the trials that are shown, in their order."""
    rows = (line.split() for line in lines(*options))
    return [int(words[0]) for words in rows if len(words) > 1 and words[0].isdigit() and words[1] in STATES]


STATES = ("complete", "running", "failed")


def test_what_is_stored_can_be_seen(done):
    status, text = said("show", "bowl.db")
    assert status == 0
    assert "bowl" in text
    assert "spent 4 of 4 target evaluations" in text
    assert json.loads(said("show", "bowl.db", "--json")[1])[0]["trials"] == 5
    _, trials = said("show", "bowl.db", "bowl")
    for word in ("number", "state", "value", "cost", "kind", "best", "spent"):
        assert word in trials
    one = json.loads(said("show", "sqlite:///bowl.db", "bowl", "--trial", 2, "--json")[1])
    assert one["number"] == 2
    assert one["output"].startswith("at ")
    assert one["why"]["phase"] == "start"


@pytest.mark.parametrize("options", [(), ("--best", 3), ("--state", "failed"), ("--why", 5), ("--why", 29)])
@pytest.mark.parametrize("width", [80, 50, 200])
def test_no_line_is_longer_than_the_terminal(wide, options, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, lines(*options))) <= width


def test_a_pipe_has_80_columns(wide):
    assert max(map(len, lines())) <= 80


def test_no_sentence_is_a_column(wide):
    rows = [line for line in lines() if line.split()[:1] and line.split()[0].isdigit() and line.split()[1] in STATES]
    assert len(rows) == 31
    sentences = {trial.why["reason"] for trial in wide.history} | {t.reason for t in wide.history if t.reason}
    assert not any(sentence[:20] in row for row in rows for sentence in sentences)


def test_columns_that_do_not_fit_are_named_and_more_fit_a_wider_terminal(wide, monkeypatch):
    text = " ".join(lines())
    assert "parameter_with_a_long_name_16" in text
    assert "columns do not fit" in text
    few = lines()[0].split()
    monkeypatch.setenv("COLUMNS", "200")
    assert len(lines()[0].split()) > len(few) > 4
    assert few[:5] == ["number", "state", "value", "cost", "steps"]


def test_the_newest_trial_is_last(wide):
    assert numbers() == list(range(31))
    assert numbers("--last", 3) == [28, 29, 30]


def test_the_best_are_at_the_target_and_the_best_is_last(wide):
    at_target = [t for t in wide.history if t.state == "complete" and t.z == wide.problem.target]
    ranked = [t.number for t in sorted(at_target, key=lambda t: t.value)]
    assert numbers("--best", 2) == ranked[-2:]
    assert numbers("--best", 99) == ranked
    assert numbers("--best", 1) == [wide.best.number]
    assert numbers("--best", 99, "--last", 1) == [wide.best.number]


def test_the_best_of_a_study_that_minimizes_is_the_lowest(folder):
    problem = boca.Problem(boca.Space(a=(0.0, 1.0)), direction="min")
    opt = boca.Optimizer(problem, budget=boca.targets(9), seed=0, storage="sqlite:///wide.db", name="wide")
    for value in (3.0, 1.0, 2.0):
        opt.tell(opt.ask(), value)
    opt.storage.close()
    assert numbers("--best", 3) == numbers("--sort", "value") == [0, 2, 1]


def test_trials_are_sorted_and_chosen_by_state(wide):
    assert numbers("--state", "failed") == [5, 8, 9]
    assert numbers("--state", "running") == [30]
    by_cost = [t.cost for k in numbers("--sort", "cost") for t in [wide.history[k]]]
    assert by_cost == sorted(by_cost)
    by_value = [wide.history[k].value for k in numbers("--sort", "value", "--state", "complete")]
    assert by_value == sorted(by_value)
    assert json.loads(said("show", "wide.db", "wide", "--last", 2, "--json")[1])[0]["number"] == 29


def test_values_at_the_target_have_a_star(wide):
    starred = {int(line.split()[0]) for line in lines() if line.split()[0].isdigit() and "*" in line}
    assert starred == {t.number for t in wide.history if t.state == "complete" and t.z == wide.problem.target}
    assert "* at the target" in lines()


def test_failures_are_grouped_by_reason_below_the_trials(wide):
    text = lines()
    assert "2 trials, the last 9, failed: Out of memory." in text
    assert any(line.startswith("Trial 5 failed: The solver diverged at once.") for line in text)


def test_one_trial_is_told_in_words(wide):
    text = " ".join(" ".join(lines("--why", 28)).split())
    trial = wide.history[28]
    for words in ("Trial 28, complete", trial.why["reason"], "steps = 29", "lr = ", "seconds 0.5"):
        assert words in text
    assert "failed with The solver diverged" in " ".join(" ".join(lines("--why", 5)).split())
    assert json.loads(said("show", "wide.db", "wide", "--why", 28, "--json")[1])["why"] == trial.why


def test_one_trial_says_when_and_where_it_ran(wide):
    words = " ".join(" ".join(lines("--why", 28)).split())
    mine = f"process {os.getpid()} on {Owner.me().host}"
    assert f"on {mine}, boca {boca.__version__}" in words
    assert " ran 20" in words
    assert "since 20" in " ".join(lines("--why", 30))
    shown = json.loads(said("show", "wide.db", "wide", "--trial", 28)[1])
    assert shown["began"].endswith("Z")
    assert (shown["process"], shown["attempts"]) == (os.getpid(), [])


def test_an_attempt_that_gave_no_result_is_told(folder):
    opt = stored()
    opt.ask(lease=Lease(owner=replace(Owner.me(), started="in another life")))
    opt.take_over(Lease())
    opt.storage.close()
    words = " ".join(said("show", "bowl.db", "bowl", "--why", 0)[1].split())
    assert "before since 20" in words
    assert f"process {os.getpid()} on {Owner.me().host}: the driver died" in words


def test_the_numbers_behind_a_choice_are_shown():
    why = {
        "reason": "It is high there.",
        "phase": "model",
        "mean": 0.51234,
        "xi": 0.25,
        "hyperparameters": {"h_x": [1]},
    }
    trial = boca.Trial(3, {"a": 0.25}, {}, 1.0, Reasons.of(why), output="one\ntwo")
    text = show._in_words(trial, (), 80)
    assert "  in numbers  mean = 0.512, xi = 0.25" in text
    assert text[-3:] == ["  output", "    one", "    two"]


def test_outcomes_have_columns_and_words(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    problem = boca.Problem(boca.Space(a=(0.0, 1.0)), direction="min", subject_to={"latency": boca.AtMost(0.6)})
    opt = boca.Optimizer(problem, budget=boca.targets(6), seed=0, storage="sqlite:///wide.db", name="wide")
    while trial := opt.ask():
        opt.tell(trial, {"loss": 1.0 - trial.x["a"], "latency": trial.x["a"]}, notes={"host": "n\x1b1"})
    opt.storage.close()
    assert lines()[0].split() == ["number", "state", "value", "cost", "latency", "a"]
    kept = sorted(opt.history.feasible(problem), key=lambda t: -t.value)
    assert 0 < len(kept) < len(opt.history)
    assert numbers("--best", 99) == [t.number for t in kept]
    chosen = opt.history.chosen[-1]
    text = " ".join(" ".join(lines("--why", chosen.number)).split())
    expected = chosen.why["outcomes"]["latency"]
    assert f"outcomes latency = {chosen.x['a']:.6g}" in text
    assert f"(limit 0.6, probability {expected['probability']:.2g})" in text
    assert r"notes host = n\x1b1" in text
    assert json.loads(said("show", "wide.db", "wide", "--trial", 0, "--json")[1])["outcomes"].keys() == {"latency"}


def test_a_study_without_trials_says_so(folder):
    stored().storage.close()
    assert "has no trials yet" in said("show", "bowl.db", "bowl")[1]
    assert "None of the" not in said("show", "bowl.db", "bowl")[1]


def test_a_kind_of_trial_that_there_is_not_is_said(done):
    assert "None of the 5 trials" in said("show", "bowl.db", "bowl", "--state", "running")[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("bowl.db", "--trial", 1), "got --trial 1 without NAME"),
        (("bowl.db", "--last", 3), "got --last 3 without NAME"),
        (("bowl.db", "bowl", "--state", "lost"), "--state must be one of running, complete, failed; got 'lost'"),
        (("bowl.db", "bowl", "--sort", "x"), "--sort must be one of number, value, cost, seconds; got 'x'"),
        (("bowl.db", "bowl", "--why", 5), "--why must be one of the 5 trials"),
        (("bowl.db", "bowl", "--trial", -1), "--trial must be one of the 5 trials"),
        (("bowl.db", "bowl", "--why", 1, "--trial", 1), "Type one"),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(done, options, words):
    status, told = said("show", *options)
    assert status == 2
    assert words in told
