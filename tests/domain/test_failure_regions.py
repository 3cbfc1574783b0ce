"""Where trials fail, in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from boca import Choice, Float, Optimizer, Problem, RandomSearch, Space
from boca.domain.failure_regions import where_trials_fail

PROBLEM = Problem(
    Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), kind=Choice(["one", "two", "three"])),
    Space(n=Float(1.0, 9.0)),
    cost=lambda z: z["n"],
)


def history(fails, count=40):
    opt = Optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=0)
    rng = np.random.default_rng(1)
    for k in range(count):
        x = {"a": float(rng.random()), "b": float(rng.random()), "kind": ["one", "two", "three"][k % 3]}
        opt.enqueue(x, {"n": float(1 + 8 * rng.random())})
        trial = opt.ask()
        opt.fail(trial, "no") if fails(trial, k) else opt.tell(trial, 1.0)
    return opt.history


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (lambda t, k: t.x["a"] > 0.7, "a >= 0.7"),
        (lambda t, k: t.x["b"] < 0.2, "b <= 0.1"),
        (lambda t, k: t.planned["n"] > 7.0, "n >= 7"),
        (lambda t, k: t.x["kind"] == "two", "kind is two"),
    ],
)
def test_the_side_is_named_with_its_share(fails, words):
    found = history(fails)
    said = where_trials_fail(PROBLEM, found)
    share = sum(t.state == "failed" for t in found) / len(found)
    assert words in said
    assert said.startswith(f"{100 * share:.0f} % of the trials failed")
    assert said.endswith("100 % did.")


@pytest.mark.parametrize("fails", [lambda t, k: False, lambda t, k: k < 2, lambda t, k: k % 4 == 0, lambda t, k: True])
def test_without_a_side_nothing_is_said(fails):
    assert where_trials_fail(PROBLEM, history(fails)) is None


def test_a_study_warns_of_it():
    opt = Optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=0)
    for _ in range(30):
        trial = opt.ask()
        opt.fail(trial, "no") if trial.x["a"] > 0.6 else opt.tell(trial, 1.0)
    assert any("a >= 0.6" in warning for warning in opt.warnings)
