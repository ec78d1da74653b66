"""What adapters of all frameworks tell in the same way."""

import dataclasses
import json
import sys
import time
from datetime import date
from enum import Enum
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ci_eval.agents._framework_agent import validated
from ci_eval.records.cases import Content
from ci_eval.runtime.workers.adapters import _adapter_reporting as reporting

# --- Values -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Shop:
    name: str
    visits: tuple[int, ...]


class Order(BaseModel):
    number: int
    note: str | None = None


class Mood(Enum):
    CALM = "calm"


class Thing:
    def __repr__(self) -> str:
        return "a thing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Shop("Tea", (1, 2)), {"name": "Tea", "visits": [1, 2]}),
        (Order(number=7), {"number": 7}),
        ({1: {2.5}}, {"1": [2.5]}),
        (float("inf"), "inf"),
        ([float("nan"), True, None], ["nan", True, None]),
        ({"thing": Thing()}, {"thing": "a thing"}),
        ([Mood.CALM, date(2026, 1, 2)], ["calm", "2026-01-02"]),
        (Order, str(Order)),
        (Shop, str(Shop)),
    ],
)
def test_every_value_has_a_form_in_json(value: Any, expected: Any) -> None:
    assert reporting.as_json(value) == expected


def test_a_value_that_holds_itself_ends() -> None:
    held: list[Any] = []
    held.append(held)
    assert len(json.dumps(reporting.as_json(held))) < 1000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_comes_of_it_can_be_written(value: Any) -> None:
    json.dumps(reporting.as_json(value), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {}),
        ("", {}),
        ('{"city": "Rome"}', {"city": "Rome"}),
        ("{broken", {"result": "{broken"}),
        ("[1]", {"result": "[1]"}),
        ([1], {"result": [1]}),
        (0, {"result": 0}),
        ("[" * 100_000, {"result": "[" * 100_000}),
    ],
)
def test_an_answer_is_an_object(value: Any, expected: Any) -> None:
    assert reporting.as_object(value, "result") == expected


# --- Events -----------------------------------------------------------------------------------


def test_what_is_told_is_an_invocation() -> None:
    used = reporting.tokens(prompt=10, output=5, reasoning=2, cached=4)
    asks = reporting.event(
        "agent",
        text="Wait.",
        thought="Hm.",
        calls=[reporting.call("1", "look", '{"city": "Rome"}')],
        usage=used,
        model="m",
    )
    gets = reporting.answered("agent", "1", "look", "clear")
    says = reporting.event("agent", text="It is clear.")
    found = validated(
        {"intermediate_data": reporting.trajectory([asks, gets, says], "It is clear.")},
        Content.of_text("Weather?", role="user"),
    )
    [call] = found.tool_calls
    assert (call.name, call.args, call.result) == ("look", {"city": "Rome"}, {"result": "clear"})
    assert found.events is not None
    assert len(found.events) == 2
    assert found.events[0].usage_metadata == {
        "prompt_token_count": 10,
        "candidates_token_count": 3,
        "thoughts_token_count": 2,
        "cached_content_token_count": 4,
        "total_token_count": 15,
    }


def test_what_it_took_to_say_the_final_response_is_kept_without_it() -> None:
    used = {"prompt_token_count": 1}
    says = reporting.event("agent", text="Yes.", thought="Hm.", usage=used)
    [kept] = reporting.trajectory([says], "Yes.")["invocation_events"]
    assert kept["content"]["parts"] == [{"text": "Hm.", "thought": True}]
    assert kept["usage_metadata"] == used


@pytest.mark.parametrize("said", [None, "", "Something else."])
def test_what_is_not_the_final_response_is_a_step_on_the_way(said: str | None) -> None:
    says = reporting.event("agent", text="Yes.")
    assert reporting.trajectory([says], said) == {"invocation_events": [says]}


def test_nothing_that_happened_is_told_as_such() -> None:
    assert reporting.trajectory([], None) == {"invocation_events": []}


def test_tokens_that_nobody_told_of_are_not_zero() -> None:
    assert reporting.tokens(prompt=None, output=None, reasoning=0, cached=0) is None


# --- Times ------------------------------------------------------------------------------------


