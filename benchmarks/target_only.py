"""GP-UCB with the model and the maximizer of `Boca()`: what its fidelities, and nothing else, are worth.

boca bench run --problem branin --method boca --method benchmarks.target_only:GP_UCB --out results
"""

from __future__ import annotations

import boca

GP_UCB = boca.GPUCB(surrogate=boca.Surrogate(), maximizer="sobol")
