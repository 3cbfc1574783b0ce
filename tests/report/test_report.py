"""The report: one file that loads nothing, shows the study's own numbers, and is safe whatever names hold."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
from dataclasses import replace
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs
from typer.testing import CliRunner

import boca
from boca import Choice, Float, History, Int, Space, report
from boca.cli import app
from boca.domain.errors import InvalidInput
from boca.plots import data
from boca.plots.study import StudyView, study
from boca.report import figures, page, sentences
from support.trials import made as trial_of

EVIL = "</script><script>alert(1)</script>"
NAMES = [EVIL, '<b>bold</b> &amp; "quotes" \'`${x}%{y}', "line\u2028break\u2029$", "w" * 300]
REASON = "boom </script><img src=x onerror=alert(4)> \u2028"


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
        (raw,) = [text for attrs, text in self.scripts if attrs.get("type") == "application/json"]
        return json.loads(raw)


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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A study whose every name is an attack, in a storage."""
    space = Space(
        {NAMES[0]: Float(1e-3, 1, log=True), NAMES[1]: Choice([EVIL, "<img src=x>", None]), NAMES[2]: Int(1, 3)}
    )
    fidelity = Space({NAMES[3]: Float(0.1, 1), EVIL + "z": Choice([EVIL, "real"])})
    problem = boca.Problem(
        space,
        fidelity,
        cost=lambda z: z[NAMES[3]] * (1.0 if z[EVIL + "z"] == "real" else 0.1),
        target={EVIL + "z": "real"},
        direction="minimize",
    )
    url = f"sqlite:///{tmp_path_factory.mktemp('report')}/evil.db"
    opt = boca.Optimizer(problem, budget=boca.targets(5), seed=1, storage=url, name=NAMES[0])
    run(opt, 14, lambda t: t.x[NAMES[0]] + t.x[NAMES[2]], failing=(2,))
    opt.add({NAMES[0]: 0.5, NAMES[1]: None, NAMES[2]: 2}, None, 2.5)
    assert opt.history.chosen
    return opt, url


@pytest.fixture(scope="module")
def written(hostile, tmp_path_factory):
    file = tmp_path_factory.mktemp("out") / "report.html"
    done = CliRunner().invoke(app, ["report", hostile[1], NAMES[0], "-o", str(file), "--optimum", "-1"])
    assert done.exit_code == 0
    assert done.stdout.strip() == str(file)
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(written):
    return Page(written)


# One file, safe ---------------------------------------------------------------------------------------------------


def test_the_file_refers_to_nothing_outside_itself(written, parsed):
    assert not {"link", "img", "iframe", "object", "embed", "base", "a", "form"} & set(parsed.tags)
    assert not {"src", "href", "srcset", "action", "data"} & {name for name, _ in parsed.attributes}
    library = get_plotlyjs()
    assert written.count(library) == 1
    own = written.replace(library, "")
    assert "http:" not in own
    assert "https:" not in own
    assert "//" not in own.replace(NAMES[0], "")
    assert "@import" not in own
    assert "url(" not in own


def test_a_browser_may_run_the_two_scripts_of_the_page_and_load_nothing(parsed):
    (policy,) = [value for name, value in parsed.attributes if name == "content" and "script-src" in value]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    executed = [text for attrs, text in parsed.scripts if not attrs]
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
    of_pictures = {"details", "summary", "figure", "figcaption"}
    assert set(parsed.tags) <= of_tables | of_text | of_the_page | of_pictures
    assert not any(name.startswith("on") for name, _ in parsed.attributes)
    shown = "".join(cell for row in parsed.rows for cell in row)
    assert "<img src=x>" in shown
    assert "boom </script><img src=x onerror=alert(4)>" in parsed.sections["warnings"]
    assert written.replace(get_plotlyjs(), "").count("</script>") == 3


def test_a_state_that_nobody_knows_stays_text():
    odd = "lost'><meta http-equiv='refresh' content='0;url=https://example.org/'>"
    seen = of([made(0), made(1, state=odd, value=None)])
    assert "<meta http-equiv='refresh'" not in report.html(seen)
    drawn = [picture.figure for picture in figures.pictures(seen) if isinstance(picture.figure, dict)]
    assert "<meta" not in json.dumps(drawn)
    assert "&lt;meta" in json.dumps(drawn)


