"""Fit a simulation to measurements: how well does a rod conduct heat, and how fast does it lose it to the air?

    python examples/heat.py [TARGETS]

The fidelity is the grid; twice the cells take twice the steps, so the cost grows with the square.  The measurements
come from a formula that the optimizer does not see.
"""

import sys

import numpy as np
from scipy.linalg import solve_banded

import boca

TRUTH = {"conductivity": 0.021, "loss": 0.13}
PLACES, TIMES = np.array([0.15, 0.3, 0.5, 0.7]), np.array([0.5, 1.0, 2.0, 4.0])
SPACE = boca.Space(conductivity=boca.Float(1e-3, 1.0, log=True), loss=boca.Float(1e-3, 1.0, log=True))
GRID = boca.Space(cells=boca.Int(16, 512, log=True))


def formula(conductivity, loss):
    """Return the temperatures of a rod that begins as two waves and is kept cold at its ends."""
    waves = [(1.0, np.pi), (0.5, 3 * np.pi)]
    return sum(a * np.exp(-(conductivity * k**2 + loss) * TIMES)[:, None] * np.sin(k * PLACES) for a, k in waves)


MEASURED = formula(**TRUTH) + 0.002 * np.random.default_rng(0).standard_normal((len(TIMES), len(PLACES)))


def simulation(conductivity, loss, cells):
    """Return the same by implicit steps on a grid: coarse grids are cheap and a little wrong."""
    grid = np.linspace(0.0, 1.0, cells + 1)
    heat, step = np.sin(np.pi * grid) + 0.5 * np.sin(3 * np.pi * grid), 2.0 / cells
    flow = conductivity * step * cells**2
    bands = np.zeros((3, cells + 1))
    bands[0, 2:] = bands[2, :-2] = -flow
    bands[1] = [1.0, *[1.0 + 2.0 * flow + loss * step] * (cells - 1), 1.0]  # the ends stay as they are
    seen = {}
    for k in range(1, round(TIMES[-1] / step) + 1):
        heat = solve_banded((1, 1), bands, heat)
        seen[k] = np.interp(PLACES, grid, heat)
    return np.array([seen[round(time / step)] for time in TIMES])


def misfit(x, z):
    return np.sqrt(np.mean((simulation(**x, **z) - MEASURED) ** 2))


def main(budget: float = 8.0) -> None:
    result = boca.minimize(misfit, SPACE, GRID, cost=lambda z: z["cells"] ** 2, budget=boca.targets(budget), seed=0)
    print("             found    truth")
    for name, value in result.x.items():
        print(f"{name:12} {value:.4f}   {TRUTH[name]:.4f}")
    print(f"They miss the measurements by {result.value:.4f}; the thermometers err by 0.0020.")
    print(f"{len(result.history)} simulations at the cost of {result.spent / 512**2:.1f} on the finest grid.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
