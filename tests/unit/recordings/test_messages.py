"""Recordings that are messages or events one after the other: OpenAI, agents-cli, ADK."""

import json
from pathlib import Path
from typing import Any

import pytest

from ci_eval.plugins.points import RecordingReader
from ci_eval.recordings import _recording_reading
from ci_eval.recordings.adk_result import AdkResult
from ci_eval.recordings.adk_session import AdkSession
from ci_eval.recordings.agentflow_report import AgentFlowReport
from ci_eval.recordings.agents_cli_recording import AgentsCliTrace
from ci_eval.recordings.openai_recording import OpenAIMessages
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording


def recorded(
    reader: type[RecordingReader], folder: Path, value: object, name: str = "a.json"
) -> list[Recording]:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(reader().read(path, shown=name))


def refused(reader: type[RecordingReader], folder: Path, value: object, **more: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        recorded(reader, folder, value, **more)
    return list(map(str, caught.value.problems))


def texts(found: Recording) -> list[tuple[str, str]]:
    return [(turn.user, turn.response) for turn in found.invocations or ()]


def content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def event(author: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    role = "user" if author == "user" else "model"
    return {"author": author, "content": content(role, *parts), **more}


# --- OpenAI ---------------------------------------------------------------------------------

TALK = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(TALK), "a.json"),
        (json.dumps([TALK]), "a.json"),
        (json.dumps(TALK["messages"]), "a.json"),
        (json.dumps([TALK["messages"]]), "a.json"),
        (json.dumps(TALK) + "\n\n", "a.jsonl"),
        (json.dumps(TALK["messages"]), "a.jsonl"),
    ],
)
def test_a_conversation_of_openai_may_stand_alone_or_with_others(
    tmp_path: Path, text: str, name: str
) -> None:
    (found,) = recorded(OpenAIMessages, tmp_path, text, name)
    assert texts(found) == [("Hi", "Hello")]
    assert (found.eval_id, found.session) == (None, None)


def test_conversations_of_a_case_are_its_repeats(tmp_path: Path) -> None:
    rows = [{**TALK, "eval_id": name} for name in ("a", "b", "a")]
    found = recorded(OpenAIMessages, tmp_path, [*rows, {**TALK, "id": "s"}])
    assert [(each.eval_id, each.session, each.repeat) for each in found] == [
        ("a", None, 0),
        ("b", None, 0),
        ("a", None, 1),
        (None, "s", None),
    ]


def test_all_that_is_wrong_with_conversations_has_its_line(tmp_path: Path) -> None:
    wrong = {"messages": [{"role": "boss", "content": "x"}]}
    rows = [json.dumps(TALK), json.dumps(wrong), "{", json.dumps({"messages": []})]
    assert refused(OpenAIMessages, tmp_path, "\n".join(rows), name="a.jsonl") == [
        (
            "a.jsonl:2: messages[0].role: expected 'system', 'developer', 'user', 'assistant', "
            "'tool' or 'function', found 'boss'"
        ),
        "a.jsonl:3: is not JSON: expecting property name enclosed in double quotes",
        "a.jsonl:4: messages: has no user message",
    ]


# --- agents-cli -----------------------------------------------------------------------------


def trace(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"eval_cases": list(cases)}


ANSWERED = {
    "eval_case_id": "a",
    "prompt": content("user", {"text": "Scan it"}),
    "responses": [{"response": content("model", {"text": "Done."})}],
    "agent_data": {
        "agents": {"scanner": {"agent_id": "scanner"}},
        "turns": [
            {
                "turn_index": 0,
                "events": [
                    event("scanner", {"function_call": {"name": "scan", "args": {"x": 1}}}),
                    event("scanner", {"function_response": {"name": "scan", "response": {"y": 2}}}),
                    event("scanner", {"text": "Done."}),
                ],
            }
        ],
    },
}


def test_a_trace_of_agents_cli_is_a_conversation(tmp_path: Path) -> None:
    (found,) = recorded(AgentsCliTrace, tmp_path, trace(ANSWERED))
    (turn,) = found.invocations or ()
    assert (found.eval_id, turn.user, turn.response) == ("a", "Scan it", "Done.")
    assert [tuple(call) for call in turn.tool_calls] == [("scan", {"x": 1}, {"y": 2})]