def test_the_numbers_of_the_pictures_cannot_end_their_script(written, parsed):
    (raw,) = [text for attrs, text in parsed.scripts if attrs.get("type") == "application/json"]
    assert not set(raw) & set("<>&\u2028\u2029")
    for value in ({"a": [EVIL, "\u2028\u2029", "<!--", "&", '"\\']}, [1.5, None, True]):
        assert json.loads(page.script_json(value)) == value
        assert not set(page.script_json(value)) & set("<>&\u2028\u2029")


def test_plotly_gets_no_markup_of_the_users(parsed):
    def texts(value):
        if isinstance(value, dict):
            for inner in value.values():
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)
        elif isinstance(value, str):
            yield value

    seen = list(texts(parsed.figures))
    assert any("&lt;/script&gt;" in text for text in seen)
    assert all("<" not in text.replace("<br>", "") for text in seen)
    assert "hovertemplate" not in json.dumps(parsed.figures)


def test_the_figures_are_figures_to_plotly(parsed):
    assert {"progress", "regret", "map", "parallel", "bandwidths", "scales", "slice-0", "gap-1", "fidelities-1"} <= set(
        parsed.figures
    )
    for figure in parsed.figures.values():
        go.Figure(figure)  # which refuses what it does not know


def test_plotly_is_named_where_it_is_missing(hostile, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InvalidInput, match=r"boca\[report\]"):
        report.write(hostile[0], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


# The study's own numbers ------------------------------------------------------------------------------------------


def test_the_text_has_the_numbers_of_the_study(hostile, parsed):
    opt, _ = hostile
    found, advised, paid = parsed.sections["found"], opt.recommend(), [t for t in opt.history if not t.added]
    assert f"{opt.best.value:.8g} at" in found
    assert f"(trial {opt.best.number})" in found
    assert f"expected {advised.mean:.6g} ± {advised.std:.2g}" in found
    assert ("it was run at the target" in found) == advised.verified
    assert f"{len(paid)} queries cost {opt.spent:.6g}." in found
    assert f"{len(paid)} × 1 = {len(paid)}, {len(paid) / opt.spent:.3g} times that." in found
    assert "The budget was 5 queries at the target." in found
    assert "1 result was brought along and not charged." in found
    searched = parsed.sections["searched"]
    assert "a number from 0.001 to 1, on a log scale" in searched
    assert "a whole number from 1 to 3" in searched
    assert "Boca" in searched


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


def test_the_pictures_have_the_numbers_of_the_study(hostile, parsed):
    opt, _ = hostile
    best = parsed.figures["progress"]["data"][0]
    assert best["y"][-1] == opt.best.value
    assert best["x"][-1] == pytest.approx(opt.spent)
    assert parsed.figures["regret"]["data"][0]["y"][-1] == pytest.approx(opt.best.value + 1.0)
    seen = study(opt)
    name = data.by_influence(seen)[0]
    (curve,) = [trace for trace in parsed.figures["slice-0"]["data"] if trace.get("name") == "f at the target"]
    assert curve["y"] == pytest.approx(data.slices(seen, name).mean.tolist())
    assert parsed.figures["gap-0"]["data"][0]["y"] == pytest.approx(data.information_gap(seen).xi.tolist())


def test_a_live_study_and_a_stored_one_give_the_same_report(hostile, parsed):
    live = Page(report.html(hostile[0], optimum=-1))
    assert live.figures == parsed.figures
    assert live.rows == parsed.rows
    assert live.sections["found"] == parsed.sections["found"]
    assert live.sections["warnings"].split() == parsed.sections["warnings"].split()


def test_the_study_is_as_it_was(hostile, written):
    opt, url = hostile
    before = [(t.number, t.state, t.value, t.told) for t in opt.history]
    report.html(report.load(url, NAMES[0]))
    assert [(t.number, t.state, t.value, t.told) for t in opt.history] == before


def test_a_study_of_another_version_has_a_report_that_says_so():
    from boca.plots.study import stored
    from boca.study.spec import describe

    def seen(change):
        described = describe(PROBLEM, boca.Boca(), seed=0, limit=None)
        change(described["strategy"])
        return stored("s", described, History(healthy()))

    def newer(strategy):
        strategy["surrogate"] |= {"new_field": 1}
        strategy["another"] = 2

    assert "which another version made: it is without new_field, which this" in sentences.warnings(seen(newer))[0]
    assert "another" in Page(report.html(seen(newer))).sections["searched"]
    older = seen(lambda strategy: strategy["surrogate"].pop("guard"))
    assert sentences.warnings(older) == [
        "The model is not quite that of the study, which another version made: it is with this version's guard, which "
        "did not exist then."
    ]
    assert older.recommendation is not None
    other = seen(lambda strategy: strategy["surrogate"].update(kernel="of tomorrow"))
    assert other.model is None
    assert "of tomorrow" in other.why_no_model
    assert sentences.warnings(seen(lambda strategy: None)) == []


def test_a_declared_cost_is_known_of_a_target_that_was_never_bought():
    trials = [made(k, z={"n": 1.0 + k}, cost=3.0 * (1.0 + k)) for k in range(6)]
    problem = boca.Problem(PROBLEM.space, PROBLEM.fidelity, cost=lambda z: 3.0 * z["n"])
    assert sentences.costs(kept(of(trials, problem))) == (
        "6 queries cost 63. As many at the target alone would have cost 6 × 30 = 180, 2.86 times that."
    )


def test_a_learned_cost_says_about():
    trials = [made(k, z={"n": 1.0 + k}, cost=3.0 * (1.0 + k), seconds=3.0 * (1.0 + k)) for k in range(6)]
    seen = kept(of(trials, boca.Problem(PROBLEM.space, PROBLEM.fidelity)))
    assert seen.ledger.target == pytest.approx(30.0, rel=0.1)
    assert (
        f"6 queries cost 63 seconds. As many at the target alone would have cost about 6 × {seen.ledger.target:.6g}"
        in (sentences.costs(seen))
    )


def test_seconds_are_called_seconds():
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Int(1, 9)))
    opt = boca.Optimizer(problem, budget=boca.seconds(100), strategy=boca.RandomSearch(), seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0, seconds=2.0)
    said = sentences.costs(study(opt))
    assert f"3 queries cost {opt.spent:.6g} seconds." in said
    assert "The budget was 100 seconds." in said


