"""Tables of TaskSet: six text models trained by a thousand configurations of Adam, 50 checkpoints (Metz et al., 2020).

Losses that are not finite, or above 2 ln 2, count as 2 ln 2.  All eight parameters are searched on logs, the two betas
as 1 - beta.  The loss is that of validation, and checkpoint 50 is the target.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from benchmarks.real import data, table
from benchmarks.real.task import Task
from boca.domain.problem import Problem
from boca.domain.space import Float, Int, Space

_MOST = 2 * math.log(2)
_CHECKPOINTS = 50


def task(index: int, seed: int) -> Task:
    """Return the task of the model with this number; the seed picks nothing."""
    return table.task(f"taskset_{index}", "taskset", _table(index), seed, step="checkpoint")


@cache
def _table(index: int) -> table.Table:
    with np.load(data.shared("taskset") / "taskset.npz") as stored:
        names = [str(name) for name in stored["names"]]
        settings = stored["hp"].astype(float)
        losses = stored["valid"][index].astype(float)
    for j, name in enumerate(names):
        if name.startswith("beta"):
            names[j], settings[:, j] = f"one_less_{name}", 1.0 - settings[:, j]
    space = Space(
        {name: Float(column.min(), column.max(), log=True) for name, column in zip(names, settings.T, strict=True)}
    )
    fidelity = Space(checkpoint=Int(1, _CHECKPOINTS))
    capped = np.where(np.isfinite(losses), np.minimum(losses, _MOST), _MOST)
    return table.Table(
        problem=Problem(space, fidelity, cost=lambda z: z["checkpoint"] / _CHECKPOINTS, direction="minimize"),
        configurations=[dict(zip(names, map(float, row), strict=True)) for row in settings],
        values=capped[None, :, 1:],
    )
