"""What users of Optuna import, and what they read without it."""

from __future__ import annotations

import sys

import pytest

from boca.domain.errors import BocaError

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")


def test_the_public_names_are_there() -> None:
    from boca.integrations import optuna as public

    exchange = {"best_at_target", "from_optuna", "to_optuna"}
    assert set(public.__all__) == {"BocaPruner", "BocaSampler", "SpaceChanged"} | exchange
    assert all(hasattr(public, name) for name in public.__all__)


def test_a_missing_optuna_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "boca.integrations.optuna")
    with pytest.raises(BocaError, match=r"pip install 'boca\[optuna\]'"):
        importlib.import_module("boca.integrations.optuna")
