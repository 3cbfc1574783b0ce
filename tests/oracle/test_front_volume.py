"""Our hypervolumes against pymoo's, and our expected improvement against BoTorch's, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest

from boca.domain.hypervolume import Region, hypervolume, in_order
from boca.search.hypervolume import LogEHVI

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs


def cloud(n, m, seed):
    Y = np.abs(np.random.default_rng(seed).standard_normal((n, m)))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True) ** 0.9


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 10, 60])
@pytest.mark.parametrize("seed", range(3))
def test_a_hypervolume_is_that_of_pymoo(m, n, seed):
    indicators = pytest.importorskip("pymoo.indicators.hv", reason="pymoo is an optional oracle: make oracle")
    Y, reference = cloud(n, m, seed), np.full(m, 0.05)
    theirs = indicators.HV(ref_point=-reference)(-Y)  # pymoo minimizes
    assert hypervolume(Y, reference) == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_expected_improvement_is_that_of_botorch(m):
    torch = pytest.importorskip("torch", reason="BoTorch is an optional oracle: make oracle")
    analytic = pytest.importorskip("botorch.acquisition.multi_objective.analytic")
    from botorch.models.deterministic import GenericDeterministicModel
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
    from gpytorch.distributions import MultitaskMultivariateNormal

    reference, Y = np.full(m, 0.05), cloud(12, m, 0)
    rng = np.random.default_rng(1)
    mu, sigma = rng.random((6, m)), 0.05 + 0.4 * rng.random((6, m))

    class Known(GenericDeterministicModel):
        def posterior(self, X, **more):
            k = X[..., 0, 0].long()
            mean = torch.tensor(mu)[k].unsqueeze(-2)
            covariance = torch.diag_embed(torch.tensor(sigma)[k] ** 2)
            return GPyTorchPosterior(MultitaskMultivariateNormal(mean, covariance))

    model = Known(f=lambda X: torch.tensor(mu)[X[..., 0].long()], num_outputs=m)
    partitioning = NondominatedPartitioning(ref_point=torch.tensor(reference), Y=torch.tensor(Y))
    theirs = analytic.ExpectedHypervolumeImprovement(model, reference.tolist(), partitioning)
    found = theirs(torch.arange(6, dtype=torch.double).reshape(6, 1, 1)).numpy()
    ours = LogEHVI(Region.above(reference, in_order(Y, reference)))
    assert np.exp(ours.value(mu, sigma)) == pytest.approx(found, rel=1e-6)
