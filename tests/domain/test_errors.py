"""Errors, and the checks of settings that raise them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

import boca
from boca.domain import errors
from boca.domain.errors import (
    BocaError,
    InvalidInput,
    InvalidTrial,
    ObjectiveFailed,
    RunStopped,
    StorageFailed,
    Terminated,
    flags,
    instance_of,
    one_of,
)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [(InvalidInput, ValueError), (InvalidTrial, ValueError), (StorageFailed, RuntimeError), (RunStopped, RuntimeError)],
)
def test_errors_are_those_of_the_library_and_of_python(kind, builtin):
    assert issubclass(kind, BocaError)
    assert issubclass(kind, builtin)
    assert issubclass(ObjectiveFailed, RunStopped)


def test_every_error_is_public():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BocaError)}
    assert all(getattr(boca.errors, kind.__name__) is kind for kind in kinds)


@pytest.mark.parametrize("kind", [RunStopped, ObjectiveFailed])
def test_the_result_and_the_notes_survive_pickling(kind):
    error = kind("stopped", {"best": 3.0})
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.args, again.result, again.__notes__) == (("stopped",), {"best": 3.0}, ["a note"])


def test_a_setting_of_another_type_is_refused():
    instance_of(3, int, "n")
    with pytest.raises(InvalidInput, match="n must be a int; got 'three'"):
        instance_of("three", int, "n")


@pytest.mark.parametrize("value", ["no", 0, 1, None])
def test_a_switch_is_true_or_false(value):
    @dataclass
    class Settings:
        on: bool
        off: bool = False

    flags(Settings(True), "on", "off")
    with pytest.raises(InvalidInput, match=f"on must be True or False; got {value!r}"):
        flags(Settings(value), "off", "on")


def test_an_option_is_one_of_those_that_are_named():
    one_of("b", ("a", "b"), "option")
    one_of("b", iter("ab"), "option")
    with pytest.raises(InvalidInput, match=r"option must be one of \['a', 'b'\]; got 'c'"):
        one_of("c", ("a", "b"), "option")


def test_a_run_that_a_signal_ended_exits_as_a_shell_says_it():
    stopped = Terminated(15, "found")
    assert isinstance(stopped, SystemExit)
    assert not isinstance(stopped, Exception)
    assert (stopped.code, stopped.result) == (143, "found")
