"""Our numbers against BoTorch's, where it is installed (`make oracle`)."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="BoTorch is an optional oracle: make oracle")
botorch = pytest.importorskip("botorch", reason="BoTorch is an optional oracle: make oracle")

from boca.gp.fit import log_likelihood  # noqa: E402
from boca.gp.kernels import Kernel, Radial  # noqa: E402
from boca.gp.model import GP, PosteriorSlice  # noqa: E402
from boca.search.acquisition import log_ei  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # BoTorch's own

D = 4
KAPPA0, ETA2, MEAN = 1.7, 0.03, 0.4
H = np.array([0.3, 0.7, 0.5, 1.2])


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, D))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def _theirs(profile: str, X: np.ndarray, y: np.ndarray):
    """Return a BoTorch model with exactly our hyper-parameters."""
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ConstantMean

    base = RBFKernel(ard_num_dims=D) if profile == "se" else MaternKernel(nu=2.5, ard_num_dims=D)
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        covar_module=ScaleKernel(base),
        mean_module=ConstantMean(),
        likelihood=GaussianLikelihood(),
        outcome_transform=None,
    ).double()
    model.covar_module.base_kernel.lengthscale = torch.tensor(H)
    model.covar_module.outputscale = KAPPA0
    model.likelihood.noise = ETA2
    model.mean_module.constant = MEAN
    return model


def _ours(profile: str) -> Kernel:
    return Kernel((Radial(profile, tuple(range(D)), tuple(range(D))),))


@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_the_posterior_is_botorchs(profile):
    X, y = _data(40)
    A = np.random.default_rng(1).random((25, D))
    gp = GP.build(_ours(profile), X, y, kappa0=KAPPA0, h=H, eta2=ETA2, m=MEAN)
    theirs = _theirs(profile, X, y)
    theirs.eval()
    with torch.no_grad():
        posterior = theirs.posterior(torch.tensor(A))
    mean, variance = gp.posterior(A)
    np.testing.assert_allclose(mean, posterior.mean.numpy()[:, 0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance, posterior.variance.numpy()[:, 0], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_the_likelihood_and_its_gradient_are_gpytorchs(profile):
    from gpytorch.mlls import ExactMarginalLogLikelihood

    X, y = _data(40)
    theirs = _theirs(profile, X, y)
    theirs.train()
    mll = ExactMarginalLogLikelihood(theirs.likelihood, theirs)
    lengthscale = theirs.covar_module.base_kernel.raw_lengthscale
    value = mll(theirs(*theirs.train_inputs), theirs.train_targets) * len(y)
    value.backward()
    theta = np.log([KAPPA0, *H, ETA2])
    ours, gradient = log_likelihood(theta, _ours(profile), X, y, np.zeros(len(y)), mean=MEAN)
    # the softplus constraint's derivative turns theirs, by the raw parameter, into ours, by the logarithm
    raw = lengthscale.detach().numpy()[0]
    by_log = lengthscale.grad.numpy()[0] * H * (1 + np.exp(-raw))
    np.testing.assert_allclose(ours, float(value), rtol=1e-5)
    np.testing.assert_allclose(gradient[1:-1], by_log, rtol=1e-4, atol=1e-5)


def test_log_expected_improvement_and_its_gradient_are_botorchs():
    from botorch.acquisition import LogExpectedImprovement

    X, y = _data(30)
    A = np.random.default_rng(2).random((50, D))
    gp = GP.build(_ours("matern52"), X, y, kappa0=KAPPA0, h=H, eta2=ETA2, m=MEAN)
    theirs = _theirs("matern52", X, y)
    theirs.eval()
    best = float(y.max())
    points = torch.tensor(A, requires_grad=True)
    value = LogExpectedImprovement(theirs, best_f=best)(points[:, None, :])
    value.sum().backward()
    mean, variance, chain = PosteriorSlice(gp, D, np.empty(0)).moments_and_chain(A)
    sigma = np.sqrt(variance)
    ours, by_mu, by_sigma = log_ei(mean, sigma, best)
    gradient = chain(by_mu, by_sigma / (2 * sigma))
    np.testing.assert_allclose(ours, value.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient, points.grad.numpy(), rtol=1e-4, atol=1e-5)
