"""The map of feasibility as a picture."""

from __future__ import annotations

import numpy as np

import boca
from boca import plots
from plots.failing import SPACE, failing


def test_every_kind_of_trial_has_its_mark():
    ax = plots.feasibility(failing(), "a", "b")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    marks = {
        c.get_label(): len(np.asarray(c.get_offsets())) for c in ax.collections if not c.get_label().startswith("_")
    }
    assert set(marks) == {"complete, within every limit", "complete, beyond a limit", "failed"}
    assert sum(marks.values()) == 30
    (mesh,) = [c for c in ax.collections if type(c).__name__ == "QuadMesh"]
    assert mesh.get_clim() == (0.0, 1.0)


def test_without_a_limit_or_a_failure_it_says_so():
    calm = boca.minimize(lambda x: x["a"], SPACE, budget=boca.targets(3), seed=0)
    assert "every point is feasible" in plots.feasibility(calm).texts[0].get_text()
