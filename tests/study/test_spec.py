"""A study that is gone on with is the study that was begun: what must agree, and what is said where it does not."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import boca
from boca import Boca, Choice, Float, Int, Problem, RandomSearch, Space, Suggestion, seconds, targets
from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput
from boca.gp.kernels import Radial
from boca.model.surrogate import Surrogate
from boca.study.spec import describe, differences, limit_of, off_values, plain, problem_of
from boca.study.spec import remade as stored_strategy
from support.places import on

SPACE = Space(a=Float(0.5, 8.0, log=True), b=Int(1, 5), c=Choice(["x", "y"]))
FIDELITY = Space(n=Float(0.1, 1.0), m=Int(1, 10))


def price(z):
    return z["n"] * z["m"]


def problem(**changes):
    given = {"space": SPACE, "fidelity": FIDELITY, "cost": price} | changes
    return Problem(given.pop("space"), given.pop("fidelity"), **given)


def begun(database, changed_problem=None, **changes):
    """Open the study, the same one but for the changes."""
    settings = {"budget": targets(10), "strategy": RandomSearch(), "seed": 3} | changes
    return database.optimizer(changed_problem or problem(), **settings)


@dataclass(frozen=True)
class Mine:
    """A strategy as a user writes it."""

    step: float = 0.1
    sizes: tuple[int, ...] = (1, 2)
    table: dict = field(default_factory=lambda: {"k": np.float64(2.0)})

    def suggest(self, problem, history, budget, rng):
        x = problem.space.from_unit(problem.space.snap(rng.random((1, len(problem.space))))[0])
        return Suggestion(x, dict(problem.target), {"reason": "Mine.", "phase": "start"})


class Plain:
    """A strategy that is no dataclass."""

    suggest = Mine.suggest


def closeness(a, b):
    return np.ones(np.broadcast(a["n"], b["n"]).shape)


def other_closeness(a, b):
    return closeness(a, b)


def kerneled(kernel):
    return Boca(surrogate=Surrogate(fidelity_kernel=kernel))


@pytest.fixture
def database(tmp_path):
    """A file will do: what a study stores of its problem is the same text everywhere."""
    with on("sqlite", tmp_path) as place:
        yield place


# What must agree ------------------------------------------------------------------------------------------------------


def test_a_study_is_gone_on_with_as_it_was_made(database):
    trial = begun(database).ask()
    again = begun(database)
    assert again.running == (trial,)
    assert again.seed == 3
    assert begun(database, budget=targets(10.0)).running == (trial,)


def test_a_seed_that_was_drawn_is_kept(database):
    first = begun(database, seed=None)
    again = begun(database, seed=None)
    assert again.seed == first.seed
    assert begun(database, seed=first.seed).seed == first.seed
    with pytest.raises(InvalidInput, match=f"seed was {first.seed} and is {first.seed + 1}"):
        begun(database, seed=first.seed + 1)


def test_a_large_seed_is_kept_exactly(database):
    first = begun(database, seed=2**63 - 1)
    assert begun(database, seed=None).seed == first.seed == 2**63 - 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"space": Space({**SPACE, "a": Float(0.5, 9.0, log=True)})},
            r'space was \{"a": \{.*8\.0.*and is \{"a": \{.*9\.0',
        ),
        ({"space": Space({**SPACE, "a": Float(0.5, 8.0)})}, r"space was .*true.*and is .*false"),
        (
            {"space": Space({**SPACE, "b": Float(1, 5)})},
            r'space was \{"b": \{"type": "int".*and is \{"b": \{"type": "float"',
        ),
        ({"space": Space({**SPACE, "c": Choice(["y", "x"])})}, r'space was .*\["x", "y"\].*and is .*\["y", "x"\]'),
        ({"space": Space(SPACE, d=Float(0, 1))}, r'space was \{\} and is \{"d"'),
        ({"space": Space(a=SPACE["a"], b=SPACE["b"])}, r'space was \{"c".*and is \{\}'),
        ({"fidelity": Space({**FIDELITY, "n": Float(0.2, 1.0)})}, r"fidelity was .*0\.1.*and is .*0\.2"),
        ({"fidelity": None, "cost": None}, r'fidelity was \{"n".*and is \{\}'),
        ({"target": {"n": 0.5}}, r'target was \{"n": 1\.0\} and is \{"n": 0\.5\}'),
        ({"direction": "minimize"}, r'direction was "maximize" and is "minimize"'),
        ({"cost": lambda z: z["n"] + z["m"]}, "cost has other values"),
        ({"cost": lambda z: 2.0 * price(z)}, "cost has other values"),
        ({"cost": None}, "cost was declared and is measured"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_another_problem_is_refused_and_the_difference_is_shown(database, changed, words):
    begun(database).ask()
    with pytest.raises(InvalidInput, match=words):
        begun(database, problem(**changed))
    with pytest.raises(InvalidInput, match=words):
        begun(database, problem(**changed), allow_change=True)
    assert len(begun(database).history) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Space(a=Float(0, 1), b=Float(0, 1)), Space(b=Float(0, 1), a=Float(0, 1))),
        (Space(a=Choice([0, 1])), Space(a=Choice([False, True]))),
    ],
    ids=["order", "type"],
)
def test_spaces_that_only_look_alike_are_told_apart(database, one, other):
    """The order is that of the coordinates, and a random point is drawn one by one."""
    begun(database, Problem(one))
    with pytest.raises(InvalidInput, match="space was"):
        begun(database, Problem(other))


def test_another_order_of_fidelities_is_another_problem(database):
    begun(database)
    with pytest.raises(InvalidInput, match="fidelity was"):
        begun(database, problem(fidelity=Space(m=FIDELITY["m"], n=FIDELITY["n"])))


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (RandomSearch(), Boca(), "strategy was .*random.*and is .*boca"),
        (Boca(), Boca.paper(), "strategy was .*and is "),
        (Boca(), Boca(maximizer="direct"), r'strategy was \{"maximizer": "sobol"\} and is \{"maximizer": "direct"\}'),
        (Mine(), Mine(step=0.2), r'strategy was \{"step": 0\.1\} and is \{"step": 0\.2\}'),
        (Mine(), Mine(sizes=(1, 3)), r"sizes.*\[1, 2\].*\[1, 3\]"),
        (Mine(), Mine(table={"k": 3.0}), r"table.*2\.0.*3\.0"),
        (Mine(), Plain(), "Mine.*Plain"),
    ],
    ids=["another", "paper", "setting", "number", "tuple", "mapping", "plain"],
)
def test_another_strategy_is_refused_and_the_difference_is_shown(database, first, then, words):
    begun(database, strategy=first)
    begun(database, strategy=replace(first))  # an equal one is the same
    with pytest.raises(InvalidInput, match=words):
        begun(database, strategy=then)


def test_strategies_of_the_user_are_known_by_name(database):
    begun(database, strategy=Plain()).ask()
    assert len(begun(database, strategy=Plain()).history) == 1


def test_functions_as_fidelity_kernels_are_known_by_name(database):
    begun(database, strategy=kerneled(closeness))
    begun(database, strategy=kerneled(closeness))
    with pytest.raises(InvalidInput, match=r"closeness.*other_closeness"):
        begun(database, strategy=kerneled(other_closeness))


def test_everything_that_differs_is_named_at_once(database):
    begun(database)
    with pytest.raises(InvalidInput) as raised:
        begun(database, problem(direction="minimize", target={"m": 5}), seed=4, strategy=Boca(), budget=targets(5))
    said = str(raised.value)
    assert said.startswith("Study 'study' already exists with different settings: ")
    assert [said.count(f"{part} was ") for part in ("direction", "target", "seed", "strategy", "budget")] == [1] * 5
    assert "another name" in said


def test_a_study_of_another_name_may_be_anything(database):
    begun(database).ask()
    other = begun(database, problem(direction="minimize"), name="other", seed=9)
    assert len(other.history) == 0
    assert database.database().names() == ["study", "other"]


# Another version ----------------------------------------------------------------------------------------------------


def remade(database, change):
    """Have the study look as if another version had made it."""
    place = database.database()
    stored = place.spec("study")
    change(stored["strategy"])
    place.change("study", stored)


def aged(strategy):
    del strategy["reserve_last"], strategy["surrogate"]["guard"]


def newer(strategy):
    strategy["surrogate"]["new_field"] = 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (aged, r'has \{"surrogate\.guard": 0\.25, "reserve_last": true\}, new since the study was made'),
        (newer, r'had \{"surrogate\.new_field": 1\}, which this version does not have'),
    ],
)
def test_a_study_of_another_version_needs_permission_and_goes_on_with_its_trials(database, change, words):
    first = begun(database, strategy=Boca())
    first.tell(first.ask(), 1.0)
    remade(database, change)
    with pytest.raises(InvalidInput, match=f"strategy {words}.*allow_change=True .*this version's"):
        begun(database, strategy=Boca())
    again = begun(database, strategy=Boca(), allow_change=True)
    assert [t.value for t in again.history] == [1.0]
    assert again.ask().number == 1
    assert database.database().spec("study")["strategy"] == plain(Boca())  # from here on it is of this version
    assert len(begun(database, strategy=Boca()).history) == 2


LATER = off_values(Surrogate)
"""The fields of the surrogate that came after the first stored studies, with the values that switch them off."""
LIMITS = ("fitted_results", "exact_results")
"""Of these the paper sets other values: it knows no limit."""


def before_them(strategy):
    for name in off_values(Boca):
        del strategy[name]
    for name in LATER:
        del strategy["surrogate"][name]


def test_a_study_without_the_later_fields_continues_with_them_off(database):
    begun(database, strategy=Boca())
    remade(database, before_them)
    before = database.database().spec("study")
    again = begun(database, strategy=Boca())
    off = Boca(surrogate=Surrogate(**LATER), **off_values(Boca))
    assert again.strategy == off == stored_strategy(before["strategy"])
    assert database.database().spec("study") == before
    assert begun(database, strategy=off).strategy == off
    with pytest.raises(InvalidInput, match=r"strategy was .*and is "):
        begun(database, strategy=Boca(max_shrink=2.0))


def test_a_study_without_the_later_fields_adopts_them_with_permission(database):
    begun(database, strategy=Boca())
    remade(database, before_them)
    assert begun(database, strategy=Boca(), allow_change=True).strategy == Boca()
    assert database.database().spec("study")["strategy"] == plain(Boca())
    assert begun(database, strategy=Boca()).strategy == Boca()


def test_a_study_of_the_paper_continues_with_the_limits_that_it_had(database):
    begun(database, strategy=Boca.paper())
    remade(database, before_them)
    limited = replace(Boca.paper(), surrogate=replace(Surrogate.paper(), fitted_results=500, exact_results=1200))
    assert stored_strategy(database.database().spec("study")["strategy"]) == limited
    assert begun(database, strategy=Boca.paper()).strategy == limited
    assert begun(database, strategy=Boca.paper(), allow_change=True).strategy == Boca.paper()
    assert database.database().spec("study")["strategy"] == plain(Boca.paper())


def test_the_later_fields_are_off_in_the_paper():
    paper = Boca.paper()
    assert {name: getattr(paper.surrogate, name) for name in LATER if name not in LIMITS} == {
        name: value for name, value in LATER.items() if name not in LIMITS
    }
    assert {name: getattr(paper, name) for name in off_values(Boca)} == off_values(Boca)
    assert LATER["warp"] is False


def test_permission_for_another_version_is_none_for_another_setting(database):
    begun(database, strategy=Boca())
    remade(database, aged)
    before = database.database().spec("study")
    for strategy in (Boca(maximizer="direct"), Boca(surrogate=Surrogate(starts=3)), RandomSearch()):
        with pytest.raises(InvalidInput, match=r"strategy was .*and is "):
            begun(database, strategy=strategy, allow_change=True)
    with pytest.raises(InvalidInput, match="permits a larger one"):
        begun(database, strategy=Boca(), budget=targets(5), allow_change=True)
    assert database.database().spec("study") == before
    wider = begun(database, strategy=Boca(reserve_last=False), budget=targets(20), allow_change=True)
    assert database.database().spec("study")["strategy"]["reserve_last"] is False
    assert wider.budget.total == 20 * problem().target_cost


def test_a_key_of_a_table_is_no_field_and_fields_have_no_order(database):
    begun(database, strategy=Mine())
    with pytest.raises(InvalidInput, match="strategy was"):
        begun(database, strategy=Mine(table={"k": 2.0, "l": 1.0}), allow_change=True)
    remade(database, lambda strategy: strategy.update({"step": strategy.pop("step")}))
    begun(database, strategy=Mine())


# The budget -----------------------------------------------------------------------------------------------------------


def test_another_budget_needs_permission_and_may_only_be_wider(database):
    begun(database)
    with pytest.raises(InvalidInput, match=r"budget was 10 target evaluations and is 20 target .*allow_change"):
        begun(database, budget=targets(20))
    wider = begun(database, budget=targets(20), allow_change=True)
    assert wider.budget.total == 20 * problem().target_cost
    assert begun(database, budget=targets(20)).budget.total == wider.budget.total  # it is stored
    with pytest.raises(InvalidInput, match="budget was"):
        begun(database)
    for narrower in (targets(10), targets(19.99)):
        with pytest.raises(InvalidInput, match="permits a larger one"):
            begun(database, budget=narrower, allow_change=True)
    begun(database, budget=None, allow_change=True)
    with pytest.raises(InvalidInput, match="permits a larger one"):
        begun(database, budget=targets(1000), allow_change=True)
    begun(database, budget=None)


@pytest.mark.parametrize("then", [targets(200), 1e6, None])
def test_the_start_stays_the_share_of_the_budget_that_the_study_was_made_with(database, then):
    before = begun(database).budget.start
    assert before > 0.0
    for _ in range(2):  # and when it is opened again
        wider = begun(database, budget=then, allow_change=True)
        assert wider.budget.start == before
        assert wider.budget.total > 10.0 * before


def test_permission_that_is_not_needed_changes_nothing(database):
    begun(database)
    begun(database, allow_change=True)
    begun(database)


@pytest.mark.parametrize(
    ("then", "is_wider"),
    [(200.0, True), (50.0, False), (100.0, True)],  # one target costs ten
    ids=["wider", "narrower", "equal"],
)
def test_a_budget_in_another_unit_is_compared_in_cost_units_where_the_cost_is_declared(database, then, is_wider):
    begun(database)
    if is_wider:
        assert begun(database, budget=then, allow_change=True).budget.total == then
    else:
        with pytest.raises(InvalidInput, match="permits a larger one"):
            begun(database, budget=then, allow_change=True)


def test_a_wider_budget_lets_a_finished_study_go_on(database):
    opt = begun(database, budget=targets(2))
    while (trial := opt.ask()) is not None:
        opt.tell(trial, 1.0)
    wider = begun(database, budget=targets(3), allow_change=True)
    assert wider.ask().number == 2
    assert wider.ask() is None


# What is stored -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, targets(3), seconds(7.5), Limit(12, "cost")])
@pytest.mark.parametrize("strategy", [Boca(), Boca.paper(), boca.MFSKO(), boca.MFGPUCB(), boca.GPEI(), Mine(), Plain()])
def test_a_description_is_json_and_agrees_with_itself(strategy, limit):
    described = describe(problem(), strategy, seed=7, limit=limit)
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    parts = ["space", "fidelity", "target", "direction", "cost", "target_cost", "strategy", "seed", "budget"]
    assert list(described) == parts
    assert differences(described, described) == {}
    assert limit_of(described) == limit


@pytest.mark.parametrize(
    "given",
    [
        problem(cost=None, target={"m": 3}, direction="minimize"),
        Problem(Space({"größe 中": Int(-3, 2**40), "q": Choice([None, True, 1.5, "x", 7])})),
        Problem(SPACE, Space(k=Choice(["fast", "good"]), t=Float(1e-300, 1e300, log=True)), target={"k": "good"}),
    ],
)
def test_a_problem_can_be_made_of_its_description(database, given):
    begun(database, given)
    made = problem_of(database.database().spec("study"))
    assert (made.space, made.fidelity, made.target) == (given.space, given.fidelity, given.target)
    assert made.direction == given.direction
    assert list(map(repr, made.space.items())) == list(map(repr, given.space.items()))
    assert made.has_declared_cost == given.has_declared_cost


@pytest.mark.parametrize(
    "given",
    [problem(), problem(target={"m": 3}), Problem(SPACE, cost=lambda z: 7.0), Problem(SPACE)],
    ids=["", "target", "constant", "unit"],
)
def test_of_a_declared_cost_the_price_of_a_target_is_remembered(given):
    made = problem_of(describe(given, RandomSearch(), seed=0, limit=None))
    assert made.target_cost == given.target_cost
    assert all(made.cost(z) > 0 for z in given.grid[0])


def test_a_server_stores_the_same(tmp_path):
    with on("postgres", tmp_path) as place:
        first = begun(place, strategy=Mine(), budget=seconds(7.5), seed=2**63 - 1)
        stored = place.database().spec("study")
        assert stored == describe(problem(), Mine(), seed=first.seed, limit=seconds(7.5))
        assert list(stored["space"]) == list(SPACE)
        with pytest.raises(InvalidInput, match="direction was"):
            begun(place, problem(direction="minimize"), strategy=Mine(), budget=seconds(7.5), seed=None)
        assert begun(place, strategy=Mine(), budget=seconds(8), seed=None, allow_change=True).seed == first.seed
        assert place.database().spec("study")["budget"] == {"amount": 8.0, "unit": "seconds"}


def test_settings_are_told_plainly():
    assert plain(RandomSearch()) == {"type": "random"}
    assert plain({"a": (1, np.int64(2)), "b": np.array([0.5]), 3: None}) == {"a": [1, 2], "b": [0.5], "3": None}
    assert plain(closeness).endswith("test_spec.closeness")
    assert plain(math.sqrt) == "math.sqrt"
    assert plain(Radial) == "boca.gp.kernels.Radial"
    assert plain(Plain()).endswith("test_spec.Plain")
    assert plain(True) is True


def test_the_same_cost_in_other_words_is_the_same_cost():
    one, other = problem(), problem(cost=lambda z: math.exp(math.log(z["n"]) + math.log(z["m"])))
    described = [describe(p, RandomSearch(), seed=0, limit=None) for p in (one, other)]
    assert differences(*described) == {}


def test_a_strategy_with_an_endless_setting_can_be_stored(database):
    begun(database, strategy=Mine(step=math.inf))
    begun(database, strategy=Mine(step=math.inf))
    with pytest.raises(InvalidInput, match="strategy was"):
        begun(database, strategy=Mine(step=-math.inf))


# Points to begin with, and values that repeat -------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "word"), [({"deterministic": True}, "deterministic"), ({"first": [{}]}, "first")])
def test_first_points_and_repeating_values_are_part_of_a_study(database, more, word):
    plain_one, other = problem(), problem(**more)
    described = describe(other, RandomSearch(), seed=1, limit=None)
    assert word in described
    assert word not in describe(plain_one, RandomSearch(), seed=1, limit=None)
    again = problem_of(described)
    assert (again.deterministic, again.first) == (other.deterministic, other.first)
    begun(database, other, strategy=RandomSearch(), seed=1)
    with pytest.raises(InvalidInput, match=f"{word} was "):
        begun(database, plain_one, strategy=RandomSearch(), seed=1)
    begun(database, plain_one, strategy=RandomSearch(), seed=1, name="second")
    with pytest.raises(InvalidInput, match=f"{word} was absent and is "):
        begun(database, other, strategy=RandomSearch(), seed=1, name="second")
