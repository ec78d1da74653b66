"""What another tool recorded is scored against cases that somebody wrote by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project
from support.span_language import console, otlp, printed, span

CASES = """\
- id: paris
  prompt: Weather in Paris?
  expected: It rains in Paris.
  expected_tools: [{name: weather, args: {city: Paris}}]
- id: oslo
  prompt: Weather in Oslo?
  expected: It snows in Oslo.
  expected_tools: [{name: weather, args: {city: Oslo}}]
"""
CONFIG = """\
version: 1
name: weather
agents:
  bot: {recorded: trace.json}
evalsets:
  smoke: cases.yaml
criteria:
  tool_trajectory_avg_score: 1.0
  response_match_score: 0.5
"""


def run_of(city: str, answer: str) -> tuple[Any, ...]:
    """Return the spans of one run of an agent."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Weather in {city}?"}]}]
    spoke = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    ran = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.arguments": json.dumps({"city": city}),
    }
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(spoke),
    }
    agent = {"gen_ai.operation.name": "invoke_agent"}
    return (
        span(f"agent {city}", 0, 3, agent, trace=city),
        span(f"tool {city}", 1, 2, ran, trace=city, parent=f"agent {city}"),
        span(f"chat {city}", 2, 3, chat, trace=city, parent=f"agent {city}"),
    )


SPANS = (*run_of("Paris", "It rains in Paris."), *run_of("Oslo", "The sun is shining."))


def messages(city: str, answer: str) -> dict[str, Any]:
    call = {"id": "1", "function": {"name": "weather", "arguments": json.dumps({"city": city})}}
    return {
        "messages": [
            {"role": "user", "content": f"Weather in {city}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "grey"},
            {"role": "assistant", "content": answer},
        ]
    }


TALKS = [messages("Paris", "It rains in Paris."), messages("Oslo", "The sun is shining.")]


@pytest.fixture
def weather(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Project:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    project.config(CONFIG)
    (project.folder / "cases.yaml").write_text(CASES)
    return project


@pytest.mark.parametrize(
    "text",
    [json.dumps(otlp(*SPANS)), printed(console(*SPANS)), json.dumps(TALKS)],
    ids=["otlp", "console", "openai"],
)
def test_what_another_tool_recorded_is_scored(weather: Project, text: str) -> None:
    (weather.folder / "trace.json").write_text(text)
    ended = weather.ci_eval("run")
    assert ended.code == 1
    scores = weather.scores()
    assert scores["paris"] == {"tool_trajectory_avg_score": 1, "response_match_score": 1}
    assert scores["oslo"]["tool_trajectory_avg_score"] == 1
    assert scores["oslo"]["response_match_score"] == 0


@pytest.mark.parametrize("reasons", ["max_tokens", ["max_tokens"]])
def test_why_a_recorded_model_ended_is_read(weather: Project, reasons: Any) -> None:
    ran = run_of("Paris", "It rains")
    ended = {"gen_ai.response.finish_reasons": reasons}
    chat = span(
        "chat Paris", 2, 3, {**ran[2].attributes, **ended}, trace="Paris", parent="agent Paris"
    )
    (weather.folder / "trace.json").write_text(json.dumps(otlp(*ran[:2], chat, *SPANS[3:])))
    weather.ci_eval("run")
    paris, oslo = weather.run_json()["results"]
    assert (paris.get("cut_off"), oslo.get("cut_off", [])) == (["max_tokens"], [])


@pytest.mark.parametrize(
    ("recorded", "code"), [({}, 6), ({"intermediate_data": {"tool_uses": []}}, 0)]
)
def test_a_file_without_any_record_of_tool_calls_does_not_show_that_there_were_none(
    weather: Project, recorded: dict[str, Any], code: int
) -> None:
    turn = {
        "user_content": {"parts": [{"text": "Hi"}]},
        "final_response": {"parts": [{"text": "Hello"}]},
    }
    lines = [
        {"eval_id": "a", "invocations": [turn]},
        {"eval_id": "b", "invocations": [{**turn, **recorded}]},
    ]
    (weather.folder / "trace.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    case = "{{id: {0}, prompt: Hi, expected: Hello, expected_tools: []}}"
    (weather.folder / "cases.yaml").write_text(f"[{case.format('a')}, {case.format('b')}]")
    assert weather.ci_eval("run").code == code


def test_a_case_that_nobody_recorded_is_never_green(weather: Project) -> None:
    (weather.folder / "trace.json").write_text(json.dumps(otlp(*SPANS[:3])))
    ended = weather.ci_eval("run")
    assert ended.code == 6
    [error] = [each["error"] for each in weather.run_json()["results"] if each["error"]]
    assert error["kind"] == "not_recorded"
    assert "exactly the same user messages" in error["message"]


def test_what_was_recorded_may_be_what_is_expected(weather: Project) -> None:
    (weather.folder / "trace.json").write_text(json.dumps(TALKS))
    weather.config(CONFIG.replace("cases.yaml", "trace.json"))
    ended = weather.ci_eval("run")
    assert ended.code == 0
    assert len(weather.scores()) == 2


def test_a_table_and_a_list_of_cases_are_validated(weather: Project) -> None:
    (weather.folder / "cases.csv").write_text("prompt,answer\nHi,Hello\n")
    ended = weather.ci_eval("validate", str(weather.folder / "cases.csv"))
    assert ended.code == 4
    assert "cases.csv:1: column 'answer': unknown column; use 'expected'" in ended.err
    ended = weather.ci_eval("validate", str(weather.folder / "cases.yaml"))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("cases.yaml: evalset, 2 cases: ok\n")
