"""Tasks of YAHPO Gym: networks that were fitted to real trainings (Pfisterer et al., 2022).

A network takes categories and numbers in a fixed order and returns accuracies and seconds.  The fidelity is the share
of the training data, or the number of epochs; the declared cost is the product of the shares of all fidelities.  The
seconds are those that the network predicts, a millisecond at least.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.real import data
from benchmarks.real.task import Optimum, Task, optimum
from boca.domain.budget import targets
from boca.domain.errors import BocaError
from boca.domain.problem import Problem
from boca.domain.space import Float, FloatArray, Int, Parameter, Point, Space

_LEAST_SECONDS = 1e-3
_MISSING = "#na#"


@dataclass(frozen=True)
class Scenario:
    """What the networks of one learner take and return.

    Args:
        numbers: the columns of the numbers, in order.
        categories: the columns of the categories, in order.
        task: the category that says which data set.
        fixed: the categories that are not searched.
        fidelity: the names of the fidelities.
        left_out: numbers that are inactive under `fixed`, and zero.
        value: the column of the output that is maximized.
        seconds: the column of the output with the seconds of a training.
        step: the fidelity that one training passes through.
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    task: str
    fidelity: tuple[str, ...]
    value: int
    seconds: int
    fixed: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    step: str | None = None


SCENARIOS = {
    "lcbench": Scenario(
        numbers=(
            *("epoch", "batch_size", "learning_rate", "momentum", "weight_decay"),
            *("num_layers", "max_units", "max_dropout"),
        ),
        categories=("OpenML_task_id",),
        task="OpenML_task_id",
        fidelity=("epoch",),
        value=1,
        seconds=0,
        step="epoch",
    ),
    "rbv2_rpart": Scenario(
        numbers=("cp", "maxdepth", "minbucket", "minsplit", "trainsize", "repl"),
        categories=("task_id", "num.impute.selected.cpo"),
        task="task_id",
        fidelity=("trainsize", "repl"),
        value=0,
        seconds=6,
        fixed=(("num.impute.selected.cpo", "impute.mean"),),
    ),
    "rbv2_xgboost": Scenario(
        numbers=(
            *("nrounds", "eta", "gamma", "lambda", "alpha", "subsample", "max_depth", "min_child_weight"),
            *("colsample_bytree", "colsample_bylevel", "rate_drop", "skip_drop", "trainsize", "repl"),
        ),
        categories=("task_id", "booster", "num.impute.selected.cpo"),
        task="task_id",
        fidelity=("trainsize", "repl"),
        value=0,
        seconds=6,
        fixed=(("booster", "gbtree"), ("num.impute.selected.cpo", "impute.mean")),
        left_out=("rate_drop", "skip_drop"),
    ),
    "iaml_glmnet": Scenario(
        numbers=("alpha", "s", "trainsize"),
        categories=("task_id",),
        task="task_id",
        fidelity=("trainsize",),
        value=2,
        seconds=7,
    ),
}


class Network:
    """A network of YAHPO on one data set: from points to its columns of output."""

    def __init__(self, scenario: str, instance: str) -> None:
        self._scenario = SCENARIOS[scenario]
        codes = _encoding(scenario)
        chosen = {self._scenario.task: instance, **dict(self._scenario.fixed)}
        self._categories = np.array(
            [codes[name][chosen.get(name, _MISSING)] for name in self._scenario.categories], np.int32
        )
        self._session = _session(scenario)

    def outputs(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:  # n points -> (n, columns)
        """Return every output for points that have parameters and fidelities."""
        numbers = [[float(point.get(name, 0.0)) for name in self._scenario.numbers] for point in points]
        given = {"x_cont": np.array(numbers, np.float32), "x_cat": np.tile(self._categories, (len(points), 1))}
        return np.asarray(self._session.run(None, given)[0], float)

    def values(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:  # n points -> (n,)
        """Return what is maximized."""
        return self.outputs(points)[:, self._scenario.value]

    def value(self, x: Point, z: Point) -> float:
        return float(self.values([{**x, **z}])[0])

    def took(self, x: Point, z: Point) -> float:
        """Return the seconds of a training."""
        return max(_LEAST_SECONDS, float(self.outputs([{**x, **z}])[0, self._scenario.seconds]))


def task(scenario: str, instance: str, seed: int, *, best: Optimum | None = None) -> Task:
    """Return the task of a scenario on one of its data sets; the seed picks nothing."""
    network = Network(scenario, instance)
    name = f"{scenario}_{instance}"
    known = optimum(name) if best is None else best
    return Task(
        name=name,
        problem=problem(scenario),
        budget=targets(15),
        function=network.value,
        optimum=known.value,
        maximizer=None,
        noise_variance=0.0,
        hyperparameters=None,
        seed=seed,
        seconds=network.took,
        family=scenario,
        step=SCENARIOS[scenario].step,
        best=known,
    )


@cache
def problem(scenario: str) -> Problem:
    """Return the problem of a scenario, with bounds and scales from its file."""
    described = json.loads((data.shared("yahpo") / scenario / "config_space.json").read_text())["hyperparameters"]
    ranges = {entry["name"]: entry for entry in described}
    chosen = SCENARIOS[scenario]
    searched = [name for name in chosen.numbers if name not in (*chosen.fidelity, *chosen.left_out)]
    return Problem(
        Space({name: _parameter(ranges[name]) for name in searched}),
        Space({name: _parameter(ranges[name]) for name in chosen.fidelity}),
        cost=_Shares(tuple((name, float(ranges[name]["upper"])) for name in chosen.fidelity)),
    )


@dataclass(frozen=True)
class _Shares:
    """The declared cost: the product of the shares of all fidelities."""

    ends: tuple[tuple[str, float], ...]

    def __call__(self, z: Mapping[str, Any]) -> float:
        return math.prod(float(z[name]) / end for name, end in self.ends)


def _parameter(entry: Mapping[str, Any]) -> Parameter:
    kind = Int if entry["type"] == "uniform_int" else Float
    return kind(entry["lower"], entry["upper"], log=entry["log"])


@cache
def _encoding(scenario: str) -> dict[str, dict[str, int]]:
    codes: dict[str, dict[str, int]] = json.loads((data.shared("yahpo") / scenario / "encoding.json").read_text())
    return codes


@cache
def _session(scenario: str) -> Any:
    try:
        import onnxruntime
    except ImportError as missing:
        raise BocaError(
            "The networks of YAHPO need onnxruntime, which is not in this environment. Type `pip install onnxruntime`, "
            "or `make real`, which makes an environment that has it."
        ) from missing
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = data.shared("yahpo") / scenario / "model.onnx"
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
