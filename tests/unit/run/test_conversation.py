"""An agent that stops is answered, waits in vain, or goes on where an earlier run left it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ci_eval.plugins.points import Session
from ci_eval.records.cases import Content, EvalCase, FunctionCall, Invocation, InvocationEvents
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.conversation import MAX_ANSWERS, Conversation, Scripted, can_go_on
from ci_eval.run_files.resume import Begun

APPROVE = {"id": "c1", "name": "approve", "args": {"order": 7}}
NOTIFY = {"id": "c2", "name": "notify", "args": {}}
YES = {"approve": {"result": "yes"}}


def turn(text: str) -> dict[str, Any]:
    return {"user_content": {"role": "user", "parts": [{"text": text}]}}


def case(*texts: str, **more: Any) -> EvalCase:
    turns = [turn(text) for text in texts or ("Refund 7",)]
    return EvalCase.model_validate({"eval_id": "a", "conversation": turns, **more})


def did(said: str, *waits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the fields of an invocation."""
    calls = {"tool_uses": [dict(each) for each in waits]}
    response = {"role": "model", "parts": [{"text": said}]}
    return {"final_response": response, "waits_for": waits, "intermediate_data": calls, **more}


class Agent(Session):
    """Does one thing after the other, whatever it is told, and remembers what it was told."""

    def __init__(self, *does: dict[str, Any] | TrialError, memento: bool = True) -> None:
        self._does = iter(does)
        self._remembers = memento
        self.told: list[Content] = []

    @property
    def memento(self) -> Any:
        return {"told": len(self.told)} if self._remembers else None

    async def send(self, message: Content) -> Invocation:
        self.told.append(message)
        does = next(self._does)
        if isinstance(does, TrialError):
            raise does
        return Invocation.model_validate({"user_content": message, **does})

    @property
    def heard(self) -> list[Any]:
        """What it was told: texts, and the answers by the ids of its calls."""
        return [
            message.text
            or {
                part.function_response.id: part.function_response.response
                for part in parts(message)
            }
            for message in self.told
        ]


def parts(message: Content) -> Iterator[Any]:
    return (part for part in message.parts or () if part.function_response)


class Held:
    """What came of a conversation."""

    def __init__(self, agent: Agent, asked: EvalCase, begun: Begun | None = None) -> None:
        self.seen: list[Invocation] = []
        self.kept: list[Begun] = []
        self.error: TrialError | None = None
        user = Scripted(Trial(TrialKey(agent="bot", evalset="e", case="a"), asked))
        talk = Conversation(agent, asked, user, self.seen, self.kept.append)
        try:
            asyncio.run(talk.hold(begun))
        except TrialError as exc:
            self.error = exc

    @property
    def said(self) -> list[str]:
        return [each.response for each in self.seen]


def waits(held: Held) -> str:
    """Return the part of the message that names what the agent waits for."""
    assert held.error
    assert held.error.kind == "waiting"
    message, _, rest = str(held.error).partition("; ")
    assert rest == "add it to `human_answers` of the case"
    return message.removeprefix("the agent waits for an answer to ")


# --- A human answers ----------------------------------------------------------------------------


def test_a_conversation_without_a_stop_is_held_message_by_message():
    agent = Agent(did("Hello"), did("Bye"))
    held = Held(agent, case("Hi", "See you"))

    assert held.said == ["Hello", "Bye"]
    assert agent.heard == ["Hi", "See you"]
    assert held.error is None


def test_what_the_agent_does_before_and_after_an_answer_is_one_invocation():
    first = did("May I?", APPROVE, duration=1.0, cost_usd=0.5, nodes=["plan"])
    agent = Agent(first, did("Refunded", duration=2.0, cost_usd=0.25, nodes=["pay"]))
    held = Held(agent, case(human_answers=YES))

    (found,) = held.seen
    assert agent.heard == ["Refund 7", {"c1": {"result": "yes"}}]
    assert found.user == "Refund 7"
    assert found.response == "Refunded"
    assert found.waits_for == ()
    assert (found.duration, found.cost_usd, found.nodes) == (3.0, 0.75, ("plan", "pay"))
    (call,) = found.tool_calls
    assert (call.name, call.args, call.result) == ("approve", {"order": 7}, {"result": "yes"})
    said = [event.content.text for event in found.events or () if event.content]
    assert "May I?" in said


def test_what_is_known_of_one_half_alone_is_not_known_of_the_whole():
    unknown = did("May I?", APPROVE, duration=1.0) | {"intermediate_data": None}
    held = Held(Agent(unknown, did("Done", cost_usd=1.0)), case(human_answers=YES))

    (found,) = held.seen
    assert found.intermediate_data is None
    assert (found.duration, found.cost_usd, found.nodes) == (None, None, None)


