"""The server as an agent meets it: a process, spoken to with the client of the SDK."""

from __future__ import annotations

import pytest

import boca
from agents.conversation import content, refused
from boca.agents.server import in_tools, serve
from cli.studies import stored

READING = {"list_studies", "status", "history", "why", "recommend"}
WRITING = {"ask", "tell", "fail", "enqueue", "add_result"}


def value(x, z):
    return -((x["a"] - 0.3) ** 2) - (x["kind"] == "flat") - 0.01 * (10 - z["n"])


def test_an_agent_runs_a_whole_study(talk):
    async def conversation(client):
        assert "ask, evaluate" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | WRITING
        assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READING
        (listed,) = content(await client.call_tool("list_studies"))
        assert listed["study"] == "bowl"
        assert listed["trials"] == 0

        content(await client.call_tool("enqueue", {"x": {"a": 0.25, "kind": "round"}}))
        asked = []
        while trials := content(await client.call_tool("ask", {"n": 2}))["trials"]:
            for trial in trials:
                told = await client.call_tool(
                    "tell", {"trial": trial["number"], "value": value(trial["x"], trial["z"]), "seconds": 1.5}
                )
                assert content(told)["state"] == "complete"
            asked += trials
        assert asked[0]["x"] == {"a": 0.25, "kind": "round"}
        assert asked[0]["at_target"]
        assert asked[1]["reason"]
        status = content(await client.call_tool("status"))
        assert status["space"]["a"] == {"type": "float", "low": 0.0, "high": 1.0, "log": False}
        assert status["target"] == {"n": 10}
        assert status["complete"] == len(asked)
        assert status["spent"].startswith("4 of 4 target evaluations")
        why = content(await client.call_tool("why", {"trial": 1}))
        assert why["why"]["reason"] == asked[1]["reason"]
        assert why["seconds"] == 1.5
        recommended = content(await client.call_tool("recommend"))
        assert set(recommended["x"]) == {"a", "kind"}
        best = content(await client.call_tool("history", {"best": 2}))["trials"]
        return status, best, recommended

    status, best, recommended = talk(conversation, "study.toml", "--write")
    opt = stored()  # what Python says of the same study
    assert status["best"]["number"] == opt.best.number == best[0]["number"]
    assert best[0]["value"] >= best[1]["value"]
    assert recommended["x"] == opt.recommend().x
    assert recommended["mean"] == opt.recommend().mean
    assert opt.ask() is None


def test_without_write_there_is_no_tool_that_changes_anything(talk):
    opt = stored()
    trial = opt.ask()
    opt.storage.close()

    async def conversation(client):
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        assert "--write" in client.instructions
        assert "tell" in refused(await client.call_tool("tell", {"trial": 0, "value": 1.0}))
        return content(await client.call_tool("history"))["trials"]

    (seen,) = talk(conversation, "bowl.db")
    assert seen["state"] == "running"
    assert seen["x"] == trial.x


def test_refusals_are_those_of_python(talk):
    opt = stored()

    def said(function, *given):
        with pytest.raises(boca.BocaError) as error:
            function(*given)
        return str(error.value)

    trial = opt.ask()
    opt.tell(trial, 1.0)
    running = opt.ask().number
    expected = [
        (("tell", {"trial": 0, "value": 2.0}), said(opt.tell, 0, 2.0)),
        (("tell", {"trial": 99, "value": 2.0}), said(opt.tell, 99, 2.0)),
        (("tell", {"trial": running, "value": "best"}), said(opt.tell, running, "best")),
        (("tell", {"trial": running, "value": None}), said(opt.tell, running, None)),
        (("tell", {"trial": running, "value": 1.0, "seconds": -1}), "seconds"),
        (("enqueue", {"x": {"a": 2.0, "kind": "flat"}}), said(opt.enqueue, {"a": 2.0, "kind": "flat"})),
        (("enqueue", {"x": {"a": 0.5}}), said(opt.enqueue, {"a": 0.5})),
        (("ask", {"n": 0}), said(opt.ask, 0)),
        (("fail", {"trial": 0, "reason": "no"}), said(opt.fail, 0, "no")),
        (("add_result", {"x": {"a": 0.5, "kind": "flat"}, "value": 1.0, "z": {"n": 99}}), "99"),
        (("history", {"state": "finished"}), "running, complete, failed"),
        (("history", {"last": 0}), "from 1 to 1000"),
        (("why", {"trial": 7}), "There is no trial 7"),
        (("status", {"study": "bowel"}), "There is no study 'bowel'. This server has: 'bowl'."),
    ]
    opt.storage.close()

    async def conversation(client):
        return [refused(await client.call_tool(*call)) for call, _ in expected]

    for (call, words), answer in zip(expected, talk(conversation, "study.toml", "--write"), strict=True):
        assert in_tools(words) in answer, call
        assert "opt." not in answer
    assert stored().history[running].state == "running"


def test_a_failure_is_stored(talk):
    async def conversation(client):
        (trial,) = content(await client.call_tool("ask"))["trials"]
        more = {"reason": "the oven broke", "output": "smoke", "seconds": 3.0}
        return content(await client.call_tool("fail", {"trial": trial["number"], **more}))

    assert talk(conversation, "study.toml", "--write")["failure"] == "the oven broke"
    assert stored().history[0].output == "smoke"


def test_no_place_is_refused():
    with pytest.raises(boca.BocaError, match=r"boca mcp study\.db"):
        serve([])


def test_messages_speak_of_tools():
    assert (
        in_tools("If there is no value, type opt.fail(trial, reason).")
        == "If there is no value, type fail(trial, reason)."
    )
    assert in_tools("import a result that you have with opt.add.") == "import a result that you have with add_result."
