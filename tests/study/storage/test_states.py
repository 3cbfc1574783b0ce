"""Any sequence of events, against a simple model and against an optimiser in memory that is never interrupted.

After every event the invariants hold: every acknowledged result is there, one a trial; numbers have no gap; the money
spent is the sum of the costs; and whoever opens the study again goes on exactly as whoever did not.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from boca import Choice, Float, Int, Optimizer, Problem, Space, Suggestion, targets
from boca.domain.errors import InvalidTrial
from boca.domain.trial import occupied, point_key
from boca.study.storage import Lease, Owner

SPACE = Space(a=Float(0, 1), k=Int(1, 1000), c=Choice(["u", "v"]))
PROBLEM = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: z["n"])
DEAD = replace(Owner.me(), started="in another life")
CLOCK = {"seconds", "overhead", "began", "ended", "host", "process", "worker", "version"}  # what a clock measured
RELEASED = -math.inf  # the seconds of a lease that its driver has released

VALUES = st.floats(-1e6, 1e6)
POINTS = st.builds(
    lambda a, k, c: {"a": a, "k": k, "c": c}, st.floats(0, 1), st.integers(1, 1000), st.sampled_from("uv")
)
FIDELITIES = st.builds(lambda n: {"n": n}, st.floats(0.1, 1))


@dataclass(frozen=True)
class Attentive:
    """A strategy whose choice depends on everything that it is shown."""

    def suggest(self, problem, history, budget, rng):
        told = math.fsum(t.value or t.told for t in history.finished) + 0.1 * sum(t.number for t in history.running)
        shift = math.fsum([told, budget.spent, budget.reserved, *(len(t.why) for t in history)])
        while True:
            u = (rng.random((1, 4)) + shift) % 1.0
            x, z = (s.from_unit(s.snap(part)[0]) for s, part in ((SPACE, u[:, :3]), (problem.fidelity, u[:, 3:])))
            if (point_key(x), point_key(z)) not in occupied(problem, history):
                return Suggestion(x, z, {"reason": f"{shift!r}", "phase": "model", "shift": shift})


def seen(trial):
    if trial is None:
        return None
    told = [replace(observation, seconds=None) for observation in trial.observations]
    return {name: value for name, value in trial.to_json().items() if name not in CLOCK} | {"observations": told}


class Events(RuleBasedStateMachine):
    """One study in a storage, the same in memory, and what both must hold."""

    def __init__(self, place, name):
        super().__init__()
        self.place, self.name = place, name
        self.settings = {"budget": targets(12), "strategy": Attentive(), "seed": 5}
        self.steady = Optimizer(PROBLEM, **self.settings)
        self.model = []  # of every trial: state, value, cost, attempt, and whether it is free
        self.held = {}  # number -> the lease under which it is out
        self.leases = [Lease() for _ in range(3)]
        self.old = []  # trials of attempts that were overtaken
        self.reload()

    @rule()
    def reload(self):
        """Open the study again: whoever does so sees what whoever did not sees."""
        self.place.close()
        self.opt = self.place.optimizer(PROBLEM, name=self.name, **self.settings)
        assert list(map(seen, self.opt.history)) == list(map(seen, self.steady.history))
        stored, steady = (opt.storage.read().queue for opt in (self.opt, self.steady))
        assert [(queued.x, queued.z) for queued in stored] == [(queued.x, queued.z) for queued in steady]
        assert seen(self.opt.best) == seen(self.steady.best)

    def teardown(self):
        self.place.close()

    def both(self, do):
        """Do the same to both, and return the trial or the trials on which they agree."""
        steady, stored = do(self.steady), do(self.opt)
        if isinstance(steady, list):
            assert list(map(seen, stored)) == list(map(seen, steady))
        else:
            assert seen(stored) == seen(steady)
        return stored

    def out(self, index):
        running = [number for number, (state, *_) in enumerate(self.model) if state == "running"]
        return running[index % len(running)]

    def is_out(self):
        return any(state == "running" for state, *_ in self.model)

    # What may happen --------------------------------------------------------------------------------------------------

    @rule(driver=st.none() | st.integers(0, 2), dies=st.booleans())
    def ask(self, driver, dies):
        lease = None if driver is None else self.leases[driver]
        if lease is not None and dies:
            lease = Lease(owner=DEAD)
        trial = self.both(lambda opt: opt.ask(lease=lease))
        if trial is not None:
            assert trial.number == len(self.model)
            self.model.append(("running", None, trial.cost, 0, False))
            if lease is not None:
                self.held[trial.number] = lease

    @precondition(is_out)
    @rule(index=st.integers(0, 99), value=VALUES, share=st.none() | st.floats(0.01, 1), by_number=st.booleans())
    def tell(self, index, value, share, by_number):
        number = self.out(index)
        _, _, price, attempt, _ = self.model[number]
        cost = share and share * price  # more than was reserved would overshoot the budget
        told = self.both(
            lambda opt: opt.tell(number if by_number and not attempt else opt.history[number], value, cost=cost)
        )
        paid = price if cost is None else cost
        assert (told.value, told.cost) == (value, paid)
        self.model[number] = ("complete", value, paid, attempt, False)
        self.held.pop(number, None)

    @precondition(is_out)
    @rule(index=st.integers(0, 99))
    def fail(self, index):
        number = self.out(index)
        self.both(lambda opt: opt.fail(opt.history[number], "It broke."))
        _, _, price, attempt, _ = self.model[number]
        self.model[number] = ("failed", None, price, attempt, False)
        self.held.pop(number, None)

    @rule(x=POINTS, z=st.none() | FIDELITIES, value=VALUES)
    def add(self, x, z, value):
        added = self.both(lambda opt: opt.add(x, z, value))
        assert added.number == len(self.model)
        self.model.append(("complete", value, added.cost, 0, True))

    @rule(x=POINTS, z=st.none() | FIDELITIES)
    def enqueue(self, x, z):
        for opt in (self.steady, self.opt):
            opt.enqueue(x, z)

    @rule(driver=st.integers(0, 2), released=st.booleans())
    def end(self, driver, released):
        """Let the leases of a driver end, by its own wish or because it has not been heard of."""
        mine = replace(self.leases[driver], seconds=RELEASED if released else -1.0)
        for opt in (self.steady, self.opt):
            if released:
                opt.storage.release(mine)
            else:
                opt.storage.renew(mine)
        self.held = {number: mine if lease.driver == mine.driver else lease for number, lease in self.held.items()}

    @rule(driver=st.integers(0, 2))
    def renew(self, driver):
        mine = self.leases[driver]
        for opt in (self.steady, self.opt):
            opt.storage.renew(mine)
        self.held = {number: mine if lease.driver == mine.driver else lease for number, lease in self.held.items()}

    @rule(driver=st.integers(0, 2))
    def take_over(self, driver):
        mine = self.leases[driver]
        ended = [
            number
            for number, lease in sorted(self.held.items())
            if lease.driver != mine.driver and (lease.seconds < 0 or lease.owner == DEAD)
        ]
        before = {number: self.opt.history[number] for number in ended}
        released = {number for number in ended if self.held[number].seconds == RELEASED}
        taken = self.both(lambda opt: opt.take_over(mine, max_retries=1))
        kept = [number for number in ended if number in released or self.model[number][3] < 1]
        assert [trial.number for trial in taken] == kept
        for number in ended:
            _, _, price, attempt, _ = self.model[number]
            if number in released:
                self.held[number] = mine
            elif attempt < 1:
                self.model[number] = ("running", None, price, attempt + 1, False)
                self.held[number] = mine
                self.old.append(before[number])
            else:
                self.model[number] = ("failed", None, price, attempt, False)
                del self.held[number]

    @precondition(lambda self: self.old)
    @rule(index=st.integers(0, 99), value=VALUES)
    def tell_late(self, index, value):
        late = self.old[index % len(self.old)]
        for opt in (self.steady, self.opt):
            with pytest.raises(InvalidTrial, match=r"opt\.add"):
                opt.tell(late, value)

    @precondition(lambda self: any(state != "running" for state, *_ in self.model))
    @rule(index=st.integers(0, 99), value=VALUES)
    def tell_again(self, index, value):
        done = [number for number, (state, *_) in enumerate(self.model) if state != "running"]
        for opt in (self.steady, self.opt):
            with pytest.raises(InvalidTrial, match=r"opt\.add"):
                opt.tell(done[index % len(done)], value)

    # What must hold ---------------------------------------------------------------------------------------------------

    @invariant()
    def the_study_is_as_the_model_says(self):
        """Every acknowledged result is there, once, under a number without gap."""
        now = self.opt.storage.read()
        assert [trial.number for trial in now.history] == list(range(len(self.model)))
        assert [(t.state, t.value, t.cost, t.attempt, t.added) for t in now.history] == self.model
        events = [trial.asked for trial in now.history] + [t.told for t in now.history.finished if t.told != t.asked]
        assert len(set(events)) == len(events)
        assert max(events, default=0) <= now.event == self.steady.storage.read().event
        assert all(t.told > t.asked or t.added for t in now.history.finished)

    @invariant()
    def the_money_spent_is_the_sum_of_the_costs(self):
        budget = self.opt.budget
        assert budget == self.steady.budget
        assert budget.spent == math.fsum(c for state, _, c, _, free in self.model if state != "running" and not free)
        assert budget.reserved == math.fsum(cost for state, _, cost, *_ in self.model if state == "running")
        assert budget.left >= -1e-9


def hold(place, examples, steps, *, derandomize):
    """Play so many sequences of so many events, each on a study of its own."""
    names = map(str, itertools.count())
    run_state_machine_as_test(
        lambda: Events(place, next(names)),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_sequence_of_events_leaves_a_study_as_it_must_be(place):
    hold(place, {"memory": 50, "sqlite": 20, "postgres": 5}[place.kind], 25, derandomize=True)


@pytest.mark.faults
def test_many_sequences_of_events_leave_a_study_as_it_must_be(place):
    hold(place, {"memory": 1000, "sqlite": 150, "postgres": 50}[place.kind], 60, derandomize=False)
