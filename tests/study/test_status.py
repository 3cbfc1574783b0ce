"""How a study stands, at one moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.study.status import statuses
from boca.study.storage import Lease, Owner
from support.places import on

PROBLEM = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 10)), cost=lambda z: float(z["n"]))


def made(url, name="s", **more):
    settings = {"budget": 100.0, "strategy": boca.RandomSearch(), "seed": 0, "storage": url, "name": name}
    return boca.Optimizer(PROBLEM, **settings | more)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    with on(request.param, tmp_path) as place:
        yield place.url


def test_who_works_on_a_study_what_runs_and_what_is_left(url):
    opt, lease, other = made(url), Lease(), Lease(owner=replace(Owner.me(), machine="far/b/n", pid=7))
    for value in (1.0, 2.0):
        opt.tell(opt.ask(lease=lease), value)
    opt.fail(opt.ask(), "It broke.")
    opt.ask(lease=lease), opt.ask(lease=lease), opt.ask(lease=other)
    opt.enqueue({"a": 0.5})
    (found,) = statuses(url, "s")
    assert found.words == "running"
    assert sorted(found.holders) == [3, 4, 5]
    mine, far = found.drivers
    assert (mine.host, mine.process, mine.running, mine.life) == (Owner.me().host, Owner.me().pid, (3, 4), "alive")
    assert mine.since == opt.history[0].began
    assert (far.host, far.process, far.running) == ("far", 7, (5,))
    assert found.last.number == 2
    assert [(cause.reason, len(cause.trials)) for cause in found.causes] == [("It broke.", 1)]
    assert found.queued == 1
    assert found.ledger.spent == 30.0
    assert found.seconds_left == pytest.approx(70.0 * (found.now - opt.history[0].began) / 30.0)
    opt.storage.close()


def test_a_study_whose_driver_is_gone_has_stopped_and_one_without_budget_is_finished(url):
    opt = made(url)
    opt.tell(opt.ask(), 1.0)
    opt.ask(lease=Lease(owner=replace(Owner.me(), started="in another life")))
    done = made(url, "done", budget=20.0)
    while (trial := done.ask()) is not None:
        done.tell(trial, 1.0)
    new = made(url, "new")
    assert [(one.study.name, one.words) for one in statuses(url)] == [
        ("s", "stopped"), ("done", "finished"), ("new", "stopped"),
    ]  # fmt: skip
    assert [one.seconds_left for one in statuses(url)] == [None] * 3
    for each in (opt, done, new):
        each.storage.close()


def test_a_name_that_there_is_not_is_told_with_those_that_there_are(url):
    made(url).storage.close()
    with pytest.raises(InvalidInput, match="which has: s"):
        statuses(url, "other")
