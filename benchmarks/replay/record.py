"""Make the studies with the pinned commit and keep every decision; run by `make replay` in an environment of its own.

    python -m benchmarks.replay.record --out build/replay/studies [--case NAME]...

A case that is recorded already is left alone.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import boca
from benchmarks.replay import COMMIT, pinned, recorded
from benchmarks.replay.cases import CASES, NAMED, Case


def record(case: Case) -> dict[str, Any]:
    """Play the script of a case and return the study as it is stored."""
    optimizer, watched = pinned.study(case)
    play(case, optimizer)
    history = optimizer.history
    study: dict[str, Any] = {"case": case.name, "commit": COMMIT, "versions": recorded.versions(), "seed": case.seed}
    study |= {"trials": [], "decisions": []}
    for past, budget, suggestion in watched.calls:
        seen = max((max(t.asked, t.told or 0) for t in past), default=0)
        decision = {"number": len(past), "seen": seen, "budget": asdict(budget)}
        decision |= {"x": suggestion.x, "z": suggestion.z, "why": suggestion.why}
        if len(past) < len(history) and history[len(past)].why == suggestion.why:
            decision["trial"] = len(past)
        study["decisions"].append(decision)
    chosen = {d["trial"] for d in study["decisions"] if "trial" in d}
    expected = {t.number: t.cost for past, _, _ in watched.calls for t in past.running}
    for trial in history:
        row = pinned.fields(trial)
        if trial.number in chosen:
            del row["why"]
        if trial.number in expected:
            row["expected"] = expected[trial.number]
        study["trials"].append(row)
    if case.strategy[0] in pinned.RECOMMENDS and len(history.complete):
        study["recommendation"] = pinned.recommendation(case.problem, history, watched.inner)
    _check(study, watched)
    return study


def _check(study: dict[str, Any], watched: pinned.Watched) -> None:
    """See that the file gives back what every decision saw, bit for bit."""
    for decision, (past, _, _) in zip(study["decisions"], watched.calls, strict=True):
        again = recorded.seen_by(study, decision["seen"])
        seen = [pinned.fields(trial) for trial in past]
        wrong = next(recorded.differences(seen, again), None)
        if wrong is not None or len(seen) != decision["number"]:
            raise RuntimeError(f"{study['case']}: decision {decision['number']} is not stored as it was: {wrong}")


def play(case: Case, optimizer: boca.Optimizer) -> None:
    """Ask until all workers have a trial, tell one result, and so on until nothing is left or the steps are done."""
    script = np.random.default_rng([case.seed, 1])
    _bring(case, optimizer, case.imported, script)
    first, queued, is_late = len(optimizer.history), list(case.queued), False
    while True:
        is_refused = False
        while not is_refused and (number := len(optimizer.history) - first) < case.steps:
            if case.late and not is_late and number >= case.steps // 2:
                is_late = True
                _bring(case, optimizer, case.late, script)
            for point in [q for q in queued if q[0] <= number]:
                optimizer.enqueue(point[1], point[2])
                queued.remove(point)
            if len(optimizer.running) >= case.workers:
                break
            asked = optimizer.ask(case.batch or 1)
            for trial in asked:
                if case.lost(trial.number):
                    pinned.lose(optimizer, trial)
            is_refused = not asked
        running = optimizer.running
        if not running or (case.workers > 1 and number >= case.steps):
            return  # several workers leave the study half finished
        for trial in running if case.batch else [_next(case, running, script)]:
            _tell(case, optimizer, trial)


def _next(case: Case, running: tuple[boca.Trial, ...], script: np.random.Generator) -> boca.Trial:
    return {"first": running[0], "last": running[-1], "random": running[int(script.integers(len(running)))]}[case.order]


def _tell(case: Case, optimizer: boca.Optimizer, trial: boca.Trial) -> None:
    rng = np.random.default_rng([case.seed, 2, trial.number])
    deviation, scatter = case.noise(trial.z), float(np.exp(0.05 * rng.standard_normal()))
    took = case.took(trial.z) * scatter
    cost = None if case.charged is None else case.charged(trial.z)
    if case.fails(trial.number):
        optimizer.fail(trial, "a failure of the script", cost=cost, seconds=took)
        return
    value = case.value(trial.x, trial.z) + deviation * float(rng.standard_normal())
    noise = deviation**2 if case.tells_noise and trial.number % 4 else None
    optimizer.tell(trial, value, cost=cost, noise=noise, seconds=took)


def _bring(case: Case, optimizer: boca.Optimizer, count: int, script: np.random.Generator) -> None:
    problem = case.problem
    for k in range(count):
        x = _drawn(problem.space, script)
        z = problem.target if case.at_target(k) else _drawn(problem.fidelity, script, case.elsewhere)
        deviation = case.noise(z)
        value = case.value(x, z) + deviation * float(script.standard_normal())
        noise = deviation**2 if case.tells_noise and k % 2 else None
        optimizer.add(x, z, value, case.took(z) if k % 2 and not problem.has_declared_cost else None, noise=noise)


def _drawn(space: boca.Space, script: np.random.Generator, reach: float = 1.0) -> dict[str, Any]:
    return space.from_unit(space.snap(reach * script.random((1, len(space))))[0]) if len(space) else {}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay.record", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--case", action="append", choices=list(NAMED), metavar="NAME", help="may be repeated")
    given = parser.parse_args()
    for case in CASES if given.case is None else [NAMED[name] for name in given.case]:
        path = given.out / f"{case.name}.json.xz"
        if path.exists():
            continue
        began = time.perf_counter()
        study = record(case)
        recorded.save(path, study)
        took = time.perf_counter() - began
        print(f"{case.name:24} {len(study['decisions']):4} decisions, {took:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
