"""A study in a database is made once, and resumed only with what it was made of."""

from __future__ import annotations

from contextlib import closing

import pytest

from boca import Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput
from boca.study.opening import open_study
from boca.study.spec import describe

PROBLEM = Problem(Space(a=Float(0, 1)), Space(n=Float(0.1, 1)), cost=lambda z: z["n"])


def opened(tmp_path, *, seed=1, limit=None, keeps_seed=False, allow_change=False, name="one"):
    given = describe(PROBLEM, RandomSearch(), seed=seed, limit=targets(4) if limit is None else limit)
    url = f"sqlite:///{tmp_path}/study.db"
    found = open_study(url, name, given, problem=PROBLEM, keeps_seed=keeps_seed, allow_change=allow_change)
    with closing(found.storage):
        return found.seed, found.first


def test_a_stored_seed_is_kept_if_none_is_asked_for(tmp_path):
    assert opened(tmp_path, seed=5) == (5, None)
    assert opened(tmp_path, seed=6, keeps_seed=True) == (5, None)
    with pytest.raises(InvalidInput, match="seed was 5 and is 6"):
        opened(tmp_path, seed=6)


def test_a_larger_budget_needs_permission_and_the_first_one_is_remembered(tmp_path):
    opened(tmp_path)
    with pytest.raises(InvalidInput, match="allow_change=True"):
        opened(tmp_path, limit=targets(8))
    for limit in (targets(8), Limit(9.0, "cost")):
        assert opened(tmp_path, limit=limit, allow_change=True) == (1, targets(4))
    assert opened(tmp_path, limit=Limit(9.0, "cost")) == (1, targets(4))
    with pytest.raises(InvalidInput, match="8 target evaluations, and was 9 cost units"):
        opened(tmp_path, limit=targets(8), allow_change=True)


def test_permission_is_offered_only_where_it_helps(tmp_path):
    opened(tmp_path)
    with pytest.raises(InvalidInput) as raised:
        opened(tmp_path, seed=2, limit=targets(8), allow_change=True)
    assert "allow_change" not in str(raised.value)
    assert "another name" in str(raised.value)


@pytest.mark.parametrize("name", ["", "x" * 256, 3])
def test_a_name_is_a_short_text(tmp_path, name):
    with pytest.raises(InvalidInput, match="1 to 255 characters"):
        opened(tmp_path, name=name)


def test_a_change_is_told_in_the_words_of_the_user(tmp_path):
    opened(tmp_path)
    with pytest.raises(InvalidInput, match="budget was 4 target evaluations and is 8 target evaluations"):
        opened(tmp_path, limit=targets(8))


def test_a_study_with_a_storage_and_no_name_says_which_name_it_has(tmp_path, caplog):
    url = f"sqlite:///{tmp_path}/study.db"
    settings = {"budget": targets(4), "strategy": RandomSearch(), "seed": 0}
    with closing(Optimizer(PROBLEM, storage=url, **settings).storage):
        (said,) = caplog.messages
    assert "'study'" in said
    assert "name=" in said
    caplog.clear()
    for more in ({}, {"storage": url, "name": "study"}):
        opt = Optimizer(PROBLEM, **more, **settings)
        assert opt.name == "study"
        opt.storage.close()
    assert caplog.messages == []
