"""The command `boca dashboard` says what is wrong before it serves anything."""

from __future__ import annotations

import socket

import pytest

from boca.cli import main
from dashboard.conftest import begin


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["dashboard", *map(str, arguments)])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_storage_that_is_not_there_is_not_made(tmp_path, capsys):
    assert "There is no file" in refused(capsys, tmp_path / "none.db", "--port", 0)
    assert list(tmp_path.iterdir()) == []


def test_an_address_beyond_this_machine_needs_a_token(url, capsys, monkeypatch):
    begin(url)
    monkeypatch.delenv("BOCA_DASHBOARD_TOKEN", raising=False)
    assert "--token" in refused(capsys, url, "--host", "0.0.0.0", "--port", 0)
    assert "16 printable" in refused(capsys, url, "--host", "0.0.0.0", "--port", 0, "--token", "short")


def test_a_port_that_is_taken_is_an_error(url, capsys):
    begin(url)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "another --port" in refused(capsys, url, "--port", taken.getsockname()[1])


def test_a_host_that_is_nobody_is_an_error(url, capsys):
    begin(url)
    assert "--host 'no such host'" in refused(capsys, url, "--host", "no such host", "--port", 0)


def test_without_the_extra_the_error_names_it(url, capsys, monkeypatch):
    import sys

    begin(url)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'boca[dashboard]'" in refused(capsys, url, "--port", 0)
