"""A study can be looked at live, from a storage and from a result; what is not stored is named."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import boca
from boca import Float, Space, plots
from boca.domain.errors import InvalidInput
from boca.plots import axis, model_data, trial_data
from boca.plots.study import study
from plots.hills import cost, optimizer


def test_a_stored_study_gives_the_same_plots_without_its_code(mixed):
    url = mixed.storage._database.url.render_as_string()
    kept, live = plots.load(url, "hills"), study(mixed)
    assert kept.ledger.spent == live.ledger.spent == mixed.spent
    assert kept.recommendation == live.recommendation
    assert kept.ledger.target == live.ledger.target == cost({"N": 10000, "T": 1.0})
    assert kept.ledger.budget == live.ledger.budget == mixed.budget
    assert [kept.ledger.charge(t) for t in kept.history] == [live.ledger.charge(t) for t in live.history]
    for make in (
        trial_data.progress,
        model_data.slices,
        model_data.map2d,
        model_data.information_gap,
        model_data.hyperparameters,
    ):
        a, b = make(kept), make(live)
        for part in ("spent", "best", "mean", "std", "xi", "queried", "signal"):
            if hasattr(a, part):
                np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    assert axis.marks(kept).cost == pytest.approx(axis.marks(live).cost)


def test_a_covariance_of_fidelities_is_not_stored_so_there_is_no_model(tmp_path):
    def alike(a, b):
        return np.exp(-np.abs(a["n"] - b["n"]))

    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=alike))
    opt = optimizer(
        Space(a=Float(0, 1)),
        Space(n=Float(0.1, 1)),
        strategy=strategy,
        budget=boca.targets(20),
        storage=f"sqlite:///{tmp_path}/k.db",
    )
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.x["a"], seconds=trial.z["n"])
    assert isinstance(model_data.slices(study(opt)), model_data.Slice)
    assert isinstance(model_data.information_gap(study(opt)), model_data.Gap)
    kept = plots.load(f"{tmp_path}/k.db", "hills")
    assert "code" in model_data.slices(kept).words
    assert "code" in model_data.information_gap(kept).words
    assert kept.recommendation is None
    assert isinstance(trial_data.progress(kept), trial_data.BestSoFar) == (opt.best is not None)


def test_a_result_can_be_drawn_and_a_pickled_one_says_what_is_missing():
    result = boca.maximize(lambda x: x["a"], Space(a=Float(0, 1)), budget=boca.targets(3), seed=0)
    assert plots.progress(result).lines[0].get_ydata()[-1] == result.value
    travelled = pickle.loads(pickle.dumps(result))
    assert (travelled.x, travelled.value, list(travelled.history)) == (result.x, result.value, list(result.history))
    assert dataclasses.replace(result, warnings=()).study is None  # no field, so that asdict and == stay cheap
    assert dataclasses.asdict(result)["value"] == result.value
    with pytest.raises(InvalidInput, match="pickled"):
        plots.progress(travelled)
