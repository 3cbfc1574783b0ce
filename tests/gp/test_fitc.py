"""Many results through few: against the exact process, against the formulas written out densely, and by theorems."""

from __future__ import annotations

import numpy as np
import pytest

from boca.gp.fitc import _CHUNK, build_fitc, farthest_points
from boca.gp.kernels import Custom, Jump, Kernel, Radial, Trend
from boca.gp.model import GP, PosteriorSlice

ROOT_HALF = 0.5**0.5
NUMERIC = Kernel((Radial("matern52", (0, 1), (0, 1)), Radial("se", (2,), (2,))))
KERNELS = {
    "se": Kernel((Radial("se", (0, 1, 2), (0, 1, 2)),)),
    "product": NUMERIC,
    "choice": Kernel((Radial("matern52", (0, 1), (0, 1)), Radial("se", (2, 3, 4), (2, 2, 2)))),
    "custom": Kernel(
        (Radial("matern52", (0, 1), (0, 1)),),
        (Custom(lambda P, Q: 0.5 + np.minimum(P, Q.T), lambda P: 0.5 + P[:, 0], (2,)),),
    ),
    "jump and trend": Kernel(NUMERIC.radial, factors=(Jump(3, 3),), terms=(Trend((2,), (1.0,), 4),)),
}
H = {name: np.array([0.3, 0.6, 1.1, 0.7, 1.5][: kernel.size + kernel.strengths]) for name, kernel in KERNELS.items()}
KAPPA0, ETA2 = 2.3, 0.04


def inputs(name, n, rng):
    X = rng.random((n, 3))
    if name == "choice":  # indicators of one of three options
        return np.hstack([X[:, :2], ROOT_HALF * np.eye(3)[rng.integers(3, size=n)]])
    if name == "jump and trend":  # a third at the target, where the third column is one
        is_target = rng.random(n) < 1 / 3
        return np.column_stack([X[:, :2], np.where(is_target, 1.0, X[:, 2]), is_target])
    return X


def data(name, n, seed=0):
    rng = np.random.default_rng(seed)
    X = inputs(name, n, rng)
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def queries(name, m=30, seed=1):
    return inputs(name, m, np.random.default_rng(seed))


def told(name, **changes):
    return {"kappa0": KAPPA0, "h": H[name], "eta2": ETA2, **changes}


def some_noise(n):
    return np.random.default_rng(2).exponential(0.1, n)


class ByDefinition:
    """The approximation as its definition has it: Q_ff off the diagonal, the true variances on it, all n x n."""

    def __init__(self, name, X, active, *, eta2=ETA2, noise=0.0):
        self.name, self.X, self.U = name, X, X[active]
        self.K_uu_inv = np.linalg.inv(self.k(self.U, self.U))
        Q = self.q(X, X)
        self.lam = KAPPA0 * KERNELS[name].diagonal(H[name], X) - np.diagonal(Q) + eta2 + noise
        self.K_inv = np.linalg.inv(Q + np.diag(self.lam))

    def k(self, A, B):
        return KAPPA0 * KERNELS[self.name].value(H[self.name], A, B)

    def q(self, A, B):
        return self.k(A, self.U) @ self.K_uu_inv @ self.k(self.U, B)

    def mean_of_all(self, y):
        one = np.ones_like(y)
        return (one @ self.K_inv @ y) / (one @ self.K_inv @ one)

    def posterior(self, A, y, m):
        K_as = self.q(A, self.X)
        covariance = self.k(A, A) - K_as @ self.K_inv @ K_as.T
        return m + K_as @ self.K_inv @ (y - m), np.diagonal(covariance)


def noise_of_the_pseudo_results(name, gp):
    """Return R, which is what the factor holds beyond the kernel."""
    L = np.tril(gp.factor.L)
    return L @ L.T - KAPPA0 * KERNELS[name].value(H[name], gp.X, gp.X)


