"""Programs that were written for Dragonfly, by its documented arguments."""

from __future__ import annotations

import inspect
import io
import json
from argparse import Namespace

import numpy as np
import pytest

import boca
from boca.compat import dragonfly
from boca.compat.dragonfly import (
    load_config,
    load_config_file,
    maximise_multifidelity_function,
    minimise_multifidelity_function,
)
from boca.errors import Doubtful, InvalidInput

# The arguments in the order of Dragonfly's page on its main functions.
DOCUMENTED = [
    "func",
    "fidel_space",
    "domain",
    "fidel_to_opt",
    "fidel_cost_func",
    "max_capital",
    "capital_type",
    "opt_method",
    "config",
    "options",
    "reporter",
]
DEFAULTS = {
    "capital_type": "return_value",
    "opt_method": "bo",
    "config": None,
    "options": None,
    "reporter": "default",
}


@pytest.mark.parametrize("direction", ["maximise", "minimise", "maximize", "minimize"])
def test_the_arguments_are_the_documented_ones(direction):
    parameters = inspect.signature(getattr(dragonfly, f"{direction}_multifidelity_function")).parameters
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == DOCUMENTED
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS


def hill(z, x):
    assert isinstance(x, np.ndarray)
    assert isinstance(z, np.ndarray)
    return -((x[0] - 2.0) ** 2) - (x[1] - 0.5) ** 2 - 0.3 * (1.0 - z[0])


def cost(z):
    return 0.1 + z[0]


