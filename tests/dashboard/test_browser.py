"""The live page in a real browser, served by the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.parse import quote

import pytest

from boca import Choice, Float, Int, Problem, Space
from boca.study.storage.sql import Database
from dashboard.browser import Browser
from dashboard.conftest import begin, run

SOON = 2.0 + 6.0  # seconds: what is promised, and slack for a machine that does other things too
EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><a href="https://evil.example/">b</a>'


class Server:
    """The command `boca dashboard` in a process of its own."""

    def __init__(self, url, port=0):
        command = [sys.executable, "-m", "boca", "dashboard", url, "--port", str(port)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        self.said = self._process.stdout.readline()
        self.address = re.match(r"http://127\.0\.0\.1:\d+/", self.said)[0]

    def names(self):
        with urllib.request.urlopen(f"{self.address}api/studies", timeout=30) as answer:
            return [line["name"] for line in json.load(answer)["studies"]]

    def stop(self):
        """End it as Ctrl-C does, and return its status."""
        self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(30)
        finally:
            self._process.kill()
            self._process.stdout.close()
            self._process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def url(folder):
    url = f"sqlite:///{folder}/study.db"
    run(begin(url), 6)
    return url


@pytest.fixture(scope="module")
def server(url):
    server = Server(url)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def chromium(folder):
    browser = Browser(folder / "profile")
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium):
    """A browser in which nothing went wrong yet."""
    chromium.forget()
    chromium.size(1400, 1000)
    return chromium


def go(browser, server, fragment):
    """Open the page, or where it is open go to another part of it: Plotly is long to read."""
    if browser.value("location.href").startswith(server.address):
        browser.value(f"location.hash = {json.dumps(fragment)}")
    else:
        browser.open("about:blank")
        browser.forget()  # a page whose server is gone went on asking for it until now, and the console said so
        browser.open(server.address + fragment)


def show(browser, server, name):
    until = time.monotonic() + SOON
    while name not in server.names():  # one that is not seen yet would be not found, and the console says so
        assert time.monotonic() < until, f"{name} is not in the list"
        time.sleep(0.05)
    go(browser, server, f"#/{quote(name, safe='')}")
    here = f"document.querySelector('#name')?.textContent === {json.dumps(name)}"
    browser.wait(f"{here} && document.querySelector('#study').hidden === false && window.Plotly")


def test_the_list_leads_to_a_study(browser, server):
    go(browser, server, "#")
    browser.wait("document.querySelector('#studies a')")
    assert browser.text("#studies a") == "bowl"
    browser.value("document.querySelector('#studies a').click()")
    browser.wait("document.querySelector('#study').hidden === false")
    assert browser.text("#name") == "bowl"
    browser.value("document.querySelector('#back').click()")
    browser.wait("document.querySelector('#list').hidden === false")
    assert browser.errors() == []


def test_studies_are_compared_in_one_chart(browser, server, url):
    run(begin(url, name="second", seed=1), 6)
    go(browser, server, "#")
    browser.wait("document.querySelectorAll('#studies input').length >= 2 && window.Plotly")
    browser.value("document.querySelectorAll('#studies input').forEach((box) => box.click())")
    browser.wait("document.querySelectorAll('#compare .scatterlayer .trace').length >= 2")
    assert browser.value("location.hash").startswith("#compare/")
    names = browser.value("[...document.querySelectorAll('#compare .legendtext')].map((text) => text.textContent)")
    assert {"bowl", "second"} <= set(names)
    browser.value("document.querySelectorAll('#studies input').forEach((box) => box.checked && box.click())")
    browser.wait("document.querySelector('#comparison').hidden")
    assert browser.errors() == []


def test_the_timeline_has_a_bar_for_every_trial(browser, server):
    show(browser, server, "bowl")
    browser.wait("document.querySelectorAll('#timeline .bars .point').length >= 6")
    assert "busy" in browser.text("#timeline-note")
    assert browser.errors() == []


def test_a_result_is_seen_without_a_reload_within_two_seconds(browser, server, url):
    study = begin(url, name="live")
    show(browser, server, "live")
    browser.value("window.stays = true")
    study.enqueue({"a": 0.25, "kind": "flat"})
    trial = study.ask()
    browser.wait("document.querySelector('#running button')?.textContent === '0'", SOON)
    assert re.fullmatch(r"\d+ s", browser.text("#running td:nth-child(2)"))
    study.tell(trial, 0.8125)
    took = browser.wait("document.querySelector('#best-value')?.textContent === '0.8125'", SOON)
    print(f"the page showed a result {took:.2f} s after it was told")
    assert browser.value("window.stays") is True
    browser.wait("document.querySelectorAll('#progress .points path').length === 1", SOON)
    browser.wait("document.querySelector('#advice .big')")
    assert browser.text("#budget-share").startswith("2 % of the budget spent")
    assert browser.text("#budget .note").startswith("1 of 50 target evaluations spent")
    assert browser.errors() == []


def test_charts_are_labelled_with_the_names_of_the_user(browser, server):
    show(browser, server, "bowl")
    browser.wait("document.querySelectorAll('#queried .points path').length === 12")  # six trials, two fidelities
    titles = browser.value(
        "[...document.querySelectorAll('#queried text')].filter(t => String(t.className.baseVal).includes('title'))"
        ".map(t => t.textContent)"
    )
    assert {"n", "m", "trial"} <= set(titles)
    assert "it broke" in browser.text("#failures")
    assert browser.errors() == []


def test_no_button_sends_the_study_away(browser, server):
    show(browser, server, "bowl")
    browser.wait("document.querySelector('#queried')?._context")
    settings = browser.value("document.querySelector('#queried')._context")
    assert (settings["displayModeBar"], settings["showSendToCloud"], settings["plotlyServerURL"]) == (False, False, "")
    assert {"sendChartToCloud", "sendDataToCloud"} <= set(settings["modeBarButtonsToRemove"])
    assert browser.value("document.querySelectorAll('.modebar-btn').length") == 0


def test_a_trial_is_shown_with_its_reasons(browser, server):
    show(browser, server, "bowl")
    browser.value("document.querySelector('#number').value = '2'")
    browser.value("document.querySelector('#find button').click()")
    browser.wait("document.querySelector('#detail pre')?.textContent === 'it broke'")
    assert browser.text("#detail h3") == "Trial 2 · failed"
    browser.value("document.querySelector('#close').click()")
    assert browser.value("document.querySelector('#trial').open") is False
    assert browser.errors() == []


def test_names_of_any_kind_do_no_harm(browser, server, url):
    problem = Problem(
        Space({f"{EVIL}x": Float(0, 1), "__proto__": Choice([EVIL, "javascript:window.hacked=1", None])}),
        Space({EVIL: Int(1, 9), "constructor": Choice(["<b>bold</b>", "%{x}"])}),
        target={EVIL: 9, "constructor": "<b>bold</b>"},
        cost=lambda z: 1.0,
    )
    study = begin(url, name=EVIL, problem=problem)
    for k in range(4):
        study.enqueue(
            {f"{EVIL}x": k / 4, "__proto__": EVIL}, {EVIL: 9 - k, "constructor": "%{x}" if k % 2 else "<b>bold</b>"}
        )
        trial = study.ask()
        if k == 1:
            study.fail(trial, EVIL, output=EVIL)
        elif k < 3:
            study.tell(trial, float(k))
    go(browser, server, "#")
    browser.wait(f"[...document.querySelectorAll('#studies a')].some(a => a.textContent === {json.dumps(EVIL)})")
    show(browser, server, EVIL)
    browser.wait("document.querySelectorAll('#queried .points path').length === 8")
    browser.wait("document.querySelector('#advice .big')")
    assert browser.text("#name") == EVIL
    assert browser.text("#failures .message") == EVIL
    labels = browser.value("[...document.querySelectorAll('#queried text')].map(t => t.textContent)")
    assert "<b>bold</b>" in labels
    assert "%{x}" in labels
    assert any(label.startswith('<img src=x onerror="') for label in labels)
    browser.value("document.querySelector('#failures button').click()")
    browser.wait("document.querySelector('#detail pre')")
    point = browser.value(
        "(() => { const r = document.querySelector('#queried .points path').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    browser.value("document.querySelector('#close').click()")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=point[0], y=point[1])
    browser.wait("document.querySelector('#queried .hovertext')")
    assert EVIL[:20] in browser.text("#queried .hovertext")
    assert browser.value("typeof window.hacked") == "undefined"
    assert browser.value("document.querySelectorAll('img, iframe, script:not([src])').length") == 0
    inside = (
        "[...document.querySelectorAll('a')].filter(a => a.href && !a.href.startsWith(location.origin + '/#')).length"
    )
    assert browser.value(inside) == 0
    assert browser.heard("Page.javascriptDialogOpening") == []
    strangers = [asked for asked in browser.requests() if not asked.startswith((server.address, "data:", "about:"))]
    assert strangers == []
    assert browser.errors() == []


def test_writes_are_refused_and_change_nothing(browser, server, url):
    show(browser, server, "bowl")
    methods = ["POST", "PUT", "PATCH", "DELETE"]
    paths = ["/", "/api/studies", "/api/study?name=bowl", "/api/trial?name=bowl&number=0"]
    statuses = browser.value(
        f"Promise.all({json.dumps(methods)}.flatMap(method => {json.dumps(paths)}.map(path =>"
        " fetch(path, {method, body: '{}'}).then(answer => answer.status))))"
    )
    assert statuses == [405] * 16
    assert len(begin(url).history) == 6


def test_a_study_deleted_while_watched_is_said_to_be_gone_and_shown_when_it_is_back(browser, server, url):
    begin(url, name="fleeting").ask()
    show(browser, server, "fleeting")
    assert browser.errors() == []
    Database(url).delete("fleeting")
    browser.wait("document.querySelector('#notice').textContent.includes('was deleted')", SOON)
    assert browser.value("document.querySelector('#study').hidden") is True
    begin(url, name="fleeting").ask(2)
    browser.wait("document.querySelector('#about').textContent.includes('2 trials')", SOON)
    assert browser.value("document.querySelector('#notice').hidden") is True


def test_what_goes_away_is_missed_and_what_comes_back_is_shown(browser, folder):
    url = f"sqlite:///{folder}/other.db"
    study = begin(url)
    study.ask(2)
    study.storage.close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(url, port)
    try:
        show(browser, server, "bowl")
        (folder / "other.db").rename(folder / "moved.db")
        browser.wait("document.querySelector('#notice').textContent.includes('no longer exists')", SOON)
        assert browser.text("#name") == "bowl"  # what was known stays
        (folder / "moved.db").rename(folder / "other.db")
        browser.wait("document.querySelector('#notice').hidden", SOON)
    finally:
        assert server.stop() == 0
    browser.wait("document.querySelector('#link').textContent === 'no connection'", SOON)
    shutil.copy(folder / "other.db", folder / "old.db")
    study = begin(url)
    study.ask()
    study.storage.close()
    server = Server(url, port)
    try:
        browser.wait("document.querySelector('#about').textContent.includes('3 trials')", 2 * SOON)
        assert browser.text("#link") == "live"
        assert browser.value("shown.trials.length") == 3
    finally:
        assert server.stop() == 0
    (folder / "old.db").rename(folder / "other.db")  # a backup, put back while nobody looked
    server = Server(url, port)
    try:
        browser.wait("document.querySelector('#about').textContent.includes('2 trials')", 2 * SOON)
        assert browser.value("shown.trials.length") == 2
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_sticks_out_of_the_window(browser, server, url, width):
    browser.size(width, 900)
    show(browser, server, "bowl")
    browser.wait("document.querySelector('#queried .points path')")
    browser.wait(f"document.documentElement.scrollWidth <= {width}", SOON)
    outside = (
        "[...document.querySelectorAll('.card')].filter(c => [...c.querySelectorAll('svg.main-svg, h2, .big, dl')]"
        ".some(e => e.getBoundingClientRect().right > c.getBoundingClientRect().right + 1)).length"
    )
    browser.wait(f"{outside} === 0", SOON)
    begin(url, name="empty")
    show(browser, server, "empty")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert "There are no trials yet." in browser.text("#queried-card")
    assert browser.errors() == []


ROWS = "[...document.querySelectorAll('#latest tbody tr')].map(r => r.cells[0].textContent * 1)"


def head(name):
    """Return the button above a column of the table of trials."""
    return f"[...document.querySelectorAll('#latest th button')].find(b => b.textContent.startsWith('{name}'))"


def test_the_table_of_all_trials_sorts_filters_and_downloads(browser, server, url):
    study = begin(url, name="table")
    for k in range(60):
        study.add({"a": (k * 37 % 60) / 60, "kind": "round"}, {"n": 10, "m": 1.0} if k % 2 else None, (k * 7) % 60)
    study.fail(study.ask(), "it broke")
    show(browser, server, "table")
    browser.wait(f"{ROWS}[0] === 60", SOON)  # it may have read the study before its last trials
    assert browser.value(ROWS) == list(range(60, 35, -1))  # the newest first
    browser.value("document.querySelector('#older').click()")
    assert browser.value(ROWS)[0] == 35
    browser.value(f"{head('value')}.click()")
    best = sorted(range(60), key=lambda k: (k * 7) % 60)
    assert browser.value(ROWS) == best[:25]
    browser.value(f"{head('value')}.click()")
    assert browser.value(ROWS) == best[:-26:-1]
    assert browser.value("document.querySelector('#latest th[aria-sort=descending]').textContent") == "value ↓"
    browser.value(
        "document.querySelector('#state').value = 'failed';"
        "document.querySelector('#state').dispatchEvent(new Event('input'))"
    )
    assert browser.value(ROWS) == [60]
    assert browser.text("#rows-count") == "1 of 61"
    lines = browser.value("asCsv()").split("\r\n")
    assert lines[0] == "trial,state,value,cost,phase,n,m,a,kind"
    assert len(lines) == 2
    assert lines[1].startswith("60,failed,,")
    assert browser.value("csv('=1+1')") == "'=1+1"
    assert browser.value("csv('a,\"b\"')") == '"a,""b"""'
    assert browser.errors() == []


