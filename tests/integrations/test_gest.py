"""A generator by the gest-api standard, alone and in libEnsemble."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.errors import InvalidInput

pytest.importorskip("gest_api", reason="the extra gest is not installed")

from gest_api.vocs import VOCS

from boca.integrations.gest import BocaGenerator

VARIABLES = {"x": [0.0, 1.0], "kind": {"flat", "round"}, "width": {8, 16, 64}, "steps": [1, 10]}


def vocs(**more):
    given = {"variables": dict(VARIABLES), "objectives": {"f": "MINIMIZE"}, "constants": {"alpha": 0.5}}
    return VOCS(**(given | more))


def generator(of=None, **more):
    settings = {"fidelities": ["steps"], "cost": lambda z: z["steps"], "seed": 0}
    return BocaGenerator(vocs() if of is None else of, **(settings | more))


def evaluated(point):
    assert point["alpha"] == 0.5
    error = (point["x"] - 0.3) ** 2 + (point["kind"] == "flat") + point["width"] / 64
    return {"f": error + 0.1 * (10 - point["steps"])}


def test_points_have_every_variable_every_constant_and_an_id():
    points = generator().suggest(5)
    assert len(points) == 5
    assert [point["_id"] for point in points] == [0, 1, 2, 3, 4]
    for point in points:
        assert set(point) == {*VARIABLES, "alpha", "_id"}
        assert point["width"] in (8, 16, 64)
        assert point["kind"] in ("flat", "round")
        assert 1 <= point["steps"] <= 10


def test_the_study_is_that_of_python():
    gen = generator(budget=boca.targets(8))
    opt = boca.Optimizer(gen.problem, budget=boca.targets(8), seed=0)
    while True:
        trial = opt.ask()
        if trial is None:
            break
        (point,) = gen.suggest(1)
        result = evaluated(point)
        gen.ingest([{**point, **result}])
        opt.tell(trial, result["f"])
    assert [t.x for t in gen.optimizer.history] == [t.x for t in opt.history]
    assert [t.z for t in gen.optimizer.history] == [t.z for t in opt.history]
    assert gen.optimizer.best.value == opt.best.value
    with pytest.raises(ValueError, match="the budget covers 0 more"):
        gen.suggest(1)


def test_a_batch_that_the_budget_does_not_cover_is_refused_and_not_lost():
    gen = generator(budget=boca.targets(1), strategy=boca.GPUCB())
    with pytest.raises(ValueError, match="num_points is 3, and the budget covers 1 more"):
        gen.suggest(3)
    (point,) = gen.suggest(1)
    assert point["_id"] == 0
    gen.ingest([{**point, **evaluated(point)}])
    assert not gen.optimizer.running


def test_results_from_outside_have_no_id_and_are_not_charged():
    gen = generator(budget=boca.targets(3))
    gen.ingest([{"x": np.float64(0.5), "kind": "round", "width": np.int64(16), "steps": 10.0, "alpha": 0.5, "f": 1.25}])
    trial = gen.optimizer.history[0]
    assert trial.added
    assert gen.optimizer.spent == 0
    assert gen.problem.is_target(trial.z)


@pytest.mark.parametrize("known", [7, "a"])
def test_an_unknown_id_is_refused(known):
    gen = generator()
    (point,) = gen.suggest()
    with pytest.raises(ValueError, match="did not suggest"):
        gen.ingest([{**point, "f": 1.0, "_id": known}])


def test_what_is_not_finite_is_a_failure():
    gen = generator()
    points = gen.suggest(2)
    gen.ingest([{**points[0], "f": math.nan}, {**points[1], "f": 1.0}])
    assert [t.state for t in gen.optimizer.history] == ["failed", "complete"]
    gen.ingest([{**points[0], "f": math.inf} | {"_id": None}])  # from outside: there is nothing to store
    assert len(gen.optimizer.history) == 2


def test_a_result_has_every_output():
    gen = generator(vocs(constraints={"size": ["LESS_THAN", 3.0]}))
    (point,) = gen.suggest()
    with pytest.raises(ValueError, match=r"A result lacks \['size'\]"):
        gen.ingest([{**point, "f": 1.0}])


def test_constraints_are_limits_and_observables_are_notes():
    of = vocs(
        constraints={"size": ["LESS_THAN", 3.0], "recall": ["GREATER_THAN", 0.5]}, observables={"runtime", "seen"}
    )
    gen = generator(of, cost=None, cost_name="runtime")
    assert gen.problem.subject_to == {"size": boca.AtMost(3.0), "recall": boca.AtLeast(0.5)}
    (point,) = gen.suggest()
    gen.ingest([{**point, "f": 1.0, "size": 2.0, "recall": 0.9, "runtime": 12.5, "seen": 7}])
    trial = gen.optimizer.history[0]
    assert trial.outcomes == {"size": 2.0, "recall": 0.9}
    assert trial.notes == {"seen": 7}
    assert trial.seconds == 12.5


def test_a_stored_study_goes_on(tmp_path):
    settings = {"storage": f"sqlite:///{tmp_path}/s.db", "name": "s"}
    gen = generator(**settings)
    gen.suggest(2)
    gen.finalize()
    again = generator(**settings)
    assert len(again.optimizer.running) == 2
    again.finalize()


@pytest.mark.parametrize(
    ("of", "more", "words"),
    [
        ({"objectives": {"f": "EXPLORE"}}, {}, "one, which is minimized or maximized"),
        ({"objectives": {"f": "MINIMIZE", "g": "MINIMIZE"}}, {}, "one, which is minimized or maximized"),
        ({"variables": {"x": "CONTEXTUAL", "steps": [1, 10]}}, {}, "bounds, .* or a set"),
        ({"constraints": {"c": ["BOUNDS", 0.0, 1.0]}}, {}, "LESS_THAN and GREATER_THAN"),
        ({}, {"fidelities": ["step"]}, "fidelities is .*, and must be a list of variables"),
        ({}, {"log": "x"}, "log is 'x'"),
        ({}, {"cost_name": "runtime"}, "must be an observable"),
        ({}, {"target": {"steps": 99}}, "99"),
    ],
)
def test_what_boca_cannot_do_is_refused_at_once(of, more, words):
    with pytest.raises(ValueError, match=words):
        generator(vocs(**of), **more)


def test_what_is_no_vocs_is_refused():
    with pytest.raises(InvalidInput, match="must be a gest_api"):
        BocaGenerator({"variables": {}})


def test_whole_numbers_and_logs():
    of = vocs(variables={"lr": [1e-4, 1.0], "n": {"type": "ContinuousVariable", "domain": [1, 9], "dtype": "int"}})
    gen = BocaGenerator(of, log=["lr"], fidelities=["n"], seed=0)
    assert gen.problem.space == boca.Space(lr=boca.Float(1e-4, 1.0, log=True))
    assert gen.problem.fidelity == boca.Space(n=boca.Int(1, 9))


# In libEnsemble -------------------------------------------------------------------------------------------------------


def simulated(point, **_):
    return {"f": (point["x"] - 0.3) ** 2 + 0.1 * (10 - point["steps"]) / 10}


@pytest.mark.filterwarnings("ignore")  # of libEnsemble and what it imports
def test_libensemble_runs_a_study(tmp_path, monkeypatch):
    libensemble = pytest.importorskip("libensemble", reason="libensemble is a dev dependency, and is not installed")
    from libensemble import Ensemble
    from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
    from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

    assert libensemble
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ensemble"])
    of = VOCS(variables={"x": [0.0, 1.0], "steps": [1.0, 10.0]}, objectives={"f": "MINIMIZE"})
    gen = BocaGenerator(of, fidelities=["steps"], cost=lambda z: z["steps"], seed=0)
    ensemble = Ensemble(
        libE_specs=LibeSpecs(comms="threads", nworkers=2, gen_on_manager=True, disable_log_files=True),
        sim_specs=SimSpecs(simulator=simulated, vocs=of),
        gen_specs=GenSpecs(generator=gen, vocs=of, batch_size=2, initial_batch_size=4),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
        exit_criteria=ExitCriteria(sim_max=24),
    )
    history, _, flag = ensemble.run()
    assert flag == 0
    done = history[history["sim_ended"]]
    assert len(done) >= 24
    known = {trial.number: trial for trial in gen.optimizer.history}
    for row in done:
        trial = known[int(row["_id"])] if row["_id"] >= 0 else None
        if trial is not None and trial.state == "complete":
            assert trial.value == row["f"]
            assert trial.x["x"] == row["x"]
    assert len(gen.optimizer.history.complete) >= 20
    assert len({round(z["steps"], 6) for z in (t.z for t in gen.optimizer.history)}) > 1
