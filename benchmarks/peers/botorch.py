"""BoTorch: noisy expected improvement at the target, and two methods that choose a fidelity with every point.

    symbol      meaning                                                                    shape
    ----------  -------------------------------------------------------------------------  ------
    D           coordinates of a query: those of x, options of a Choice one each, then z   int
    X, Y        queries that were answered, in [0, 1]^D, and their scores                  (n, D), (n, 1)

The models, acquisitions and starts are those of BoTorch's tutorials: `SingleTaskGP` with 2 (d + 1) Sobol points for
qLogNEI; `SingleTaskMultiFidelityGP` with 2 (d + p + 1) uniform queries, fidelities included, for qMFKG and qMFMES (16
in the six dimensions and one fidelity of the tutorial).  The fit starts afresh at every suggestion, as it does there.
Integers are searched as reals and rounded, an option is the largest of its coordinates.

The two multi-fidelity methods are told the true cost.  They seldom query the target, and what they would use there is
not their query but the maximizer of the posterior mean: at every quarter of the budget, the last one at its end, they
therefore pay for that point at the target.  Otherwise there would be nothing to compare.  A fidelity within a
thousandth of the target counts as the target.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.versions import version
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, FloatArray, Point, Space
from boca.domain.trial import History, Suggestion
from boca.problems import Benchmark

if TYPE_CHECKING:
    from torch import Tensor

_NEAR = 1e-3  # unit coordinates this close to the target are the target
_ADAM_STEPS = 500
_CANDIDATES = 1000  # points over which qMFMES samples maxima, as in the tutorial
_SOBOL = "peer_sobol"
_CHECK = "peer_check"


# The methods --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QLogNEI:
    """`qLogNoisyExpectedImprovement` at the target."""

    restarts: int = 10
    raw_samples: int = 512
    botorch: str = field(default_factory=lambda: version("botorch"))

    def check(self, problem: Problem) -> None:
        """Load the library before the first suggestion, whose time is recorded."""
        import botorch.models  # noqa: F401

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        if len(history) < 2 * (len(problem.space) + 1):
            return _sobol_at_target(problem, history, rng)
        with _quiet_torch(rng):
            u = self._choice(problem, history)
        return Suggestion(decode(problem.space, u), problem.target, _why("The largest qLogNEI at the target."))

    def _choice(self, problem: Problem, history: History) -> FloatArray:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.models import SingleTaskGP

        X, Y = _data(problem, history, fidelities=False)
        acquisition = qLogNoisyExpectedImprovement(_fitted(SingleTaskGP(X, Y)), X_baseline=X, prune_baseline=True)
        u, _ = _maximum(acquisition, X.shape[-1], restarts=self.restarts, raw_samples=self.raw_samples)
        return u


@dataclass(frozen=True)
class QMFKG:
    """`qMultiFidelityKnowledgeGradient` with the true cost; the tutorial has 128 fantasies, 5 restarts, 128 samples."""

    fantasies: int = 128
    restarts: int = 5
    raw_samples: int = 128
    checks: int = 4
    botorch: str = field(default_factory=lambda: version("botorch"))

    def check(self, problem: Problem) -> None:
        """Refuse fidelities that this model has no kernel for; load the library."""
        _refuse_fidelities(problem)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        if len(history) < start_of_many_fidelities(problem):
            return _uniform(problem, rng)
        with _quiet_torch(rng):
            model = _multi_fidelity_model(problem, history)
            recommended, mean = _recommended(problem, model)
            if _checks_made(history) < self.checks:
                u = self._choice(problem, model, mean)
                if _fits(problem, history, budget, u, checks=self.checks):
                    return _chosen(problem, u, name="qMFKG")
        return _check(problem, history, recommended)

    def _choice(self, problem: Problem, model: Any, mean: Tensor) -> FloatArray:
        from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient

        acquisition = qMultiFidelityKnowledgeGradient(
            model,
            num_fantasies=self.fantasies,
            current_value=mean,
            cost_aware_utility=_utility(problem),
            project=_projection(problem),
        )
        u, _ = _maximum(acquisition, _dimensions(problem), restarts=self.restarts, raw_samples=self.raw_samples)
        return u


def qmfkg_few(benchmark: Benchmark) -> QMFKG:
    """Return qMFKG with an eighth of the fantasies, if half a minute or more per suggestion is too long."""
    return QMFKG(fantasies=16, restarts=3, raw_samples=64)


@dataclass(frozen=True)
class QMFMES:
    """`qMultiFidelityMaxValueEntropy` with the true cost."""

    restarts: int = 5
    raw_samples: int = 128
    checks: int = 4
    botorch: str = field(default_factory=lambda: version("botorch"))

    def check(self, problem: Problem) -> None:
        """Refuse fidelities that this model has no kernel for; load the library."""
        _refuse_fidelities(problem)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        if len(history) < start_of_many_fidelities(problem):
            return _uniform(problem, rng)
        with _quiet_torch(rng):
            model = _multi_fidelity_model(problem, history)
            if _checks_made(history) < self.checks:
                u = self._choice(problem, model)
                if _fits(problem, history, budget, u, checks=self.checks):
                    return _chosen(problem, u, name="qMFMES")
            recommended, _ = _recommended(problem, model)
        return _check(problem, history, recommended)

    def _choice(self, problem: Problem, model: Any) -> FloatArray:
        import torch
        from botorch.acquisition.max_value_entropy_search import qMultiFidelityMaxValueEntropy

        D = _dimensions(problem)
        acquisition = qMultiFidelityMaxValueEntropy(
            model,
            torch.rand(_CANDIDATES, D, dtype=torch.double),
            cost_aware_utility=_utility(problem),
            project=_projection(problem),
        )
        u, _ = _maximum(acquisition, D, restarts=self.restarts, raw_samples=self.raw_samples)
        return u


# Coordinates --------------------------------------------------------------------------------------------------------


def encode(space: Space, points: list[Point]) -> FloatArray:  # n points -> (n, width)
    """Return unit coordinates; a Choice has one for each option, 1 where it is chosen."""
    columns = []
    for name, parameter in space.items():
        values = [point[name] for point in points]
        if isinstance(parameter, Choice):
            columns += [[float(value == option) for value in values] for option in parameter.choices]
        else:
            columns.append([float(u) for u in parameter.to_unit(values)])
    return np.array(columns, dtype=float).T.reshape(len(points), width(space))


def decode(space: Space, u: FloatArray) -> Point:  # (width,)
    """Return the point that these coordinates stand for, rounded where there is no such point."""
    point: Point = {}
    rest = [float(value) for value in u]
    for name, parameter in space.items():
        if isinstance(parameter, Choice):
            mine, rest = rest[: parameter.levels], rest[parameter.levels :]
            point[name] = parameter.choices[int(np.argmax(mine))]
        else:
            point[name] = parameter.from_unit(rest.pop(0))
    return point


def width(space: Space) -> int:
    """Return how many coordinates a point has."""
    return sum(p.levels if isinstance(p, Choice) else 1 for p in space.values())


def _dimensions(problem: Problem) -> int:
    return width(problem.space) + len(problem.fidelity)


def _data(problem: Problem, history: History, *, fidelities: bool) -> tuple[Tensor, Tensor]:
    """Return queries and scores; a failed trial has the worst score so far."""
    import torch

    trials = history.finished
    X = encode(problem.space, [t.x for t in trials])
    if fidelities:
        X = np.hstack([X, problem.fidelity.to_unit([t.z for t in trials])])
    return torch.tensor(X, dtype=torch.double), torch.tensor(history.scores(problem.direction))[:, None]


# The start ----------------------------------------------------------------------------------------------------------


def start_of_many_fidelities(problem: Problem) -> int:
    """Return how many uniform queries come before the model."""
    return 2 * (len(problem.space) + len(problem.fidelity) + 1)


def _sobol_at_target(problem: Problem, history: History, rng: np.random.Generator) -> Suggestion:
    from torch.quasirandom import SobolEngine

    seed = history[0].why[_SOBOL] if len(history) else int(rng.integers(2**31))
    d = len(problem.space)
    u = SobolEngine(d, scramble=True, seed=seed).draw(len(history) + 1)[-1:].double().numpy()
    x = problem.space.from_unit(problem.space.snap(u)[0])
    why = {"reason": "Start: a Sobol point at the target.", "phase": "start", _SOBOL: seed}
    return Suggestion(x, problem.target, why)


def _uniform(problem: Problem, rng: np.random.Generator) -> Suggestion:
    spaces = (problem.space, problem.fidelity)
    x, z = (space.from_unit(space.snap(rng.random((1, len(space))))[0]) for space in spaces)
    return Suggestion(x, z, {"reason": "Start: a uniform point at a uniform fidelity.", "phase": "start"})


# Models and acquisitions --------------------------------------------------------------------------------------------


def _fitted(model: Any) -> Any:
    """Fit as the tutorials do; where all attempts of that fail, by Adam."""
    from botorch.exceptions.errors import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.optim.fit import fit_gpytorch_mll_torch
    from gpytorch.mlls import ExactMarginalLogLikelihood

    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    try:
        fit_gpytorch_mll(likelihood)
    except ModelFittingError:
        fit_gpytorch_mll_torch(likelihood, step_limit=_ADAM_STEPS)
    return model


def _multi_fidelity_model(problem: Problem, history: History) -> Any:
    from botorch.models import SingleTaskMultiFidelityGP

    X, Y = _data(problem, history, fidelities=True)
    return _fitted(SingleTaskMultiFidelityGP(X, Y, data_fidelities=list(_target(problem))))


def _target(problem: Problem) -> dict[int, float]:
    """Return the target's unit coordinates by column."""
    first = width(problem.space)
    return {first + i: float(u) for i, u in enumerate(problem.fidelity.to_unit([problem.target])[0])}


