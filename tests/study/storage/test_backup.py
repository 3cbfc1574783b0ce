"""A copy of a database that may be in use."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from boca import Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.cli import main
from boca.domain.errors import InvalidInput
from boca.study.storage.backup import back_up
from boca.study.storage.reader import Reader
from storage.test_contract import claim, complete
from support.places import on


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    with on(request.param, tmp_path) as found:
        yield found


def history(url, name):
    with closing(Reader(str(url))) as reader:
        return [t.to_json() for t in reader.study(name).history]


def test_a_copy_has_every_study_with_everything(place, tmp_path):
    study = place.study()
    study.finish(complete(claim(study), output="printed"))
    study.finish(
        replace(claim(study), notes={"host": "n1"}).observed({"latency": 2.0, "value": 1.0}, noise={"value": 0.5})
    )
    claim(study)
    study.enqueue({"a": 0.5}, {"n": 1.0})
    place.study("other")
    copy = back_up(place.url, tmp_path / "copy.db")
    assert history(copy, "study") == history(place.url, "study")
    assert len(history(copy, "study")) == 3
    assert history(copy, "study")[1]["notes"] == {"host": "n1"}
    assert [told["outcome"] for told in history(copy, "study")[1]["observations"]] == ["latency", "value"]
    assert history(copy, "other") == []
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.db"]


def test_a_copy_can_be_continued(tmp_path):
    settings = {"budget": targets(9), "strategy": RandomSearch(), "seed": 0}
    opt = Optimizer(Problem(Space(a=Float(0, 1))), storage=f"sqlite:///{tmp_path}/s.db", **settings)
    opt.tell(opt.ask(), 1.0)
    copy = back_up(f"sqlite:///{tmp_path}/s.db", tmp_path / "copy.db")
    again = Optimizer(Problem(Space(a=Float(0, 1))), storage=f"sqlite:///{copy}", **settings)
    assert again.ask().x == opt.ask().x


def test_copies_during_writes_are_whole_and_never_go_back(tmp_path):
    settings = {"budget": targets(10**6), "strategy": RandomSearch(), "seed": 0}
    opt = Optimizer(Problem(Space(a=Float(0, 1))), storage=f"sqlite:///{tmp_path}/s.db", **settings)
    is_over = threading.Event()

    def write():
        while not is_over.is_set():
            opt.tell(opt.ask(), 1.0)

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    try:
        for k in range(10):
            least = len(opt.history.complete)
            copy = back_up(f"{tmp_path}/s.db", tmp_path / f"{k}.db")
            found = Reader(str(copy)).study("study").history
            assert [t.number for t in found] == list(range(len(found)))
            assert len(found.complete) >= least
            counts.append(len(found))
    finally:
        is_over.set()
        writer.join()
    assert counts == sorted(counts)


def test_a_backup_replaces_nothing_and_needs_a_folder(tmp_path, capsys):
    opt = Optimizer(Problem(Space(a=Float(0, 1))), budget=targets(3), storage=f"sqlite:///{tmp_path}/s.db")
    opt.ask()
    old = tmp_path / "old.db"
    old.write_text("precious")
    with pytest.raises(InvalidInput, match="already exists"):
        back_up(f"{tmp_path}/s.db", old)
    assert old.read_text() == "precious"
    with pytest.raises(InvalidInput, match="no folder"):
        back_up(f"{tmp_path}/s.db", tmp_path / "no" / "copy.db")
    main_of(["backup", f"{tmp_path}/s.db", f"{tmp_path}/new.db"])
    assert "new.db" in capsys.readouterr().out


def main_of(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
