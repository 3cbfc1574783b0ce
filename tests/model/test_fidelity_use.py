"""The guard: cheaper fidelities that say nothing of the target are found out, said so, and no longer paid for."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from boca import Boca, Float, Optimizer, Problem, Space, Surrogate, problems, targets
from boca.domain.errors import InvalidInput
from boca.gp import fit as gp_fit
from boca.gp.kernels import Kernel, Radial
from boca.gp.model import GP
from boca.model.dataset import Dataset
from boca.model.encoding import Encoding
from boca.model.fidelity_use import GUARD_NEEDS_AT_TARGET, FidelityTests
from boca.model.fit_record import FidelityUse

unwarped = partial(Surrogate, warp=False, fidelity_axis="as_declared")

SPACE, FIDELITY = Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0)), Space(z=Float(0.0, 1.0))
PROBLEM = Problem(SPACE, FIDELITY, cost=lambda z: 0.05 + 0.95 * z["z"] ** 2)


def objective(x):
    return -((x["x"] - 0.3) ** 2) - (x["y"] - 0.6) ** 2 + 0.1 * math.cos(9.0 * x["x"])


def unrelated(x, z):
    """Below the target, another function: a ripple with its top elsewhere."""
    return objective(x) if z["z"] == 1.0 else math.sin(8.0 * x["x"] + 1.0) * math.cos(7.0 * x["y"])


def shifted(x, z):
    """Below the target, the same for all x, and lower."""
    return objective(x) - 4.0 * (1.0 - z["z"])


def brought(g, *, at_target, elsewhere, seed=0):
    """Return an optimizer with results of g at the target and elsewhere."""
    rng = np.random.default_rng(seed)
    optimizer = Optimizer(PROBLEM, budget=targets(40), seed=seed)
    for k in range(at_target + elsewhere):
        x = {"x": float(rng.random()), "y": float(rng.random())}
        z = {"z": 1.0 if k < at_target else float(0.6 * rng.random())}
        optimizer.add(x, z, g(x, z) + 0.01 * float(rng.standard_normal()))
    return optimizer


def test_the_density_of_a_result_given_the_others_is_that_of_a_model_without_it():
    rng = np.random.default_rng(0)
    X, noise = rng.random((12, 2)), 0.1 * rng.random(12)
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.standard_normal(12)
    how = {"kappa0": 1.3, "h": np.array([0.4, 0.7]), "eta2": 0.02, "m": 0.1}
    kernel = Kernel((Radial("matern52", (0, 1), (0, 1)),))
    found = GP.build(kernel, X, y, noise=noise, **how).leave_one_out()
    for i in range(12):
        kept = np.arange(12) != i
        mean, variance = GP.build(kernel, X[kept], y[kept], noise=noise[kept], **how).posterior(X[i : i + 1])
        total = variance[0] + how["eta2"] + noise[i]
        assert found[i] == pytest.approx(-0.5 * ((y[i] - mean[0]) ** 2 / total + math.log(2 * math.pi * total)))


def test_fidelities_that_say_nothing_are_switched_off_and_it_is_said():
    optimizer = brought(unrelated, at_target=20, elsewhere=40)
    trial = optimizer.ask()
    assert trial.z == PROBLEM.target
    assert trial.why["fit"]["use"]["kind"] == "none"
    assert trial.why["guard"] == trial.why["fit"]["use"]["nats"] > 0.25
    assert any("Cheaper fidelities are switched off" in warning for warning in optimizer.warnings)


def test_a_model_with_fidelities_off_knows_the_target_alone():
    optimizer = brought(unrelated, at_target=20, elsewhere=40)
    model = unwarped().model(PROBLEM, optimizer.history, np.random.default_rng(0))
    assert model.guard is not None
    assert len(model.data.y) == 20
    assert len(model.shrunk(2.0).data.y) == 20


def test_the_numbers_say_that_other_fidelities_are_off():
    """With all results, the numbers of `why` give the model of those at the target."""
    optimizer = brought(unrelated, at_target=20, elsewhere=40)
    rng = np.random.default_rng(0)
    off = unwarped(kernel="se").model(PROBLEM, optimizer.history, rng)
    assert off.guard is not None
    numbers = off.hyperparameters()
    assert set(numbers) == {"kappa0", "eta2", "mean", "h_x", "h_z"}
    told = unwarped().model(PROBLEM, optimizer.history, rng, hyperparameters=numbers)
    assert len(told.data.y) == 60
    U = rng.random((9, 2))
    mean, deviation = off.moments(U)
    expected = (
        [off.value_as_told(m) for m in mean],
        [off.deviation_as_told(s) for s in deviation],
    )
    np.testing.assert_allclose(told.moments(U), expected, rtol=1e-9)


def test_a_model_of_the_target_alone_has_a_mean_of_its_own():
    optimizer = brought(shifted, at_target=6, elsewhere=20)
    model = unwarped(mean="median", guard=None).model(PROBLEM, optimizer.history, np.random.default_rng(0))
    alone = model.at_target()
    told = [t.value for t in optimizer.history if PROBLEM.is_target(t.z)]
    assert alone.value_as_told(alone.gp.m) == pytest.approx(np.median(told))
    assert model.value_as_told(model.gp.m) < min(told)  # the others are far lower
    assert (alone.kappa0, alone.eta2, *alone.h) == (model.kappa0, model.eta2, *model.h)


def test_while_fidelities_are_off_every_query_goes_to_the_target():
    optimizer = brought(unrelated, at_target=20, elsewhere=40)
    asked = []
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, unrelated(trial.x, trial.z))
        asked.append(trial)
    is_off = [trial.why.get("guard") is not None for trial in asked]
    assert is_off[0]
    assert all(trial.z == PROBLEM.target for trial, off in zip(asked, is_off, strict=True) if off)
    assert {"max_value", "log_ei"} <= {t.why["acquisition"] for t, off in zip(asked, is_off, strict=True) if off}
    sentences = [t.why["reason"] for t, off in zip(asked, is_off, strict=True) if off]
    assert all("switched off" in sentence for sentence in sentences)


def test_a_common_shift_is_learned_instead():
    optimizer = brought(shifted, at_target=12, elsewhere=60)
    model = unwarped().model(PROBLEM, optimizer.history, np.random.default_rng(0))
    assert model.fit.use.kind == "extended"
    assert model.guard is None
    assert model.hyperparameters()["trend"] > 0.0
    plain = unwarped(guard=None).model(PROBLEM, optimizer.history, np.random.default_rng(0))
    points = [{"x": a, "y": b} for a in np.linspace(0.05, 0.95, 7) for b in np.linspace(0.05, 0.95, 7)]
    truth = np.array([objective(x) for x in points])
    errors = [
        float(np.sqrt(np.mean((m.standard.location + m.standard.scale * m.means(SPACE.to_unit(points)) - truth) ** 2)))
        for m in (model, plain)
    ]
    assert errors[0] < 0.9 * errors[1]


def test_a_jump_and_a_trend_can_be_given_back_as_numbers_that_are_known():
    optimizer = brought(shifted, at_target=12, elsewhere=60)
    surrogate = unwarped(kernel="se")
    model = surrogate.model(PROBLEM, optimizer.history, np.random.default_rng(0))
    numbers = model.hyperparameters()
    assert numbers["trend"] > 0.0
    known = surrogate.known(Dataset.from_history(PROBLEM, optimizer.history), numbers)
    U = np.random.default_rng(1).random((20, 2))
    mean, deviation = model.moments(U)
    np.testing.assert_allclose(known.moments(U)[0], model.standard.location + model.standard.scale * mean, rtol=1e-6)
    np.testing.assert_allclose(known.moments(U)[1], model.standard.scale * deviation, rtol=1e-5)
    strong = numbers | {"jump": 0.7, "trend": 3.0, "noise_rise": 0.2}
    found = surrogate.known(Dataset.from_history(PROBLEM, optimizer.history), strong).hyperparameters()
    assert found == strong | {"trend": pytest.approx(3.0)}
    with_jump, without = (
        surrogate.known(Dataset.from_history(PROBLEM, optimizer.history), numbers | {"jump": jump}).means(U)
        for jump in (0.7, 0.0)
    )
    assert np.max(np.abs(with_jump - without)) > 1e-3


@pytest.mark.parametrize("name", ["jump", "trend", "noise_rise"])
def test_what_is_given_back_must_not_be_negative_nor_without_fidelities(name):
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3, 0.3], "h_z": [1.0]}
    Optimizer(PROBLEM, budget=targets(9), strategy=Boca(hyperparameters=known | {name: 0.5}))
    for wrong in (-0.5, "much", math.inf):
        with pytest.raises(InvalidInput, match=f"hyperparameters\\['{name}'\\] must"):
            Optimizer(PROBLEM, budget=targets(9), strategy=Boca(hyperparameters=known | {name: wrong}))
    alone = {key: value for key, value in known.items() if key != "h_z"} | {name: 0.5}
    with pytest.raises(InvalidInput, match="with the keys"):
        Optimizer(Problem(SPACE), budget=targets(9), strategy=Boca(hyperparameters=alone))


@pytest.mark.parametrize(
    ("previous", "harm", "extended", "its_harm", "kind"),
    [
        (None, 0.2, 1.9, 9.0, None),
        (None, 0.3, 1.9, 0.0, "none"),
        (None, 0.3, 2.1, 0.2, "extended"),  # in the wider model they help
        (None, 0.3, 2.1, 0.3, "none"),
        (None, 0.2, 2.1, 0.3, "none"),
        ("extended", 0.2, 0.1, 0.2, "extended"),
        ("extended", 0.2, -0.1, 0.2, None),
        ("extended", 0.3, -0.1, 0.2, "none"),
        ("none", 0.1, 1.9, 0.0, "none"),
        ("none", 0.1, 2.1, -0.1, "extended"),
        ("none", -0.1, 1.9, 0.1, None),
    ],
)
def test_what_was_taken_is_kept_until_it_is_no_longer_better(previous, harm, extended, its_harm, kind, monkeypatch):
    optimizer = brought(unrelated, at_target=10, elsewhere=10)
    record = unwarped(guard=None).model(PROBLEM, optimizer.history, np.random.default_rng(0)).fit

    def leave_one_out(_, encoding, data, theta):
        together = -7.0 + (extended if encoding.is_extended else 0.0)
        return together + (its_harm if encoding.is_extended else harm) * (len(data.y) == 10)

    monkeypatch.setattr(FidelityTests, "leave_one_out", leave_one_out)
    monkeypatch.setattr(FidelityTests, "_theta_of", lambda *given: np.zeros(1))
    dataset = Dataset.from_history(PROBLEM, optimizer.history)
    tests = FidelityTests(dataset, Encoding(PROBLEM, "matern52"), None, informative=True)
    use = tests.use(record, None if previous is None else FidelityUse(previous, (), 1.0), guard=0.25)
    assert (use and use.kind) == kind
    found = its_harm if extended > (0.0 if previous == "extended" else 2.0) else harm
    assert use is None or use.nats == pytest.approx(found if kind == "none" else extended)


def test_with_and_without_them_the_hyperparameters_are_the_same(monkeypatch):
    """Those learned from a few results predict these few too well: a comparison with them finds fault with anything."""
    optimizer = brought(lambda x, z: objective(x), at_target=10, elsewhere=40)
    seen, original = [], FidelityTests.leave_one_out

    def watched(self, encoding, data, theta):
        if not encoding.is_extended:
            seen.append((len(data.y), tuple(theta)))
        return original(self, encoding, data, theta)

    monkeypatch.setattr(FidelityTests, "leave_one_out", watched)
    record = unwarped().fit(Dataset.from_history(PROBLEM, optimizer.history), np.random.default_rng(0), None)
    assert seen == [(50, record.theta), (10, record.theta)]
    assert record.use is None


def test_what_is_only_tried_learns_from_some_results_and_what_is_kept_from_all(monkeypatch):
    optimizer = brought(shifted, at_target=12, elsewhere=60)
    kept = unwarped().model(PROBLEM, optimizer.history, np.random.default_rng(0)).fit
    assert kept.use.kind == "extended"
    monkeypatch.setattr("boca.model.fidelity_use.TRIAL_RESULTS", 20)
    sizes, fit = [], gp_fit.fit

    def watched(kernel, X, y, **how):
        sizes.append(len(y))
        return fit(kernel, X, y, **how)

    monkeypatch.setattr(gp_fit, "fit", watched)
    for previous, expected in ((None, [72, 20]), (kept, [72, 72])):
        unwarped(rising_noise=False).fit(
            Dataset.from_history(PROBLEM, optimizer.history), np.random.default_rng(0), previous
        )
        assert sizes == expected
        sizes.clear()


def test_with_few_results_at_the_target_nothing_is_tested():
    for at_target, is_tested in ((GUARD_NEEDS_AT_TARGET - 1, False), (GUARD_NEEDS_AT_TARGET, True)):
        optimizer = brought(unrelated, at_target=at_target, elsewhere=40, seed=3)
        record = unwarped(guard=0.0).model(PROBLEM, optimizer.history, np.random.default_rng(0)).fit
        assert is_tested or record.use is None
        assert not is_tested or record.use.nats > 0.0


def test_without_a_guard_and_in_the_paper_fidelities_stay_on():
    optimizer = brought(unrelated, at_target=20, elsewhere=40)
    for surrogate in (unwarped(guard=None), Surrogate.paper()):
        assert surrogate.model(PROBLEM, optimizer.history, np.random.default_rng(0)).fit.use is None
    assert Boca.paper().surrogate.guard is None


@pytest.mark.parametrize("guard", [-1.0, math.nan, "two"])
def test_a_guard_is_a_number_of_nats(guard):
    with pytest.raises(InvalidInput, match="guard must be"):
        unwarped(guard=guard)


@pytest.mark.parametrize("name", ["branin", "hartmann3"])
def test_useful_fidelities_stay_on(name):
    for seed in range(3):
        bench = problems.get(name, seed=seed)
        optimizer, rng = Optimizer(bench.problem, budget=targets(25), seed=seed), np.random.default_rng(seed)
        while (trial := optimizer.ask()) is not None:
            optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
        assert not any("guard" in trial.why for trial in optimizer.history)
        assert sum(bench.problem.is_target(trial.z) for trial in optimizer.history) >= GUARD_NEEDS_AT_TARGET


@pytest.mark.slow
def test_the_loss_to_useless_fidelities_is_bounded():
    """Ten paired seeds where every fidelity below the target is another function: no worse than half as good again.

    What can be lost is the start and what is spent before eight results at the target: a third of the capital.  So
    after all of it the default must be where a search of the target alone is after two thirds.
    """
    behind = []
    for seed in range(10):
        ends = []
        for problem, budget in ((PROBLEM, targets(30)), (Problem(SPACE), targets(20))):
            optimizer, rng = Optimizer(problem, budget=budget, seed=seed), np.random.default_rng(seed)
            while (trial := optimizer.ask()) is not None:
                value = unrelated(trial.x, trial.z) if trial.z else objective(trial.x)
                optimizer.tell(trial, value + 0.01 * float(rng.standard_normal()))
            ends.append(max(objective(t.x) for t in optimizer.history if problem.is_target(t.z)))
        behind.append(ends[1] - ends[0])
    assert np.median(behind) < 1e-3


@pytest.mark.slow
def test_a_region_that_cheaper_fidelities_make_look_bad_is_found_all_the_same():
    """Right where x > 1/2, at any fidelity; elsewhere cheap queries see a slope down to the left, and no maximum there.

    Without doubts, the only queries at the target are where cheap ones are right, and nothing contradicts them.
    """

    def f(x):
        return math.exp(-(((x - 0.2) / 0.16) ** 2)) + 0.6 * math.exp(-(((x - 0.8) / 0.1) ** 2))

    def g(x, z):
        return f(x) if x > 0.5 or z == 1.0 else z * f(x) + (1.0 - z) * 0.5 * (x - 0.5)

    problem = Problem(Space(x=Float(0, 1)), Space(z=Float(0, 1)), cost=lambda z: 0.02 + 0.98 * z["z"] ** 2)
    found = {}
    for doubts in (True, False):
        found[doubts] = 0
        for seed in range(10):
            strategy = Boca(target_turns=("log_ei", "aim", "log_noisy_ei", "ucb_alone" if doubts else "aim"))
            optimizer = Optimizer(problem, budget=targets(25), strategy=strategy, seed=seed)
            rng = np.random.default_rng(seed)
            while (trial := optimizer.ask()) is not None:
                optimizer.tell(trial, g(trial.x["x"], trial.z["z"]) + 0.02 * float(rng.standard_normal()))
            found[doubts] += max(f(t.x["x"]) for t in optimizer.history if problem.is_target(t.z)) > 0.9
    assert found[True] >= 9, found
    assert found[False] < found[True]
