"""The good set of a study is drawn where the theory puts it."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import plots, theory
from boca.domain.errors import InvalidInput
from boca.plots.study import study

SPACE = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0))


def loss(x, z=1.0):
    return 3.0 * ((x["a"] - 0.3) ** 2 + (x["b"] - 0.6) ** 2) + 0.2 * (1.0 - z)


@pytest.fixture(scope="module")
def hill():
    fidelity = boca.Space(z=boca.Float(0.1, 1.0))
    known = {"kappa0": 1.0, "eta2": 1e-3, "mean": 1.0, "h_x": [0.4, 0.4], "h_z": [8.0]}  # so the far gap is small
    return boca.minimize(
        lambda x, z: loss(x, z["z"]),
        SPACE,
        fidelity,
        cost=lambda z: z["z"],
        budget=boca.targets(6),
        strategy=boca.Boca(hyperparameters=known),
        seed=0,
    )


def test_the_border_is_a_width_from_the_best_value(hill):
    ax = plots.good_set(hill, loss)
    found = theory.good_set(study(hill), loss)
    assert found.best == pytest.approx(0.0, abs=0.01)
    (border,) = [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    assert border.levels == pytest.approx([found.best + found.width])
    shown = np.vstack([np.asarray(c.get_offsets()) for c in ax.collections if len(np.asarray(c.get_offsets())) > 1])
    np.testing.assert_allclose(shown, found.queries, atol=1e-12)
    assert f"{100 * found.share_inside:.0f} %" in ax.get_title()


def test_a_study_without_fidelities_has_none():
    single = boca.minimize(loss, SPACE, budget=boca.targets(8), cost=lambda z: 1.0, seed=0)
    ax = plots.good_set(single)
    assert "needs fidelities" in ax.texts[0].get_text()


def test_a_wrong_rho_is_refused(hill):
    with pytest.raises(InvalidInput, match="rho must be at least"):
        plots.good_set(hill, rho=1e-6)
