"""Studies to look at, and the live page without a browser."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from boca import Choice, Float, Int, Optimizer, Problem, RandomSearch, Space, targets
from boca.dashboard import app
from boca.dashboard.advice import Advice, Adviser
from boca.dashboard.watch import Watcher
from boca.study.storage.reader import Reader

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have a successor of httpx
    from starlette.testclient import TestClient

HERE = "http://127.0.0.1:8321"
NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
PROBLEM = Problem(
    Space(a=Float(0, 1), kind=Choice(["round", "flat"])),
    Space(n=Int(1, 10), m=Float(0.1, 1.0)),
    cost=lambda z: z["n"] * z["m"],
)


MUCH = targets(50)


def begin(url, name="bowl", problem=PROBLEM, budget=MUCH, **settings):
    """Return an optimiser of a study that is cheap to drive."""
    chosen = {"strategy": RandomSearch(), "seed": 0} | settings
    return Optimizer(problem, budget=budget, storage=url, name=name, **chosen)


def run(optimizer, trials):
    """Run so many trials; the third fails."""
    for k in range(trials):
        trial = optimizer.ask()
        if k == 2:
            optimizer.fail(trial, "it broke")
        else:
            optimizer.tell(trial, -((trial.x["a"] - 0.3) ** 2), seconds=0.5)
    return optimizer


class Page:
    """The page over a database; `look` is what its thread does twice a second, here when a test says so."""

    def __init__(self, url, compute=None, **settings):
        self.watcher = Watcher(Reader(url))
        self.asked = []

        def noted(study):
            self.asked.append(study.told)
            return Advice(study.told, {"x": [0.5, "flat"], "mean": 1.0, "std": 0.1, "verified": False})

        self.adviser = Adviser(self.watcher, compute=compute or noted)
        self.app = app.create(self.watcher, self.adviser, **({"names": NAMES} | settings))
        self.client = TestClient(self.app, base_url=HERE)
        self.look()

    def look(self):
        self.watcher.look()

    def get(self, path, **options):
        return self.client.get(path, **options)

    def study(self, name="bowl", **query):
        answer = self.client.get("/api/study", params={"name": name, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self):
        self.client.close()
        self.watcher.stop()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def page_of():
    """Make pages that end with the test."""
    made = []

    def make(url, **settings):
        made.append(Page(url, **settings))
        return made[-1]

    yield make
    for page in made:
        page.close()


@pytest.fixture(scope="module")
def resting(tmp_path_factory):
    """A page over a study in which nothing happens."""
    url = f"sqlite:///{tmp_path_factory.mktemp('resting')}/study.db"
    begin(url).ask()
    page = Page(url)
    yield page
    page.close()