def test_times_of_several_at_once_count_once_and_tools_only_while_no_model_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    watch = reporting.Watch()
    moments = [
        (0.0, watch.begin, ("model", "a")),
        (1.0, watch.begin, ("model", "b")),
        (3.0, watch.end, ("a",)),
        (4.0, watch.end, ("b",)),  # models: 0 to 4
        (3.5, watch.begin, ("tool", "c")),
        (6.0, watch.end, ("c",)),  # a tool: 3.5 to 6, of which 2 s without a model
        (8.0, watch.begin, ("tool", "never ends")),
        (9.0, watch.end, ("never began",)),
    ]
    for now, do, args in moments:  # noqa: B007  # the clock reads it
        do(*args)
    assert watch.durations == {"model_duration": 4.0, "tool_duration": 2.0}


def test_times_that_nobody_measured_are_none() -> None:
    assert reporting.Watch().durations == {"model_duration": None, "tool_duration": None}


# --- Canned results ---------------------------------------------------------------------------


def mocks(**tool_mocks: Any) -> reporting.Mocks:
    return reporting.Mocks({"tool_mocks": tool_mocks})


def test_without_canned_results_every_call_is_made() -> None:
    none = reporting.Mocks({})
    assert not none
    assert none.find("look", {}) is None
    assert none.reply_fields == {}


def test_arguments_may_be_a_text_of_json() -> None:
    given = mocks(tools={"look": [{"args": {"city": "Rome"}, "result": 1}]}).find(
        "look", '{"city": "Rome"}'
    )
    assert given is not None
    assert given.result == 1


def test_a_call_without_one_is_an_error_that_what_it_leads_to_cannot_hide() -> None:
    canned = mocks(tools={"look": [{"args": {"city": "Rome"}, "result": 1}]})
    with canned:
        with pytest.raises(reporting.UnmockedError):
            canned.find("look", {"city": "Oslo\n" + "x" * 300})
        raise ValueError("the framework ends")
    error = canned.reply_fields["error"]
    assert error["kind"] == "unmocked"
    assert error["message"].startswith("the agent called look(city='Oslo")
    assert error["message"].endswith("add a result, or set `unmatched: pass`")
    assert len(error["message"]) < 400
    assert "\n" not in error["message"]


def test_the_first_call_without_one_is_named() -> None:
    canned = mocks(tools={}, unmatched="error")
    for name in ("first", "second"):
        with pytest.raises(reporting.UnmockedError):
            canned.find(name, {})
    assert canned.reply_fields["error"]["message"].startswith("the agent called first()")


def test_what_is_raised_is_told() -> None:
    canned = mocks(tools={})
    with canned:
        raise ValueError("own\nline")
    error = canned.reply_fields["error"]
    assert error["kind"] == "raised"
    assert error["message"].startswith("ValueError: own line (")
    with pytest.raises(SystemExit), canned:
        raise SystemExit  # the worker tells of that


def test_a_call_may_be_made_where_nothing_is_given() -> None:
    canned = mocks(tools={}, unmatched="pass")
    assert canned.find("look", {}) is None
    assert canned.reply_fields == {}


# --- Packages ---------------------------------------------------------------------------------


def test_one_of_several_packages_is_enough() -> None:
    reporting.require("certainly-not-installed", "pydantic")


def test_a_missing_package_is_named_with_its_interpreter() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        reporting.require("certainly-not-installed")
    assert str(caught.value) == (
        f"certainly-not-installed is not installed for {sys.executable}; "
        "install it, or set `interpreter` to a Python that has it"
    )


def test_a_package_that_is_too_old_is_named_with_what_is_needed() -> None:
    found = version("pydantic")
    reporting.require("pydantic", least=(2, 11))
    with pytest.raises(ImportError) as caught:
        reporting.require("pydantic", least=(99, 1))
    assert str(caught.value) == f"pydantic {found} is too old: it must be 99.1 or newer"


# --- Why answers ended --------------------------------------------------------------------------


class Reason(Enum):
    LENGTH = "length"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "length"), (Reason.LENGTH, "length"), ("stop", None), (None, None)],
)
def test_why_the_last_answer_ended_is_told(finish: Any, reason: str | None) -> None:
    events = [
        reporting.event("bot", text="One moment", finish="stop"),
        reporting.answered("bot", "1", "find", "x"),
        reporting.event("bot", text="It is", finish=finish),
    ]
    fields = {
        "intermediate_data": reporting.trajectory(events, "It is"),
        "finish_reason": reporting.last_finish_reason(events),
    }
    assert validated(fields, Content.of_text("Hi", role="user")).finish_reason == reason


def test_where_no_model_answered_nothing_is_told_of_its_end() -> None:
    assert reporting.last_finish_reason([]) is None
    assert reporting.last_finish_reason([reporting.answered("bot", "1", "find", "x")]) is None
