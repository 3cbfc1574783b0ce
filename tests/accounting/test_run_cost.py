"""The learned cost of runs: a start and a rate, from runs that went on, reported, and ended early."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.accounting import cost as cost_models
from boca.accounting.run_cost import LearnedRuns
from boca.domain.observation import Observation
from boca.domain.runs import RunEvent
from boca.domain.trial import History
from support.trials import made

BOTH = boca.Problem(
    boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(n=boca.Int(100, 10_000, log=True), epochs=boca.Steps(1, 50))
)
ALONE = boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(epochs=boca.Steps(1, 50)))


def truth(z, start=0):
    n = z.get("n", 10_000) / 10_000
    return 3.0 * math.sqrt(n) + 0.4 * n * (z["epochs"] - start)


def run(k, z, *, start=0, end=None, reports=(), rng=None, scatter=0.0):
    end = z["epochs"] if end is None else end
    noise = 1.0 if rng is None else math.exp(scatter * rng.standard_normal())
    told = tuple(
        Observation({**z, "epochs": s}, 0.5, None, noise * truth({**z, "epochs": s}, start), told=k + 1)
        for s in (*reports, end)
    )
    seconds = told[-1].seconds
    trial = made(k, {"a": 0.5}, z, seconds, state="complete", told=k + 1, seconds=seconds, start=start)
    events = (RunEvent("continued", start, path="here"),) if start else ()
    from dataclasses import replace

    return replace(trial, observations=told, events=events, continues=0 if start else None)


def relative(found, z, start=0):
    return found / truth(z, start) - 1.0


def test_a_start_and_a_rate_are_told_apart():
    """Runs to other ends, some continued: every cost is predicted within an eighth, also of what was never run."""
    trials = [run(0, {"epochs": 5}), run(1, {"epochs": 30}, end=10), run(2, {"epochs": 50}, start=10)]
    known = cost_models.costs(ALONE, History(trials))
    assert isinstance(known, LearnedRuns)
    for end, start in ((1, 0), (25, 0), (50, 0), (50, 40), (12, 11)):
        assert abs(relative(known.going_on({"epochs": end}, start), {"epochs": end}, start)) < 0.125
    assert known.target == pytest.approx(known.of({"epochs": 50}))
    assert known.going_on({"epochs": 30}, 10) < known.of({"epochs": 30})


def test_the_first_report_tells_the_start_from_the_rate():
    whole = cost_models.costs(ALONE, History([run(0, {"epochs": 30})]))
    reported = cost_models.costs(ALONE, History([run(0, {"epochs": 30}, reports=(1, 2, 3))]))
    errors = [abs(relative(known.of({"epochs": 2}), {"epochs": 2})) for known in (whole, reported)]
    assert errors[1] < 0.15 < errors[0]


def test_other_fidelities_have_rates_and_starts_of_their_own():
    rng = np.random.default_rng(0)
    trials = [
        run(k, {"n": int(n), "epochs": int(e)}, reports=(1,), rng=rng, scatter=0.05)
        for k, (n, e) in enumerate(zip(10 ** rng.uniform(2, 4, 12), rng.integers(3, 50, 12), strict=True))
    ]
    known = cost_models.costs(BOTH, History(trials))
    errors = [
        abs(relative(known.going_on(z, start), z, start))
        for z, start in (
            ({"n": 300, "epochs": 20}, 0),
            ({"n": 3000, "epochs": 50}, 30),
            ({"n": 10_000, "epochs": 50}, 0),
            ({"n": 10_000, "epochs": 50}, 20),
        )
    ]
    assert max(errors) < 0.25
    assert known.grid == pytest.approx([known.of(z) for z in BOTH.grid[0]])


def test_nine_in_ten_stay_below_the_pessimistic_cost():
    z, below = {"epochs": 50}, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        trials = [run(k, {"epochs": int(rng.integers(2, 50))}, rng=rng, scatter=0.3) for k in range(30)]
        known = cost_models.costs(ALONE, History(trials))
        below.append(np.mean(truth(z, 10) * np.exp(0.3 * rng.standard_normal(1000)) < known.pessimistic(z, 10)))
    assert 0.86 < np.mean(below) < 0.94


def test_the_derivatives_agree_with_differences():
    trials = [run(k, {"n": n, "epochs": 20}) for k, n in enumerate((100, 900, 8000))]
    known = cost_models.costs(BOTH, History(trials))
    theta = known._fit[0] + 0.3
    z, steps = [{"n": 500, "epochs": 7}, {"n": 10_000, "epochs": 50}], np.array([7, 20])
    J = known._log(z, steps, theta)[1]
    for j in range(len(theta)):
        h = np.zeros_like(theta)
        h[j] = 1e-6
        numeric = (known._log(z, steps, theta + h)[0] - known._log(z, steps, theta - h)[0]) / 2e-6
        assert J[:, j] == pytest.approx(numeric, abs=1e-6)


def test_a_declared_cost_scales_seconds_by_what_was_gone_on():
    """A budget in seconds with a declared cost: a continued run took the seconds of its increment."""
    declared = boca.Problem(ALONE.space, ALONE.fidelity, cost=lambda z: 5.0 + z["epochs"])
    trials = [run(0, {"epochs": 10}), run(1, {"epochs": 50}, start=10), run(2, {"epochs": 30})]
    known = cost_models.seconds(declared, History(trials))
    assert known.of({"epochs": 40}, 30) < 0.45 * known.of({"epochs": 40})
