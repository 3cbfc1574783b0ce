"""Domains and points of Dragonfly."""

from __future__ import annotations

import pytest

from boca.compat.dragonfly_domain import Domain, load_config, load_config_file
from boca.errors import InvalidInput

TABLES = [
    {"name": "a", "type": "float", "min": 0, "max": 1, "dim": 1},
    {"name": "b", "type": "int", "min": 0, "max": 9, "dim": 3},
    {"name": "c", "type": "discrete_numeric", "items": "0:0.1:0.5"},
]


def test_points_go_there_and_back():
    domain = Domain.of(TABLES, "domain", "x")
    point = [0.25, [1, 2, 3], 0.3]
    coded = domain.coded(point, "x")
    assert coded == {"a": 0.25, "b[0]": 1, "b[1]": 2, "b[2]": 3, "c": 3}
    assert domain.space().validate(coded, "x") == coded
    assert domain.point(coded) == point


def test_bounds_have_names_of_ours():
    domain = Domain.of([[0, 1], (2, 3)], "domain", "x")
    assert list(domain.space()) == ["x0", "x1"]
    assert list(domain.point({"x0": 0.5, "x1": 2.5})) == [0.5, 2.5]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "the key 'domain'"),
        ({"domain": TABLES, "exp_dir": "."}, r"keys \['exp_dir'\]"),
        ({"domain": TABLES, "fidel_space_constraints": [{"constraint": "z <= 1"}]}, "fidel_cost_func"),
        ({"domain": TABLES, "domain_constraints": ["a <= 1"]}, "a mapping with 'constraint'"),
        ({"domain": TABLES, "domain_constraints": [{"constraint": 3}]}, "a function of the point"),
        ({"domain": [*TABLES, TABLES[0]]}, "each must be different"),
    ],
)
def test_a_wrong_configuration_is_refused(config, words):
    with pytest.raises(InvalidInput, match=words):
        load_config(config)


def test_a_text_that_cannot_be_read_asks_for_a_function():
    config = load_config({"domain": TABLES, "domain_constraints": [{"constraint": "np.sqrt(a) + b[1] <= 0.9"}]})
    with pytest.raises(InvalidInput, match="give a function of the point"):
        config.domain.space()


def test_a_value_of_the_wrong_length_is_refused():
    domain = Domain.of(TABLES, "domain", "x")
    with pytest.raises(InvalidInput, match=r"b is .* a list of 3 values"):
        domain.coded([0.5, [1, 2], 0.3], "x")
    with pytest.raises(InvalidInput, match=r"c is 0\.35, and must be one of"):
        domain.coded([0.5, [1, 2, 3], 0.35], "x")


def test_a_file_that_is_not_json_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="must be a file in JSON"):
        load_config_file(tmp_path / "missing.json")
