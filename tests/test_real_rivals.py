"""The sessions of HEBO, DEHB and Ax ask for points of the space; each is tested only where it is installed."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import boca

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

from benchmarks.real import rivals
from boca.domain.errors import BocaError

PROBLEM = boca.Problem(
    boca.Space(
        a=boca.Float(1e-3, 1.0, log=True), n=boca.Int(1, 7), m=boca.Int(2, 64, log=True), c=boca.Choice(["p", "q", "r"])
    ),
    boca.Space(step=boca.Int(1, 27)),
    cost=lambda z: z["step"] / 27,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "package"), [("HEBO", "hebo"), ("DEHB", "dehb"), ("Ax", "ax")])
def test_a_session_asks_for_points_and_is_told_scores(name, package):
    pytest.importorskip(package, reason=f"NOT TESTED: {package} is not in this environment; `make rivals` has it")
    session = getattr(rivals, name)().begin(PROBLEM, 3)
    fidelities = set()
    for _ in range(9):
        x, z = session.ask()
        PROBLEM.space.validate(x, "x")
        fidelities.add(PROBLEM.fidelity.validate(z, "z")["step"])
        session.tell(-(math.log10(x["a"]) ** 2) - abs(x["n"] - 3))
    assert fidelities == {27} if name != "DEHB" else min(fidelities) < 3, "DEHB begins at its lowest rung"


def test_a_library_that_is_missing_is_named(monkeypatch):
    def missing(name):
        raise rivals.version.__globals__["metadata"].PackageNotFoundError(name)

    monkeypatch.setattr(rivals.version.__globals__["metadata"], "version", missing)
    for kind in (rivals.HEBO, rivals.DEHB, rivals.Ax):
        with pytest.raises(BocaError, match="not in this environment"):
            kind()


def test_numbers_are_rounded_into_their_ranges():
    found = {"a": "0.5", "n": 7.4, "m": 1.2, "c": 2.0}
    assert rivals._numbered(PROBLEM, found) == {"a": 0.5, "n": 7, "m": 2, "c": 2}
    assert rivals._hebo_range("m", PROBLEM.space["m"]) == {"name": "m", "type": "pow_int", "lb": 2, "ub": 64}
    assert rivals._hebo_range("c", PROBLEM.space["c"])["categories"] == [0, 1, 2]
