"""What the page is told of importance is what the plot shows."""

from __future__ import annotations

import json

import numpy as np

from boca.dashboard import matters
from boca.plots.axis import Note
from boca.plots.importance_data import Importance, Share, View


def test_the_columns_are_those_of_the_indices():
    share = Share(np.array([0.7, 0.2]), np.array([0.6, 0.1]), np.array([0.8, 0.3]))
    found = Importance(("b", "a"), (View("at the target", {}, share, share),), True, False)
    told = json.loads(json.dumps(matters.columns(found)))
    assert told["names"] == ["b", "a"]
    assert told["views"][0]["total"] == {"middle": [0.7, 0.2], "low": [0.6, 0.1], "high": [0.8, 0.3]}


def test_without_a_model_there_is_nothing_to_tell():
    assert matters.columns(Note("No trial is complete yet.")) is None
