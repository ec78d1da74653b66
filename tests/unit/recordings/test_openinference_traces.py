"""Traces by the conventions of OpenInference become conversations."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.span_language import Sketch, console, otlp, span

from ci_eval.recordings.openinference_traces import OpenInference
from ci_eval.records.cases import Invocation
from ci_eval.records.trials import Recording


def recorded(folder: Path, value: object) -> list[Recording]:
    path = folder / "trace.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(OpenInference().read(path, shown="trace.json"))


def only(folder: Path, value: object) -> Invocation:
    """Return the one invocation of the one conversation."""
    (found,) = recorded(folder, value)
    (turn,) = found.invocations or ()
    return turn


def of_kind(kind: str, name: str, start: float, end: float, **more: Any) -> Sketch:
    about = {"openinference.span.kind": kind, **more.pop("attributes", {})}
    return span(name, start, end, about, **{"parent": "agent", **more})


def agent(start: float = 0, end: float = 9, **attributes: Any) -> Sketch:
    return of_kind("AGENT", "agent", start, end, parent=None, attributes=attributes)


IN, OUT = "llm.input_messages", "llm.output_messages"
CALL = "message.tool_calls.0.tool_call"
FIRST = {
    f"{IN}.0.message.role": "system",
    f"{IN}.0.message.content": "Be kind.",
    f"{IN}.1.message.role": "user",
    f"{IN}.1.message.content": "Weather in Paris?",
    f"{OUT}.0.message.role": "assistant",
    f"{OUT}.0.{CALL}.id": "c1",
    f"{OUT}.0.{CALL}.function.name": "weather",
    f"{OUT}.0.{CALL}.function.arguments": '{"city": "Paris"}',
    "llm.model_name": "gpt-4",
    "llm.token_count.prompt": 20,
    "llm.token_count.completion": 5,
}
SECOND = {
    f"{IN}.0.message.role": "user",
    f"{IN}.0.message.content": "Weather in Paris?",
    f"{IN}.1.message.role": "tool",
    f"{IN}.1.message.content": "rainy",
    f"{IN}.1.message.tool_call_id": "c1",
    f"{OUT}.0.message.role": "assistant",
    f"{OUT}.0.message.contents.0.message_content.type": "text",
    f"{OUT}.0.message.contents.0.message_content.text": "It rains in Paris.",
}
TOOL = {"tool.name": "weather", "tool.parameters": '{"city": "Paris"}', "output.value": "rainy"}
WEATHER = (
    agent(),
    of_kind("LLM", "llm 1", 1, 2, attributes=FIRST),
    of_kind("CHAIN", "glue", 2, 4),
    of_kind("TOOL", "tool", 2, 4, parent="glue", attributes=TOOL),
    of_kind("LLM", "llm 2", 5, 6, attributes=SECOND),
)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as objects and lists in each other."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *before, last = name.split(".")
        node = tree
        for step in before:
            node = node.setdefault(step, {})
        node[last] = value
    return {name: _listed(value) for name, value in tree.items()}


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    return list(inner.values()) if all(map(str.isdecimal, inner)) else inner


def of_client(*spans: Sketch) -> list[dict[str, Any]]:
    """Return spans as Phoenix's client and its REST API have them."""
    return [
        {**given, "span_kind": "LLM", "status_code": "OK", "status_message": "", "status": None}
        for given in console(*spans)
    ]


def of_frame(*spans: Sketch) -> list[dict[str, Any]]:
    """Return spans as the rows of Phoenix's data frame."""
    rows = []
    for given in console(*spans):
        attributes = nested(given["attributes"])
        llm = attributes.pop("llm", {})
        messages = {name: llm.pop(name) for name in list(llm) if name.endswith("_messages")}
        rows.append(
            {
                "name": given["name"],
                "context.span_id": given["context"]["span_id"],
                "context.trace_id": given["context"]["trace_id"],
                "parent_id": given["parent_id"],
                "start_time": given["start_time"],
                "end_time": given["end_time"],
                "status_code": "UNSET",
                "span_kind": given["attributes"]["openinference.span.kind"],
                **{f"attributes.llm.{name}": value for name, value in (llm | messages).items()},
                **{
                    f"attributes.{name}": given["attributes"][name]
                    for name in ("tool.name", "tool.parameters", "output.value")
                    if name in given["attributes"]
                },
            }
        )
    return rows


