"""Conversations with agents of Google ADK, in worker processes.

They take place where CI_EVAL_ADK_PYTHON names a Python that has google-adk 2.13 and `mcp`;
CI_EVAL_ADK23_PYTHON names one with 2.3.0.
"""

import asyncio
import json
import sys
from typing import Any, NamedTuple

import pytest
from servers.gemini import answer
from servers.loopback import as_json, serving
from support.adk_agents import PLACE, VERSIONS, Weather, agent
from support.agent_sessions import Place, converse

from ci_eval.agents.adk_agent import Adk
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.conversation import Conversation, Scripted


def answers(*responses: tuple[str, str, Any]) -> Content:
    """Return the answers of a human: ids, names and responses of calls."""
    parts = [
        {"function_response": {"id": identity, "name": name, "response": response}}
        for identity, name, response in responses
    ]
    return Content.model_validate({"role": "user", "parts": parts})


@pytest.mark.parametrize("version", VERSIONS)
def test_conversations_at_once_do_not_see_each_others_state(version: str) -> None:
    guests = [f"guest {number}" for number in range(12)]

    async def hold(running: Any) -> list[Any]:
        return await asyncio.gather(
            *(
                converse(
                    running,
                    f"tea {number % 3}",
                    "coffee",
                    session_input={
                        "app_name": f"app{number % 2}",
                        "user_id": "same",
                        "session_id": "pinned",
                        "state": {"guest": guest, **({"user:vip": True} if number == 0 else {})},
                    },
                )
                for number, guest in enumerate(guests)
            )
        )

    talks = PLACE.run(agent("stateful", version), hold)

    assert [talk.responses for talk in talks] == [
        [f"Now kept tea {number % 3}.", "Now kept coffee."] for number in range(12)
    ]
    for number, (talk, guest) in enumerate(zip(talks, guests, strict=True)):
        vip = {"user:vip": True} if number == 0 else {}
        assert talk.state == {
            "guest": guest,
            "turns": 2,
            "user:last": "model",
            "kept": "kept coffee",
            "said": "Now kept coffee.",
            **vip,
        }
        [details] = talk.invocations[1].app_details.agent_details.values()
        assert f"The guest is {guest}." in details.instructions


@pytest.mark.parametrize("version", VERSIONS)
def test_what_json_has_no_form_for_is_told_as_a_text(version: str) -> None:
    left = {"thing": "a thing", "none": "nan", "day": "2026-01-01", "set": [1]}

    talk = PLACE.talk(agent("odd", version), "Go.", "Again.")

    assert talk.responses == ["Half: \N{REPLACEMENT CHARACTER}"] * 2
    assert talk.state == left
    answers = [turn.events[0].content.parts[0] for turn in talk.invocations]
    told = left | {"none": None}  # as pydantic, and so ADK, writes it
    assert [part.function_response.response for part in answers] == [told] * 2


def test_toolsets_stay_open_until_all_conversations_are_over() -> None:
    names = [f"guest {number}" for number in range(20)]

    talks = PLACE.talks(agent("mcp_tools"), [[name] for name in names])

    assert [talk.error for talk in talks] == [None] * 20
    assert all(talk.responses == ["It is done."] for talk in talks)
    said = [talk.invocations[0].tool_calls[0].result["structuredContent"] for talk in talks]
    assert said == [{"result": f"Hello, {name}!"} for name in names]


class Held(NamedTuple):
    seen: list[Invocation]
    error: TrialError | None


def hold(folder: str, version: str, *messages: str, **case: Any) -> Held:
    """Hold a conversation as a run does, with a human's answers."""
    turns = [Invocation(user_content=Content.of_text(each, role="user")) for each in messages]
    whole = EvalCase(eval_id="case", conversation=turns, **case)

    async def body(running: Any) -> Held:
        trial = Trial(TrialKey(agent="bot", evalset="smoke", case="case"), whole)
        session = await running.open(trial)
        seen: list[Invocation] = []
        try:
            await Conversation(session, whole, Scripted(trial), seen).hold()
        except TrialError as exc:
            return Held(seen, exc)
        finally:
            await session.close()
        return Held(seen, None)

    held: Held = PLACE.run(agent(folder, version), body)
    return held


