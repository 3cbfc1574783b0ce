"""What a notebook shows: small tables, safe from whatever a name or a reason holds, readable on any page."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import boca
from boca import History, render
from boca.domain.words import expected
from support.trials import made as trial_of

EVIL = "<script>alert('x')</script>&\"'"


def trial(number=0, **more):
    values = {"x": {"a": 0.25}, "z": {"n": 3}, "cost": 2.0, "why": {"reason": "Because.", "phase": "start"}}
    return trial_of(**({"number": number, "state": "complete", "value": 1.5} | values | more))


class Page(HTMLParser):
    """Collect tags and text, and see that what opens is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.rows, self.open = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open[-1:] and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)

    @property
    def text(self):
        return " ".join(self.words)


def shown(thing):
    return Page(thing._repr_html_())


def test_a_history_is_a_table_with_a_row_a_trial():
    history = History(
        [trial(0), trial(1, state="failed", value=None, reason="broke"), trial(2, state="running", value=None)]
    )
    page = shown(history)
    assert page.rows[0] == ["trial", "state", "value", "cost", "a", "n", "phase"]
    assert page.rows[1] == ["0", "complete", "1.5", "2", "0.25", "3", "start"]
    assert len(page.rows) == 4
    assert "1 complete, 1 running, 1 failed" in page.text


def test_a_long_history_is_cut_in_the_middle_and_says_so():
    page = shown(History([trial(k) for k in range(1000)]))
    numbers = [row[0] for row in page.rows[1:]]
    assert numbers == [*map(str, range(10)), "… 980 more trials …", *map(str, range(990, 1000))]
    whole = shown(History([trial(k) for k in range(render.MAX_ROWS)]))
    assert len(whole.rows) == 1 + render.MAX_ROWS
    assert "more" not in whole.text


def test_many_parameters_are_counted_instead_of_shown():
    page = shown(History([trial(x={f"p{i}": i for i in range(40)})]))
    assert len(page.rows[0]) == 4 + render.MAX_COLUMNS + 1
    assert "29 more columns" in page.text


def test_an_empty_history_says_that_it_is():
    assert shown(History()).text == "History(empty)"


def test_a_trial_shows_its_reasons():
    page = shown(trial(why={"reason": "The target.", "phase": "model", "mean": 1.25, "xi": 0.5}, seconds=4.0))
    assert "The target." in page.text
    assert "mean = 1.25, xi = 0.5" in page.text
    assert "Trial 0, complete" in page.text
    assert "broke" in shown(trial(state="failed", value=None, reason="broke")).text


def test_options_that_are_none_are_shown_and_values_that_are_missing_are_not():
    page = shown(History([trial(x={"a": None}, value=None, state="running")]))
    assert page.rows[1][3] == "None"  # an empty cell has no text
    assert page.rows[1][:3] == ["0", "running", "2"]


@pytest.mark.parametrize("evil", [EVIL, "</td></table><img src=x onerror=alert(1)>", "\u2028<b>"])
def test_whatever_the_user_wrote_stays_text(evil):
    bad = trial(x={evil: evil}, z={evil + "z": evil}, why={"reason": evil, "phase": evil}, state="failed", reason=evil)
    for page in (shown(bad), shown(History([bad]))):
        assert set(page.tags) <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert " ".join(evil.split()) in shown(bad).text


def test_long_texts_are_cut():
    page = shown(History([trial(x={"a": "y" * 5000})]))
    assert len(page.text) < 400
    assert "…" in page.text


def test_a_result_shows_what_was_found_and_folds_its_trials():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    page = shown(result)
    rows = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert float(rows["best at the target"]) == pytest.approx(result.value, rel=1e-5)
    advised = result.recommendation
    assert expected(advised.mean, advised.std) in rows["recommended"]
    assert rows["spent"] == "3 of 3 targets on 3 trials"
    assert "details" in page.tags


def test_a_result_without_a_best_says_so_and_shows_its_warnings():
    result = boca.Result(None, None, None, History([trial()]), 1.0, (f"Careful: {EVIL}",))
    page = shown(result)
    assert "no trial is complete" in page.text
    assert f"Careful: {EVIL}" in page.text
    assert "script" not in page.tags


def test_nothing_has_a_colour_of_its_own():
    html = History([trial()])._repr_html_() + trial()._repr_html_()
    assert set(re.findall(r"color:[^;']*|background[^;']*", html)) == {"color:inherit"}
    assert set(re.findall(r"rgba?\([^)]*\)|#[0-9a-f]{3,6}\b", html)) == {"rgba(128,128,128,0.35)"}


def test_a_pickled_result_shows_what_was_spent_without_its_budget():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    rows = {row[0]: row[1] for row in shown(pickle.loads(pickle.dumps(result))).rows if len(row) == 2}
    assert rows["spent"] == "3 on 3 trials"


def test_a_cost_is_shown_with_three_digits():
    page = shown(History([trial(cost=0.1234567890123456)]))
    assert page.rows[1][3] == "0.123"


def test_displaying_is_not_imported_before_it_is_asked_for():
    program = "import sys, boca; sys.exit('boca.render' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_history_becomes_a_table_of_pandas():
    table = History([trial(0), trial(1)]).to_dataframe()
    assert table["x.a"].tolist() == [0.25, 0.25]
    assert table["value"].tolist() == [1.5, 1.5]