def test_an_answer_that_only_responses_hold_is_the_last_one(tmp_path: Path) -> None:
    events = [event("user", {"text": "Scan it"}), event("bot", {"text": "Sure?"})]
    data = {"turns": [{"events": events}, {"events": [event("user", {"text": "Yes"})]}]}
    (found,) = recorded(AgentsCliTrace, tmp_path, trace({**ANSWERED, "agent_data": data}))
    assert texts(found) == [("Scan it", "Sure?"), ("Yes", "Done.")]
    (found,) = recorded(AgentsCliTrace, tmp_path, trace({**ANSWERED, "agent_data": None}))
    assert texts(found) == [("Scan it", "Done.")]


def test_what_is_wrong_with_a_trace_of_agents_cli_is_named(tmp_path: Path) -> None:
    wrong = trace({"responses": []}, {"eval_case_id": 5, "prompt": {}}, ANSWERED)
    assert refused(AgentsCliTrace, tmp_path, wrong) == [
        "a.json:1: eval_cases[0]: has neither a 'prompt' nor a user message in 'agent_data'",
        "a.json:1: eval_cases[1].eval_case_id: expected text, found 5",
    ]


@pytest.mark.parametrize(
    ("head", "is_trace"),
    [
        (trace(ANSWERED), True),
        (trace({**ANSWERED, "responses": []}), False),
        (trace({"eval_id": "a", "responses": [1]}), False),
        (trace(), False),
        ([ANSWERED], False),
    ],
)
def test_only_what_an_agent_answered_is_a_trace(head: Any, *, is_trace: bool) -> None:
    assert AgentsCliTrace.sniff(head) is is_trace


# --- ADK's sessions ---------------------------------------------------------------------------

SESSION = {
    "id": "s1",
    "app_name": "dice",
    "userId": "u",
    "state": {"rolled": 4},
    "events": [
        event("user", {"text": "Roll"}),
        event("bot", {"functionCall": {"id": "1", "name": "roll", "args": {}}}),
        event("bot", {"functionResponse": {"id": "1", "response": {"result": 4}}}),
        event("bot", {"text": "A"}, partial=True),
        event("bot", {"text": "A 4."}, usageMetadata={"promptTokenCount": 7}),
    ],
}


@pytest.mark.parametrize("value", [SESSION, [SESSION]])
def test_a_session_of_adk_is_a_conversation(tmp_path: Path, value: object) -> None:
    (found,) = recorded(AdkSession, tmp_path, value)
    (turn,) = found.invocations or ()
    assert (turn.user, turn.response) == ("Roll", "A 4.")
    assert [tuple(call) for call in turn.tool_calls] == [("roll", {}, {"result": 4})]
    assert (found.eval_id, found.session, found.final_state) == (None, "s1", {"rolled": 4})
    assert [event.usage_metadata for event in turn.events or ()][-1] == {"promptTokenCount": 7}


def test_a_session_without_a_message_is_an_error(tmp_path: Path) -> None:
    (found,) = recorded(AdkSession, tmp_path, {"id": "s", "events": []})
    assert found.error == "the session has no user message"


def test_what_is_wrong_with_a_session_is_named(tmp_path: Path) -> None:
    wrong = {"id": 5, "events": [{"author": "user", "content": {"parts": 5}}]}
    assert refused(AdkSession, tmp_path, wrong) == [
        "a.json:1: id: expected text, found 5",
        "a.json:1: events[0].content.parts: expected a list, found 5",
    ]
    assert refused(AdkSession, tmp_path, [SESSION, {}])[0] == "a.json:1: [1]: 'id' is missing"


@pytest.mark.parametrize(
    ("reader", "head", "fits"),
    [
        (AdkSession, SESSION, True),
        (AdkSession, [SESSION], True),
        (AdkSession, {"id": "s", "events": [{"name": "x"}]}, False),
        (AdkSession, {"id": "s"}, False),
        (AdkSession, [], False),
        (AdkResult, {"eval_case_results": []}, True),
        (AdkResult, '{"eval_set_result_id": 1}', True),
        (AdkResult, "text", False),
        (AdkResult, {"eval_cases": []}, False),
        (OpenAIMessages, TALK, True),
        (OpenAIMessages, [TALK], True),
        (OpenAIMessages, [TALK["messages"]], True),
        (OpenAIMessages, TALK["messages"], True),
        (OpenAIMessages, {"messages": []}, False),
        (OpenAIMessages, [{"role": "user", "parts": []}], False),
        (OpenAIMessages, None, False),
    ],
)
def test_a_format_is_told_from_the_beginning(
    reader: type[RecordingReader], head: Any, *, fits: bool
) -> None:
    assert reader.sniff(head) is fits