def _projection(problem: Problem) -> Any:
    from functools import partial

    from botorch.acquisition.utils import project_to_target_fidelity

    return partial(project_to_target_fidelity, target_fidelities=_target(problem), d=_dimensions(problem))


def _maximum(
    acquisition: Any, D: int, *, restarts: int, raw_samples: int
) -> tuple[FloatArray, Tensor]:  # u (D,), value
    import torch
    from botorch.optim import optimize_acqf

    u, value = optimize_acqf(
        acquisition,
        bounds=torch.stack([torch.zeros(D, dtype=torch.double), torch.ones(D, dtype=torch.double)]),
        q=1,
        num_restarts=restarts,
        raw_samples=raw_samples,
        options={"maxiter": 200},
    )
    return u[0].detach().numpy(), value.detach()


def _recommended(problem: Problem, model: Any) -> tuple[FloatArray, Tensor]:  # u (D - p,), mean
    """Return the maximizer of the posterior mean at the target, with that mean."""
    from botorch.acquisition import PosteriorMean
    from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction

    target = _target(problem)
    at_target = FixedFeatureAcquisitionFunction(
        PosteriorMean(model), d=_dimensions(problem), columns=list(target), values=list(target.values())
    )
    return _maximum(at_target, width(problem.space), restarts=10, raw_samples=512)