@pytest.mark.parametrize("version", VERSIONS)
def test_a_human_answers_what_the_agent_waits_for(version: str) -> None:
    yes = {"permit": [{"args": {"what": "a trip"}, "result": {"granted": "yes"}}]}

    held = hold("waiting", version, "a trip", "a trip", human_answers=yes)

    assert held.error is None
    assert [turn.response for turn in held.seen] == ["Answered: {'granted': 'yes'}."] * 2
    assert [call.result for turn in held.seen for call in turn.tool_calls] == [
        {"granted": "yes"}
    ] * 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tool_that_needs_a_confirmation_is_called_when_it_has_one(version: str) -> None:
    held = hold("waiting", version, "pay", human_answers={"pay": [{"result": True}]})

    assert held.error is None
    assert [turn.response for turn in held.seen] == ["Answered: {'paid': 5}."]


def test_a_canned_tool_asks_for_its_confirmation_all_the_same() -> None:
    mocks = {"tools": {"pay": [{"result": {"paid": "not really"}}]}}

    refused = hold(
        "waiting", "2.13", "pay", tool_mocks=mocks, human_answers={"pay": [{"result": False}]}
    )
    confirmed = hold(
        "waiting", "2.13", "pay", tool_mocks=mocks, human_answers={"pay": [{"result": True}]}
    )

    assert refused.seen[0].response == "Answered: {'error': 'This tool call is rejected.'}."
    assert confirmed.seen[0].response == "Answered: {'paid': 'not really'}."


@pytest.mark.parametrize("version", VERSIONS)
def test_an_app_that_can_be_resumed_goes_on_behind_the_agent_that_waited(version: str) -> None:
    yes = {"permit": [{"result": {"granted": "yes"}}]}

    held = hold("resumable", version, "Go.", human_answers=yes)

    assert held.error is None
    [turn] = held.seen
    assert turn.response == "All is settled."
    assert turn.tool_calls == (("permit", {"what": "a trip"}, {"granted": "yes"}),)


def test_nobody_answers() -> None:
    held = hold("waiting", "2.13", "a trip")

    assert held.error is not None
    assert held.error.kind == "waiting"
    assert "permit(what='a trip')" in str(held.error)


# --- Tools that are not really called ---------------------------------------------------------