def test_several_calls_are_answered_at_once():
    answers = {**YES, "notify": {"result": {"sent": True}}}
    agent = Agent(did("May I?", APPROVE, NOTIFY), did("Done"))

    assert Held(agent, case(human_answers=answers)).said == ["Done"]
    assert agent.heard[1] == {"c1": {"result": "yes"}, "c2": {"sent": True}}


def test_an_answer_depends_on_the_arguments():
    answers = {
        "approve": [{"args": {"order": 8}, "result": "no"}, {"args": {"order": 7}, "result": "ok"}]
    }
    agent = Agent(did("May I?", APPROVE), did("Done"))
    Held(agent, case(human_answers=answers))

    assert agent.heard[1] == {"c1": {"result": "ok"}}


def test_an_agent_may_ask_again_and_be_answered_otherwise():
    again = did("Really?", {**APPROVE, "id": "c9"})
    agent = Agent(did("May I?", APPROVE), again, did("Done"))
    held = Held(agent, case(human_answers={"approve": {"results": ["perhaps", "yes"]}}))

    assert agent.heard[1:] == [{"c1": {"result": "perhaps"}}, {"c9": {"result": "yes"}}]
    assert [call.result for call in held.seen[0].tool_calls] == [
        {"result": "perhaps"},
        {"result": "yes"},
    ]


def test_an_error_is_an_answer():
    agent = Agent(did("May I?", APPROVE), did("Then not"))

    assert Held(agent, case(human_answers={"approve": {"error": "nobody is there"}})).said
    assert agent.heard[1] == {"c1": {"error": "nobody is there"}}


CONFIRM = {
    "id": "k1",
    "name": "adk_request_confirmation",
    "args": {"originalFunctionCall": {"id": "t1", "name": "refund", "args": {"order": 7}}},
}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"refund": {"result": True}}, {"confirmed": True}),
        ({"refund": {"args": {"order": 7}, "result": False}}, {"confirmed": False}),
        ({"adk_request_confirmation": {"result": True}}, {"confirmed": True}),
        (
            {"refund": {"result": {"confirmed": True, "payload": {"days": 2}}}},
            {"confirmed": True, "payload": {"days": 2}},
        ),
        (
            {"adk_request_confirmation": {"result": False}, "refund": {"result": True}},
            {"confirmed": False},
        ),
    ],
)
def test_whether_a_tool_may_be_called_is_answered_by_the_name_of_the_tool(answers, expected):
    agent = Agent(did("", CONFIRM), did("Done"))
    Held(agent, case(human_answers=answers))

    assert agent.heard[1] == {"k1": expected}


@pytest.mark.parametrize(
    "args",
    [{}, {"originalFunctionCall": "refund"}, {"originalFunctionCall": {"name": [5], "args": 5}}],
)
def test_a_confirmation_of_nothing_that_can_be_read_is_answered_by_nobody(args):
    held = Held(
        Agent(did("", CONFIRM | {"args": args})), case(human_answers={"refund": {"result": 1}})
    )

    assert waits(held).startswith("adk_request_confirmation(")


# --- Nobody answers -----------------------------------------------------------------------------


def test_who_waits_for_an_answer_that_nobody_gives_is_an_error_that_says_for_which():
    held = Held(Agent(did("May I?", APPROVE)), case("Refund 7", "Thanks"))

    assert waits(held) == "approve(order=7)"
    assert held.said == ["May I?"]


def test_who_waits_for_a_confirmation_is_told_by_the_tool_that_is_to_be_confirmed():
    assert waits(Held(Agent(did("", CONFIRM)), case())) == "whether to call refund(order=7)"


def test_an_answer_to_one_of_two_calls_is_not_sent():
    agent = Agent(did("May I?", APPROVE, NOTIFY))
    held = Held(agent, case(human_answers=YES))

    assert waits(held) == "approve(order=7), notify()"
    assert len(agent.told) == 1


def test_an_answer_that_was_not_sent_is_still_the_first():
    """Of two calls one is answered by the human, so the case answers both in its next message."""
    both = did("May I?", APPROVE, NOTIFY)
    answered = [{"function_response": {"name": name}} for name in ("approve", "notify")]
    message = {"user_content": {"role": "user", "parts": answered}}
    asked = case(
        conversation=[turn("Refund 7"), message],
        human_answers={"approve": {"results": ["first", "second"]}},
    )
    agent = Agent(both, did("And now?", APPROVE | {"id": "c3"}), did("Done"))
    Held(agent, asked)

    assert agent.heard[2] == {"c3": {"result": "first"}}


def test_who_asks_for_ever_is_stopped():
    agent = Agent(*[did("Really?", APPROVE) for _ in range(MAX_ANSWERS + 5)])
    held = Held(agent, case(human_answers=YES))

    assert held.error
    assert held.error.kind == "waiting"
    assert f"more than {MAX_ANSWERS} times" in str(held.error)
    assert len(agent.told) == MAX_ANSWERS + 1
    assert len(held.error.seen.tool_calls) == MAX_ANSWERS + 1


