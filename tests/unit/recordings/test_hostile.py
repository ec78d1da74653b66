"""Whatever a file holds, it is read or refused with its place, and nothing else happens."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.span_language import console, otlp, span

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.config.open_evalset import open_evalset
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.trials import Recording
from ci_eval.runtime.context import RunContext

TEXT: dict[str, Any] = {"type": "text", "content": "Hi"}
SPANS = (
    span("agent", 0, 9, {"gen_ai.operation.name": "invoke_agent", "ci_eval.case": "a"}),
    span(
        "chat",
        1,
        2,
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": [{"role": "user", "parts": [TEXT]}],
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [TEXT]}]),
            "gen_ai.usage.input_tokens": 5,
        },
        parent="agent",
        events=(("gen_ai.choice", {"message": {"content": "Hi"}}),),
    ),
    span(
        "tool",
        3,
        4,
        {"gen_ai.tool.name": "t", "gen_ai.tool.call.arguments": '{"x": 1}'},
        parent="agent",
        error="late",
    ),
)
INFERENCE = (
    span("agent", 0, 9, {"openinference.span.kind": "AGENT", "input.value": '{"messages": []}'}),
    span(
        "llm",
        1,
        2,
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hi",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "t",
            "llm.token_count.prompt": 3.0,
        },
        parent="agent",
    ),
    span("tool", 3, 4, {"openinference.span.kind": "TOOL", "tool.name": "t"}, parent="agent"),
)
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "5"},
    {"role": "assistant", "content": "Hello"},
]
CONTENT = {"role": "user", "parts": [{"text": "Hi"}]}
EVENTS = [
    {"author": "user", "content": CONTENT},
    {"author": "bot", "content": {"parts": [{"function_call": {"name": "t", "args": {}}}]}},
]
FILES: dict[str, Any] = {
    "otlp.json": otlp(*SPANS),
    "console.json": console(*SPANS),
    "openinference.json": otlp(*INFERENCE),
    "messages.json": [{"messages": MESSAGES, "tags": ["x"], "metadata": {"eval_id": "a"}}],
    "session.json": {"id": "s", "events": EVENTS, "state": {}},
    "trace.json": {
        "eval_cases": [
            {
                "eval_case_id": "a",
                "prompt": CONTENT,
                "responses": [{"response": CONTENT}],
                "agent_data": {"turns": [{"events": EVENTS}]},
            }
        ]
    },
    "result.json": {
        "eval_case_results": [
            {
                "eval_id": "a",
                "eval_metric_result_per_invocation": [
                    {"actual_invocation": {"user_content": CONTENT}}
                ],
            }
        ]
    },
    "cases.json": {
        "name": "x",
        "cases": [
            {
                "id": "a",
                "turns": [{"prompt": "Hi", "expected_tools": ["t", {"name": "u", "args": {}}]}],
                "rubrics": ["x", {"id": "r", "text": "y"}],
                "assert": [{"contains": "x"}],
                "state": {},
            },
            {"scenario": {"start": "a", "plan": "b"}},
        ],
    },
    "trpc.json": {
        "evalSetId": "s",
        "evalCases": [
            {
                "evalId": "a",
                "conversation": [
                    {
                        "userContent": {"content": "Hi"},
                        "tools": [{"name": "t", "arguments": {}, "result": 1}],
                    }
                ],
                "rubrics": [{"id": "r", "content": {"text": "x"}}],
            }
        ],
    },
}
ODD = st.sampled_from(
    [None, True, 0, -1, 1e300, 10**40, "", "x", "{", "[1]", '{"a": {"b": 1}}', [], {}, [[]], [{}]]
) | st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "parts", "content", "0", "a.b", "spans", "name", "attributes"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every list or object in `value` with each key or position in it."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for step in value if isinstance(value, dict) else range(len(value)):
            found.append((value, step))
            found += places(value[step])
    return found


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Any]:
    """Return a file that is right but for a few values."""
    name = draw(st.sampled_from(sorted(FILES)))
    value = copy.deepcopy(FILES[name])
    for _ in range(draw(st.integers(0, 3))):
        spots = places(value)
        if not spots:
            break
        inside, step = draw(st.sampled_from(spots))
        if isinstance(inside, dict) and draw(st.booleans()):
            del inside[step]
        else:
            inside[step] = copy.deepcopy(draw(ODD))
    return name, value


def problems_of_evalset(path: Path) -> Sequence[Problem]:
    """Return the problems of the evalset at `path`, whose cases all have ids."""
    try:
        opened = open_evalset(path, shown=path.name)
    except UsageError as exc:
        return exc.problems or [Problem("")]
    assert all(case.eval_id for case in opened.cases())
    return opened.warnings


def read(path: Path) -> None:
    """Read a file as whatever it may be."""
    for problem in problems_of_evalset(path):
        assert problem.message
        assert problem.line
    context = RunContext(env={}, root=path.parent, now=lambda: 0.0)
    for field, message in Recorded(recorded=path.name).check(context):
        assert field == "recorded"
        assert message.startswith(f"{path.name}:")


@given(mutated())
@settings(
    max_examples=4 * settings.default.max_examples, suppress_health_check=[HealthCheck.too_slow]
)
def test_a_file_with_a_few_odd_values_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, given: tuple[str, Any]
) -> None:
    name, value = given
    path = tmp_path_factory.mktemp("odd") / name
    path.write_text(json.dumps(value), encoding="utf-8")
    read(path)


@given(st.sampled_from(sorted(FILES)), st.integers(0, 400), st.binary(max_size=3))
@settings(max_examples=2 * settings.default.max_examples)
def test_a_file_that_is_cut_or_has_odd_bytes_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: int, odd: bytes
) -> None:
    data = json.dumps(FILES[name]).encode()
    path = tmp_path_factory.mktemp("cut") / name
    path.write_bytes(data[:at] + odd + (data[at:] if odd else b""))
    read(path)


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_files_are_right_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(FILES[name]), encoding="utf-8")
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    problems = list(Recorded(recorded=name).check(context))
    if name in ("cases.json", "trpc.json"):
        assert len(list(open_evalset(path, shown=name).cases())) >= 1
        assert len(problems) == 1
    else:
        assert problems == []


DEEP = 150


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        {".".join("a" * 5_000): 1},
        {f"{n}.a": n for n in range(2_000)},
        {"a": 1, "a.b": 2, "a.b.c": 3},
        {"a.b.c": 3, "a.b": {"d": 1}, "a": 1},
        {"999999999999.x": 1, "0": 2},
        {"": 1, ".": 2, "..": 3},
    ],
    ids=["plain", "long", "many", "up", "down", "far", "empty"],
)
def test_names_of_attributes_may_be_anything(tmp_path: Path, value: dict[str, Any]) -> None:
    about = {"gen_ai.operation.name": "chat", "gen_ai.prompt": "Hi", **value}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(otlp(span("chat", 0, 1, about))), encoding="utf-8")
    read(path)


def test_deep_values_of_attributes_are_read(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(DEEP):
        deep = {"a.b.c.d": deep}
    about = {"gen_ai.tool.name": "t", "gen_ai.tool.call.arguments": deep, "eval_id": "a"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(console(span("tool", 0, 1, about))), encoding="utf-8")
    read(path)


def test_a_recording_says_of_which_case_it_is_or_nothing() -> None:
    assert Recording(invocations=()).eval_id is None
