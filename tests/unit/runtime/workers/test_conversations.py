"""How adapters find an agent and hold conversations with it."""

import asyncio
from typing import Any

import pytest

from ci_eval.runtime.workers.adapters import _adapter_conversations as module


def message(text: str = "hello") -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def number(found: Any) -> Any:
    return found if isinstance(found, int) else None


def target(found: Any) -> module.Target:
    return module.Target(found, number, "a number")


class Echo:
    """A conversation that counts its messages."""

    def __init__(self, agent: Any, session: dict[str, Any]) -> None:
        self.agent, self.session, self.said = agent, session, 0

    async def send(self, given: dict[str, Any]) -> Any:
        self.said += 1
        return [self.agent, self.said, module.text_of(given)]

    def close(self) -> None:
        self.session["closed"] = True


# --- The target -------------------------------------------------------------------------------


async def made() -> int:
    await asyncio.sleep(0)
    return 7


async def made_wrongly() -> str:
    return "seven"


@pytest.mark.parametrize("found", [7, lambda: 7, made])
def test_a_target_is_the_agent_or_a_function_that_makes_it(found: Any) -> None:
    assert asyncio.run(target(found).agent()) == 7


def test_an_agent_is_made_once_also_where_the_first_to_ask_gives_up() -> None:
    times = []

    async def slowly() -> int:
        times.append(1)
        await asyncio.sleep(0.01)
        return 7

    async def ask() -> list[Any]:
        agent = target(slowly)
        first, *others = [asyncio.create_task(agent.agent()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(first, *others, return_exceptions=True)

    cancelled, *found = asyncio.run(ask())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert (found, times) == ([7, 7], [1])


@pytest.mark.parametrize("found", ["seven", lambda: "seven", int])
def test_something_else_is_refused_at_once(found: Any) -> None:
    expected = "expected a number, or a function without arguments that returns one; found "
    with pytest.raises(TypeError, match=expected):
        target(found)


def test_what_an_async_function_makes_wrongly_is_a_failure_to_start() -> None:
    conversations = module.Conversations(target(made_wrongly), Echo)
    reply = asyncio.run(conversations(message(), session={}))
    assert reply["error"]["kind"] == "start"
    assert reply["error"]["message"].endswith("found str: 'seven'")


# --- Conversations ----------------------------------------------------------------------------


def test_sessions_of_one_id_are_several_conversations_until_they_are_closed() -> None:
    async def talk() -> list[Any]:
        conversations = module.Conversations(target(7), Echo)
        first, second = {"id": "same"}, {"id": "same"}
        replies = [
            await conversations(message(), session=first),
            await conversations(message(), session=first),
            await conversations(message(), session=second),
        ]
        conversations.close(first)
        assert first["closed"]
        assert "closed" not in second
        assert len(conversations._open) == 1
        conversations.close(first)  # whose agent was never reached is closed, too
        return replies

    assert asyncio.run(talk()) == [[7, 1, "hello"], [7, 2, "hello"], [7, 1, "hello"]]


def test_a_message_that_is_more_than_text_is_refused_by_name() -> None:
    given = {"parts": [{"text": "look"}, {"inline_data": {"data": "aGk="}}]}
    reply = asyncio.run(module.Conversations(target(7), Echo)(given, session={}))
    assert reply == {
        "error": {
            "kind": "unsupported",
            "message": "the message has 'inline_data'; only text can be passed to such an agent",
        }
    }


def test_texts_of_a_message_stand_one_under_the_other() -> None:
    assert module.text_of({"parts": [{"text": "a"}, {"text": ""}, {"text": "b"}]}) == "a\nb"
    assert module.text_of({}) == ""


# --- Answers ----------------------------------------------------------------------------------


def test_answers_are_given_as_they_were_before_they_became_objects() -> None:
    responses = [("1", {"result": True}), ("2", {"city": "Rome"}), ("3", {"result": 1, "more": 2})]
    parts = [{"function_response": {"id": key, "response": each}} for key, each in responses]
    assert module.answers_of({"parts": [{"text": "so"}, *parts]}) == {
        "1": True,
        "2": {"city": "Rome"},
        "3": {"result": 1, "more": 2},
    }


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, (True, None)),
        (False, (False, None)),
        ({"confirmed": True}, (True, None)),
        ({"approved": False}, (False, None)),
        ({"error": "too dear"}, (False, "too dear")),
    ],
)
def test_an_approval_says_yes_or_no(answer: Any, expected: tuple[bool, str | None]) -> None:
    assert module.approval(answer) == expected


@pytest.mark.parametrize("answer", ["yes", 1, None, {}, {"approved": "yes"}])
def test_what_says_neither_is_refused(answer: Any) -> None:
    with pytest.raises(module.RefusedError, match="expected true or false as the answer"):
        module.approval(answer)


# --- Contexts ---------------------------------------------------------------------------------


def test_the_state_itself_is_the_context_where_nothing_makes_one() -> None:
    state = {"mood": "calm"}
    assert module.context_of(None, dict.__getitem__)(state) is state


def test_a_context_is_made_by_what_is_named() -> None:
    made = {"app:shop": lambda state: [state]}
    assert module.context_of("app:shop", made.__getitem__)({}) == [{}]
    with pytest.raises(TypeError, match="expected a function of the session state; found int: 7"):
        module.context_of("app:shop", {"app:shop": 7}.__getitem__)


@pytest.mark.parametrize(
    ("context", "state"),
    [({"a": (1,)}, {"a": [1]}), ("text", {"before": 1}), (None, {"before": 1})],
)
def test_only_a_context_of_names_and_values_is_the_state(context: Any, state: Any) -> None:
    session = {"state": {"before": 1}}
    module.keep_state(session, context)
    assert session == {"state": state}