def test_a_message_is_short_and_plain_whatever_the_agent_waits_for():
    many = [{"id": f"c{n}", "name": "a\x1b[31m\nb", "args": {"x": "y" * 10_000}} for n in range(50)]
    held = Held(Agent(did("", *many)), case())

    assert len(waits(held)) < 2500
    assert "\x1b" not in waits(held)
    assert "\n" not in waits(held)
    assert waits(held).endswith("and 45 more")


def test_the_next_message_of_the_case_may_hold_the_answer():
    response = {"name": "approve", "response": {"result": "by the case"}}
    message = {"user_content": {"role": "user", "parts": [{"function_response": response}]}}
    agent = Agent(did("May I?", APPROVE), did("Done"))
    held = Held(agent, case(conversation=[turn("Refund 7"), message]))

    assert agent.heard[1] == {"c1": {"result": "by the case"}}
    assert held.said == ["May I?", "Done"]
    assert held.error is None


def test_an_error_after_an_answer_keeps_what_was_seen():
    failed = TrialError("crash", "gone", seen=Invocation.model_validate(turn("x") | did("Half")))
    held = Held(Agent(did("May I?", APPROVE), failed), case(human_answers=YES))

    assert held.error is failed
    assert [call.name for call in failed.seen.tool_calls] == ["approve"]
    assert failed.seen.response == "Half"


# --- How far it had come ------------------------------------------------------------------------


def test_what_was_observed_is_kept_before_each_further_message():
    held = Held(Agent(did("1"), did("2"), did("3")), case("a", "b", "c"))

    assert [(len(each.invocations), each.memento) for each in held.kept] == [
        (1, {"told": 1}),
        (2, {"told": 2}),
    ]


def test_of_one_message_nothing_is_kept():
    assert Held(Agent(did("1")), case("a")).kept == []


def test_without_a_memento_nothing_is_kept_that_could_not_be_gone_on_with():
    assert Held(Agent(did("1"), did("2"), memento=False), case("a", "b")).kept == []


@pytest.mark.parametrize("texts", [("Refund 7",), ("Refund 7", "Thanks")])
@pytest.mark.parametrize("memento", [True, False])
def test_what_waits_is_kept_once(texts, memento):
    held = Held(Agent(did("May I?", APPROVE), memento=memento), case(*texts))

    (kept,) = held.kept
    assert kept.invocations == tuple(held.seen)
    assert kept.invocations[-1].waits_for == (FunctionCall.model_validate(APPROVE),)


def kept_of(agent: Agent, asked: EvalCase) -> Begun:
    """Return how far a conversation had come, as it is read back from a file."""
    return Begun.model_validate_json(Held(agent, asked).kept[-1].model_dump_json())


def test_a_conversation_goes_on_behind_what_was_begun():
    begun = kept_of(Agent(did("1"), did("2"), TrialError("crash", "")), case("a", "b", "c"))
    agent = Agent(did("3"))
    held = Held(agent, case("a", "b", "c"), begun)

    assert held.said == ["1", "2", "3"]
    assert agent.heard == ["c"]
    assert held.seen[0] is begun.invocations[0]
    assert held.kept == []


def test_what_is_answered_next_depends_on_what_was_answered_before():
    answers = {"approve": {"results": ["first", "second"]}}
    asked = case("a", "b", human_answers=answers)
    begun = kept_of(Agent(did("?", APPROVE), did("1"), TrialError("crash", "")), asked)
    agent = Agent(did("?", APPROVE), did("2"))
    held = Held(agent, asked, begun)

    assert agent.heard == ["b", {"c1": {"result": "second"}}]
    assert held.said == ["1", "2"]


@pytest.mark.parametrize(
    ("now", "goes_on"),
    [
        ({"approve": {"results": ["first", "other"]}}, True),
        ({"approve": {"result": "first"}, "notify": {"result": 1}}, True),
        ({"approve": {"result": "other"}}, False),
        ({"approve": {"error": "first"}}, False),
        ({}, False),
    ],
)
def test_what_was_answered_must_be_what_is_answered_now(now, goes_on):
    answers = {"approve": {"results": ["first", "second"]}}
    asked = case("a", "b", human_answers=answers)
    begun = kept_of(Agent(did("?", APPROVE), did("1"), TrialError("crash", "")), asked)

    assert can_go_on(begun, case("a", "b", human_answers=now)) is goes_on


def test_true_is_not_what_was_answered_where_that_was_1():
    asked = case("a", "b", human_answers={"approve": {"result": {"n": 1}}})
    begun = kept_of(Agent(did("?", APPROVE), did("1"), TrialError("crash", "")), asked)

    changed = case("a", "b", human_answers={"approve": {"result": {"n": True}}})
    assert not can_go_on(begun, changed)


