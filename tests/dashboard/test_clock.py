"""The timeline as JSON."""

from __future__ import annotations

import json

from boca.dashboard.clock import LAST, timeline
from dashboard.conftest import begin, run


def test_every_trial_that_ran_has_a_bar(url, page_of):
    opt = run(begin(url), 6)
    opt.ask()
    opt.add({"a": 0.5, "kind": "flat"}, None, 1.0)
    found = timeline(page_of(url).watcher.world.studies["bowl"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["of"] == 7
    assert sorted(found["number"]) == list(range(7))
    assert found["state"].count("failed") == 1
    assert found["state"].count("running") == 1
    assert {len(found[key]) for key in ("lane", "began", "ended", "number", "state", "at_target")} == {7}
    assert LAST >= 7


def test_a_study_without_trials_has_no_timeline(url, page_of):
    begin(url)
    assert timeline(page_of(url).watcher.world.studies["bowl"]) is None