def _utility(problem: Problem) -> Any:
    """Return the gain per unit of true cost, in units of the target's."""
    import torch
    from botorch.acquisition.cost_aware import InverseCostWeightedUtility
    from botorch.models.deterministic import GenericDeterministicModel

    p = len(problem.fidelity)

    def cost(X: Tensor) -> Tensor:  # (..., D) -> (..., 1)
        Z = X[..., -p:]
        values, slopes = costs_and_slopes(problem, Z.detach().reshape(-1, p).numpy())
        at = torch.from_numpy(values).reshape(*Z.shape[:-1], 1)
        slope = torch.from_numpy(slopes).reshape(Z.shape)
        return at + (slope * (Z - Z.detach())).sum(dim=-1, keepdim=True)  # the value, with its slope for autograd

    return InverseCostWeightedUtility(GenericDeterministicModel(cost))


def costs_and_slopes(problem: Problem, Z: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, p) -> (m,), (m, p)
    """Return the cost at unit coordinates as a share of the target's, and its slopes by central differences."""

    def cost(rows: FloatArray) -> FloatArray:
        return np.array([problem.cost(problem.fidelity.from_unit(row)) for row in rows]) / problem.target_cost

    slopes = np.empty_like(Z)
    for i, parameter in enumerate(problem.fidelity.values()):
        step = 1e-5 if isinstance(parameter, Float) else 1.0 / (parameter.levels - 1)
        above, below = Z.copy(), Z.copy()
        above[:, i] = np.minimum(Z[:, i] + step, 1.0)
        below[:, i] = np.maximum(Z[:, i] - step, 0.0)
        slopes[:, i] = (cost(above) - cost(below)) / (above[:, i] - below[:, i])
    return cost(Z), slopes


# Checks at the target -----------------------------------------------------------------------------------------------


def _fits(problem: Problem, history: History, budget: Budget, u: FloatArray, *, checks: int) -> bool:
    """Whether after this choice a check can still be paid for within the next quarter of the budget."""
    limit = budget.total * (_checks_made(history) + 1) / checks
    return budget.spent + problem.cost(_fidelity(problem, u)) + problem.target_cost <= limit * (1.0 + 1e-12)


def _chosen(problem: Problem, u: FloatArray, *, name: str) -> Suggestion:
    x = decode(problem.space, u[: width(problem.space)])
    return Suggestion(x, _fidelity(problem, u), _why(f"The largest {name} per unit of cost."))


def _fidelity(problem: Problem, u: FloatArray) -> Point:
    v = u[width(problem.space) :]
    target = problem.fidelity.to_unit([problem.target])[0]
    return problem.target if np.all(np.abs(v - target) <= _NEAR) else problem.fidelity.from_unit(v)


def _check(problem: Problem, history: History, recommended: FloatArray) -> Suggestion:
    why = _why("The largest posterior mean at the target, to be checked there.")
    return Suggestion(decode(problem.space, recommended), problem.target, {**why, _CHECK: _checks_made(history) + 1})


def _checks_made(history: History) -> int:
    return sum(_CHECK in trial.why for trial in history)


# The rest -----------------------------------------------------------------------------------------------------------


def _why(reason: str) -> dict[str, Any]:
    return {"reason": reason, "phase": "model"}


def _refuse_fidelities(problem: Problem) -> None:
    if not problem.fidelity or problem.fidelity.has_choices:
        raise InvalidInput(
            f"BoTorch's multi-fidelity model needs one or more fidelities that are numbers; got {problem.fidelity!r}."
        )
    import botorch.models  # noqa: F401


@contextmanager
def _quiet_torch(rng: np.random.Generator) -> Iterator[None]:
    """Let torch draw from this generator's seed and keep its warnings to itself, for the time of one suggestion."""
    import torch

    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(int(rng.integers(2**31)))
        yield