def test_bounds_make_arrays_and_the_best_is_at_the_fidelity_that_counts():
    value, point, history = maximise_multifidelity_function(
        hill, [[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 16.5, reporter="silent", seed=0
    )
    assert value == hill(np.array([1.0]), point)
    assert value > -0.1
    at_target = [
        v for v, is_target in zip(history.query_vals, history.query_at_fidel_to_opts, strict=True) if is_target
    ]
    assert value == max(at_target)
    assert any(z[0] < 1.0 for z in history.query_fidels)
    assert sum(history.query_cost_at_fidels) <= 16.5
    assert [hill(z, x) for z, x in zip(history.query_fidels, history.query_points, strict=True)] == history.query_vals
    assert history.result.recommendation.verified


def test_to_minimize_is_to_maximize_the_negative():
    given = ([[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 5.5)
    up = maximise_multifidelity_function(hill, *given, reporter="silent", seed=0)
    down = minimise_multifidelity_function(lambda z, x: -hill(z, x), *given, reporter="silent", seed=0)
    assert down[0] == -up[0]
    assert list(down[1]) == list(up[1])


VARIABLES = [
    {"name": "rate", "type": "float", "min": 0.0, "max": 1.0},
    {"name": "shape", "type": "float", "min": 0, "max": 1, "dim": 2},
    {"name": "depth", "type": "int", "min": 1, "max": 5, "dim": ""},
    {"name": "kind", "type": "discrete", "items": ["a", "b"]},
    {"name": "batch", "type": "discrete_numeric", "items": [16, 64, 32]},
    {"name": "bias", "type": "boolean"},
]
FIDELS = [
    {"name": "epochs", "type": "int", "min": 1, "max": 9},
    {"name": "share", "type": "discrete_numeric", "items": "0.25:0.25:1.01"},
]


def network(z, x):
    rate, shape, depth, kind, batch, bias = x
    epochs, share = z
    assert (type(rate), type(depth), type(kind), type(batch), type(bias)) == (float, int, str, int, bool)
    assert len(shape) == 2
    assert share in (0.25, 0.5, 0.75, 1.0)
    return (
        -((rate - 0.3) ** 2) - shape[0] + 0.01 * depth + (kind == "b") + batch / 64 + bias - 0.1 * (9 - epochs) / share
    )


def test_variables_have_their_types_and_their_order():
    config = load_config({"domain": VARIABLES, "fidel_space": FIDELS, "fidel_to_opt": [9, 1.0]})
    value, point, history = maximise_multifidelity_function(
        network, config.fidel_space, config.domain, config.fidel_to_opt, lambda z: z[0] * z[1], 60, config=config,
        reporter="silent", seed=0,
    )  # fmt: skip
    assert value == network([9, 1.0], point)
    assert all(z[0] in range(1, 10) for z in history.query_fidels)
    assert history.result.history[0].x.keys() == {
        "rate", "shape[0]", "shape[1]", "depth", "kind", "batch", "bias",
    }  # fmt: skip


def test_a_file_has_the_configuration(tmp_path):
    path = tmp_path / "config.json"
    named = {table["name"]: {k: v for k, v in table.items() if k != "name"} for table in VARIABLES}
    path.write_text(json.dumps({"domain": named, "fidel_space": FIDELS, "fidel_to_opt": [9, 1.0]}))
    assert load_config_file(path).domain.space() == load_config({"domain": VARIABLES}).domain.space()
    value, point, _ = maximise_multifidelity_function(
        network, None, None, None, lambda z: z[0] * z[1], 27, config=str(path), reporter="silent", seed=0
    )
    assert value == network([9, 1.0], point)


@pytest.mark.parametrize(
    "constraint",
    [lambda x: x[0] + x[1] <= 1.0, "a + b <= 1.0"],
    ids=["function", "text"],
)
def test_constraints_hold_at_every_point(constraint):
    config = load_config(
        {
            "domain": [
                {"name": "a", "type": "float", "min": 0, "max": 1},
                {"name": "b", "type": "discrete_numeric", "items": "0:0.25:1.01"},
            ],
            "domain_constraints": [{"name": "sum", "constraint": constraint}],
        }
    )
    _, point, history = maximise_multifidelity_function(
        lambda z, x: x[0] + x[1] + z[0],
        [[0, 1]],
        config.domain,
        [1.0],
        lambda z: 0.1 + z[0],
        8,
        reporter="silent",
        seed=0,
    )
    assert all(x[0] + x[1] <= 1.0 for x in history.query_points)
    assert sum(point) > 0.7


def test_names_that_domain_and_fidelities_share_are_told_apart():
    variables = [{"name": "n", "type": "float", "min": 0, "max": 1}]
    _, point, _ = maximise_multifidelity_function(
        lambda z, x: x[0] + z[0], variables, variables, [1.0], lambda z: 0.1 + z[0], 4, reporter="silent", seed=0
    )
    assert 0.0 <= point[0] <= 1.0


def test_seconds_and_random_search():
    *_, history = maximise_multifidelity_function(
        hill, [[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 0.2, "realtime", "rand", reporter="silent", seed=0
    )
    assert history.result.study.limit == boca.seconds(0.2)
    assert isinstance(history.result.study.strategy, boca.RandomSearch)


def test_a_reporter_gets_a_line_per_trial():
    stream = io.StringIO()
    *_, history = maximise_multifidelity_function(
        hill, [[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 3.3, reporter=stream, seed=0
    )
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(history.query_vals)
    assert lines[0].startswith("trial 0: ")


def test_workers_are_processes():
    value, _, _ = maximise_multifidelity_function(
        hill, [[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 3.3, reporter="silent", num_workers=2, seed=0
    )
    assert value is not None


def test_options_of_dragonfly_are_not_silently_ignored():
    with pytest.warns(Doubtful, match="settings of Dragonfly and have no effect"):
        maximise_multifidelity_function(
            hill, [[0.0, 1.0]], [[0.0, 4.0], [0.0, 1.0]], [1.0], cost, 2.5,
            options=Namespace(acq="ucb"), reporter="silent", seed=0,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"capital_type": "num_evals"}, "capital_type must be one of"),
        ({"opt_method": "ga"}, "opt_method must be one of"),
        ({"worker_manager": "multiprocessing"}, "num_workers=4"),
        ({"reporter": "loud"}, "reporter must be one of"),
        ({"reporter": 3}, "must be 'default', 'silent' or a stream"),
        ({"fidel_to_opt": None}, "fidel_to_opt is missing"),
        ({"fidel_to_opt": [1.0, 2.0]}, "fidel_to_opt is .* 1 entries"),
        ({"fidel_to_opt": [3.0]}, "3.0"),
        ({"domain": None}, r"domain is None, and must be a list of bounds"),
        ({"domain": [[0, 1, 2]]}, "a pair of bounds"),
        ({"domain": [{"name": "net", "type": "cnn"}]}, "'cnn', and must have one of float"),
        ({"domain": [{"name": "a", "type": "float", "min": 0}]}, "lacks 'max'"),
        ({"domain": [{"name": "a", "type": "discrete_numeric", "items": "0:1"}]}, "a range is written"),
        ({"domain": [{"name": "a", "type": "discrete_numeric", "items": [1]}]}, "at least two different numbers"),
    ],
)
def test_what_is_not_supported_is_refused_before_anything_runs(changed, words):
    given = {
        "func": hill,
        "fidel_space": [[0.0, 1.0]],
        "domain": [[0.0, 1.0]],
        "fidel_to_opt": [1.0],
        "fidel_cost_func": cost,
        "max_capital": 5.0,
    }
    with pytest.raises(InvalidInput, match=words):
        maximise_multifidelity_function(**(given | changed))