def test_five_thousand_trials_do_not_stall_the_table(browser, server, url):
    made = begin(None, name="made")
    for k in range(5000):
        made.add({"a": (k % 997) / 997, "kind": "flat"}, None, float(k % 1009))
    begin(url, name="many").add_all(made.history)
    show(browser, server, "many")
    browser.wait("shown.trials.length === 5000", 2 * SOON)
    browser.value("document.querySelector('#state').value = ''")
    took = browser.value("(() => { const t = performance.now(); drawTrials(); return performance.now() - t; })()")
    assert took < 2000  # milliseconds; 4 were measured
    assert browser.value(f"{ROWS}.length") == 25


def test_a_front_is_drawn_in_the_plane_of_its_objectives(browser, server, url):
    outcomes = {"lo<b>ss": "minimize", "speed": "maximize"}
    study = begin(url, name="two", problem=Problem(Space(a=Float(0, 1)), outcomes=outcomes))
    for k in range(4):
        study.add({"a": k / 4}, None, {"lo<b>ss": k * k, "speed": k})
    show(browser, server, "two")
    browser.wait("document.querySelector('#front')?.data?.length === 3")
    assert browser.value("document.querySelector('#front').data[2].x") == [0, 1, 4, 9]
    assert browser.value("document.querySelector('#front').data[2].y") == [0, 1, 2, 3]
    assert browser.value("document.querySelector('#best-value').textContent") == "4 on the front"
    assert "hypervolume" in browser.value("document.querySelector('#progress').layout.yaxis.title.text")
    assert "minimize lo<b>ss, maximize speed" in browser.value("document.querySelector('#about').textContent")
    assert browser.errors() == []


def test_importance_is_drawn_when_the_model_is_there(browser, server, url):
    study = begin(url, name="matters")
    for k in range(12):
        study.add({"a": (k * 5 % 12) / 12, "kind": ["round", "flat"][k % 2]}, None, (k * 5 % 12) / 12)
    show(browser, server, "matters")
    browser.wait("document.querySelectorAll('#importance .bars .point').length === 4", 60)  # two bars of two parameters
    browser.wait("shown.data.importance?.names[0] === 'a'", 60)  # an answer in between may have none yet
    assert "share of the variance of f" in browser.text("#importance-note")
