"""What must hold of every suggestion on random spaces, conditions and constraints, and of the model there.

200 examples run always, 2,000 with the slow tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boca
from boca import Boca, Optimizer, Problem, RandomSearch, Space, Surrogate, targets
from boca.errors import InvalidInput
from boca.model.encoding import Encoding
from boca.testing import Case, check_strategy
from support.spaces import PIPELINE, is_exact, known_gp, random_points, random_space, studied

seeds = st.integers(0, 10**7)
always = settings(deadline=None, derandomize=True, max_examples=200)
often = settings(deadline=None, derandomize=True, max_examples=2000)


def suggestions(seed):
    """Return a random space, and what is suggested there: in the start, and by a model of random results."""
    rng = np.random.default_rng(seed)
    problem = Problem(random_space(rng))
    start = Optimizer(problem, budget=targets(100), seed=seed, strategy=Boca())
    found = [start.ask() for _ in range(2)]
    found.append(Optimizer(problem, budget=None, seed=seed, strategy=RandomSearch()).ask())
    told = studied(problem, rng, 8)
    strategy = Boca(hyperparameters=known_gp(problem))
    model = Optimizer(problem, budget=None, seed=seed, strategy=strategy)
    for trial in told.history:
        model.add(trial.x, None, trial.value)
    found += [model.ask() for _ in range(2)]
    return problem.space, found


def assert_allowed(seed):
    space, trials = suggestions(seed)
    assert [t.phase for t in trials] == ["start"] * 3 + ["model"] * 2
    for trial in trials:
        assert is_exact(space, trial.x)
        assert space.violated(trial.x) is None


@always
@given(seeds)
def test_no_suggestion_breaks_a_constraint_or_sets_an_inactive_parameter(seed):
    assert_allowed(seed)


@pytest.mark.slow
@often
@given(seeds)
def test_no_suggestion_of_many_breaks_a_constraint_or_sets_an_inactive_parameter(seed):
    assert_allowed(seed)


def kernel_of(space, rng, profile, *, learns_inactive=False):
    encoding = Encoding(Problem(space), profile, learns_inactive=learns_inactive)
    U = np.unique(space.to_unit(random_points(space, rng, 40)), axis=0)
    F = encoding.features(U, np.empty((len(U), 0)))
    h = np.exp(rng.uniform(np.log(0.05), np.log(5.0), size=max(encoding.kernel.size, len(space))))
    return U, h, encoding.kernel.value(h, F, F)


@always
@given(seeds, st.sampled_from(["se", "matern52"]), st.booleans())
def test_the_kernel_is_a_covariance(seed, profile, learns_inactive):
    rng = np.random.default_rng(seed)
    U, _, K = kernel_of(random_space(rng, constrained=False), rng, profile, learns_inactive=learns_inactive)
    assert np.allclose(K, K.T, atol=1e-12)
    assert np.allclose(np.diagonal(K), 1.0, atol=1e-7)
    assert np.linalg.eigvalsh(K)[0] > -1e-7 * len(U)


@always
@given(seeds)
def test_inactive_equals_inactive_and_every_active_value_is_equally_far_from_it(seed):
    rng = np.random.default_rng(seed)
    space = random_space(rng, constrained=False)
    encoding = Encoding(Problem(space), "se")
    h = np.exp(rng.uniform(-1.0, 1.0, size=len(space)))
    for j, parameter in enumerate(space.values()):
        if parameter.when is None:
            continue
        U = np.full((8, len(space)), 0.0)
        U[:, space.optional] = -1.0  # all inactive, and the j-th active in rows 2 to 7
        U[2:, j] = parameter.snap(np.linspace(0.0, 1.0, 6))
        F = encoding.features(U, np.empty((8, 0)))
        K = encoding.kernel.value(h, F, F)
        assert K[0, 1] == pytest.approx(1.0)
        radius = np.sqrt(0.5) if parameter.options else 2.0 / np.pi
        assert np.allclose(K[0, 2:], np.exp(-0.5 * (radius / h[j]) ** 2), rtol=1e-9)


@always
@given(seeds)
def test_active_and_inactive_have_a_distance_of_their_own(seed):
    """Each parameter that is active in one point alone divides the kernel by exp(1 / (2 h^2)) once more."""
    rng = np.random.default_rng(seed)
    space = random_space(rng, constrained=False)
    of, state = Problem(space), rng.bit_generator.state
    U, h, K = kernel_of(space, rng, "matern52", learns_inactive=True)
    rng.bit_generator.state = state
    plain = Encoding(of, "matern52")
    F = plain.features(U, np.empty((len(U), 0)))
    active = U >= 0.0
    differ = (active[:, None, :] != active[None, :, :]).sum(axis=2)
    own = np.exp(-0.5 * differ / h[-1] ** 2) if space.optional.any() else 1.0
    np.testing.assert_allclose(K, plain.kernel.value(h[: len(space)], F, F) * own, atol=1e-10)


def test_the_distance_is_learned():
    """Where values jump as soon as a parameter is active, the two sides tell less of each other."""
    kinds = boca.Choice(["a", "b", "c", "d"])
    of = Problem(Space(kind=kinds, g=boca.Float(0.0, 1.0, when={"kind": ["a", "b"]})))

    def learned(jump, **settings):
        opt, rng = Optimizer(of, budget=None, seed=0), np.random.default_rng(0)
        for kind in "abcd" * 8:
            x = {"kind": kind} | ({"g": float(rng.random())} if kind in "ab" else {})
            value = jump * ("g" in x) + np.sin(6.0 * x.get("g", 0.0)) + 0.3 * rng.standard_normal()
            opt.add(x, None, float(value))
        surrogate = Surrogate(warp=False, **settings)
        return surrogate.model(of, opt.history, np.random.default_rng(0)).hyperparameters()

    (far,), (near,) = (learned(jump)["h_when"] for jump in (5.0, 0.0))
    assert far < 0.7 * near
    assert "h_when" not in learned(5.0, learn_inactive=False)


def test_without_conditions_nothing_is_added():
    of = Problem(Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["a", "b"])))
    assert Encoding(of, "se", learns_inactive=True).blocks == Encoding(of, "se").blocks


def test_a_kernel_with_an_imputed_middle_would_not_keep_this_distance():
    # the control of the test above: with 0.5 in place of "inactive", values are not equally far from it
    space = Space(a=boca.Float(0.0, 1.0))
    encoding = Encoding(Problem(space), "se")
    K = encoding.kernel.value(np.array([0.5]), np.array([[0.5]]), np.array([[0.0], [0.5]]))
    assert not np.allclose(K[0, 0], K[0, 1])


def test_the_gradient_by_coordinates_is_that_of_the_features():
    rng = np.random.default_rng(0)
    encoding = Encoding(Problem(PIPELINE), "matern52")
    U = PIPELINE.snap(rng.random((60, 5)))
    weights = rng.standard_normal(encoding.x_width)
    gradient = encoding.x_gradient(U, np.tile(weights, (len(U), 1)))
    for j in (1, 2, 3, 4):
        step = np.zeros(5)
        step[j] = 1e-6
        inside = U[:, j] >= 0.0
        up, down = (encoding.x_features(U + sign * step) @ weights for sign in (1.0, -1.0))
        numeric = np.where(inside & (U[:, j] > 1e-5), (up - down) / 2e-6, gradient[:, j])
        assert np.allclose(gradient[:, j], numeric, atol=1e-5)
        assert np.all(gradient[~inside, j] == 0.0)
    assert np.all(gradient[:, 0] == 0.0)


FIDELITY = {"fidelity": Space(n=boca.Float(0.0, 1.0)), "cost": lambda z: 0.2 + z["n"]}
CASES = (
    Case("conditions", Problem(PIPELINE, **FIDELITY)),
    Case("constraints", Problem(PIPELINE.where("gamma * C <= 1"), FIDELITY["fidelity"], cost=FIDELITY["cost"])),
)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", boca.testing.CHECKS, ids=lambda check: check.__name__)
def test_the_contract_of_a_strategy_holds(check, case):
    check_strategy(Boca(), cases=[case], checks=[check])


@pytest.mark.parametrize("strategy", [boca.GPUCB(), boca.GPEI(), boca.MFGPUCB(), boca.MFSKO(), Boca.paper()], ids=repr)
def test_what_no_paper_has_is_refused(strategy):
    for space, what in ((PIPELINE, "conditions"), (Space(a=boca.Float(0, 1)).where("a <= 0.5"), "known constraints")):
        with pytest.raises(InvalidInput, match=f"{what}.*Boca"):
            Optimizer(Problem(space), budget=None, strategy=strategy)


def value(x):
    """Return a value with its maximum, 1.2, in a nested branch."""
    of_kernel = {"rbf": lambda: 1.0 - (np.log10(x["gamma"]) + 2.0) ** 2, "linear": lambda: 0.0}
    other = of_kernel.get(x["kernel"], lambda: 0.3 * x["degree"] - 1.0 + x.get("shift", 0.0))
    return float(other() - (np.log10(x["C"]) - 1.0) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_in_a_nested_branch_is_found(seed):
    result = boca.maximize(value, PIPELINE, budget=targets(30), seed=seed)
    assert result.value > 1.15
    assert (result.x["kernel"], result.x["degree"]) == ("poly", 4)


def test_a_study_with_conditions_and_constraints_resumes_bit_for_bit(tmp_path):
    problem = Problem(PIPELINE.where("gamma * C <= 1"))

    def run(storage, stops):
        xs = []
        for count in stops:
            optimizer = Optimizer(problem, budget=targets(14), seed=3, storage=storage)
            for _ in range(count):
                trial = optimizer.ask()
                optimizer.tell(trial, value(trial.x), seconds=1.0)
        return [(t.x, t.why) for t in optimizer.history] + xs

    whole = run(f"sqlite:///{tmp_path}/whole.db", [12])
    assert run(f"sqlite:///{tmp_path}/parts.db", [5, 1, 6]) == whole
    with pytest.raises(InvalidInput, match=r"where was .* and is absent"):
        Optimizer(Problem(PIPELINE), budget=targets(14), seed=3, storage=f"sqlite:///{tmp_path}/whole.db")
    other = Problem(PIPELINE.where("gamma * C <= 0.2"))
    with pytest.raises(InvalidInput, match="where was"):
        Optimizer(other, budget=targets(14), seed=3, storage=f"sqlite:///{tmp_path}/whole.db")


@pytest.mark.parametrize("format", ["csv", "jsonl", "table"])
def test_trials_are_exported_and_read_again_exactly(tmp_path, format):
    from boca.study.trial_io import text

    told = studied(Problem(PIPELINE), np.random.default_rng(5), 30)
    other = Optimizer(Problem(PIPELINE), budget=None, seed=2)
    if format == "table":
        other.add_all(told.history.to_dataframe())
    else:
        (tmp_path / f"trials.{format}").write_text(text(told.history, format))
        other.add_all(tmp_path / f"trials.{format}")
    assert [(t.x, t.value) for t in other.history] == [(t.x, t.value) for t in told.history]


def test_the_diameter_and_beta_are_those_of_the_widest_branch():
    told = studied(Problem(PIPELINE), np.random.default_rng(1), 10)
    strategy = Boca(hyperparameters={**known_gp(told.problem), "h_x": [1.0, 0.5, 0.1, 0.25, 2.0]})
    optimizer = Optimizer(told.problem, budget=None, seed=0, strategy=strategy)
    for trial in told.history:
        optimizer.add(trial.x, None, trial.value)
    trial = optimizer.ask()
    diameter = max(1 / 1.0 + 1 / 0.5 + 1 / 0.1, 1 / 1.0 + 1 / 0.5 + 1 / 0.25 + 1 / 2.0)
    assert trial.why["beta"] == pytest.approx(0.5 * 4 * np.log(2.0 * diameter + 1.0))
    assert len(trial.why["hyperparameters"]["h_x"]) == 5


def test_a_fit_learns_from_conditional_results():
    told = studied(Problem(PIPELINE), np.random.default_rng(2), 60, value)
    model = Surrogate().model(told.problem, told.history, np.random.default_rng(0))
    fresh = random_points(PIPELINE, np.random.default_rng(3), 200)
    mu, _ = model.moments(PIPELINE.to_unit(fresh))
    truth = np.array([value(x) for x in fresh])
    expected = np.array([model.value_as_told(float(m)) for m in mu])
    assert np.mean((expected - truth) ** 2) < 0.1 * np.var(truth)
