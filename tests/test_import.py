"""What importing the package does, and does not do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import boca

HEAVY = (
    "scipy.stats",
    "scipy.optimize",
    "scipy.interpolate",
    "sklearn",
    "matplotlib",
    "pandas",
    "plotly",
    "starlette",
    "optuna",
    "ray",
    "mlflow",
    "typer",
    "rich",
    "pytest",
)


def modules_after(code):
    """Return the names of the modules that a fresh interpreter has after running the code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_leaves_the_heavy_parts_unimported():
    loaded = modules_after("import boca")
    assert "boca.study.optimizer" in loaded
    assert "numpy" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    assert "boca.problems" not in loaded
    assert "boca.testing" not in loaded
    assert "boca.bench" not in loaded
    assert "boca.cli" not in loaded


def test_defining_a_study_leaves_the_heavy_parts_unimported():
    loaded = modules_after(
        "import boca\n"
        "problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 9)), cost=lambda z: z['n'])\n"
        "opt = boca.Optimizer(problem, budget=boca.targets(3), strategy=boca.RandomSearch(), seed=0)\n"
        "opt.tell(opt.ask(), 1.0)"
    )
    assert [name for name in HEAVY if name in loaded] == []


def test_the_problems_are_reachable_without_an_import_of_their_own():
    loaded = modules_after("import boca\nassert boca.problems.get('branin').name == 'branin'")
    assert "boca.problems" in loaded


def test_the_contract_suite_needs_no_pytest():
    loaded = modules_after(
        "import boca\nboca.testing.check_strategy(boca.RandomSearch(), cases=boca.testing.CASES[:1])"
    )
    assert "boca.testing" in loaded
    assert "pytest" not in loaded


def test_every_public_name_exists():
    assert len(set(boca.__all__)) == len(boca.__all__)
    for name in boca.__all__:
        assert getattr(boca, name) is not None
    for name in (
        "maximize",
        "minimize",
        "Space",
        "Float",
        "Int",
        "Choice",
        "Problem",
        "Optimizer",
        "targets",
        "seconds",
    ):
        assert name in boca.__all__


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        boca.nothing  # noqa: B018