def test_without_fidelities_nothing_is_said_of_them():
    opt = boca.Optimizer(
        boca.Problem(Space(a=Float(0, 1))), budget=boca.targets(5), strategy=boca.RandomSearch(), seed=0
    )
    run(opt, 5, lambda t: t.x["a"])
    said = sentences.costs(study(opt))
    assert said == "5 queries cost 5. The budget was 5 queries at the target."
    assert sentences.warnings(study(opt)) == []


def test_an_empty_study_has_a_report(tmp_path):
    opt = boca.Optimizer(boca.Problem(Space(a=Float(0, 1))), budget=boca.targets(5), seed=0)
    parsed = Page(report.write(opt, tmp_path / "empty.html").read_text(encoding="utf-8"))
    assert parsed.figures == {}
    assert "Nothing was completed at the target." in parsed.sections["found"]
    assert "There are no trials yet." in parsed.sections["trials"]
    assert "warnings" not in parsed.sections


def test_a_long_table_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(page, "ROWS", 4)
    parsed = Page(page._trials(of([made(k) for k in range(9)])))
    assert [row[0] for row in parsed.rows] == ["trial", "0", "1", "… 5 more trials …", "7", "8"]


# Warnings ---------------------------------------------------------------------------------------------------------

PROBLEM = boca.Problem(Space(a=Float(0, 1)), Space(n=Float(1, 10)), cost=lambda z: z["n"])


def made(number, *, z=None, h=(0.5, 1.0), n=None, **more):
    """Return a trial of a study of one parameter and one fidelity, its decision with these bandwidths."""
    values = {"x": {"a": (number * 0.37) % 1.0}, "z": {"n": 10.0} if z is None else z, "cost": 1.0}
    why = {"reason": "So.", "phase": "model", "hyperparameters": {"h_x": [h[0]], "h_z": [h[1]], "kappa0": 1, "eta2": 1}}
    fit = {"theta": [0.0, *map(math.log, h), math.log(0.01)], "location": 0.0, "scale": 1.0, "results": 99}
    why["fit"] = fit | {"iteration": 0, "count": 0}
    result = {"state": "complete", "value": math.sin(number), "told": number}
    return trial_of(number=number, why=why, **(values | result | more))