def test_a_canned_tool_is_not_called_and_the_others_are_where_that_is_allowed() -> None:
    mocks = {
        "tools": {
            "weather": [{"args": {"city": "Oslo"}, "result": {"report": "canned"}}],
            "add": [{"error": "It cannot be added."}],
        },
        "unmatched": "pass",
    }

    talk = PLACE.talk(agent("tools"), "Oslo", tool_mocks=mocks)

    assert talk.error is None
    assert [call.result for call in talk.invocations[0].tool_calls] == [
        {"report": "canned"},
        {"result": "12:00"},
        {"error": "It cannot be added."},
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_without_a_canned_result_ends_the_trial(version: str) -> None:
    mocks = {"tools": {"weather": [{"result": "canned"}]}}

    talk = PLACE.talk(agent("tools", version), "Oslo", tool_mocks=mocks)

    assert talk.failure == (
        "unmocked",
        (
            "the agent called time_in(city='Oslo', summer=True), "
            "which has no result in the case's `tool_mocks`; "
            "add a result, or set `unmatched: pass`"
        ),
    )
    assert isinstance(talk.error, TrialError)
    calls = talk.error.seen.tool_calls
    assert [call.name for call in calls] == ["weather", "time_in"]


def test_tools_of_agents_that_are_tools_and_of_servers_are_canned_too() -> None:
    inner = {"tools": {"look_up": [{"result": "7"}]}, "unmatched": "pass"}
    missing = {"tools": {"expert": [{"args": {"request": "other"}, "result": 1}]}}
    remote = {"tools": {"greet": [{"results": ["Hi!", "Hi again!"]}]}}

    below = PLACE.talk(agent("agent_tool"), "Ask him.", tool_mocks=inner)
    none = PLACE.talk(agent("agent_tool"), "Ask him.", tool_mocks=missing)
    server = PLACE.talk(agent("mcp_tools"), "Ada", "Bob", tool_mocks=remote)

    assert below.responses == ["He says it."]
    assert none.failure[0] == "unmocked"
    results = [turn.tool_calls[0].result for turn in server.invocations]
    assert results == [{"result": "Hi!"}, {"result": "Hi again!"}]


def test_what_steers_agents_and_their_callbacks_are_not_canned() -> None:
    mocks = {"tools": {"look_up": [{"result": "7"}], "transfer_to_agent": [{"result": "no"}]}}
    kept = {"tools": {"keep": [{"result": "canned"}]}}

    handed_over = PLACE.talk(agent("transfer"), "Who knows?", tool_mocks=mocks)
    guarded = PLACE.talk(
        agent("stateful"),
        "secret",
        "tea",
        tool_mocks=kept,
        session_input={"app_name": "a", "user_id": "u", "state": {"guest": "Ada"}},
    )

    assert handed_over.responses == ["It is 42."]
    assert handed_over.invocations[0].tool_calls[1].result == {"result": "7"}
    assert guarded.responses == ["Now guarded.", "Now canned."]


# --- Going on elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_memento_lets_another_process_go_on(version: str) -> None:
    given = {"app_name": "a", "user_id": "u", "state": {"guest": "Ada"}}
    case = EvalCase(eval_id="case", conversation=(), session_input=given)
    trial = Trial(TrialKey(agent="bot", evalset="smoke", case="case"), case)
    stateful = agent("stateful", version)

    async def said(running: Any, message: str, memento: Any) -> tuple[Invocation, Any, Any]:
        session = await running.open(trial, memento=memento)
        found = await session.send(Content.of_text(message, role="user"))
        memento = session.memento
        return found, memento, await session.close()

    _, memento, _ = PLACE.run(stateful, lambda running: said(running, "tea", None))
    memento = json.loads(json.dumps(memento))
    _, second, state = PLACE.run(stateful, lambda running: said(running, "coffee", memento))

    assert state["turns"] == 2
    assert state["user:last"] == "model"
    users = [each for each in second["of_agent"]["events"] if each["author"] == "user"]
    assert [each["content"]["parts"][0]["text"] for each in users] == ["tea", "coffee"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("folder", "response"),
    [("waiting", "Answered: {'granted': 'yes'}."), ("resumable", "All is settled.")],
)
def test_what_waited_is_answered_in_another_process(
    version: str, folder: str, response: str
) -> None:
    case = EvalCase(eval_id="case", conversation=())
    trial = Trial(TrialKey(agent="bot", evalset="smoke", case="case"), case)
    waiting = agent(folder, version)

    async def ask(running: Any) -> tuple[Invocation, Any]:
        session = await running.open(trial)
        found = await session.send(Content.of_text("a trip", role="user"))
        return found, session.memento

    found, memento = PLACE.run(waiting, ask)
    [call] = found.waits_for

    async def answer_it(running: Any) -> Invocation:
        session = await running.open(trial, memento=memento)
        return await session.send(answers((call.id, call.name, {"granted": "yes"})))

    assert PLACE.run(waiting, answer_it).response == response


# --- Finding the agent ------------------------------------------------------------------------


def test_an_agent_is_found_in_every_shape() -> None:
    names = {
        "no_init": "From beside.",
        "later": "At last.",
        "app": "guarded by the plugin",
        "plain.agent": "You said Hello.",
        "plain": "You said Hello.",
    }
    found = {name: PLACE.talk(agent(name), "Hello").responses for name in names}

    assert found == {name: [said] for name, said in names.items()}


def test_a_written_agent_is_loaded_by_adk() -> None:
    gemini = Weather()
    with serving(gemini):
        gemini.script.append(as_json(answer("Written.")))
        env = {"GOOGLE_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": gemini.url}
        talk = PLACE.talk(agent("written", env=env), "Hello")

    assert talk.responses == ["Written."]
    assert "You are written." in str(gemini.request.body["systemInstruction"])


def test_a_sub_agent_is_asked_by_its_name() -> None:
    assert PLACE.talk(agent("transfer", agent="expert"), "Well?").responses == ["It is 42."]
    assert PLACE.talk(agent("transfer", agent="nobody"), "Well?").failure == (
        "start",
        (
            "cannot load 'transfer': there is no agent 'nobody' under the root agent; "
            "found lead, expert"
        ),
    )


def test_the_nearest_env_file_counts_where_the_environment_says_nothing(place: Place) -> None:
    folder = place.root / "agents" / "bot"
    folder.mkdir(parents=True)
    (place.root / "agents" / ".env").write_text("SAID=from the file\nKEPT=from the file\n")
    place.write(".env", "SAID=from further up")
    place.write(
        "agents/bot/agent.py",
        """
        import os
        from google.adk.agents import BaseAgent
        from google.adk.events.event import Event
        from google.genai import types

        class Bot(BaseAgent):
            async def _run_async_impl(self, ctx):
                text = f"{os.environ['SAID']}, {os.environ['KEPT']}"
                content = types.Content(role="model", parts=[types.Part(text=text)])
                yield Event(author="bot", invocation_id=ctx.invocation_id, content=content)

        root_agent = Bot(name="bot")
        """,
    )

    talk = place.talk(agent("agents/bot", env={"KEPT": "from outside"}), "Hello")

    assert talk.responses == ["from the file, from outside"]


@pytest.mark.parametrize(
    ("init", "module"),
    [
        ("from . import agent", "agent/__init__.py"),
        ("from . import core as agent", "core.py"),
        ("from .core import root_agent as agent", "core.py"),
    ],
)
def test_the_agent_may_be_imported_from_elsewhere(place: Place, init: str, module: str) -> None:
    (place.root / "bot" / module).parent.mkdir(parents=True)
    place.write("bot/__init__.py", init)
    place.write(
        f"bot/{module}",
        """
        from google.adk.agents import BaseAgent
        from google.adk.events.event import Event
        from google.genai import types

        class Bot(BaseAgent):
            async def _run_async_impl(self, ctx):
                content = types.Content(role="model", parts=[types.Part(text="found")])
                yield Event(author="bot", invocation_id=ctx.invocation_id, content=content)

        root_agent = Bot(name="bot")
        """,
    )

    assert place.talk(agent("bot"), "Hello").responses == ["found"]


BROKEN = {
    "": "bot has no `app`, `root_agent` or `get_agent_async`",
    "root_agent = 'no agent'": "`root_agent` is not an agent of google-adk: str",
    "app = 'no app'": "`app` is not an App of google-adk: str",
}


@pytest.mark.parametrize(("source", "told"), BROKEN.items())
def test_a_module_without_an_agent_is_told(place: Place, source: str, told: str) -> None:
    (place.root / "bot").mkdir()
    place.write("bot/agent.py", source)

    talk = place.talk(agent("bot"), "Hello")

    assert talk.failure == ("start", f"cannot load 'bot': {told}")


def test_what_goes_wrong_at_the_import_is_told_with_its_place(place: Place) -> None:
    (place.root / "bot").mkdir()
    place.write("bot/agent.py", "import nothing_of_that_name")

    kind, message = place.talk(agent("bot"), "Hello").failure
    first, *way = message.splitlines()
    assert kind == "start"
    assert first.endswith("No module named 'nothing_of_that_name'")
    assert way[0] == "  bot/agent.py:1: import nothing_of_that_name"
    assert way[1].startswith("  (install it for ")


def test_an_env_file_that_is_no_text_is_named(place: Place) -> None:
    (place.root / "bot").mkdir()
    place.write("bot/agent.py", "root_agent = None")
    (place.root / "bot" / ".env").write_bytes(b"KEY=\xff")

    told = "cannot load 'bot': bot/.env is not UTF-8; save it as such"
    assert place.talk(agent("bot"), "Hello").failure == ("start", told)


def test_a_run_that_comes_to_nothing_is_an_error(place: Place) -> None:
    (place.root / "bot").mkdir()
    place.write(
        "bot/agent.py",
        """
        from google.adk.agents import BaseAgent

        class Silent(BaseAgent):
            async def _run_async_impl(self, ctx):
                return
                yield

        root_agent = Silent(name="silent")
        """,
    )

    assert place.talk(agent("bot"), "Hello").failure == (
        "raised",
        "the agent ended its run without a single event",
    )
    assert PLACE.talk(agent("cut_off"), "nothing").failure == (
        "raised",
        "the model gave no response: SAFETY: It was blocked.",
    )


def test_without_adk_it_says_so(place: Place) -> None:

    (place.root / "bot").mkdir()
    place.write("bot/agent.py", "")

    kind, message = place.talk(Adk(adk="bot", interpreter=sys.executable), "Hello").failure

    assert kind == "start"
    assert "google-adk is not installed for" in message