@pytest.mark.parametrize("reader", [OpenAIMessages, AgentsCliTrace])
def test_a_file_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: type[RecordingReader]
) -> None:
    monkeypatch.setattr(_recording_reading, "MAX_TEXT", 3)
    (message,) = refused(reader, tmp_path, "[]  ")
    assert message.startswith("a.json:1: is larger than 0 MiB, the limit for recordings")


# --- AgentFlow ------------------------------------------------------------------------------

CALL = {"name": "track", "args": {"order": 9}, "call_id": "1", "result": "Oslo"}
TURN = {
    "turn_index": 0,
    "user_input": "Where is 9?",
    "agent_response": "In Oslo.",
    "tool_calls": [CALL, {"name": "look", "args": {}, "call_id": None, "result": None}],
    "node_visits": ["MAIN", "TOOL", "MAIN"],
    "trajectory_steps": 4,
}
"""As AgentFlow 0.10.1 writes it."""


def report(*cases: dict[str, Any]) -> dict[str, Any]:
    results = [{"passed": True, "criterion_results": [], "error": None, **each} for each in cases]
    return {"eval_set_id": "s", "eval_set_name": "", "results": results, "summary": {}}


def test_a_report_of_agentflow_is_what_the_agent_did(tmp_path: Path) -> None:
    case = {"eval_id": "tracks", "duration_seconds": 0.25, "turn_results": [TURN]}
    value = report(case, case, {"eval_id": "broken", "error": "no network"})
    assert AgentFlowReport.sniff(value)

    first, second, broken = recorded(AgentFlowReport, tmp_path, value)

    assert [(each.eval_id, each.repeat) for each in (first, second)] == [
        ("tracks", 0),
        ("tracks", 1),
    ]
    assert texts(first) == [("Where is 9?", "In Oslo.")]
    (turn,) = first.invocations or ()
    assert turn.tool_calls == (("track", {"order": 9}, {"result": "Oslo"}), ("look", {}, None))
    assert (turn.nodes, turn.duration) == (("MAIN", "TOOL", "MAIN"), 0.25)
    assert (broken.eval_id, broken.error) == ("broken", "no network")


@pytest.mark.parametrize("calls", [{}, {"tool_calls": None}])
def test_a_turn_of_agentflow_without_calls_and_nodes_does_not_report_them(
    tmp_path: Path, calls: dict[str, Any]
) -> None:
    said = {"user_input": "Hi", "agent_response": "Hello", **calls}
    value = report({"eval_id": "a", "turn_results": [said]})
    (found,) = recorded(AgentFlowReport, tmp_path, value)
    (turn,) = found.invocations or ()

    assert (turn.unseen, turn.intermediate_data, turn.nodes) == (True, None, None)


def test_results_of_several_evalsets_with_the_same_id_are_not_told_apart(tmp_path: Path) -> None:
    same, other = ({"eval_id": each, "turn_results": [TURN]} for each in ("case_1", "case_2"))
    value = {**report(same, other, same), "eval_set_id": "combined_eval"}
    first, alone, second = recorded(AgentFlowReport, tmp_path, value)

    assert (alone.eval_id, alone.error) == ("case_2", None)
    for number, each in enumerate((first, second)):
        assert (each.eval_id, each.repeat, each.invocations) == ("case_1", number, None)
        assert each.error
        assert each.error.startswith("AgentFlow's report has several results of 'case_1' and does")


def test_a_report_of_agentflow_must_be_right(tmp_path: Path) -> None:
    wrong = report({"eval_id": "a", "turn_results": [{**TURN, "user_input": 1}]})
    (said,) = refused(AgentFlowReport, tmp_path, wrong)
    assert "results[0].turn_results[0].user_input: expected text, found 1" in said
    assert refused(AgentFlowReport, tmp_path, {"results": 1}) == ["a.json:1: has no list 'results'"]
