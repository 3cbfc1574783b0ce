"""How busy a driver keeps sleeping workers, had it a core of its own: in CPU time, whatever else the machine does.

    python benchmarks/busy.py [--sizes 200 2000] [--slots 4 32 128] [--seconds 0.05 5] [--trials 300] [--regret 0]

The real driver runs on a clock that counts its own CPU seconds, and jumps to the end of the next trial when the
driver has nothing to do.  What threads, processes and networks cost is left out.  `ahead` says whether trials are
chosen before workers are free for them.  `--regret S` compares what both ways find on S seeds.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import math  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from concurrent.futures import Future  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

import boca  # noqa: E402
from benchmarks.scale import Case, study  # noqa: E402
from boca.execution import timing  # noqa: E402
from boca.execution.driver import Driver  # noqa: E402
from boca.execution.executors import Outcome  # noqa: E402


class Clock:
    """The CPU seconds of this process, and the time in which it had nothing to do."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._slept = 0.0

    @property
    def now(self) -> float:
        return time.process_time() - self._began + self._slept

    def wait_until(self, moment: float) -> None:
        self._slept += max(moment - self.now, 0.0)


class Sleeper(Future[Outcome]):
    """An evaluation that sleeps on that clock."""

    def __init__(self, clock: Clock, seconds: float, value: float) -> None:
        super().__init__()
        self.set_result(Outcome(value, None, "", seconds))
        self.ends = clock.now + seconds
        self._clock = clock

    def done(self) -> bool:
        return self._clock.now >= self.ends


class Sleepers:
    """Workers that sleep."""

    def __init__(self, clock: Clock, slots: int, seconds: float, problem: Any) -> None:
        self.slots = slots
        self.begun: list[tuple[float, float]] = []
        self._clock, self._seconds, self._problem = clock, seconds, problem
        self._rng = np.random.default_rng(7)

    def submit(self, x: dict[str, Any], z: dict[str, Any], *, timeout: float | None) -> Future[Outcome]:
        takes = self._seconds * self._rng.uniform(0.8, 1.2)  # equal ones would always end together
        one = Sleeper(self._clock, takes, float(self._problem.value(x, z)))
        self.begun.append((one.ends - takes, one.ends))
        return one

    def close(self, *, now: bool = False) -> None:
        """Do nothing."""


class Virtual(Driver):
    """A driver that waits on that clock."""

    clock: Clock

    def _done(self) -> Any:
        ended = self._ended()
        if not ended:
            self.clock.wait_until(min(future.ends for future in self._running))  # type: ignore[attr-defined]
        return self._ended()


def drive(optimizer: boca.Optimizer, problem: Any, slots: int, seconds: float, trials: int, *, ahead: bool) -> Sleepers:
    """Run until this number of trials has ended."""
    timing._IDLE_SHARE = 0.05 if ahead else math.inf
    clock = Clock()
    engine = Sleepers(clock, slots, seconds, problem)
    left = iter(range(trials, -1, -1))
    driver = Virtual(optimizer, engine, after=lambda *_: next(left, 0) <= 1)
    driver.clock = clock
    driver.run()
    return engine


def used(engine: Sleepers, slots: int) -> tuple[float, float]:
    """Return the share of the time in which workers slept, from when all were busy once until the last began."""
    begin, end = engine.begun[min(slots, len(engine.begun) - 1)][0], engine.begun[-1][0]
    slept = math.fsum(max(min(stop, end) - max(start, begin), 0.0) for start, stop in engine.begun)
    return slept / (slots * (end - begin)), (end - begin) / max(len(engine.begun) - slots, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="How busy a driver keeps workers, in CPU time.")
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 2000), metavar="N", help="results before")
    parser.add_argument("--slots", type=int, nargs="+", default=(4, 32, 128), metavar="W", help="workers")
    parser.add_argument("--seconds", type=float, nargs="+", default=(0.05, 5.0), metavar="S", help="of a trial")
    parser.add_argument("--trials", type=int, default=300, metavar="T", help="that end (default: 300)")
    parser.add_argument("--regret", type=int, default=0, metavar="S", help="seeds; compares regrets instead")
    options = parser.parse_args()
    if options.regret:
        regret(options.regret)
        return
    print("| n | workers | seconds per trial | ahead | used | seconds per start, driver |\n" + "| --- " * 6 + "|")
    for n in options.sizes:
        for slots in options.slots:
            for seconds in options.seconds:
                for ahead in (False, True):
                    case = Case(n)
                    trials = max(options.trials, 2 * slots)
                    engine = drive(study(case, n), case.benchmark, slots, seconds, trials, ahead=ahead)
                    share, each = used(engine, slots)
                    row = (f"{n:,}", slots, f"{seconds:g}", "yes" if ahead else "no", f"{share:.0%}", f"{each:.4f}")
                    print(f"| {' | '.join(map(str, row))} |", flush=True)


def regret(seeds: int) -> None:
    """Print the simple regret of eight workers on Hartmann 3 after 60 trials, chosen as workers are free and ahead."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(seeds):
        for ahead in (False, True):
            bench = boca.problems.get("hartmann3")
            optimizer = boca.Optimizer(bench.problem, budget=boca.targets(25), seed=seed)
            drive(optimizer, bench, 8, 0.15, 10_000, ahead=ahead)
            best = max((bench.value(t.x) for t in optimizer.history if bench.problem.is_target(t.z)), default=-math.inf)
            found[ahead].append(bench.optimum - best)
        print(seed, *(f"{found[ahead][-1]:.4g}" for ahead in (False, True)), flush=True)
    logs = [math.log10(max(b, 1e-9) / max(a, 1e-9)) for a, b in zip(found[False], found[True], strict=True)]
    error = statistics.stdev(logs) / math.sqrt(seeds) if seeds > 1 else math.nan
    print(f"log10 of regret ahead / regret not ahead: {statistics.fmean(logs):+.3f} ± {error:.3f}")
    print("medians", *(f"{statistics.median(found[ahead]):.4g}" for ahead in (False, True)))


if __name__ == "__main__":
    main()
