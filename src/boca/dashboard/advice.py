"""The recommendation of a study: it needs a model fit, so it is computed in a separate process that can be ended.

The process runs `main`; it reads a storage and a name from its input and writes the recommendation to its output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from boca.dashboard import matters
from boca.dashboard.watch import WatchedStudy, Watcher
from boca.domain.words import point
from boca.plots.importance_data import importance
from boca.plots.study import StudyView, stored
from boca.study.storage.reader import Reader

_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from boca.dashboard.advice import main; main()"
_MAX_SECONDS = 60.0  # for a recommendation: longer, and the page would show an old one all the time
_MAX_RESULTS = 4000  # of a study: the memory of a model grows with their square
_WATCHED_FOR = 10.0  # seconds since a browser last asked for a study; pages ask every second
_REST_RATIO = 4.0  # rest over computing: at most a fifth of a core


@dataclass(frozen=True)
class Advice:
    """The recommendation after the results up to the event `told`: a point, or words on why there is none."""

    told: int
    point: Mapping[str, Any] | None = None
    words: str | None = None
    importance: Mapping[str, Any] | None = None
    """Which parameters matter to the same model, as columns; None if there is no model of it."""


class Adviser:
    """A thread that has recommendations computed, one at a time, for the studies that a browser shows."""

    def __init__(self, watcher: Watcher, *, compute: Callable[[WatchedStudy], Advice] | None = None) -> None:
        self._watcher = watcher
        self._compute = compute or self._in_a_process
        self._wanted: dict[str, float] = {}  # name -> when a browser last asked for it
        self._known: dict[str, Advice] = {}  # by key of the study
        self._tried: dict[str, int] = {}  # key -> the event of the last result that was tried
        self._wake = threading.Condition()
        self._rests_until = 0.0
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="boca-advice", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def of(self, study: WatchedStudy) -> Advice | None:
        """Return the last recommendation at once, and note that a browser asked; None before the first."""
        with self._wake:
            self._wanted[study.row.name] = time.monotonic()
            if self._is_due(study):
                self._wake.notify_all()
            return self._known.get(study.key)

    def _is_due(self, study: WatchedStudy) -> bool:
        return bool(study.history.complete) and self._tried.get(study.key, 0) < study.told

    def _run(self) -> None:
        while (study := self._next()) is not None:
            began = time.monotonic()
            try:
                advice = self._compute(study)
            except OSError as error:  # such as no memory for another process
                advice = Advice(study.told, words=f"The model could not be computed: {error}")
            with self._wake:
                self._rests_until = time.monotonic() + _REST_RATIO * (time.monotonic() - began)
                self._known[study.key] = advice
                known = {s.key for s in self._watcher.world.studies.values() if isinstance(s, WatchedStudy)}
                for of_study in (self._known, self._tried):
                    for key in of_study.keys() - known:
                        del of_study[key]

    def _next(self) -> WatchedStudy | None:
        """Wait for a study on a page with a new result; None when it is time to end."""
        with self._wake:
            while not self._stopped:
                due = self._due()
                rest = self._rests_until - time.monotonic()
                first = [
                    study for study in due if study.key not in self._known
                ]  # the first recommendation of a study does not wait
                if first or (due and rest <= 0):
                    study = (first or due)[0]
                    self._tried[study.key] = study.told
                    return study
                self._wake.wait(timeout=max(rest, 0.05) if due else _WATCHED_FOR)
            return None

    def _due(self) -> list[WatchedStudy]:
        """Return the studies that need a recommendation, the one that was last asked for first."""
        late = time.monotonic() - _WATCHED_FOR
        self._wanted = {name: when for name, when in self._wanted.items() if when > late}
        named = sorted(self._wanted, key=lambda name: -self._wanted[name])
        studies = (self._watcher.world.studies.get(name) for name in named)
        return [study for study in studies if isinstance(study, WatchedStudy) and self._is_due(study)]

    def _in_a_process(self, study: WatchedStudy) -> Advice:
        """Compute it in a separate process, which is ended if it takes too long."""
        task = json.dumps({"url": self._watcher.reader.url, "name": study.row.name})
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with self._wake:
            if self._stopped:
                return Advice(study.told)
            self._process = process = subprocess.Popen(
                # -P: modules are not taken from the folder that the server runs in, unless the server does so too
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env={**os.environ, **quiet, "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,  # Ctrl-C is for the server, which then ends this
            )
        with process:
            try:
                out, err = process.communicate(task, timeout=_MAX_SECONDS)
                return Advice(**json.loads(out))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return Advice(
                    study.told,
                    words=f"The model took longer than {_MAX_SECONDS:.0f} seconds. `boca best` has no limit.",
                )
            except (ValueError, TypeError):
                last = (err.strip().splitlines() or ["no reason was given"])[-1]
                return Advice(study.told, words=f"The model could not be computed: {last}")
            finally:
                self._process = None


# In the process ---------------------------------------------------------------------------------------------------


def advise(study: WatchedStudy) -> Advice:
    """Return the recommendation of a study."""
    if len(study.history.finished) > _MAX_RESULTS:
        return Advice(
            study.told,
            words=f"A page shows no model of more than {_MAX_RESULTS:,} results. `boca best` has no limit.",
        )
    seen = stored(study.row.name, study.spec, study.history)
    if seen.problem.objectives:
        return Advice(study.told, words=_of_front(seen))
    found = seen.recommendation
    if found is None:
        return Advice(study.told, words=seen.why_no_model if study.history.complete else None)
    values = [found.x.get(name) for name in seen.problem.space.names]
    advised = {"x": values, "mean": found.mean, "std": found.std, "verified": found.verified}
    if found.feasible is not None:
        advised["feasible"] = found.feasible
    if seen.best is not None and seen.believed is not None:  # variances were told: the best is not the luckiest
        advised["best"] = seen.best.number
    return Advice(study.told, advised, importance=matters.columns(importance(seen)))


def _of_front(seen: StudyView) -> str:
    """Return in words which points should be run at the target to be on the front."""
    untried = [one for one in seen.recommended_front if not one.verified]
    if not untried:
        return "No other point is expected to be on the front: all that are were run at the target."
    return "; ".join(f"{point(one.x)}: {one.words}" for one in untried)


def main() -> None:
    task = json.load(sys.stdin)
    if hasattr(os, "nice"):
        os.nice(10)
    watcher = Watcher(Reader(task["url"]), only=task["name"])
    watcher.look()
    study = watcher.world.studies.get(task["name"])
    if isinstance(study, WatchedStudy):
        advice = advise(study)
    else:
        advice = Advice(0, words=watcher.world.trouble or "The study was deleted.")
    json.dump(asdict(advice), sys.stdout, allow_nan=False)
