"""Points of a problem as rows of features, and the kernel and the prior on them.

symbol   shape    meaning
U        (n, d)   unit coordinates of x
Z        (n, p)   unit coordinates of z
F        (n, D)   features: numeric x, those on arcs, indicators of x choices, numeric z, indicators of z choices; if
                  extended, z == z*; if there are curves, the number of the curve, -1 for none
h        (H,)     length scales in the order of the space and then of the fidelity space; then other kernel parameters

A parameter that may be inactive has features in which every active value is equally far from "inactive", and two
inactive ones coincide.  A choice has its indicators, all zero if it is inactive.  A number in [0, 1] lies on a quarter
of a circle, two columns, and "inactive" is the center.  So the distance of active and inactive is the radius over the
length scale that is learned for the parameter, and the kernel stays a covariance, because it sees nothing but distances
in a Euclidean space.  If active and inactive have a learned distance of their own, each such parameter has one more
column, after all others of x: 1 where it is inactive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import BoolArray, Choice, FloatArray, Parameter, Point, Space
from boca.gp import fit as gp_fit
from boca.gp.converging import Converging
from boca.gp.curve_noise import NO_CURVE, CurveNoise
from boca.gp.kernels import Custom, Jump, Kernel, KernelFactor, KernelTerm, Profile, Radial, Trend
from boca.gp.noise import NoiseTerm, RisingNoise
from boca.gp.parameters import Block, Prior

# A covariance of two fidelities, which are mappings from name to arrays that broadcast against each other.
FidelityKernel: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]

FidelityAxis: TypeAlias = Literal["as_declared", "learned", "fading"]
"""Fidelities that are positive numbers "as_declared", on a "learned" axis, or on one with a part that fades towards the
target.  Others are always as declared: a power of a logarithm needs a ratio between two values."""

# In units of the unit cube; beyond ten, f hardly depends on the parameter.
_LOG_LENGTH_SCALE_BOUNDS = (math.log(0.01), math.log(10.0))
_AT_BOUND = 1e-6  # of a logarithm: closer to a bound is at it
_KERNEL_CHECKED_AT = 64  # fidelities: a user's kernel is checked for eigenvalues there, at a cost of their number cubed
_SYMMETRY_TOLERANCE = 1e-8  # of the largest covariance: a user's kernel may round
_LEAST_EIGENVALUE = -1e-6  # likewise
_ARC = 0.5 * math.pi  # angle of the arc of a number that may be inactive: a chord is at least 0.9 of its arc
_KAPPA0 = Block("kappa0", deviation=1.5, low=math.log(1e-2), high=math.log(1e3), unit="variance")
_ETA2 = Block("eta2", mean=math.log(0.01), deviation=2.0, low=math.log(1e-6), high=math.log(2.0), unit="variance")


@dataclass(frozen=True)
class Encoding:
    """Points of a problem as rows of features, and the kernel on them."""

    problem: Problem
    profile: Profile
    fidelity_kernel: FidelityKernel | None = None
    is_extended: bool = False
    """Whether the kernel has a jump at the target and a trend towards it: all x may rise or fall together with z."""
    axis: FidelityAxis = "as_declared"
    """How numeric fidelities are seen: a learned axis has a trend from the start, and may have a part that fades."""
    fidelity_profile: Profile = "se"
    """The kernel on numeric fidelities, unless there is a `fidelity_kernel`."""
    has_curves: bool = False
    """Whether results belong to curves, each of which may have a draw of noise of its own."""
    learns_inactive: bool = False
    """Whether active and inactive have a distance of their own, beside that of the arc: a column for each parameter
    that may be inactive, and one length scale for all of these columns, "h_when"."""

    def extended(self) -> Encoding:
        """Return the encoding with a jump at the target and a trend towards it."""
        return replace(self, is_extended=True)

    def features(
        self, U: FloatArray, Z: FloatArray, curves: FloatArray | None = None
    ) -> FloatArray:  # (n, d), (n, p), (n,) -> (n, D)
        F = np.hstack([self.x_features(U), self.z_features(Z)])
        if self.has_curves and curves is not None:
            F[:, -1] = curves
        return F

    def x_features(self, U: FloatArray) -> FloatArray:  # (n, d) -> (n, Dx)
        features = _indicators(self.problem.space, U, self.x_numeric, self._x_arcs)
        return np.column_stack([features, U[:, self._x_optional] < 0.0]) if self._x_optional else features

    def x_gradient(self, U: FloatArray, by_features: FloatArray) -> FloatArray:  # (n, d), (n, Dx) -> (n, d)
        """Return derivatives by unit coordinates from those by features; zero for choices and for what is inactive."""
        gradient = np.zeros_like(U)
        count = len(self.x_numeric)
        gradient[:, self.x_numeric] = by_features[:, :count]
        arcs = self._x_arcs
        if arcs:
            across, along = (by_features[:, count + k : count + 2 * len(arcs) : 2] for k in (0, 1))
            angle = _ARC * U[:, arcs]
            slope = along * np.cos(angle) - across * np.sin(angle)
            gradient[:, arcs] = np.where(U[:, arcs] >= 0.0, slope, 0.0)
        return gradient

    def z_features(self, Z: FloatArray) -> FloatArray:  # (n, p) -> (n, Dz)
        if self.fidelity_kernel:
            return Z
        fidelity = self.problem.fidelity
        features = _indicators(fidelity, self._on_logs(Z), _numbers(fidelity), [])
        if self.is_extended:
            features = np.column_stack([features, (self._unit_target == Z).all(axis=1)])
        return np.column_stack([features, np.full(len(Z), NO_CURVE)]) if self.has_curves else features

    @cached_property
    def x_numeric(self) -> list[int]:
        """The unit coordinates that are numeric and always active, in the order of their columns."""
        return _numbers(self.problem.space)

    @cached_property
    def _x_arcs(self) -> list[int]:
        """The unit coordinates that are numeric and may be inactive: two columns each."""
        return _arcs(self.problem.space)

    @cached_property
    def _x_optional(self) -> list[int]:
        """The unit coordinates that may be inactive, if that has a distance of its own: a column each."""
        return np.flatnonzero(self.problem.space.optional).tolist() if self.learns_inactive else []

    @cached_property
    def x_width(self) -> int:
        return len(_column_owners(self.problem.space)) + len(self._x_optional)

    @cached_property
    def target(self) -> FloatArray:  # (Dz,)
        return np.ravel(self.z_features(self._unit_target))

    @property
    def is_learned(self) -> bool:
        """Whether the axis of numeric fidelities is learned."""
        return self.axis != "as_declared" and not self.fidelity_kernel

    def _on_logs(self, Z: FloatArray) -> FloatArray:  # (n, p) -> (n, p)
        """Return fidelities that are positive on a log scale, if their axis is learned: its power does the rest."""
        if not self.is_learned:
            return Z
        seen, star = Z.copy(), self._unit_target[0]
        for j, parameter in enumerate(self.problem.fidelity.values()):
            if _is_positive(parameter) and not isinstance(parameter, Choice) and not parameter.log:
                ratio = parameter.high / parameter.low
                seen[:, j] = np.log1p(Z[:, j] * (ratio - 1.0)) / math.log(ratio)
                at_target = math.log1p(star[j] * (ratio - 1.0)) / math.log(ratio)
                seen[Z[:, j] == star[j], j] = at_target  # in every bit, so that the target is recognized
        return seen

    @cached_property
    def _unit_target(self) -> FloatArray:  # (1, p)
        return self.problem.fidelity.to_unit([self.problem.target])

    def distance_from_target(self, F: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        """Return how far every fidelity is from the target: 0 there, 1 if all parameters are at the other end."""
        p = len(self.problem.fidelity)
        z_width = len(self.target) - (self.is_extended and not self.fidelity_kernel) - self.has_curves
        steps = F[:, self.x_width : self.x_width + z_width] - self.target[:z_width]
        if self.fidelity_kernel:  # one column per parameter: any other option has distance 1
            options = [not parameter.is_ordered for parameter in self.problem.fidelity.values()]
            steps = np.where(options, steps != 0.0, steps)
        return np.asarray(np.sqrt(np.square(steps).sum(axis=1) / max(p, 1)))

    def is_target(self, F: FloatArray) -> BoolArray:  # (n, D) -> (n,)
        z_width = len(self.target) - self.has_curves
        return np.asarray(np.equal(F[:, self.x_width : self.x_width + z_width], self.target[:z_width]).all(axis=1))

    @cached_property
    def kernel(self) -> Kernel:
        """The product of a kernel on the domain and one on the fidelities.  [K17, eq. 3]"""
        d = len(self.problem.space)
        when = d + (0 if self.fidelity_kernel else len(self.problem.fidelity))  # in h, after the length scales of both
        owners = [*_column_owners(self.problem.space), *(when for _ in self._x_optional)]
        numeric = len(self.x_numeric) + 2 * len(self._x_arcs)
        columns = tuple(range(len(owners)))
        groups: list[tuple[Profile, tuple[int, ...], tuple[int, ...]]]
        if self.profile == "se":
            groups = [("se", columns, tuple(owners))]
        else:
            groups = [
                (self.profile, columns[:numeric], tuple(owners[:numeric])),
                ("se", columns[numeric:], tuple(owners[numeric:])),
            ]
        factors: list[KernelFactor] = []
        terms: list[KernelTerm] = []
        if self.fidelity_kernel:
            columns = tuple(self.x_width + j for j in range(len(self.problem.fidelity)))
            factors.append(Custom(self._named_kernel, self._named_variance, columns))
        else:
            z_owners = _column_owners(self.problem.fidelity)
            z_columns = tuple(self.x_width + j for j in range(len(z_owners)))
            place = when + bool(self._x_optional)  # in h, after the length scales
            learned = self._learned_columns
            plain = [j for j in range(len(z_owners)) if j not in learned]
            count = len(z_owners) - _option_columns(self.problem.fidelity)
            numbers = [] if self.fidelity_profile == "se" else [j for j in plain if j < count]
            for profile, part in ((self.fidelity_profile, numbers), ("se", [j for j in plain if j not in numbers])):
                groups.append((profile, tuple(z_columns[j] for j in part), tuple(d + z_owners[j] for j in part)))
            if learned:
                converging = Converging(
                    tuple(z_columns[j] for j in learned),
                    tuple(float(self.target[j]) for j in learned),
                    tuple(float(max(self.target[j], 1.0 - self.target[j])) for j in learned),
                    tuple(d + z_owners[j] for j in learned),
                    place,
                    fades=self.axis == "fading",
                )
                factors.append(converging)
                place += sum(block.size for block in converging.blocks)
            if self.is_extended:
                factors.append(Jump(self.x_width + len(z_owners), place))
                place += 1
            if self.is_extended or learned:
                terms.append(Trend(z_columns, tuple(self.target[: len(z_owners)]), place))
                place += 1
            if self.has_curves:
                terms.append(CurveNoise(self.x_width + len(self.target) - 1, place))
        return Kernel(tuple(Radial(*group) for group in groups if group[1]), tuple(factors), tuple(terms))

    @cached_property
    def _learned_columns(self) -> list[int]:
        """The columns of z, among those of numbers, whose axis is learned."""
        numbers = [parameter for parameter in self.problem.fidelity.values() if parameter.is_ordered]
        return [j for j, parameter in enumerate(numbers) if _is_positive(parameter)] if self.is_learned else []

    @cached_property
    def landmarks(self) -> list[tuple[str, float, Point]]:
        """Name, value and fidelity at the far end of every number and halfway to it, the others at the target.

        Halfway is on a log scale for positive numbers.  There are none if fidelities are taken as declared.
        """
        found = []
        for name, parameter in self.problem.fidelity.items() if self.is_learned else ():
            if isinstance(parameter, Choice):
                continue
            star = float(self.problem.target[name])
            unit = float(parameter.to_unit([star])[0])
            far = float(parameter.ends[0] if unit >= 0.5 else parameter.ends[1])
            middle = math.sqrt(far * star) if parameter.low > 0 else 0.5 * far + 0.5 * star
            for value in (far, middle):
                nearest = parameter.from_unit(float(parameter.snap(np.array([parameter.to_unit([value])[0]]))[0]))
                found.append((name, float(nearest), {**self.problem.target, name: nearest}))
        return found

    @cached_property
    def noise(self) -> tuple[NoiseTerm, ...]:
        """The components that the noise may have beside its constant variance."""
        return (RisingNoise(self.distance_from_target),) if self.problem.fidelity else ()

    def _named_kernel(self, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, p), (m, p) -> (n, m)
        """Call the user's kernel with mappings by name, in the user's own units."""
        a = {name: values[:, None] for name, values in self.problem.fidelity.columns(A).items()}
        b = {name: values[None, :] for name, values in self.problem.fidelity.columns(B).items()}
        return self._call_kernel(a, b, (len(A), len(B))) / self._unit

    def _named_variance(self, A: FloatArray) -> FloatArray:  # (n, p) -> (n,)
        a = self.problem.fidelity.columns(A)
        return self._call_kernel(a, a, (len(A),)) / self._unit

    @cached_property
    def _unit(self) -> float:
        """The variance at the target, by which a user's kernel is divided because kappa0 is the scale."""
        star = self.problem.fidelity.columns(self.target[None, :])
        variance = float(self._call_kernel(star, star, (1,))[0])
        if not variance > 0:
            raise InvalidInput(
                f"fidelity_kernel(z, z) is {variance!r} at the target; a variance must be positive. "
                "Return the covariance of a and b."
            )
        return variance

    def _call_kernel(self, a: Mapping[str, Any], b: Mapping[str, Any], shape: tuple[int, ...]) -> FloatArray:
        assert self.fidelity_kernel is not None
        try:
            K = np.broadcast_to(np.asarray(self.fidelity_kernel(a, b), dtype=float), shape)
        except KeyError as error:
            names = ", ".join(map(repr, self.problem.fidelity)) or "none, so leave fidelity_kernel out"
            raise InvalidInput(
                f"fidelity_kernel(a, b) raised {error!r}; it must look up the names of fidelities. "
                f"The fidelities are: {names}."
            ) from error
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"fidelity_kernel(a, b) raised {error!r}; it must return covariances that broadcast to {shape}. "
                "Its arguments are mappings from name to NumPy arrays: use NumPy functions."
            ) from error
        if not np.all(np.isfinite(K)):
            raise InvalidInput(f"fidelity_kernel(a, b) returned {K!r}; covariances must be finite.")
        return K

    def check_fidelity_kernel(self) -> None:
        """Refuse a user's kernel that is not a covariance."""
        Z = np.vstack([self.problem.grid[1], self.target])
        own = self._named_variance(Z)
        if not np.all(own > 0):
            nowhere = self.problem.fidelity.from_unit(Z[int(np.argmin(own))])
            raise InvalidInput(
                f"fidelity_kernel(z, z) is {np.min(own):.3g} at z={nowhere!r}; a variance must be positive. "
                "Return the covariance of a and b."
            )
        some = np.vstack([Z[:: max(1, len(Z) // _KERNEL_CHECKED_AT)], self.target])
        K = self._named_kernel(some, some)
        scale = float(np.max(np.abs(K)))
        if not np.allclose(K, K.T, atol=_SYMMETRY_TOLERANCE * scale):
            raise InvalidInput(
                "fidelity_kernel(a, b) differs from fidelity_kernel(b, a); a covariance must be symmetric."
            )
        lowest = float(np.min(np.linalg.eigvalsh(K)))
        if lowest < _LEAST_EIGENVALUE * scale:
            raise InvalidInput(
                f"fidelity_kernel(a, b) has the eigenvalue {lowest:.3g} on the problem's fidelities; a covariance must "
                "be positive semi-definite."
            )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The hyperparameters in the order of theta, without those of the noise beside its constant variance."""
        d, p = len(self.problem.space), 0 if self.fidelity_kernel else len(self.problem.fidelity)
        scale = partial(Block, deviation=1.0, low=_LOG_LENGTH_SCALE_BOUNDS[0], high=_LOG_LENGTH_SCALE_BOUNDS[1])
        scales = [scale("h_x", d, math.log(0.4 * math.sqrt(self.problem.space.widest)))]
        if not self.fidelity_kernel:
            scales.append(scale("h_z", p))
        if self._x_optional:
            scales.append(scale("h_when", 1))
        return gp_fit.theta_blocks(_KAPPA0, scales, _ETA2, self.kernel)

    def prior(self, *, informative: bool, noise: Sequence[NoiseTerm] = ()) -> Prior:
        """Return the prior on theta, with the strengths of these components of the noise at its end."""
        return Prior.from_blocks([*self.blocks, *(term.block for term in noise)], informative=informative)

    def fidelity_covariance(self, h: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return k(z, z*), k(z, z) for rows of Z (m, p), and k(z*, z*): of the kernel on fidelities, without terms."""
        if self.fidelity_kernel:
            star = self.target[None, :]
            return self._named_kernel(Z, star)[:, 0], self._named_variance(Z), float(self._named_variance(star)[0])
        A = np.hstack([np.zeros((len(Z), self.x_width)), self.z_features(Z)])
        star = np.concatenate([np.zeros(self.x_width), self.target])[None, :]
        kernel = replace(self.kernel, terms=())
        return kernel.value(h, A, star)[:, 0], kernel.diagonal(h, A), 1.0


def _is_positive(parameter: Parameter) -> bool:
    """Whether a parameter is a number with a ratio between any two values."""
    return not isinstance(parameter, Choice) and parameter.low > 0


def scales_at_bounds(
    problem: Problem, blocks: Sequence[Block], theta: Sequence[float]
) -> dict[str, list[str]]:  # theta (k,)
    """Return the parameters whose length scales are at a bound, under "h_x" and "h_z"; without any, no key."""
    names = {"h_x": list(problem.space), "h_z": list(problem.fidelity)}
    found: dict[str, list[str]] = {}
    start = 0
    for block in blocks:
        part = theta[start : start + block.size]
        start += block.size
        for name, value in zip(names.get(block.name, []), part, strict=False):
            if not block.low + _AT_BOUND < value < block.high - _AT_BOUND:
                found.setdefault(block.name, []).append(name)
    return found


def _option_columns(space: Space) -> int:
    """Return how many columns are indicators of an option."""
    return sum(len(parameter.options) for parameter in space.values())


def _numbers(space: Space) -> list[int]:
    """Return the parameters that are numbers and always active."""
    return [j for j, q in enumerate(space.values()) if q.is_ordered and not space.optional[j]]


def _arcs(space: Space) -> list[int]:
    """Return the parameters that are numbers and may be inactive."""
    return [j for j, q in enumerate(space.values()) if q.is_ordered and space.optional[j]]


def _column_owners(space: Space) -> list[int]:
    """Return the parameter of each feature column: numbers first, two for each arc, then a column for each option."""
    arcs = [j for j in _arcs(space) for _ in range(2)]
    return [*_numbers(space), *arcs, *(j for j, parameter in enumerate(space.values()) for _ in parameter.options)]


def _indicators(space: Space, U: FloatArray, numbers: list[int], arcs: list[int]) -> FloatArray:  # (n, d) -> (n, D)
    if not space.has_choices and not arcs:
        return U
    columns = [U[:, j] for j in numbers]
    if arcs:
        angle = _ARC * U[:, arcs]
        radius = (angle >= 0.0) / _ARC  # so that the arc is as long as the range
        both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
        columns.append(both.reshape(len(U), 2 * len(arcs)))
    for j, parameter in enumerate(space.values()):
        if parameter.options:
            code = np.rint(U[:, j] * (len(parameter.options) - 1))
            columns.extend((code == option) * math.sqrt(0.5) for option in range(len(parameter.options)))
    return np.column_stack(columns)
