"""What `init` writes for an agent of ADK, run with a stand-in for ADK that says what a test wants.

`tests/integration/test_init.py` runs it with ADK itself, where there is one.
"""

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ci_eval.starting.drafting import agent_text
from ci_eval.starting.sources import FoundAgent

SHOP = FoundAgent("adk", "shop", "", "shop_of_a_test", "root_agent")


class Content:
    """A message, of which only the dictionary is of interest."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    @classmethod
    def model_validate(cls, given: dict[str, Any]) -> "Content":
        return cls(given)


class Sessions:
    """A session service that keeps what it was given."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    async def get_session(self, *, app_name, user_id, session_id):
        return self.kept.get(session_id)

    async def create_session(self, *, app_name, user_id, session_id, state):
        self.kept[session_id] = SimpleNamespace(state=dict(state))


class Runner:
    """A runner whose agent does what `events` say."""

    events: tuple[Any, ...] = ()

    def __init__(self, *, agent, app_name) -> None:
        self.app_name = app_name
        self.session_service = Sessions()
        self.heard: list[Any] = []

    async def run_async(self, *, user_id, session_id, new_message):
        self.heard.append((session_id, new_message.given))
        self.session_service.kept[session_id].state["count"] = len(self.heard)
        for each in self.events:
            yield each


def event(*texts, calls=(), answers=(), final=True, partial=False, error=None, tokens=None):
    parts = [SimpleNamespace(text=text) for text in texts]
    usage = {"prompt_token_count": None, "candidates_token_count": tokens}
    return SimpleNamespace(
        partial=partial,
        error_code=error,
        error_message="so it goes",
        content=SimpleNamespace(parts=parts) if parts else None,
        usage_metadata=SimpleNamespace(**usage) if tokens else None,
        get_function_calls=lambda: [
            SimpleNamespace(id=number, name=name, args=args) for number, name, args in calls
        ],
        get_function_responses=lambda: [
            SimpleNamespace(id=number, response=response) for number, response in answers
        ],
        is_final_response=lambda: final,
    )


@pytest.fixture
def module(monkeypatch):
    """The module that `init` writes, loaded with the stand-in."""
    stand_ins = {
        "dotenv": {"load_dotenv": lambda path: None},
        "google": {},
        "google.adk": {},
        "google.adk.runners": {"InMemoryRunner": Runner},
        "google.genai": {"types": SimpleNamespace(Content=Content)},
        "shop_of_a_test": {"root_agent": "the agent"},
    }
    for name, members in stand_ins.items():
        found = ModuleType(name)
        vars(found).update(members)
        monkeypatch.setitem(sys.modules, name, found)
    written = ModuleType("ci_eval_agent")
    written.__file__ = "ci_eval_agent.py"
    exec(compile(agent_text(SHOP), "ci_eval_agent.py", "exec"), vars(written))
    return written


def session(identity="s1"):
    return {"id": identity, "app_name": "a", "user_id": "u", "state": {"vip": True}}


def ask(module, *events, message="Hi", of=None):
    module.runner.events = events
    return asyncio.run(module.answer(message, of or session()))


def test_the_last_final_response_counts_and_its_texts_are_joined(module):
    reply = ask(module, event("One moment."), event("It is", None, "sunny."))

    assert reply["response"] == "It is\nsunny."


def test_calls_are_told_in_order_each_with_its_own_answer(module):
    reply = ask(
        module,
        event(calls=[("1", "look", {"a": 1}), ("2", "book", None)], final=False),
        event(answers=[("2", {"ok": True}), ("9", {})], final=False),
        event("Done."),
    )

    assert reply["tool_calls"] == [
        {"name": "look", "args": {"a": 1}},
        {"name": "book", "args": {}, "result": {"ok": True}},
    ]


def test_an_answer_that_json_does_not_know_becomes_a_text(module):
    reply = ask(
        module,
        event(calls=[("1", "look", {})], final=False),
        event("Done.", answers=[("1", {"found": object})]),
    )

    assert reply["tool_calls"][0]["result"] == {"found": "<class 'object'>"}


def test_what_is_streamed_is_not_counted_twice(module):
    reply = ask(module, event("It", partial=True, tokens=3), event("It is.", tokens=5))

    assert reply["usage"] == {"input_tokens": 0, "output_tokens": 5}
    assert reply["response"] == "It is."


def test_an_error_without_an_answer_is_an_error(module):
    with pytest.raises(RuntimeError, match="SAFETY: so it goes"):
        ask(module, event(error="SAFETY"))

    assert ask(module, event("All I can say.", error="MAX_TOKENS"))["response"] == "All I can say."


def test_an_agent_that_does_nothing_is_an_error_and_one_that_only_calls_is_none(module):
    with pytest.raises(RuntimeError, match="did nothing"):
        ask(module)

    calls = event(calls=[("1", "look", {})], final=False)
    assert ask(module, calls)["response"] == ""


def test_a_conversation_has_a_session_of_its_own_and_keeps_it(module):
    first, second = session(), session("s2")

    ask(module, event("a"), of=first)
    ask(module, event("b"), of=first)
    ask(module, event("c"), of=second)

    assert first["state"] == {"vip": True, "count": 2}
    assert second["state"] == {"vip": True, "count": 3}
    assert [heard[0] for heard in module.runner.heard] == ["s1", "s1", "s2"]


def test_a_message_of_more_than_text_is_handed_on_as_it_is(module):
    message = {"role": "user", "parts": [{"inline_data": {}}]}

    ask(module, event("a"))
    ask(module, event("a"), message=message)

    text, more = (heard[1] for heard in module.runner.heard)
    assert text == {"role": "user", "parts": [{"text": "Hi"}]}
    assert more == message
