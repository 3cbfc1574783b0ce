"""The page is one file that loads nothing, and is safe whatever names hold."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import boca
from boca import Float, Space, report
from boca.domain.words import expected
from boca.report import figures, page
from boca.report.library import plotly
from report.made import EVIL, NAMES, Page, made, of


def test_the_file_refers_to_nothing_outside_itself(written, parsed):
    assert not {"link", "img", "iframe", "object", "embed", "base", "a", "form"} & set(parsed.tags)
    assert not {"src", "href", "srcset", "action", "data"} & {name for name, _ in parsed.attributes}
    own = written
    for raw in (text for attrs, text in parsed.scripts if attrs.get("type") == "text/plain"):
        assert own.count(raw) == 1
        own = own.replace(raw, "")
    assert "http:" not in own
    assert "https:" not in own
    assert "//" not in own.replace(NAMES[0], "")
    assert "@import" not in own
    assert "url(" not in own


def test_a_browser_may_run_the_script_of_the_page_and_the_library_and_load_nothing(parsed):
    (policy,) = [value for name, value in parsed.attributes if name == "content" and "script-src" in value]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    executed = [text for attrs, text in parsed.scripts if not attrs] + [parsed.unpacked("library")]
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in executed}
    assert set(rules["script-src"].split()) == hashes
    assert len(executed) == 2
    assert len(parsed.scripts) == 3
    assert "connect-src" not in rules


def test_no_button_sends_the_study_away(parsed):
    (draw,) = [text for attrs, text in parsed.scripts if not attrs and len(text) < 10_000]
    assert "showSendToCloud: false" in draw
    assert 'plotlyServerURL: ""' in draw


def test_names_options_and_reasons_stay_text(written, parsed):
    of_tables = {"table", "thead", "tbody", "tr", "th", "td"}
    of_text = {"header", "h1", "h2", "h3", "p", "section", "dl", "dt", "dd", "ul", "li", "div", "pre"}
    of_the_page = {"html", "head", "meta", "title", "style", "body", "script"}
    of_figures = {"details", "summary", "figure", "figcaption"}
    assert set(parsed.tags) <= of_tables | of_text | of_the_page | of_figures
    assert not any(name.startswith("on") for name, _ in parsed.attributes)
    shown = "".join(cell for row in parsed.rows for cell in row)
    assert "<img src=x>" in shown
    assert "boom </script><img src=x onerror=alert(4)>" in parsed.sections["warnings"]
    assert written.count("</script>") == 3


def test_an_unknown_state_stays_text():
    odd = "lost'><meta http-equiv='refresh' content='0;url=https://example.org/'>"
    seen = of([made(0), made(1, state=odd, value=None)])
    assert "<meta http-equiv='refresh'" not in report.html(seen)
    drawn = [picture.figure for picture in figures.pictures(seen) if isinstance(picture.figure, dict)]
    assert "<meta" not in json.dumps(drawn)
    assert "&lt;meta" in json.dumps(drawn)


def test_what_is_packed_cannot_end_its_script_and_comes_back(parsed):
    data = [text for attrs, text in parsed.scripts if attrs.get("type") == "text/plain"]
    assert len(data) == 2
    for raw in [*data, page.packed(f"{EVIL}\u2028 <!-- & ü")]:
        assert re.fullmatch(r"[A-Za-z0-9+/=]*", raw)
    assert gzip.decompress(base64.b64decode(page.packed(EVIL))).decode() == EVIL
    assert page.packed(EVIL) == page.packed(EVIL)
    assert parsed.unpacked("library") == plotly()


def test_what_is_said_of_a_trial_is_in_the_file_once():
    points = {"mode": "markers", "text": ["a", "b", "a"]}
    heat = {"type": "heatmap", "text": [["c"]]}
    told = page.shared({"one": {"data": [points, heat], "layout": {}}, "two": {"data": [points], "layout": {}}})
    assert told["words"] == ["a", "b"]
    assert told["figures"]["two"]["data"] == [{"mode": "markers", "words": [0, 1, 0]}]
    assert told["figures"]["one"]["data"][1] == heat
    assert points["text"] == ["a", "b", "a"]


def test_a_report_of_many_trials_is_small():
    small = len(report.html(of([made(k) for k in range(200)])))
    assert small < 2_500_000
    assert len(report.html(of([made(k) for k in range(3000)]))) - small < 1_500_000


def test_the_text_has_the_numbers_of_the_study(hostile, parsed):
    opt, _ = hostile
    found, advised, paid = parsed.sections["found"], opt.recommend(), [t for t in opt.history if not t.added]
    assert f"{opt.best.value:.6g} at" in found
    assert f"(trial {opt.best.number})" in found
    assert f"expected {expected(advised.mean, advised.std)}" in found
    assert ("it was run at the target" in found) == advised.verified
    assert f"{len(paid)} trials cost {opt.spent:.3g} of 5 target evaluations." in found
    assert "1 imported result was not charged." in found
    searched = parsed.sections["searched"]
    assert "a number from 0.001 to 1, on a log scale" in searched
    assert "an integer from 1 to 3" in searched
    assert '"type": "boca"' in searched


def test_the_table_has_every_trial_with_its_reason(hostile, parsed):
    opt, _ = hostile
    rows = [row for row in parsed.rows if row[0].isdigit()]
    assert [int(row[0]) for row in rows] == [t.number for t in opt.history]
    for row, trial in zip(rows, opt.history, strict=True):
        assert row[1] == trial.state
        assert row[2] == ("" if trial.value is None else f"{trial.value:.6g}")
        assert " ".join(trial.why["reason"].split()) in row[-1]
        numbers = row[-1].partition("in numbers")[2]
        assert json.loads(numbers) == {key: value for key, value in trial.why.items() if key != "reason"}


def test_an_empty_study_has_a_report(tmp_path):
    opt = boca.Optimizer(boca.Problem(Space(a=Float(0, 1))), budget=boca.targets(5), seed=0)
    parsed = Page(report.write(opt, tmp_path / "empty.html").read_text(encoding="utf-8"))
    assert parsed.figures == {}
    assert "No trial is complete at the target." in parsed.sections["found"]
    assert "There are no trials yet." in parsed.sections["trials"]
    assert "warnings" not in parsed.sections


def test_a_long_table_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(page, "MAX_ROWS", 4)
    parsed = Page(page._trials(of([made(k) for k in range(9)])))
    assert [row[0] for row in parsed.rows] == ["trial", "0", "1", "… 5 more trials …", "7", "8"]