def of(trials, problem=PROBLEM):
    return StudyView(problem, History(trials), boca.Boca())


def kept(seen):
    """Return the study as a storage would have it."""
    from boca.plots.study import stored
    from boca.study.spec import describe

    return stored("s", describe(seen.problem, seen.strategy, seed=0, limit=None), seen.history)


def healthy():
    return [made(k, z={"n": 10.0 if k % 2 else 5.0}) for k in range(8)]


def test_a_healthy_study_has_no_warnings():
    assert sentences.warnings(of(healthy())) == []


@pytest.mark.parametrize(
    ("trials", "says"),
    [
        ([made(k, z={"n": 2.0 + k % 3}) for k in range(8)], ["Nothing was completed at the target"]),
        (
            [made(k) for k in range(8)],
            ["The fidelity n never moved: all 8 queries had 10, its target. It saved nothing."],
        ),
        (
            [made(k, z={"n": 3.0}) for k in range(8)],
            ["Nothing was completed", "never moved: all 8 queries had 3, which is not"],
        ),
        ([made(k) for k in range(3)], []),  # too few to say so
        (
            [*healthy(), made(8, state="failed", value=None, reason="it broke")],
            ["1 of 9 trials failed, the last with: it broke"],
        ),
        ([*healthy(), made(8, state="running", value=None, told=None)], ["1 trial is still out"]),
        (
            [made(k, z=t.z, h=(10.0, 1.0)) for k, t in enumerate(healthy())],
            ["The bandwidth of a is at its upper bound"],
        ),
        (
            [made(k, z=t.z, h=(0.01, 1.0)) for k, t in enumerate(healthy())],
            ["The bandwidth of a is at its lower bound"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 10.0)) for k, t in enumerate(healthy())],
            ["The bandwidth of the fidelity n is at its upper"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 0.01)) for k, t in enumerate(healthy())],
            ["The bandwidth of the fidelity n is at its lower", "The lower fidelities say little about the target"],
        ),
        (
            [made(k, z=t.z, h=(0.5, 0.2)) for k, t in enumerate(healthy())],
            ["The lower fidelities say little about the target: the middle one of 4 queries below it leaves an"],
        ),
        ([made(k, z=t.z, h=(0.5, 0.5)) for k, t in enumerate(healthy())], []),
    ],
)
def test_warnings_appear_exactly_when_they_should(trials, says):
    found = sentences.warnings(of(trials))
    assert len(found) == len(says), found
    for warning, part in zip(found, says, strict=True):
        assert part in warning


def test_a_strength_of_zero_is_no_bandwidth():
    trials = []
    for trial in healthy():
        theta = [0.0, math.log(0.5), 0.0, math.log(0.01), 0.0, 0.0]  # neither jump nor trend
        fit = trial.why["fit"] | {"use": {"kind": "extended", "theta": theta, "nats": 3.0}}
        trials.append(replace(trial, why=trial.why | {"fit": fit}))
    seen = of(trials)
    assert seen.model.encoding.is_extended
    assert sentences.warnings(seen) == []


def test_what_the_optimiser_says_is_said_once():
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Int(1, 9)), cost=lambda z: z["n"])
    opt = boca.Optimizer(problem, budget=boca.targets(3), strategy=boca.RandomSearch(), seed=0)
    opt.fail(opt.ask(), "it broke")
    assert report.warnings(opt) == list(opt.warnings)
    assert sum("it broke" in warning for warning in sentences.warnings(study(opt))) == 1


# The command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["nowhere.db", "study"], "no file"), (["URL", "another"], "There is no study 'another'")],
)
def test_a_mistake_is_told(hostile, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [hostile[1] if each == "URL" else each for each in arguments]
    with pytest.raises(InvalidInput, match=says):
        CliRunner().invoke(app, ["report", *given], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(hostile, tmp_path):
    with pytest.raises(InvalidInput, match="can be written"):
        report.write(hostile[0], tmp_path / "no" / "report.html")


def test_what_is_no_path_is_told(hostile):
    with pytest.raises(InvalidInput, match=r"is written to a path.*got 5"):
        report.write(hostile[0], 5)


def test_safe_text_is_short_and_escaped():
    assert figures.safe("<b>") == "&lt;b&gt;"
    assert len(figures.safe("x" * 500)) == 40
