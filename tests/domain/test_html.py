"""What a notebook shows: small tables, safe from whatever a name or a reason holds, readable on any page."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import boca
from boca import History
from boca.domain import html
from support.pages import EVIL, shown, trial


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
    whole = shown(History([trial(k) for k in range(html.MAX_ROWS)]))
    assert len(whole.rows) == 1 + html.MAX_ROWS
    assert "more" not in whole.text


def test_many_parameters_are_counted_instead_of_shown():
    page = shown(History([trial(x={f"p{i}": i for i in range(40)})]))
    assert len(page.rows[0]) == 4 + html.MAX_COLUMNS + 1
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


def test_nothing_has_a_color_of_its_own():
    page = History([trial()])._repr_html_() + trial()._repr_html_()
    assert set(re.findall(r"color:[^;']*|background[^;']*", page)) == {"color:inherit"}
    assert set(re.findall(r"rgba?\([^)]*\)|#[0-9a-f]{3,6}\b", page)) == {"rgba(128,128,128,0.35)"}


def test_a_cost_is_shown_with_three_digits():
    page = shown(History([trial(cost=0.1234567890123456)]))
    assert page.rows[1][3] == "0.123"


def test_displaying_is_not_imported_before_it_is_asked_for():
    program = "import sys, boca; sys.exit('boca.domain.html' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_history_becomes_a_table_of_pandas():
    table = History([trial(0), trial(1)]).to_dataframe()
    assert table["x.a"].tolist() == [0.25, 0.25]
    assert table["value"].tolist() == [1.5, 1.5]


def test_a_space_shows_its_parameters():
    shown = boca.Space({"lr": (1e-4, 1.0, "log"), "depth": (1, 8), "<b>": ["a", "<i>"]})._repr_html_()
    for words in ("3 parameters", "lr", "0.0001 to 1", "log", "1 to 8", "int", "choice", "a, &lt;i&gt;", "&lt;b&gt;"):
        assert words in shown
    assert "<b>" not in shown
    assert "<i>" not in shown


def test_a_problem_shows_its_direction_its_target_and_what_that_costs():
    space, fidelity = boca.Space(a=(0.0, 1.0)), boca.Space(n=(1, 1230))
    shown = boca.Problem(space, fidelity, cost=lambda z: z["n"], direction="min")._repr_html_()
    for words in ("minimize over 1 parameter", "n = 1230", "costs 1,230"):
        assert words in shown
    assert "has a measured cost" in boca.Problem(space, fidelity)._repr_html_()
    assert "fidelities" not in boca.Problem(space)._repr_html_()


def test_an_optimizer_shows_the_best_and_what_is_spent():
    problem = boca.Problem(boca.Space(a=(0.0, 1.0)))
    opt = boca.Optimizer(problem, budget=boca.targets(4), strategy=boca.RandomSearch(), seed=0)
    assert "no trial is complete at the target" in opt._repr_html_()
    opt.tell(opt.ask(), 1.2345678)
    opt.ask()
    shown = opt._repr_html_()
    for words in ("1.23457 at a = ", "1 of 4 target evaluations on 2 trials", "maximize over 1 parameter"):
        assert words in shown
    assert re.search(r"running</td><td[^>]*>1</td>", shown)


def test_a_recommendation_shows_what_is_expected():
    shown = boca.Recommendation({"<a>": 0.25}, 1.0, 0.012, verified=True)._repr_html_()
    for words in ("&lt;a&gt; = 0.25", "1.000 ± 0.012", "was run at the target"):
        assert words in shown
