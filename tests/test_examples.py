"""The examples run to their end and say what they should; the demo leaves a picture."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    specification = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_the_demo_tells_what_was_found_and_what_it_cost(digits, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    digits.main(budget=2.0, seeds=(0, 1), picture=tmp_path / "fidelities.png")
    said = capsys.readouterr().out
    assert re.search(r"Found at the target: accuracy 0\.\d{4} at C = \S+, gamma = \S+\.", said)
    assert re.search(r"The model expects \d\.\d{4} \+- \d\.\d{4} there; verified at the target: (True|False)", said)
    assert re.search(r"Cost: [12]\.\d\d targets for \d+ queries, \d+ at the target", said)
    for seed in (0, 1):
        assert re.search(rf"seed {seed}, with fidelities .* of 2 targets spent, best 0\.\d{{4}}", said)
        assert re.search(rf"seed {seed}, target only .* 4\.0 of 4 targets spent, best 0\.\d{{4}}", said)
    assert re.search(r"median .* (\d+\.\d \(\d+\.\d s\)|not within its budget) ", said)
    assert (tmp_path / "fidelities.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["fidelities.png"]


def test_more_images_and_more_iterations_cost_more(digits):
    assert digits.cost(digits.TARGET) == pytest.approx(1.0)
    assert digits.cost({"N": 200, "T": 10}) < digits.cost({"N": 200, "T": 50}) < digits.cost({"N": 400, "T": 50})


def test_a_quality_that_was_never_seen_has_no_cost(digits):
    optimizer = digits.boca.Optimizer(digits.PROBLEMS[digits.WITHOUT], budget=digits.boca.targets(3), seed=0)
    for value in (0.5, 0.9, 0.7):
        optimizer.tell(optimizer.ask(), value, seconds=10.0)
    assert [(money, best) for money, _, best in digits.curve(optimizer)] == [(1.0, 0.5), (2.0, 0.9), (3.0, 0.9)]
    runs = {digits.WITH: [optimizer], digits.WITHOUT: [optimizer]}
    for cell in digits.compare(runs, 0.9).columns[1].cells:  # the seed, the median
        assert re.fullmatch(r"2\.0 \(2\d\.\d s\)", cell)
    assert list(digits.compare(runs, 0.95).columns[1].cells) == ["not within its budget"] * 2


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
    assert set(scripts) == {"digits", *SAYS}
    assert all(len(text.splitlines()) <= 60 for name, text in scripts.items() if name != "digits")
    named = re.findall(r"examples/(\w+)\.py", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(scripts)


# The notebook ---------------------------------------------------------------------------------------------------------


def test_the_notebook_runs_from_the_top_and_its_steps_agree_with_the_method(capsys):
    """Its cells in one namespace, as a kernel runs them; every figure is closed after its cell."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
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
