"""Which studies a server offers, and which of them can be changed."""

from __future__ import annotations

import pytest

import boca
from boca.agents.studies import Studies, whole_problem
from boca.errors import InvalidInput
from boca.study.spec import describe
from cli.studies import stored

SPACE = boca.Space(a=boca.Float(0, 1), b=boca.Float(0, 1))
FIDELITY = boca.Space(n=boca.Int(1, 10))


def study(url, name, problem, **more):
    """Make a study with one result in a database."""
    opt = boca.Optimizer(problem, budget=boca.targets(5), seed=0, storage=url, name=name, **more)
    opt.tell(opt.ask(), 1.0, seconds=1.0)
    opt.storage.close()


@pytest.mark.parametrize(
    "problem",
    [
        boca.Problem(SPACE),
        boca.Problem(SPACE, FIDELITY),
        boca.Problem(SPACE, FIDELITY, cost=lambda z: 3.0 * z["n"]),
        boca.Problem(SPACE.where("a + b <= 1"), FIDELITY),
        boca.Problem(SPACE, deterministic=True, first=[{"a": 0.1}]),
        boca.Problem(SPACE, subject_to={"size": boca.AtMost(3.0)}),
    ],
    ids=["alone", "measured", "proportional", "expression", "deterministic", "limits"],
)
def test_a_study_without_code_goes_on_from_its_database_alone(tmp_path, problem):
    path = str(tmp_path / "s.db")
    url = f"sqlite:///{path}"
    opt = boca.Optimizer(problem, budget=boca.targets(5), seed=0, storage=url, name="s")
    told = {"value": 1.0, "size": 1.0} if problem.subject_to else 1.0
    opt.tell(opt.ask(), told, seconds=1.0)
    opt.storage.close()
    studies = Studies([path])
    here = studies.optimizer("s")
    assert studies.optimizer(None) is here
    trial = here.ask()
    studies.close()
    assert trial.number == 1
    same = boca.Optimizer(problem, budget=boca.targets(5), seed=0, storage=url, name="s")  # the code itself agrees
    assert same.history[1].x == trial.x


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (boca.Problem(SPACE, FIDELITY, cost=lambda z: z["n"] ** 2), "a declared cost"),
        (boca.Problem(SPACE.where(lambda x: x["a"] + x["b"] <= 1, "a + b <= 1.5")), "a constraint"),
        (boca.Problem(SPACE.where(lambda x: x["a"] <= 0.5, "a is small")), "a constraint"),
        (boca.Problem(boca.Candidates([{"a": 1.0}, {"a": 2.0}])), "a list of candidates"),
    ],
    ids=["cost", "another constraint", "words", "candidates"],
)
def test_code_that_is_not_stored_is_not_guessed(tmp_path, problem, words):
    path = str(tmp_path / "s.db")
    study(f"sqlite:///{path}", "s", problem)
    studies = Studies([path])
    assert len(studies.view("s").history) == 1  # it can be read
    with pytest.raises(InvalidInput, match=rf"has {words} that is not stored.*boca mcp study\.toml --write"):
        studies.optimizer("s")


def test_a_strategy_of_the_users_own_is_code(tmp_path):
    class Own:
        def suggest(self, problem, history, budget, rng):
            return boca.Suggestion({"a": 0.5, "b": float(rng.random())}, {}, {"reason": "mine", "phase": "start"})

    path = str(tmp_path / "s.db")
    study(f"sqlite:///{path}", "s", boca.Problem(SPACE), strategy=Own())
    with pytest.raises(InvalidInput, match="has a strategy that is not stored"):
        Studies([path]).optimizer("s")


def test_a_study_file_has_the_code(folder):
    stored().storage.close()
    (folder / "study.toml").write_text((folder / "study.toml").read_text().replace("{ n = 1 }", "{ n = 2 }"))
    (folder / "bowl.db").unlink()
    studies = Studies(["study.toml"])
    assert studies.optimizer("bowl").ask().number == 0
    studies.close()
    with pytest.raises(InvalidInput, match="a declared cost"):
        Studies(["bowl.db"]).optimizer("bowl")


def test_a_study_that_has_not_begun_says_how_to_begin(folder):
    studies = Studies(["study.toml"])
    assert [name for _, name in studies.offered()] == ["bowl"]
    with pytest.raises(InvalidInput, match=r"has not begun.*boca run study\.toml"):
        studies.view("bowl")


def test_the_study_has_to_be_named_if_there_are_two(tmp_path):
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    for path, name in ((one, "a"), (one, "b"), (other, "b")):
        study(f"sqlite:///{path}", name, boca.Problem(SPACE))
    studies = Studies([one, other])
    with pytest.raises(InvalidInput, match=r"study is missing.*'a', 'b', 'b'"):
        studies.find(None)
    with pytest.raises(InvalidInput, match=r"There is no study 'c'\. This server has: 'a', 'b', 'b'"):
        studies.find("c")
    with pytest.raises(InvalidInput, match="More than one study has the name 'b'"):
        studies.find("b")
    assert studies.find("a")[1] == "a"


def test_what_a_description_says_is_the_problem():
    problem = boca.Problem(SPACE.where("a + b <= 1"), FIDELITY, direction="minimize", target={"n": 5})
    described = describe(problem, boca.Boca(), seed=0, limit=None)
    assert describe(whole_problem("s", described), boca.Boca(), seed=0, limit=None) == described
