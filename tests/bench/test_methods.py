"""Names of methods and problems lead to what they say, and those of one's own to what one wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import boca
from boca import problems
from boca.accounting.cost import costs
from boca.bench import methods
from boca.domain.errors import InvalidInput
from boca.strategies import Theorem
from boca.strategies.ladder import ladder


@pytest.mark.parametrize("name", [n for n in methods.METHODS if n not in ("random", "boca-learned")])
def test_the_true_gp_is_handed_over_unless_it_is_to_be_learned(name: str) -> None:
    sample, branin = problems.get("gp-rough"), problems.get("branin")
    method = methods.method(name)
    assert method(sample, False).hyperparameters == sample.hyperparameters  # type: ignore[attr-defined]
    assert method(sample, True).hyperparameters is None  # type: ignore[attr-defined]
    assert method(branin, False).hyperparameters is None  # type: ignore[attr-defined]


def test_the_methods_are_what_their_names_say() -> None:
    currin = problems.get("currin")
    expected = {
        "boca": boca.Boca(),
        "boca-learned": boca.Boca(),
        "boca-paper": boca.Boca.paper(),
        "boca-paper-sobol": boca.Boca.paper(maximizer="sobol"),
        "boca-paper-c1": replace(boca.Boca.paper(), adapt_c=False),
        "boca-paper-theorem": boca.Boca.paper(theorem=Theorem()),
        "mf-gp-ucb-3": boca.MFGPUCB(),
        "mf-sko-3": boca.MFSKO(),
        "gp-ucb": boca.GPUCB(),
        "gp-ei": boca.GPEI(),
        "mf-gp-ucb": boca.MFGPUCB(),
        "mf-sko": boca.MFSKO(),
        "random": boca.RandomSearch(),
    }
    assert {name: methods.method(name)(currin, False) for name in methods.METHODS} == expected
    assert methods.method("boca-learned")(problems.get("gp-smooth"), False) == boca.Boca()
    assert methods.DEFAULT_METHODS == ("boca", "boca-paper", "gp-ucb", "gp-ei", "mf-gp-ucb", "mf-sko", "random")
    assert set(methods.EFFORT) | {"boca", "boca-learned", "boca-paper-sobol"} == set(expected)


def test_the_finite_methods_have_ten_fidelities_on_branin_as_in_the_paper() -> None:
    tenths = [{"z1": k / 10, "z2": k / 10, "z3": k / 10} for k in range(1, 11)]
    branin = problems.get("branin")
    assert methods.method("mf-gp-ucb")(branin, False) == boca.MFGPUCB(tenths)
    assert methods.method("mf-sko")(branin, False) == boca.MFSKO(tenths)


def test_with_three_in_their_names_they_have_three_on_branin_too() -> None:
    branin = problems.get("branin")
    for name, strategy in (("mf-gp-ucb-3", boca.MFGPUCB()), ("mf-sko-3", boca.MFSKO())):
        assert methods.method(name)(branin, False) == strategy
        assert len(ladder(branin.problem, None, costs(branin.problem, boca.History()))) == 3


def test_methods_of_ones_own(toy: Any) -> None:
    at, sample, plain = f"{toy.__name__}:", toy.drawn(0), toy.make(0)
    assert methods.method(at + "instance")(plain, False) is toy.instance
    assert methods.method(at + "instance")(sample, False).hyperparameters == sample.hyperparameters  # type: ignore[attr-defined]
    assert methods.method(at + "instance")(sample, True) is toy.instance
    assert methods.method(at + "set_already")(sample, False) is toy.set_already
    assert methods.method(at + "function_of")(plain, False) == boca.Boca(max_shrink=2.0)
    assert isinstance(methods.method(at + "NeverAtTarget")(sample, False), toy.NeverAtTarget)
    assert methods.method("boca:GPEI")(sample, False) == boca.GPEI(hyperparameters=sample.hyperparameters)


def test_problems_of_ones_own(toy: Any) -> None:
    assert methods.problem(f"{toy.__name__}:fixed")(7) is toy.fixed
    assert methods.problem(f"{toy.__name__}:make")(7).seed == 7


@pytest.mark.parametrize("name", ["endless", "in_seconds", "measured_in_seconds"])
def test_a_problem_needs_no_optimum_and_may_have_a_budget_in_seconds(toy: Any, name: str) -> None:
    assert methods.problem(f"{toy.__name__}:{name}")(7).seed == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bocca", "must be one of boca, boca-paper"),
        ("no.such.module:thing", "does not exist"),
        ("toy:no_such_name", "does not exist"),
        ("toy:nothing", "must be a strategy"),
        ("toy:no_strategy", "method suggest"),
        ("toy:Benchmark", "positional arguments"),
    ],
)
def test_a_method_that_is_none(toy: Any, name: str, message: str) -> None:
    with pytest.raises((InvalidInput, TypeError), match=message):
        methods.method(name.replace("toy", toy.__name__))(toy.make(0), False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("brannin", "must be one of gp-smooth"),
        ("toy:nothing", "must be a Benchmark"),
        ("toy:no_benchmark", "must return a Benchmark"),
        ("toy:measured", "same budget"),
        (
            "toy:two_at_once",
            r"a function from a seed to one; with the seed 0 it raised TypeError\(.*missing 1 required",
        ),
    ],
)
def test_a_problem_that_cannot_be_compared(toy: Any, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        methods.problem(name.replace("toy", toy.__name__))(0)
