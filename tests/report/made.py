"""What the tests of the report share: hostile names, a parser of pages, trials and studies made by hand."""

from __future__ import annotations

import base64
import gzip
import json
import math
from html.parser import HTMLParser

import boca
from boca import Float, History, Space
from boca.plots.study import StudyView, stored
from boca.study.spec import describe
from support.strategies import EARLIER
from support.trials import made as trial_of

EVIL = "</script><script>alert(1)</script>"
NAMES = [EVIL, '<b>bold</b> &amp; "quotes" \'`${x}%{y}', "line\u2028break\u2029$", "w" * 300]
REASON = "boom </script><img src=x onerror=alert(4)> \u2028"
PROBLEM = boca.Problem(Space(a=Float(0, 1)), Space(n=Float(1, 10)), cost=lambda z: z["n"])


class Page(HTMLParser):
    """Collect tags, attributes, and the text of every element with an id, of every script and of every row."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.sections, self.rows = [], [], [], {}, []
        self._open = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("meta", "link", "img"):
            return
        self._open.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, text):
        if self._open and self._open[-1][0] == "script":
            attrs, before = self.scripts[-1]
            self.scripts[-1] = (attrs, before + text)
        for _, attrs in self._open:
            if "id" in attrs:
                self.sections[attrs["id"]] = self.sections.get(attrs["id"], "") + text
        if any(tag in ("td", "th") for tag, _ in self._open):
            self.rows[-1][-1] += text

    @property
    def figures(self):
        told = json.loads(self.unpacked("figures"))
        for trace in (trace for figure in told["figures"].values() for trace in figure["data"] if "words" in trace):
            trace["text"] = [told["words"][place] for place in trace.pop("words")]
        return told["figures"]

    def unpacked(self, key):
        """Return what the browser unpacks from a script that is data."""
        (raw,) = [text for attrs, text in self.scripts if attrs.get("id") == key]
        return gzip.decompress(base64.b64decode(raw)).decode()


def run(opt, n, value, failing=()):
    for _ in range(n):
        trial = opt.ask()
        if trial is None:
            return opt
        if trial.number in failing:
            opt.fail(trial, REASON)
        else:
            opt.tell(trial, value(trial))
    return opt


def made(number, *, z=None, h=(0.5, 1.0), n=None, **more):
    """Return a trial of a study of one parameter and one fidelity, its decision with these bandwidths."""
    values = {"x": {"a": (number * 0.37) % 1.0}, "z": {"n": 10.0} if z is None else z, "cost": 1.0}
    why = {"reason": "So.", "phase": "model", "hyperparameters": {"h_x": [h[0]], "h_z": [h[1]], "kappa0": 1, "eta2": 1}}
    fit = {"theta": [0.0, *map(math.log, h), math.log(0.01)], "location": 0.0, "scale": 1.0, "results": 99}
    why["fit"] = fit | {"iteration": 0, "count": 0}
    result = {"state": "complete", "value": math.sin(number), "told": number}
    return trial_of(number=number, why=why, **(values | result | more))


def of(trials, problem=PROBLEM):
    return StudyView(problem, History(trials), EARLIER)


def kept(seen):
    """Return the study as a storage would have it."""
    return stored("s", describe(seen.problem, seen.strategy, seed=0, limit=None), seen.history)


def healthy():
    return [made(k, z={"n": 10.0 if k % 2 else 5.0}) for k in range(8)]
