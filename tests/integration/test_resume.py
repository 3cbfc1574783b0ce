"""A study that is opened again goes on bit for bit as if it had never been closed; and results find their trials."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

import boca
from boca import MFGPUCB, MFSKO, Boca, Optimizer, RandomSearch, targets
from boca.domain.errors import InvalidTrial
from boca.study.storage import Lease
from integration import driver
from support.places import FORKS, on, together

STRATEGIES = {
    "boca": Boca(),
    "paper": Boca.paper(maximizer="sobol"),
    "mf-gp-ucb": MFGPUCB(maximizer="sobol"),
    "mf-sko": MFSKO(maximizer="sobol"),
    "random": RandomSearch(),
}
SETTINGS = {"budget": targets(16), "seed": 11}


def value(trial):
    try:
        return driver.value(trial.x, trial.z)
    except RuntimeError:
        return None


def play(opened, *, trials, reload):
    """Ask and tell with up to three trials out, fail some, bring and queue some; open the study again as told."""
    opt = opened()
    events = random.Random(1)
    out = []
    while len(opt.history) < trials:
        what = events.random()
        if what < 0.06:
            opt.add({"a": events.random(), "k": 7, "c": "u"}, {"n": 0.5}, events.random())
        elif what < 0.12:
            opt.enqueue({"a": events.random(), "k": 9, "c": "v"}, {"n": 0.25})
        elif len(out) < 3 and what < 0.6:
            out.append(opt.ask().number)
        elif out:
            number = out.pop(events.randrange(len(out)))
            found = value(opt.history[number])
            _ = opt.fail(number, "Broken.") if found is None else opt.tell(number, found)
        if reload():
            opt = opened()
    return [(trial.number, trial.state, repr((trial.x, trial.z, trial.value, trial.why))) for trial in opt.history]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_after_any_number_of_reloads_the_next_suggestion_is_the_same_to_the_last_bit(strategy, tmp_path):
    memory = Optimizer(driver.PROBLEM, strategy=strategy, **SETTINGS)
    steady = play(lambda: memory, trials=14, reload=lambda: False)
    for name, share in (("always", 1.0), ("sometimes", 0.3)):
        (tmp_path / name).mkdir()
        with on("sqlite", tmp_path / name) as place:
            chance = random.Random(2)

            def opened(place=place):
                place.close()
                return place.optimizer(driver.PROBLEM, strategy=strategy, **SETTINGS)

            again = play(opened, trials=14, reload=lambda chance=chance, share=share: chance.random() < share)
        assert again == steady
    phases = {trial.phase for trial in memory.history}
    assert "model" in phases or strategy == RandomSearch()


def test_a_server_keeps_every_bit_too(tmp_path):
    memory = Optimizer(driver.PROBLEM, strategy=Boca(), **SETTINGS)
    steady = play(lambda: memory, trials=9, reload=lambda: False)
    with on("postgres", tmp_path) as place:
        opened = lambda: place.optimizer(driver.PROBLEM, strategy=Boca(), **SETTINGS)  # noqa: E731
        assert play(opened, trials=9, reload=lambda: True) == steady


def asks(k, urls):
    opt = Optimizer(driver.PROBLEM, strategy=Boca(), storage=urls[k], **SETTINGS)
    trial = opt.ask()
    opt.storage.close()
    return repr((trial.number, trial.x, trial.z, trial.why))


def test_another_process_asks_what_this_one_would_have_asked(tmp_path):
    with on("sqlite", tmp_path) as place:
        opt = place.optimizer(driver.PROBLEM, strategy=Boca(), **SETTINGS)
        while len(opt.history.chosen) < 3:
            trial = opt.ask()
            opt.tell(trial, value(trial) or 0.0)
        opt.ask()
        place.close()
        file = Path(place.url.removeprefix("sqlite:///"))
        copies = [tmp_path / f"copy{k}.db" for k in range(2)]
        for copy in copies:
            shutil.copy(file, copy)
        theirs = together(2, asks, [f"sqlite:///{copy}" for copy in copies])
        assert theirs == [asks(0, [place.url])] * 2


# Results find their trials --------------------------------------------------------------------------------------------


def opened(database, **settings):
    return database.optimizer(driver.PROBLEM, **SETTINGS | {"strategy": RandomSearch()} | settings)


def test_what_was_out_is_out_after_a_reload_and_its_result_is_taken(database):
    first, second, third = opened(database).ask(3)
    opt = opened(database)
    assert opt.running == (first, second, third)
    assert opt.running[1].why == second.why
    assert opt.tell(second, 2.0).value == 2.0
    assert opt.tell(0, 1.0).seconds > 0.0  # the storage knows when it was handed out
    again = opened(database)
    assert again.running == (third,)
    assert [trial.value for trial in again.history] == [1.0, 2.0, None]
    assert again.spent == first.cost + second.cost


def tells(k, url, number):
    opt = Optimizer(driver.PROBLEM, strategy=RandomSearch(), storage=url, **SETTINGS)
    try:
        opt.tell(number, 10.0 + k)
        return "told"
    except InvalidTrial as error:
        return str(error)
    finally:
        opt.storage.close()


def test_a_result_may_be_told_by_another_process_and_only_once(database):
    opt = opened(database)
    trial = opt.ask()
    said = together(4, tells, database.url, trial.number)
    assert said.count("told") == 1
    winner = 10.0 + said.index("told")
    assert opt.history[0].value == winner
    assert sum(f"Trial 0 already has its result (value {winner!r})" in words for words in said) == 3
    with pytest.raises(InvalidTrial, match="already has its result"):
        opt.tell(trial, 1.0)


def test_a_result_that_comes_after_the_lease_is_taken_as_long_as_nobody_else_has_the_trial(database):
    slow = opened(database)
    trial = slow.ask(lease=Lease(seconds=-1.0))
    assert slow.tell(trial, 3.0).value == 3.0
    assert opened(database).take_over(Lease()) == []


def test_a_result_that_comes_after_somebody_else_has_the_trial_is_refused(database):
    slow, quick = opened(database), opened(database)
    trial = slow.ask(lease=Lease(seconds=-1.0))
    (taken,) = quick.take_over(Lease())
    assert (taken.number, taken.x, taken.z, taken.attempt) == (trial.number, trial.x, trial.z, 1)
    for late in (trial, trial.number):  # by its number too: who asked for it remembers which attempt it was
        with pytest.raises(InvalidTrial, match=r"attempt 1 .* only attempt 2 .*opt\.add"):
            slow.tell(late, 3.0)
        with pytest.raises(InvalidTrial, match=r"opt\.add"):
            slow.fail(late, "It broke.")
    assert quick.tell(taken, 4.0).value == 4.0
    added = slow.add(trial.x, trial.z, 3.0)
    assert (added.number, added.value, slow.spent) == (1, 3.0, trial.cost)


def test_who_knows_nothing_of_attempts_tells_the_last_one(database):
    opened(database).ask(lease=Lease(seconds=-1.0))
    opened(database).take_over(Lease())
    assert opened(database).tell(0, 5.0).attempt == 1


def asks_and_dies(url):
    opt = Optimizer(driver.PROBLEM, strategy=RandomSearch(), storage=url, **SETTINGS)
    opt.ask(2)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_asked_by_hand_is_never_taken_over(database):
    """Who asks without an executor may be a person, and the result may come in two days."""
    process = FORKS.Process(target=asks_and_dies, args=(database.url,))
    process.start()
    process.join(60.0)
    assert process.exitcode == -signal.SIGKILL
    opt = opened(database)
    assert opt.take_over(Lease()) == []
    assert not opt.storage.is_held_by_others(Lease())
    result = boca.maximize(
        driver.objective,
        driver.SPACE,
        driver.FIDELITY,
        cost=driver.price,
        strategy=RandomSearch(),
        storage=database.url,
        **SETTINGS,
    )
    assert [trial.number for trial in result.history.running] == [0, 1]
    assert len(result.history) == 16
    assert opt.tell(1, 3.0).value == 3.0


def test_trials_and_their_reasons_can_be_read_when_the_study_is_closed(database):
    opt = opened(database)
    opt.tell(opt.ask(), 1.0)
    history = opened(database).history
    opt.storage.close()
    assert history[0].why["reason"]
    assert opt.ask().number == 1  # closing lets go of a connection, not of the study


def test_a_run_that_was_finished_is_not_run_again(database):
    def run():
        return driver.run(database.url, None, "random", 0, 5.0)

    first, again = run(), run()
    assert len(first.history) == 5
    assert [(t.x, t.value, t.told) for t in again.history] == [(t.x, t.value, t.told) for t in first.history]
    assert (again.spent, again.value) == (first.spent, first.value)
