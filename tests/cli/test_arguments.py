"""Every subcommand with a storage takes it first, by the same name and with the same help."""

from __future__ import annotations

import typing

import pytest
from typer.main import get_command

from boca.cli import app
from boca.cli.arguments import Json, Name, Url

WITH_A_STORAGE = ("show", "best", "export", "dashboard", "report", "retry", "delete")


def parameters(name):
    return get_command(app).commands[name].params


@pytest.mark.parametrize("name", WITH_A_STORAGE)
def test_the_storage_comes_first_and_its_help_has_every_form(name):
    first = parameters(name)[0]
    assert first.metavar == "URL"
    for form in ("a file", "sqlite:///", "postgresql+psycopg://"):
        assert form in first.help


@pytest.mark.parametrize("name", [name for name in WITH_A_STORAGE if name != "dashboard"])
def test_the_name_of_a_study_comes_second(name):
    assert parameters(name)[1].metavar == "NAME"


@pytest.mark.parametrize("name", ["show", "best"])
def test_json_is_an_option_of_what_programs_read(name):
    (option,) = [p for p in parameters(name) if "--json" in p.opts]
    assert option.default is False


@pytest.mark.parametrize("name", list(get_command(app).commands))
def test_every_parameter_of_a_command_has_a_help(name):
    assert get_command(app).commands[name].help
    assert [p.name for p in parameters(name) if p.name != "help" and not p.help] == []


def test_what_is_shared_is_an_argument_with_a_type():
    assert [typing.get_args(shared)[0] for shared in (Url, Name, Json)] == [str, str, bool]
