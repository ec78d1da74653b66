"""Traces by OpenTelemetry's conventions become conversations."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.span_language import Sketch, console, jaeger, otlp, printed, span, tempo

from ci_eval.recordings.otel_traces import OpenTelemetry
from ci_eval.records.cases import Invocation
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording


def recorded(folder: Path, value: object, name: str = "trace.json") -> list[Recording]:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(OpenTelemetry().read(path, shown=name))


def only(folder: Path, value: object) -> Invocation:
    """Return the one invocation of the one conversation."""
    (found,) = recorded(folder, value)
    (turn,) = found.invocations or ()
    return turn


def texts(found: Recording) -> list[tuple[str, str]]:
    return [(turn.user, turn.response) for turn in found.invocations or ()]


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def says(role: str, text: str) -> dict[str, Any]:
    return message(role, {"type": "text", "content": text})


def agent(start: float, end: float, name: str = "agent", **more: Any) -> Sketch:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    return span(name, start, end, attributes | more.pop("attributes", {}), **more)


def chat(name: str, start: float, end: float, heard: Any, spoke: Any, **more: Any) -> Sketch:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4",
        "gen_ai.input.messages": json.dumps(heard),
        "gen_ai.output.messages": json.dumps(spoke),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
    }
    return span(name, start, end, attributes, **{"parent": "agent", **more})


def tool(name: str, start: float, end: float, **more: Any) -> Sketch:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        **more.pop("attributes", {}),
    }
    return span(name, start, end, attributes, **{"parent": "agent", **more})


ASKED = says("user", "Weather in Paris?")
CALLS = message(
    "assistant",
    {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}},
)
TOLD = message("tool", {"type": "tool_call_response", "id": "c1", "response": "rainy"})
SAID = says("assistant", "It rains in Paris.")
WEATHER = (
    agent(0, 5),
    chat("chat 1", 0.5, 1.5, [says("system", "Be kind."), ASKED], [CALLS]),
    tool("tool", 2, 3, attributes={"gen_ai.tool.call.id": "c1"}),
    chat("chat 2", 3, 4.5, [ASKED, CALLS, TOLD], [SAID]),
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(otlp(*WEATHER)),
        json.dumps(otlp(*reversed(WEATHER))),
        "\n".join(json.dumps(otlp(each)) for each in WEATHER),
        json.dumps(console(*WEATHER)),
        "\n".join(map(json.dumps, console(*WEATHER))),
        printed(console(*WEATHER)),
        json.dumps(jaeger(*WEATHER)),
        json.dumps(tempo(*WEATHER)),
        json.dumps({"trace": otlp(*WEATHER)}),
    ],
    ids=[
        *("one export", "in any order", "an export a line", "a list", "lines", "printed"),
        *("Jaeger", "Tempo", "Tempo 2"),
    ],
)
def test_a_run_of_an_agent_is_an_invocation_in_every_export(tmp_path: Path, text: str) -> None:
    turn = only(tmp_path, text)
    assert (turn.user, turn.response) == ("Weather in Paris?", "It rains in Paris.")
    assert [tuple(call) for call in turn.tool_calls] == [
        ("weather", {"city": "Paris"}, {"result": "rainy"})
    ]


def test_times_and_tokens_are_those_of_the_spans(tmp_path: Path) -> None:
    turn = only(tmp_path, otlp(*WEATHER))
    assert (turn.duration, turn.model_duration, turn.tool_duration) == (5, 2.5, 1)
    usages = [event.usage_metadata for event in turn.events or () if event.usage_metadata]
    assert usages == [{"prompt_token_count": 10, "candidates_token_count": 3}] * 2
    assert {event.author for event in turn.events or ()} == {"bot"}


def test_jaeger_tells_times_errors_and_events(tmp_path: Path) -> None:
    turn = only(tmp_path, jaeger(*WEATHER))
    assert (turn.duration, turn.model_duration, turn.tool_duration) == (5, 2.5, 1)
    (failed,) = recorded(tmp_path, jaeger(agent(0, 5, error="the model is overloaded")))
    assert failed.error is not None
    assert "the model is overloaded" in str(failed.error)
    thrown = agent(0, 5, error="", events=(("exception", {"exception.message": "no key"}),))
    (failed,) = recorded(tmp_path, jaeger(thrown))
    assert "no key" in str(failed.error)


def test_a_tool_counts_only_while_no_model_is_at_work(tmp_path: Path) -> None:
    spans = (
        agent(0, 10),
        chat("outer", 0, 2, [ASKED], [CALLS]),
        tool("tool", 2, 8),
        chat("inner", 3, 6, [ASKED], [says("assistant", "x")], parent="tool"),
        chat("also", 5, 7, [ASKED], [SAID], parent="tool"),
    )
    turn = only(tmp_path, otlp(*spans))
    assert (turn.model_duration, turn.tool_duration) == (2 + 4, 1 + 1)


def test_what_is_observed_of_a_tool_is_told_once(tmp_path: Path) -> None:
    ran = {
        "gen_ai.tool.call.arguments": '{"city": "Paris"}',
        "gen_ai.tool.call.result": {"sky": "grey"},
    }
    turn = only(tmp_path, otlp(*WEATHER[:2], tool("tool", 2, 3, attributes=ran), WEATHER[3]))
    assert [tuple(call) for call in turn.tool_calls] == [
        ("weather", {"city": "Paris"}, {"sky": "grey"})
    ]


def test_two_calls_of_a_tool_have_the_answers_of_their_arguments(tmp_path: Path) -> None:
    def call(city: str, name: str = "") -> dict[str, Any]:
        return {"type": "tool_call", "id": name, "name": "weather", "arguments": {"city": city}}

    def ran(name: str, start: float, city: str, sky: str) -> Sketch:
        about = {"gen_ai.tool.call.arguments": {"city": city}, "gen_ai.tool.call.result": sky}
        return tool(name, start, start + 1, attributes=about)

    spans = (
        agent(0, 9, attributes={"gen_ai.input.messages": [ASKED]}),
        chat("chat", 0, 1, [ASKED], [message("assistant", call("Paris"), call("Rome"))]),
        ran("one", 2, "Rome", "blue"),
        ran("two", 3, "Paris", "grey"),
        ran("three", 4, "Oslo", "white"),
    )
    turn = only(tmp_path, otlp(*spans))
    assert [(call.args, call.result) for call in turn.tool_calls] == [
        ({"city": "Paris"}, {"result": "grey"}),
        ({"city": "Rome"}, {"result": "blue"}),
        ({"city": "Oslo"}, {"result": "white"}),
    ]


def test_a_call_of_another_id_is_another_call(tmp_path: Path) -> None:
    other = tool("tool", 2, 3, attributes={"gen_ai.tool.call.id": "c2"})
    turn = only(tmp_path, otlp(*WEATHER[:2], other))
    assert [call.name for call in turn.tool_calls] == ["weather", "weather"]


def test_without_messages_of_models_tools_and_the_agent_tell(tmp_path: Path) -> None:
    about = {
        "gen_ai.input.messages": [says("user", "first"), says("assistant", "so"), ASKED],
        "gen_ai.output.messages": [SAID],
    }
    turn = only(tmp_path, otlp(agent(0, 1, attributes=about), tool("tool", 0, 1)))
    assert (turn.user, turn.response) == ("Weather in Paris?", "It rains in Paris.")
    assert [tuple(call) for call in turn.tool_calls] == [("weather", None, None)]


def test_a_span_that_was_exported_twice_counts_once(tmp_path: Path) -> None:
    about = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [SAID]}
    spans = json.dumps(otlp(agent(0, 1, attributes=about), tool("tool", 0, 1)))
    (call,) = only(tmp_path, f"{spans}\n{spans}").tool_calls
    assert call.name == "weather"


def test_what_came_out_of_the_agent_is_the_final_response(tmp_path: Path) -> None:
    about = {"gen_ai.output.messages": json.dumps([says("assistant", "Rain.")])}
    turn = only(tmp_path, otlp(agent(0, 5, attributes=about), *WEATHER[1:]))
    assert turn.response == "Rain."
    told = [event.content.text for event in turn.events or () if event.content]
    assert "It rains in Paris." in told


def test_the_first_choice_counts_and_thoughts_are_thoughts(tmp_path: Path) -> None:
    thinks = {"type": "reasoning", "content": "hm"}
    choices = [message("assistant", thinks, {"type": "text", "content": "A"}), SAID]
    turn = only(tmp_path, otlp(agent(0, 1), chat("chat", 0, 1, [ASKED], choices)))
    assert turn.final_response
    assert [(part.text, part.thought) for part in turn.final_response.parts or ()] == [
        ("hm", True),
        ("A", None),
    ]


def test_of_a_model_alone_the_first_choice_counts_too(tmp_path: Path) -> None:
    choices = [says("assistant", "one"), says("assistant", "two")]
    turn = only(tmp_path, otlp(chat("chat", 0, 1, [ASKED], choices)))
    assert turn.response == "one"


def test_a_failed_run_is_found_by_what_the_user_said(tmp_path: Path) -> None:
    (found,) = recorded(tmp_path, otlp(agent(0, 1, error="no quota"), *WEATHER[1:]))
    assert [turn.user for turn in found.invocations or ()] == ["Weather in Paris?"]


# --- Conversations and cases ------------------------------------------------------------------


def one_turn(trace: str, start: float, asked: str, **attributes: Any) -> tuple[Sketch, Sketch]:
    return (
        agent(start, start + 1, trace=trace, attributes=attributes),
        chat("c", start, start + 1, [says("user", asked)], [says("assistant", "yes")], trace=trace),
    )


def test_a_conversation_has_the_invocations_of_all_its_traces(tmp_path: Path) -> None:
    same = {"gen_ai.conversation.id": "s1"}
    spans = (
        *one_turn("2", 10, "second", **same),
        *one_turn("1", 0, "first", **same),
        *one_turn("3", 20, "alone"),
    )
    first, second = recorded(tmp_path, otlp(*spans))
    assert texts(first) == [("first", "yes"), ("second", "yes")]
    assert texts(second) == [("alone", "yes")]
    assert [(each.eval_id, each.session) for each in (first, second)] == [
        (None, "s1"),
        (None, None),
    ]


@pytest.mark.parametrize("key", ["ci_eval.case", "eval_id"])
def test_an_attribute_names_the_case_and_repeats_are_by_time(tmp_path: Path, key: str) -> None:
    spans = (
        *one_turn("2", 10, "late", **{key: "a"}),
        *one_turn("1", 0, "early", **{key: "a"}),
        *one_turn("3", 5, "other", **{key: "b"}),
    )
    found = [
        (each.eval_id, each.repeat, texts(each)[0][0]) for each in recorded(tmp_path, otlp(*spans))
    ]
    assert found == [("a", 0, "early"), ("b", 0, "other"), ("a", 1, "late")]


def test_the_resource_may_name_the_case(tmp_path: Path) -> None:
    (found,) = recorded(tmp_path, otlp(*WEATHER, resource={"ci_eval.case": "a"}))
    assert found.eval_id == "a"


def test_agents_inside_an_agent_belong_to_it(tmp_path: Path) -> None:
    inner = agent(1, 2, name="inner", parent="agent", attributes={"gen_ai.agent.name": "sub"})
    spans = (
        agent(0, 5),
        chat("chat 1", 0, 1, [ASKED], [says("assistant", "Let me look.")]),
        inner,
        chat("chat 2", 1, 2, [says("user", "look")], [SAID], parent="inner"),
    )
    turn = only(tmp_path, otlp(*spans))
    assert (turn.user, turn.response) == ("Weather in Paris?", "It rains in Paris.")
    assert [event.author for event in turn.events or ()] == ["bot", "sub"]


def test_agents_in_a_row_that_answer_one_message_are_one_invocation(tmp_path: Path) -> None:
    more = [ASKED, CALLS, TOLD, SAID, says("user", "More?")]
    spans = (
        span("root", 0, 9, {}),
        agent(0, 1, name="one", parent="root", attributes={"gen_ai.input.messages": [ASKED]}),
        agent(2, 3, name="two", parent="root"),
        agent(4, 6, name="three", parent="root", attributes={"gen_ai.input.messages": [ASKED]}),
        chat("chat", 5, 6, [ASKED], [SAID], parent="three"),
        agent(7, 8, name="four", parent="root", attributes={"gen_ai.input.messages": [TOLD]}),
        agent(8, 9, name="five", parent="root", attributes={"gen_ai.input.messages": more}),
    )
    (found,) = recorded(tmp_path, otlp(*spans))
    assert texts(found) == [("Weather in Paris?", "It rains in Paris."), ("More?", "")]


def test_without_an_agent_each_root_is_an_invocation(tmp_path: Path) -> None:
    spans = (
        span("request", 0, 2, {"http.route": "/"}),
        chat("chat", 0, 1, [ASKED], [SAID], parent="request"),
        span("health", 3, 4, {}, trace="u"),
    )
    turn = only(tmp_path, otlp(*spans))
    assert (turn.user, turn.response, turn.duration) == (
        ASKED["parts"][0]["content"],
        "It rains in Paris.",
        2,
    )


def test_a_span_in_a_span_of_the_same_model_or_tool_is_told_once(tmp_path: Path) -> None:
    silent = span("call_llm", 0, 1, {"gen_ai.request.model": "m"}, parent="agent")
    spans = (
        agent(0, 9),
        silent,
        chat("generate", 0, 1, [ASKED], [CALLS], parent="call_llm"),
        chat("http", 0, 1, [ASKED], [CALLS], parent="generate"),
        tool("tool", 2, 3),
        tool("mcp", 2, 3, parent="tool"),
    )
    turn = only(tmp_path, otlp(*spans))
    assert len(turn.tool_calls) == 1
    assert sum(event.usage_metadata is not None for event in turn.events or ()) == 1


# --- Errors -----------------------------------------------------------------------------------


def test_an_agent_that_failed_is_an_error(tmp_path: Path) -> None:
    (found,) = recorded(tmp_path, otlp(agent(0, 1, error="no quota"), *WEATHER[1:]))
    assert found.error == "the span 'agent' failed: no quota"


def test_an_exception_tells_why(tmp_path: Path) -> None:
    thrown = ("exception", {"exception.type": "ValueError", "exception.message": "bad key"})
    (found,) = recorded(tmp_path, otlp(agent(0, 1, error="", events=(thrown,)), *WEATHER[1:]))
    assert found.error == "the span 'agent' failed: bad key"


def test_a_tool_that_failed_answers_with_an_error(tmp_path: Path) -> None:
    failed = tool("tool", 2, 3, attributes={"gen_ai.tool.call.id": "c1"}, error="timeout")
    turn = only(tmp_path, otlp(*WEATHER[:2], failed, WEATHER[3]))
    assert [call.result for call in turn.tool_calls] == [{"error": "timeout"}]


def test_a_model_that_failed_and_was_asked_again_is_no_error(tmp_path: Path) -> None:
    failed = chat("chat 0", 0, 0.5, [ASKED], [], error="overloaded")
    assert only(tmp_path, otlp(failed, *WEATHER)).response == "It rains in Paris."


def test_a_trace_without_messages_says_what_is_missing(tmp_path: Path) -> None:
    (found,) = recorded(tmp_path, otlp(agent(0, 1, attributes={"gen_ai.conversation.id": "s"})))
    assert found.error == (
        "no span has a user message; let the agent's tracing record message contents"
    )


# --- Older and other ways to write messages ---------------------------------------------------


def test_messages_may_be_events_as_up_to_1_36(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    heard = (
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Weather?"}),
    )
    first = (*heard, ("gen_ai.choice", {"index": 0, "message": {"tool_calls": [call]}}))
    second = (
        *heard,
        ("gen_ai.assistant.message", {"tool_calls": json.dumps([call])}),
        ("gen_ai.tool.message", {"id": "c1", "content": "rainy"}),
        ("gen_ai.choice", {"index": 0, "message": json.dumps({"content": "It rains."})}),
    )
    about = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}
    turn = only(
        tmp_path,
        otlp(
            agent(0, 9),
            span("one", 0, 1, about, parent="agent", events=first),
            span("two", 2, 3, about, parent="agent", events=second),
        ),
    )
    assert (turn.user, turn.response) == ("Weather?", "It rains.")
    assert [tuple(call) for call in turn.tool_calls] == [("weather", {}, {"result": "rainy"})]


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        (
            {
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "Be kind.",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": "Weather?",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "It rains.",
            },
            (),
        ),
        (
            {},
            (
                (
                    "gen_ai.content.prompt",
                    {"gen_ai.prompt": '[{"role": "user", "content": "Weather?"}]'},
                ),
                (
                    "gen_ai.content.completion",
                    {"gen_ai.completion": '[{"role": "assistant", "content": "It rains."}]'},
                ),
            ),
        ),
        (
            {},
            (
                (
                    "gen_ai.client.inference.operation.details",
                    {
                        "gen_ai.input.messages": [says("user", "Weather?")],
                        "gen_ai.output.messages": [says("assistant", "It rains.")],
                    },
                ),
            ),
        ),
        ({"gen_ai.prompt": "Weather?", "gen_ai.completion": "It rains."}, ()),
    ],
    ids=["OpenLLMetry", "1.27", "details", "texts"],
)
def test_messages_may_stand_elsewhere(
    tmp_path: Path, attributes: dict[str, Any], events: Any
) -> None:
    about = {"gen_ai.operation.name": "chat", **attributes}
    turn = only(tmp_path, otlp(span("chat", 0, 1, about, events=events)))
    assert (turn.user, turn.response) == ("Weather?", "It rains.")


@pytest.mark.parametrize("said", ['{"intent": "x"}', "[1, 2]", '{"a"', "5"])
def test_a_text_that_looks_like_json_is_what_was_said(tmp_path: Path, said: str) -> None:
    events = (
        ("gen_ai.user.message", {"content": said}),
        ("gen_ai.choice", {"message": {"content": said}}),
    )
    turn = only(tmp_path, otlp(span("c", 0, 1, {"gen_ai.operation.name": "chat"}, events=events)))
    assert (turn.user, turn.response) == (said, said)


def test_adk_keeps_messages_in_its_own_attributes(tmp_path: Path) -> None:
    asked = {"role": "user", "parts": [{"text": "Roll a die."}]}
    call = {
        "role": "model",
        "parts": [{"function_call": {"id": "f1", "name": "roll", "args": {"sides": 6}}}],
    }
    told = {
        "role": "user",
        "parts": [{"function_response": {"id": "f1", "name": "roll", "response": {"result": 4}}}],
    }
    said = {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "A 4."}]}

    def llm(name: str, start: float, heard: list[Any], spoke: Any) -> Sketch:
        about = {
            "gen_ai.system": "gcp.vertex.agent",
            "gen_ai.request.model": "gemini-2.5-flash",
            "gcp.vertex.agent.session_id": "s1",
            "gcp.vertex.agent.llm_request": json.dumps({"model": "m", "contents": heard}),
            "gcp.vertex.agent.llm_response": json.dumps({"content": spoke}),
            "gen_ai.usage.input_tokens": 5,
        }
        return span(name, start, start + 1, about, parent="invoke_agent dicer")

    invoked = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "dicer"}
    ran = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "roll",
        "gen_ai.tool.call.id": "<not specified>",
        "gcp.vertex.agent.tool_call_args": '{"sides": 6}',
        "gcp.vertex.agent.tool_response": '{"result": 4}',
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.llm_response": "{}",
    }
    merged = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}
    spans = (
        span("invocation", 0, 9, {}),
        span("invoke_agent dicer", 0, 8, invoked, parent="invocation"),
        llm("call_llm 1", 1, [asked], call),
        span("execute_tool roll", 2, 3, ran, parent="call_llm 1"),
        span("execute_tool (merged tools)", 3, 3, merged, parent="call_llm 1"),
        llm("call_llm 2", 4, [asked, call, told], said),
    )
    (found,) = recorded(tmp_path, printed(console(*spans)))
    (turn,) = found.invocations or ()
    assert found.session == "s1"
    assert (turn.user, turn.response) == ("Roll a die.", "hm\nA 4.")
    assert [tuple(call) for call in turn.tool_calls] == [("roll", {"sides": 6}, {"result": 4})]


# --- What is wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "trace.json:1: holds no spans"),
        ('{"resourceSpans": []}', "trace.json:1: holds no spans"),
        (
            '{"resourceSpans": [{"scopeSpans": [{"spans": [5]}]}]}',
            "trace.json:1: expected a span, or",
        ),
        ('\n\n{"a": 1}', "trace.json:3: expected a span with a 'name' and an id"),
        ('{"resourceSpans": []}\n{', "trace.json:2: is not JSON: "),
    ],
)
def test_what_is_no_span_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        recorded(tmp_path, text)
    assert str(caught.value).startswith(message)


def test_spans_that_lead_to_each_other_are_read(tmp_path: Path) -> None:
    spans = (
        agent(0, 1, parent="chat"),
        chat("chat", 0, 1, [ASKED], [SAID]),
        span("self", 0, 1, {}, parent="self"),
    )
    assert only(tmp_path, otlp(*spans)).response == "It rains in Paris."


def test_spans_without_times_and_ids_are_taken_in_their_order(tmp_path: Path) -> None:
    given = otlp(chat("chat", 0, 1, [ASKED], [SAID]))
    (raw,) = given["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for key in ("traceId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano", "status"):
        del raw[key]
    turn = only(tmp_path, given)
    assert (turn.response, turn.duration) == ("It rains in Paris.", None)


@pytest.mark.slow
def test_ten_thousand_spans_inside_each_other_take_no_time(tmp_path: Path) -> None:
    deep = [span(f"{n}", 0, 1, {}, parent=f"{n - 1}") for n in range(1, 10_000)]
    models = [chat(f"m{n}", n, n + 1, [ASKED], [SAID], parent=f"{n}") for n in range(1, 2_000)]
    assert only(tmp_path, otlp(agent(0, 9, name="0"), *deep, *models)).response


@pytest.mark.parametrize(
    ("head", "is_otel"),
    [
        (otlp(*WEATHER), True),
        (console(*WEATHER), True),
        (console(*WEATHER)[0], True),
        ([otlp(*WEATHER)], True),
        ({"data": console(*WEATHER)}, True),
        (console(span("x", 0, 1, {"openinference.span.kind": "LLM"})), False),
        ({"resourceSpans": []}, True),
        ([{"resourceSpans": [{"scopeSpans": []}]}], True),
        ({"eval_id": "a", "spans": []}, False),
        ({"name": "x"}, False),
        ([], False),
        (None, False),
    ],
)
def test_the_format_is_told_from_the_beginning(head: Any, *, is_otel: bool) -> None:
    assert OpenTelemetry.sniff(head) is is_otel


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:02.500000Z"),
        ("2024-01-01T01:00:00+01:00", "2024-01-01T00:00:02.5"),
        (1_704_067_200, 1_704_067_202.5),
        (1_704_067_200_000, 1_704_067_202_500),
        (1_704_067_200_000_000, 1_704_067_202_500_000),
        (1_704_067_200_000_000_000, "1704067202500000000"),
        ([1_704_067_200, 0], [1_704_067_202, 500_000_000]),
    ],
    ids=["text", "zone", "s", "ms", "us", "ns", "pair"],
)
def test_times_are_understood_in_every_unit(tmp_path: Path, start: object, end: object) -> None:
    (raw,) = console(chat("chat", 0, 1, [ASKED], [SAID]))
    turn = only(tmp_path, [{**raw, "start_time": start, "end_time": end}])
    assert (turn.creation_timestamp, turn.duration) == (1_704_067_200, 2.5)


@pytest.mark.parametrize(
    "time", ["soon", "9" * 40, "9" * 29, True, {}, [1], ["a", "b"], 1e300, -1e29]
)
def test_what_is_no_time_is_none(tmp_path: Path, time: object) -> None:
    (raw,) = console(chat("chat", 0, 1, [ASKED], [SAID]))
    assert only(tmp_path, [{**raw, "start_time": time}]).duration is None


@pytest.mark.parametrize("count", [-1, 10**16, 1.5, True, "7"])
def test_what_is_no_count_of_tokens_is_none(tmp_path: Path, count: object) -> None:
    (raw,) = console(chat("chat", 0, 1, [ASKED], [SAID]))
    given = {**raw["attributes"], "gen_ai.usage.input_tokens": count}
    turn = only(tmp_path, [{**raw, "attributes": given}])
    assert turn.events is not None
    assert [each.usage_metadata for each in turn.events] == [{"candidates_token_count": 3}]


@pytest.mark.parametrize("number", ["--5", "-", "5-", "\u0663", "9" * 40])
def test_a_whole_number_that_is_none_is_a_text(tmp_path: Path, number: str) -> None:
    (raw,) = console(chat("chat", 0, 1, [ASKED], [SAID]))
    pairs = [
        {"key": name, "value": {"stringValue": each}} for name, each in raw["attributes"].items()
    ]
    given = [*pairs, {"key": "gen_ai.usage.input_tokens", "value": {"intValue": number}}]
    assert only(tmp_path, [{**raw, "attributes": given}]).user


def test_files_and_images_in_messages_are_kept(tmp_path: Path) -> None:
    asked = message(
        "user",
        {"type": "text", "content": "What is this?"},
        {"type": "uri", "uri": "https://example.com/a.png"},
        {"type": "file", "file_id": "f1"},
        {"type": "blob", "mime_type": "image/png", "content": "AAAA"},
        {"type": "hologram"},
    )
    turn = only(tmp_path, otlp(chat("chat", 0, 1, [asked], [SAID])))
    kept = [part.model_dump(exclude_none=True) for part in turn.user_content.parts or ()]
    assert kept == [
        {"text": "What is this?"},
        {"file_data": {"file_uri": "https://example.com/a.png"}},
        {"file_data": {"file_uri": "f1"}},
        {"inline_data": {"mime_type": "image/png", "data": "AAAA"}},
    ]