@pytest.mark.parametrize(
    "value",
    [
        otlp(*WEATHER),
        console(*WEATHER),
        of_client(*WEATHER),
        {"data": of_client(*WEATHER), "next_cursor": None},
        of_frame(*WEATHER),
        [{**each, "attributes": nested(each["attributes"])} for each in console(*WEATHER)],
    ],
    ids=["otlp", "console", "client", "rest", "frame", "nested"],
)
def test_a_run_of_an_agent_is_an_invocation_in_every_export(tmp_path: Path, value: Any) -> None:
    assert OpenInference.sniff(value)
    turn = only(tmp_path, value)
    assert (turn.user, turn.response) == ("Weather in Paris?", "It rains in Paris.")
    assert [tuple(call) for call in turn.tool_calls] == [
        ("weather", {"city": "Paris"}, {"result": "rainy"})
    ]
    assert (turn.duration, turn.model_duration, turn.tool_duration) == (9, 2, 2)
    usages = [event.usage_metadata for event in turn.events or () if event.usage_metadata]
    assert usages == [{"prompt_token_count": 20, "candidates_token_count": 5}]


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("Weather?", "text/plain"),
        ("Weather?", None),
        ('"Weather?"', "application/json"),
        ('{"messages": [{"role": "user", "content": "Weather?"}]}', "application/json"),
        ('{"new_message": {"role": "user", "parts": [{"text": "Weather?"}]}}', "application/json"),
        ('{"content": "Weather?"}', None),
    ],
)
def test_the_agent_may_say_what_it_was_asked_and_answered(
    tmp_path: Path, asked: str, kind: str | None
) -> None:
    about = {"input.value": asked, "output.value": "Rain."}
    if kind:
        about["input.mime_type"] = kind
    turn = only(tmp_path, otlp(agent(**about)))
    assert (turn.user, turn.response) == ("Weather?", "Rain.")


def test_what_the_agent_says_in_a_way_of_its_own_is_left_to_its_models(tmp_path: Path) -> None:
    odd = {"input.value": '{"state": {"x": 1}}', "input.mime_type": "application/json"}
    turn = only(tmp_path, otlp(agent(**odd), *WEATHER[1:]))
    assert (turn.user, turn.response) == ("Weather in Paris?", "It rains in Paris.")


def test_a_text_that_is_json_by_chance_is_what_was_said(tmp_path: Path) -> None:
    turn = only(tmp_path, otlp(agent(**{"input.value": "[1, 2]", "output.value": "3"})))
    assert (turn.user, turn.response) == ("[1, 2]", "3")


def test_functions_may_be_called_the_older_way(tmp_path: Path) -> None:
    about = {
        f"{IN}.0.message.role": "user",
        f"{IN}.0.message.content": "Weather?",
        f"{OUT}.0.message.role": "assistant",
        f"{OUT}.0.message.function_call_name": "weather",
        f"{OUT}.0.message.function_call_arguments_json": '{"city": "Rome"}',
    }
    turn = only(tmp_path, otlp(agent(), of_kind("LLM", "llm", 0, 1, attributes=about)))
    assert [tuple(call) for call in turn.tool_calls] == [("weather", {"city": "Rome"}, None)]


def test_a_tool_is_named_by_its_span_and_told_by_its_values(tmp_path: Path) -> None:
    about = {"input.value": '{"city": "Oslo"}', "output.value": '{"sky": "white"}'}
    tool = of_kind("TOOL", "weather", 0, 1, attributes=about)
    turn = only(tmp_path, otlp(agent(**{"input.value": "?"}), tool))
    assert [tuple(call) for call in turn.tool_calls] == [
        ("weather", {"city": "Oslo"}, {"sky": "white"})
    ]


def test_the_nodes_of_a_graph_are_kept_in_order(tmp_path: Path) -> None:
    nodes = [
        of_kind("CHAIN", name, at, at + 1, attributes={"graph.node.id": name})
        for at, name in enumerate(("plan", "act", "end"))
    ]
    turn = only(tmp_path, otlp(agent(**{"input.value": "?"}), *nodes))
    assert turn.nodes == ("plan", "act", "end")


@pytest.mark.parametrize(
    ("attributes", "case", "session"),
    [
        ({"session.id": "s"}, None, "s"),
        ({"session.id": "s", "ci_eval.case": "a"}, "a", "s"),
        ({"metadata": '{"eval_id": "a"}'}, "a", None),
        ({"metadata.eval_id": "a"}, "a", None),
        ({"metadata": '{"eval_id": 5}'}, None, None),
    ],
)
def test_the_case_and_the_session_are_named_by_attributes(
    tmp_path: Path, attributes: dict[str, Any], case: str | None, session: str | None
) -> None:
    (found,) = recorded(tmp_path, otlp(agent(**attributes, **{"input.value": "?"})))
    assert (found.eval_id, found.session) == (case, session)
