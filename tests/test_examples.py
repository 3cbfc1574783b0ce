"""The examples run to their end and say what they should; the demo leaves a picture."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    specification = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def boosting():
    return load("boosting")


def test_the_demo_shows_every_seed_twice_and_leaves_a_picture(tmp_path):
    """In a process of its own, whose workers import the script as the user's do."""
    script = f"import boosting; boosting.main(budget=1.2, seeds=(0, 1), picture={str(tmp_path / 'p.png')!r})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{EXAMPLES}", "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    for seed in (0, 1):
        for name in ("with fidelities", "target only"):
            assert re.search(rf"seed {seed}, {name}: loss 0\.\d{{4}} after \d+ trials", done.stdout), done.stdout
    assert re.search(r"better in", done.stdout)
    assert re.search(r"The best model of all has loss 0\.\d{4}: learning_rate = ", done.stdout)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_more_rows_and_more_trees_cost_more(boosting):
    assert boosting.cost(boosting.TARGET) == 1.0
    costs = [boosting.cost({"rows": r, "trees": t}) for r, t in ((1000, 5), (1000, 50), (9000, 50))]
    assert costs == sorted(costs)
    assert len(set(costs)) == 3


def made(boosting, name, seed, seconds, best):
    targets = tuple(float(i + 1) for i in range(len(best)))
    return boosting.Run(name, seed, len(best), targets, seconds, best, {"a": 1.0}, targets[-1], seconds[-1], 0.1)


def test_the_table_compares_at_equal_budget_and_at_equal_seconds(boosting):
    runs = [
        made(boosting, boosting.WITH, 0, (4.0, 8.0, 12.0), (0.5, 0.4, 0.2)),
        made(boosting, boosting.WITHOUT, 0, (1.0, 2.0, 3.0), (0.6, 0.5, 0.3)),
    ]
    cells = [list(column.cells) for column in boosting.compare(runs, 3.0).columns]
    assert [cell[0].strip() for cell in cells[:5]] == ["0", "0.2000*", "0.3000", "none", "0.3000*"]
    assert [cell[-1] for cell in cells[1:5]] == ["1", "0", "0", "1"]
    assert "needed 3.0 target evaluations for what took 3.0 at the target only" in boosting.summary(runs, 3.0)


def test_a_quality_that_was_never_reached_is_said(boosting):
    runs = [
        made(boosting, boosting.WITH, 0, (1.0, 2.0), (0.5, 0.4)),
        made(boosting, boosting.WITHOUT, 0, (1.0, 2.0), (0.6, 0.3)),
    ]
    said = boosting.summary(runs, 2.0)
    assert "needed more than its target evaluations for what took 2.0" in said
    assert "1 of 1 runs never got there." in said


# The short ones -----------------------------------------------------------------------------------------------------

SAYS = {  # what a script says, with the budget that it is given here
    "pipeline": ("4", r"Best pipeline at the target: 0\.\d{4} .*\n.*scaler (standard|range), gamma \S+, alpha"),
    "network": (
        "1",
        r"<- the target\n\nBest network: loss \d\.\d{4} with units .*\n\d+ networks at the cost of [01]\.\d ",
    ),
    "heat": ("1.5", r"conductivity +0\.\d{4} +0\.0210\n.*\n.*\n\d+ simulations at the cost of 1\.[0-5] "),
    "command": (
        "3",
        r"# with all of it, 3 targets.*\n(?s:.*)The shot: \d+\.\d degrees, .* lands at .*\nawk ran \d+ times",
    ),
    "cluster": (
        "1.5",
        r"2 workers .*\nOrder \d+ when \d+ are left: a profit of .*\n.* which is (1\.[0-5]|0\.\d) times",
    ),
    "strategy": ("1.2", r"passes the contract.*\n.*\n +RandomSearch .*\n +Promote .*\n +Boca +median \S+\n"),
}

NOT_RUN = {
    "training": "needs PyTorch; docs/guide/runs.md has the same program for scikit-learn, which runs",
    "many_hosts": "is for several hosts; tests/integration/test_many_hosts.py runs it in four processes",
}


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_found_and_what_it_cost(name, tmp_path):
    budget, says = SAYS[name]
    script = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), budget]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(says, done.stdout), done.stdout
    assert not list(tmp_path.iterdir())


def test_the_examples_are_short_and_the_readme_names_them_all():
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
    assert set(scripts) == {"boosting", *SAYS, *NOT_RUN}
    assert all(len(text.splitlines()) <= 60 for name, text in scripts.items() if name != "boosting")
    named = re.findall(r"examples/(\w+)\.py", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(scripts)


# The notebook ---------------------------------------------------------------------------------------------------------


def test_the_notebook_runs_from_the_top_and_its_steps_agree_with_the_method(capsys):
    """Its cells in one namespace, as a kernel runs them; every figure is closed after its cell."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    plt.close("all")  # of other tests
    notebook = json.loads((EXAMPLES / "method.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells)
    names, drawn = {}, 0
    for cell in cells:
        exec(compile("".join(cell["source"]), f"method.ipynb, {cell['id']}", "exec"), names)
        drawn += bool(plt.get_fignums())
        plt.close("all")
    assert drawn == 7
    assert names["roughness"][0.01] > names["roughness"][0.15] > names["roughness"][0.5]
    said = re.search(r"passes: z = (\S+); asked: z = (\S+)", capsys.readouterr().out)
    assert said is not None
    assert said[1] == said[2]  # the decision by hand is the one that was made
    assert abs(names["trial_x"] - names["best_x"]) < 0.01
    assert names["regret"][-1] < 0.1
    assert names["good"].share_inside > names["good"].volume
