"""Optimize a program in another language: the command `boca run`, and the commands that show the study afterwards.

    python examples/command.py [TARGETS]

The study is examples/cannon/study.toml, the program examples/cannon/cannon.awk.  By hand, it is

    cd examples/cannon
    boca run study.toml
    boca best cannon.db cannon

This script does the same in a directory of its own.  It stops half-way and resumes.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def boca(folder: Path, *arguments: str) -> str:
    """Run the command in a directory and return what it prints."""
    command = [sys.executable, "-m", "boca", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(budget: float = 8.0) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "cannon")
        shutil.copytree(HERE / "cannon", folder, ignore=shutil.ignore_patterns("*.db*"))
        study = folder / "study.toml"
        whole = study.read_text(encoding="utf-8").replace("{ targets = 8 }", f"{{ targets = {budget} }}")

        study.write_text(whole.replace(f"= {budget}", f"= {budget / 2}"), encoding="utf-8")
        print(f"$ boca run study.toml                  # with half of the budget, {budget / 2:g} targets")
        print(boca(folder, "run", "study.toml"))

        study.write_text(whole, encoding="utf-8")
        print(f"$ boca run study.toml --allow-change   # with all of it, {budget:g} targets: it resumes")
        print(boca(folder, "run", "study.toml", "--allow-change"))

        best = json.loads(boca(folder, "best", "cannon.db", "cannon", "--json"))
        shot, said = best["x"], best["output"].splitlines()[0]
        print(f"The shot: {shot['angle']:.1f} degrees, {shot['speed']:.1f} m/s; {said}.")
        trials = json.loads(boca(folder, "show", "cannon.db", "cannon", "--json"))
        full = sum(trial["z"] == best["z"] for trial in trials)
        print(f"awk ran {len(trials)} times, {full} of them with the full number of steps.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