# --- What waited, and is answered by now --------------------------------------------------------


def waited(*calls: dict[str, Any], texts: tuple[str, ...] = ("Refund 7", "Thanks")) -> Begun:
    return kept_of(Agent(did("May I?", *calls, duration=1.0)), case(*texts))


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ("yes", "yes"),
        ("5", "5"),
        (True, "true"),
        (None, "null"),
        ({"ok": "ja, natürlich"}, '{"ok": "ja, natürlich"}'),
        ([1, "a"], '[1, "a"]'),
    ],
)
def test_one_answer_is_what_the_invocation_came_to(result, response):
    agent = Agent(did("Bye"))
    asked = case("Refund 7", "Thanks", human_answers={"approve": {"result": result}})
    held = Held(agent, asked, waited(APPROVE))

    assert held.said == [response, "Bye"]
    assert agent.heard == ["Thanks"]
    first = held.seen[0]
    assert (first.waits_for, first.duration) == ((), 1.0)
    assert isinstance(first.intermediate_data, InvocationEvents)
    assert first.tool_calls[0].result is not None


def test_several_answers_are_what_the_invocation_came_to_by_the_ids_of_the_calls():
    answers = {**YES, "notify": {"result": {"sent": 1}}}
    held = Held(
        Agent(did("Bye")),
        case("Refund 7", "Thanks", human_answers=answers),
        waited(APPROVE, NOTIFY),
    )

    assert held.said[0] == '{"c1": "yes", "c2": {"sent": 1}}'


def test_the_agent_itself_goes_on_where_the_case_says_so():
    agent = Agent(did("Refunded"), did("Bye"))
    asked = case("Refund 7", "Thanks", human_answers=YES, rerun_on_resume=True)
    held = Held(agent, asked, waited(APPROVE))

    assert agent.heard == [{"c1": {"result": "yes"}}, "Thanks"]
    assert held.said == ["Refunded", "Bye"]
    assert held.seen[0].user == "Refund 7"


@pytest.mark.parametrize("rerun", [True, False])
def test_what_nobody_has_answered_waits_on_and_nobody_is_asked(rerun):
    agent = Agent()
    held = Held(agent, case("Refund 7", "Thanks", rerun_on_resume=rerun), waited(APPROVE))

    assert waits(held) == "approve(order=7)"
    assert agent.told == []
    assert held.kept == [], "it is there already"


def test_one_of_two_answers_waits_on_unless_the_agent_goes_on_itself():
    begun = waited(APPROVE, NOTIFY)
    held = Held(Agent(), case("Refund 7", "Thanks", human_answers=YES), begun)
    assert waits(held) == "approve(order=7), notify()"

    agent = Agent(did("And that?", NOTIFY))
    asked = case("Refund 7", "Thanks", human_answers=YES, rerun_on_resume=True)
    held = Held(agent, asked, begun)
    assert agent.heard == [{"c1": {"result": "yes"}}]
    assert waits(held) == "notify()"
    assert len(held.kept) == 1


def test_what_the_next_message_answers_does_not_wait():
    response = {"name": "approve", "response": {"result": "by the case"}}
    message = {"user_content": {"role": "user", "parts": [{"function_response": response}]}}
    asked = case(conversation=[turn("Refund 7"), message], human_answers=YES)
    agent = Agent(did("Done"))
    held = Held(agent, asked, waited(APPROVE))

    assert agent.heard == [{"c1": {"result": "by the case"}}]
    assert held.said == ["May I?", "Done"]


@pytest.mark.parametrize(
    ("texts", "rerun", "goes_on"),
    [
        (("Refund 7",), False, True),
        (("Refund 7",), True, False),
        (("Refund 7", "Thanks"), False, False),
    ],
)
def test_without_a_memento_only_what_needs_the_agent_no_more_can_go_on(texts, rerun, goes_on):
    begun = waited(APPROVE, texts=texts).model_copy(update={"memento": None})

    assert can_go_on(begun, case(*texts, rerun_on_resume=rerun)) is goes_on


def test_nothing_cannot_be_gone_on_with():
    assert not can_go_on(Begun(invocations=(), memento=5), case())


def test_an_agent_that_does_not_tell_of_its_tools_is_not_one_that_called_none() -> None:
    silent = did("Done.") | {"intermediate_data": None}
    assert [each.unseen for each in Held(Agent(silent, did("Bye.")), case("Hi", "Bye")).seen] == [
        True,
        False,
    ]
    asked = did("May I?", APPROVE) | {"intermediate_data": None}
    assert Held(Agent(asked, did("Done.")), case(human_answers=YES)).seen[0].unseen