# The exact process ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("noisy", [False, True], ids=["", "noise"])
@pytest.mark.parametrize("eta2", [1e-6, 1e-2, 100.0])
@pytest.mark.parametrize("m", [None, -0.7])
def test_through_all_results_it_is_the_exact_process(name, noisy, eta2, m):
    X, y = data(name, 120)
    A = queries(name)
    settings = told(name, eta2=eta2, m=m, noise=some_noise(120) if noisy else None)
    exact = GP.build(KERNELS[name], X, y, **settings)
    ours = build_fitc(KERNELS[name], X, y, np.arange(120), **settings)
    assert ours.m == pytest.approx(exact.m, rel=1e-5)
    np.testing.assert_allclose(ours.posterior(A)[0], exact.posterior(A)[0], atol=1e-6)
    np.testing.assert_allclose(ours.posterior(A)[1], exact.posterior(A)[1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_through_all_results_are_exact_too(name):
    X, y = data(name, 80)
    A, b = queries(name), queries(name, 1, seed=3)[0]
    exact = GP.build(KERNELS[name], X, y, **told(name))
    ours = build_fitc(KERNELS[name], X, y, np.arange(80), **told(name))
    for moment, expected in zip(ours.covariance_with(A, b), exact.covariance_with(A, b), strict=True):
        np.testing.assert_allclose(moment, expected, rtol=1e-7, atol=1e-9)


def test_the_order_of_the_active_results_changes_nothing():
    X, y = data("product", 90)
    A, active = queries("product"), np.arange(0, 90, 3)
    one = build_fitc(NUMERIC, X, y, active, **told("product"))
    other = build_fitc(NUMERIC, X, y, active[::-1], **told("product"))
    np.testing.assert_allclose(one.posterior(A), other.posterior(A), rtol=1e-9, atol=1e-11)


def test_a_smooth_function_needs_few_of_its_results():
    """Bandwidths as long as the cube: 40 of 600 results say all that the others do."""
    rng = np.random.default_rng(4)
    X = rng.random((600, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(600)
    settings = {"kappa0": 1.0, "h": np.ones(3), "eta2": 0.01}
    active = farthest_points(KERNELS["se"], np.ones(3), X, np.arange(5), 40)
    exact, A = GP.build(KERNELS["se"], X, y, **settings), queries("se", 200)
    mean, variance = exact.posterior(A)
    ours = build_fitc(KERNELS["se"], X, y, active, **settings).posterior(A)
    np.testing.assert_allclose(ours[0], mean, atol=5e-3)
    np.testing.assert_allclose(np.sqrt(ours[1]), np.sqrt(variance), rtol=0.05)
    alone = GP.build(KERNELS["se"], X[active], y[active], **settings).posterior(A)
    assert np.max(np.abs(alone[0] - mean)) > 20.0 * np.max(np.abs(ours[0] - mean))  # the others are heard


# The approximation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("noisy", [False, True], ids=["", "noise"])
@pytest.mark.parametrize("eta2", [1e-4, ETA2, 3.0])
def test_it_is_the_approximation_of_its_definition(name, noisy, eta2):
    X, y = data(name, 150)
    active, A = np.arange(2, 150, 5), queries(name)
    noise = some_noise(150) if noisy else None
    ours = build_fitc(KERNELS[name], X, y, active, **told(name, eta2=eta2, noise=noise))
    reference = ByDefinition(name, X, active, eta2=eta2, noise=0.0 if noise is None else noise)
    assert ours.m == pytest.approx(reference.mean_of_all(y), rel=1e-6)  # the explicit inverse loses the rest
    mean, variance = reference.posterior(A, y, ours.m)
    np.testing.assert_allclose(ours.posterior(A)[0], mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.posterior(A)[1], variance, rtol=1e-6, atol=1e-9)


def test_a_given_mean_is_kept():
    X, y = data("product", 60)
    active, A = np.arange(20), queries("product")
    ours = build_fitc(NUMERIC, X, y, active, **told("product", m=5.0))
    assert ours.m == 5.0
    mean, _ = ByDefinition("product", X, active).posterior(A, y, 5.0)
    np.testing.assert_allclose(ours.posterior(A)[0], mean, rtol=1e-8, atol=1e-8)


def test_results_are_taken_in_parts_and_none_is_lost():
    X, y = data("product", _CHUNK + 77)
    active, A = np.arange(0, len(y), 40), queries("product")
    ours = build_fitc(NUMERIC, X, y, active, **told("product"))
    reference = ByDefinition("product", X, active)
    mean, variance = reference.posterior(A, y, reference.mean_of_all(y))
    np.testing.assert_allclose(ours.posterior(A)[0], mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ours.posterior(A)[1], variance, rtol=1e-7, atol=1e-9)
    less = build_fitc(NUMERIC, X[:-77], y[:-77], active[active < _CHUNK], **told("product"))
    assert np.max(np.abs(less.posterior(A)[0] - mean)) > 1e-4  # so the last ones count


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("noisy", [False, True], ids=["", "noise"])
def test_the_pseudo_results_are_no_noisier_than_the_results_that_they_stand_for(name, noisy):
    X, y = data(name, 200)
    active = np.arange(0, 200, 8)
    noise = some_noise(200) if noisy else np.zeros(200)
    R = noise_of_the_pseudo_results(name, build_fitc(KERNELS[name], X, y, active, **told(name, noise=noise)))
    assert np.min(np.linalg.eigvalsh(R)) > -1e-12
    below = np.diag(ETA2 + noise[active]) - R
    assert np.min(np.linalg.eigvalsh(below)) > -1e-10
    if not noisy:
        assert np.all(np.diagonal(R) <= ETA2 * (1.0 + 1e-9))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("eta2", [1e-6, ETA2, 3.0])
def test_all_results_leave_less_unknown_than_the_active_ones_alone(name, eta2):
    X, y = data(name, 200)
    active, A = np.arange(0, 200, 8), queries(name, 100)
    ours = build_fitc(KERNELS[name], X, y, active, **told(name, eta2=eta2)).posterior(A)[1]
    alone = GP.build(KERNELS[name], X[active], y[active], **told(name, eta2=eta2)).posterior(A)[1]
    assert np.all(ours <= alone * (1.0 + 1e-6) + 1e-9)
    if eta2 == ETA2:
        assert np.min(ours / alone) < 0.9  # without noise, u is known from the active ones and the rest adds nothing


def test_a_wrong_variance_of_the_other_results_would_be_seen():
    """Without what u leaves unknown of a result (the subset of regressors), the mean is another one."""
    X, y = data("product", 150)
    active, A = np.arange(2, 150, 5), queries("product")
    reference = ByDefinition("product", X, active)
    right = reference.posterior(A, y, 0.0)[0]
    reference.K_inv = np.linalg.inv(reference.q(X, X) + ETA2 * np.eye(150))
    wrong = reference.posterior(A, y, 0.0)[0]
    ours = build_fitc(NUMERIC, X, y, active, **told("product", m=0.0)).posterior(A)[0]
    np.testing.assert_allclose(ours, right, atol=1e-8)
    assert np.max(np.abs(ours - wrong)) > 1e-3


# What a GP can do after it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_pending_points_keep_the_mean_and_lower_the_variance_as_a_result_there_would(name):
    X, y = data(name, 150)
    active, A, P = np.arange(0, 150, 5), queries(name), queries(name, 3, seed=5)
    before = build_fitc(KERNELS[name], X, y, active, **told(name))
    after = before.fantasize(P)
    np.testing.assert_array_equal(after.posterior(A)[0], before.posterior(A)[0])
    variance, expected = after.posterior(A)[1], before.posterior(A)[1]
    for p in P:  # one after the other: each takes away cov^2 / (var + eta2)
        one_more = before.fantasize(p[None, :])
        _, with_p, own = before.covariance_with(A, p)
        np.testing.assert_allclose(
            one_more.posterior(A)[1], before.posterior(A)[1] - with_p**2 / (own + ETA2), rtol=1e-7, atol=1e-10
        )
        before = one_more
    np.testing.assert_allclose(variance, before.posterior(A)[1], rtol=1e-8, atol=1e-11)
    assert np.all(variance <= expected * (1.0 + 1e-12))


@pytest.mark.parametrize("name", ["product", "custom", "choice", "jump and trend"])
def test_a_section_of_it_has_the_moments_and_the_gradients_of_the_whole(name):
    X, y = data(name, 150)
    gp = build_fitc(KERNELS[name], X, y, np.arange(0, 150, 5), **told(name)).fantasize(queries(name, 2, seed=6))
    held = np.array({"choice": [0.0, ROOT_HALF, 0.0], "jump and trend": [1.0, 1.0]}.get(name, [0.85]))
    piece, F = PosteriorSlice(gp, 2, held), np.random.default_rng(7).random((20, 2))
    np.testing.assert_allclose(
        piece.moments(F), gp.posterior(np.hstack([F, np.tile(held, (20, 1))])), rtol=1e-8, atol=1e-10
    )
    _, _, chain = piece.moments_and_chain(F)
    d_mean, d_variance = chain(1.0, np.zeros(20)), chain(0.0, np.ones(20))
    step = 1e-5
    for j in range(2):
        up, down = (piece.moments(F + sign * step * np.eye(2)[j]) for sign in (1.0, -1.0))
        np.testing.assert_allclose(d_mean[:, j], (up[0] - down[0]) / (2 * step), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(d_variance[:, j], (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-6)


# Where it is hard -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["se", "product"])
@pytest.mark.parametrize("distinct", [1, 6, 40])
@pytest.mark.parametrize("eta2", [1e-8, 1e-2])
def test_results_met_many_times_are_no_trouble(name, distinct, eta2):
    """Where the active set holds every point there is, the approximation is exact, whatever its multiplicity."""
    base, values = data(name, distinct)
    again = np.random.default_rng(8).integers(distinct, size=300)
    X, y = base[again], values[again] + 0.1 * np.random.default_rng(9).standard_normal(300)
    active = farthest_points(KERNELS[name], H[name], X, np.array([], dtype=np.intp), 60)
    ours = build_fitc(KERNELS[name], X, y, active, **told(name, eta2=eta2))
    exact, A = GP.build(KERNELS[name], X, y, **told(name, eta2=eta2)), queries(name)
    np.testing.assert_allclose(ours.posterior(A)[0], exact.posterior(A)[0], atol=2e-3)
    np.testing.assert_allclose(ours.posterior(A)[1], exact.posterior(A)[1], rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("where", ["active", "others"])
def test_a_result_with_endless_noise_counts_for_nothing(name, where):
    X, y = data(name, 120)
    active, A = np.arange(0, 120, 4), queries(name)
    deaf = active[::3] if where == "active" else np.arange(1, 120, 12)
    noise = np.zeros(120)
    noise[deaf] = 1e12
    y[deaf] += 100.0
    ours = build_fitc(KERNELS[name], X, y, active, **told(name, noise=noise))
    reference = ByDefinition(name, X, active, noise=noise)
    mean, variance = reference.posterior(A, y, ours.m)
    np.testing.assert_allclose(ours.posterior(A)[0], mean, atol=1e-6)
    np.testing.assert_allclose(ours.posterior(A)[1], variance, rtol=1e-5, atol=1e-9)
    assert abs(ours.m) < 2.0


@pytest.mark.parametrize("name", KERNELS)
def test_without_any_noise_it_goes_through_the_active_results(name):
    X, y = data(name, 60)
    active = np.arange(0, 60, 4)
    ours = build_fitc(KERNELS[name], X, y, active, **told(name, eta2=0.0))
    assert 0.0 < ours.eta2 <= 1e-6 * 2.0 * KAPPA0
    mean, variance = ours.posterior(X[active])
    np.testing.assert_allclose(mean, y[active], atol=1e-3)
    assert np.all(variance > 0.0)
    assert np.all(variance < 1e-5)


@pytest.mark.parametrize("profile", ["se", "matern52"])
@pytest.mark.parametrize("kappa0", [1e-2, 1e3])
@pytest.mark.parametrize("h", [0.05, 10.0])
def test_the_corners_of_the_box_of_hyperparameters_are_factored(profile, kappa0, h):
    """The smallest diagonal that a fit can choose, with kernel matrices from almost diagonal to almost singular."""
    kernel = Kernel((Radial(profile, (0, 1, 2), (0, 1, 2)),))
    X, y = data("se", 400)
    active = farthest_points(kernel, np.full(3, h), X, np.argsort(-y)[:60], 120)
    gp = build_fitc(kernel, X, y, active, kappa0=kappa0, h=np.full(3, h), eta2=1e-6 + 1e-8 * kappa0)
    mean, variance = gp.posterior(queries("se", 200))
    assert np.all(np.isfinite(mean))
    assert np.all((variance > 0.0) & (variance <= kappa0 * (1.0 + 1e-9)))
    assert np.all(np.abs(gp.posterior(X[active])[0] - y[active]) < 1.0)


# The active set -------------------------------------------------------------------------------------------------------


def none():
    return np.array([], dtype=np.intp)


@pytest.mark.parametrize("name", KERNELS)
def test_the_given_come_first_and_every_other_is_the_farthest_from_those_before(name):
    X, _ = data(name, 80)
    first = np.array([7, 3, 50], dtype=np.intp)
    chosen = farthest_points(KERNELS[name], H[name], X, first, 25)
    np.testing.assert_array_equal(chosen[:3], first)
    assert len(set(chosen.tolist())) == 25
    scaled = np.hstack([r.scaled(H[name], X) for r in KERNELS[name].radial])
    apart = np.linalg.norm(scaled[:, None, :] - scaled[None, :, :], axis=2)
    for k in range(3, 25):
        nearest = apart[:, chosen[:k]].min(axis=1)
        assert nearest[chosen[k]] == pytest.approx(np.max(nearest), rel=1e-12)
        assert nearest[chosen[k]] > 0.0


def test_more_given_than_wanted_are_cut():
    X, _ = data("se", 30)
    np.testing.assert_array_equal(farthest_points(KERNELS["se"], H["se"], X, np.arange(20, 30), 4), [20, 21, 22, 23])


def test_none_given_begins_with_the_first():
    X, _ = data("se", 30)
    chosen = farthest_points(KERNELS["se"], H["se"], X, none(), 30)
    assert chosen[0] == 0
    assert sorted(chosen.tolist()) == list(range(30))


def test_bandwidths_say_what_is_far():
    X = np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 1.0]])
    kernel = Kernel((Radial("se", (0, 1), (0, 1)),))
    np.testing.assert_array_equal(farthest_points(kernel, np.array([1.0, 1.0]), X, none(), 2), [0, 2])
    np.testing.assert_array_equal(farthest_points(kernel, np.array([0.1, 1.0]), X, none(), 2), [0, 1])


def test_twins_come_last_and_are_still_other_rows():
    base, _ = data("product", 5)
    X = np.vstack([base, base, base])
    chosen = farthest_points(NUMERIC, H["product"], X, none(), 12)
    assert len(set(chosen.tolist())) == 12
    assert sorted(c % 5 for c in chosen[:5]) == [0, 1, 2, 3, 4]


def test_options_are_spread_over_too():
    X, _ = data("choice", 60)
    h = np.array([10.0, 10.0, 0.1])  # what the option is matters most
    chosen = farthest_points(KERNELS["choice"], h, X, none(), 3)
    assert {int(np.argmax(X[c, 2:])) for c in chosen} == {0, 1, 2}


def test_the_columns_of_somebodys_own_kernel_have_no_distance():
    X, _ = data("custom", 20)
    chosen = farthest_points(KERNELS["custom"], H["custom"], X, none(), 6)
    moved = X.copy()
    moved[:, 2] = 0.0
    np.testing.assert_array_equal(farthest_points(KERNELS["custom"], H["custom"], moved, none(), 6), chosen)
    only = Kernel((), KERNELS["custom"].factors)
    assert len(set(farthest_points(only, np.empty(0), X, none(), 6).tolist())) == 6
