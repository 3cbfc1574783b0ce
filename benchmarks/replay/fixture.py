"""Choose the decisions that `make test` makes again on any machine, and write `tests/replay/studies.json.xz`.

    python -m benchmarks.replay.fixture build/replay/studies --out tests/replay/studies.json.xz

Another machine rounds otherwise, and where two points are almost equally good that decides between them.  So only
decisions are kept that stay the same with other instructions of this processor, with two threads, and with results that
differ in the twelfth digit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.replay import recorded
from benchmarks.replay.cases import NAMED
from benchmarks.replay.compare import as_json, replayed

STABLE = 1e-7  # relative, in x, z and why; the test allows a hundred times as much
EACH = 6  # decisions of a case at most
_SIZE = 1e-12  # of the change of results

# Other kernels of the linear algebra, NumPy without its vector instructions, and sums over two threads.
VARIANTS: tuple[dict[str, str], ...] = (
    {"OPENBLAS_CORETYPE": "Nehalem"},
    {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    {"BOCA_REPLAY_NUDGE": "1"},
    {"BOCA_REPLAY_NUDGE": "2"},
)


def nudged(study: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the study with results that differ in the twelfth digit; those that were equal stay so."""
    rng = np.random.default_rng(seed)
    values = dict.fromkeys(t["value"] for t in study["trials"] if t["value"] is not None)
    nudge = {value: value * (1.0 + _SIZE * float(rng.standard_normal())) for value in values}
    trials = [dict(trial) for trial in study["trials"]]
    for trial in trials:
        if trial["value"] is not None:
            trial["value"] = nudge[trial["value"]]
    return study | {"trials": trials}


def kind(decision: Mapping[str, Any], study: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes a decision one of its kind: the branches that it took."""
    why = decision["why"]
    fit = why.get("fit", {})
    use, rises, is_flat = fit.get("use", {}).get("kind"), "rise" in fit, "flat" in fit
    is_target = decision["z"] == NAMED[study["case"]].problem.target
    is_refit, runs = why.get("refit"), bool(why.get("pending"))
    was_bought = "trial" in decision  # else it was not affordable, and the study is all but over
    is_off = "guard" in why
    return why["phase"], why.get("acquisition"), is_target, was_bought, is_refit, runs, is_off, use, rises, is_flat


def deviation(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Return the largest relative difference of two decisions; infinity if they differ in more than numbers."""
    largest = 0.0
    for _, a, b in recorded.differences(as_json(old), new):
        if not (isinstance(a, float) and isinstance(b, float)):
            return math.inf
        largest = max(largest, abs(a - b) / max(abs(a), abs(b)))
    return largest


def deviations(paths: list[Path]) -> dict[str, list[float]]:
    """Return of every case how far each of its decisions is from the recorded one, here and now."""
    seed = os.environ.get("BOCA_REPLAY_NUDGE")
    found = {}
    for path in paths:
        study = recorded.load(path)
        given = study if seed is None else nudged(study, int(seed))
        found[study["case"]] = [deviation(old, new) for old, new in replayed(given, NAMED[study["case"]])]
    return found


def measured(studies: Path) -> Iterator[dict[str, list[float]]]:
    """Yield the deviations under every variant, each in a process of its own."""
    for variant in VARIANTS:
        command = [sys.executable, "-m", "benchmarks.replay.fixture", str(studies), "--measure"]
        done = subprocess.run(command, env=os.environ | variant, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout)


def chosen(study: dict[str, Any], stable: list[bool]) -> dict[str, Any] | None:
    """Return the study with the first stable decision of each kind, and no trials after the last of them."""
    kinds: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for decision, is_stable in zip(study["decisions"], stable, strict=True):
        if is_stable:
            kinds.setdefault(kind(decision, study), decision)
    by_rarity = sorted(kinds.values(), key=lambda d: d["why"]["phase"] == "start")[:EACH]
    kept = sorted(by_rarity, key=lambda d: (d["number"], d["seen"]))
    if not kept:
        return None
    known = {d["trial"]: d["why"] for d in study["decisions"] if "trial" in d}
    trials = [{"why": known.get(t["number"])} | t for t in study["trials"] if t["asked"] <= kept[-1]["seen"]]
    decisions = [{key: d[key] for key in ("number", "seen", "budget", "x", "z", "why")} for d in kept]
    return {key: study[key] for key in ("case", "versions", "seed")} | {"trials": trials, "decisions": decisions}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay.fixture", description=__doc__.splitlines()[0])
    parser.add_argument("studies", type=Path, metavar="DIR", help="what record.py has written")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--measure", action="store_true", help="print the deviations in this very process")
    given = parser.parse_args()
    paths = [given.studies / f"{name}.json.xz" for name in NAMED]
    if given.measure:
        print(json.dumps(deviations(paths)))
        return
    if given.out is None:
        parser.error("--out FILE is missing")
    found = list(measured(given.studies))
    kept = []
    for path in paths:
        study = recorded.load(path)
        worst = np.max([one[study["case"]] for one in found], axis=0)
        part = chosen(study, list(worst <= STABLE))
        count = 0 if part is None else len(part["decisions"])
        print(f"{study['case']:28} {int(np.sum(worst <= STABLE)):4} of {len(worst):4} are stable, {count} kept")
        if part is not None:
            kept.append(part)
    recorded.save(given.out, kept)


if __name__ == "__main__":
    main()
