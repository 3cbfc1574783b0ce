"""Fields of a dataclass from a table: what is set, what fits, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from boca.domain.errors import InvalidInput
from boca.studyfile.settings import configured, only


@dataclass(frozen=True)
class Inner:
    starts: int = 3
    kind: Literal["se", "matern"] = "se"


@dataclass(frozen=True)
class Outer:
    width: float = 1.0
    deep: bool = False
    inner: Inner = Inner(starts=9)
    other: Inner | None = None
    names: Mapping[str, Any] | None = None
    fixed: int = field(default=4, init=False)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise InvalidInput(f"width must not be negative; got {self.width!r}.")
        if self.width > 100:
            raise RuntimeError("too wide")


def test_fields_are_set_and_the_others_keep_the_value_of_the_base():
    assert configured(Outer(deep=True), {"width": 2}, "s") == Outer(width=2.0, deep=True)
    assert type(configured(Outer(), {"width": 2}, "s").width) is float
    base = Outer()
    assert configured(base, {}, "s") is base


def test_a_class_is_called():
    assert configured(Outer, {"deep": True}, "s") == Outer(deep=True)
    assert configured(dict, {}, "s") == {}


def test_a_table_sets_fields_of_a_nested_dataclass_which_keeps_its_others():
    assert configured(Outer(), {"inner": {"kind": "matern"}}, "s").inner == Inner(starts=9, kind="matern")
    assert configured(Outer(), {"other": {"starts": 1}}, "s").other == Inner(starts=1)
    assert configured(Outer(), {"names": {"a": 1}}, "s").names == {"a": 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"wide": 2}, "s may have the keys width, deep, inner, other, names; got 'wide' (did you mean 'width'?)."),
        ({"fixed": 2}, "got 'fixed'"),
        ({"width": "2"}, "s.width must be a finite number; got '2'."),
        ({"width": float("nan")}, "s.width must be a finite number; got nan."),
        ({"width": True}, "s.width must be a finite number; got True."),
        ({"deep": 1}, "s.deep must be true or false; got 1."),
        ({"inner": {"starts": 1.5}}, "s.inner.starts must be an integer; got 1.5."),
        ({"inner": {"kind": "sin"}}, "s.inner.kind must be one of ['se', 'matern']; got 'sin'."),
        ({"inner": 3}, "s.inner must be a table; got 3."),
        ({"width": -1}, "s: width must not be negative; got -1.0."),
        ({"width": 101}, "s cannot be created with {'width': 101}: RuntimeError: too wide."),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_by_its_path(settings, message):
    with pytest.raises(InvalidInput) as caught:
        configured(Outer(), settings, "s")
    assert message in str(caught.value)


def test_settings_of_something_else_than_a_dataclass_are_refused():
    with pytest.raises(InvalidInput, match="only if it is a dataclass"):
        configured(object(), {"width": 1}, "s")


def test_an_unknown_key_is_named_with_what_is_allowed():
    only({"a": 1}, ["a", "b"], "t")
    with pytest.raises(InvalidInput, match=r"t may have the keys \(none\); got 'a'"):
        only({"a": 1}, [], "t")
