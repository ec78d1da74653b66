"""Write the inputs that fuzzing starts from: the project's own files, and what it writes itself.

    python tests/fuzz/seeds.py

Files whose names do not begin with `seed-` are inputs that fuzzing has found, and stay.
"""

import io
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from fuzz.run import CORPUS
from fuzz.targets import CASE
from support import span_language
from support.project import CASES, CONFIG, case, content, turn

from ci_eval.baselines import check_run_store
from ci_eval.baselines._baseline_document import stored_runs
from ci_eval.baselines._runs_index import index_text
from ci_eval.cli.main import main
from ci_eval.llm.cassette import Cassette
from ci_eval.llm.gateway.answers import Answer as ModelAnswer
from ci_eval.llm.gateway.cassette_lines import Place, digest_of_trial
from ci_eval.llm.gateway.model_cassette import ModelCassette
from ci_eval.pull_requests import comment_layout, comment_sections
from ci_eval.records.cases import FunctionCall, Invocation
from ci_eval.records.questions import Answer
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run_files.journal import Journal
from ci_eval.run_files.resume import Answered, Begun
from ci_eval.run_files.run_summary import note
from ci_eval.text.fingerprint import of_case
from ci_eval.text.redact import Secrets

COMMIT = "c" * 40
HELLO = {"role": "user", "content": "Hello"}
CALL = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
TALK = [
    {"role": "system", "content": "Be kind."},
    HELLO,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": '{"done": true}'},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello, how can I help?"}]},
]


def write(target: str, name: str, data: str | bytes | dict[str, Any] | list[Any]) -> None:
    """Write one seed."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(data, dict | list):
        data = json.dumps(data)
    path = folder / f"seed-{name}"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def written() -> None:
    """Write what the product itself writes."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        config = (
            CONFIG + "baseline: {store: file, path: baseline.json}\nrun: {repeats: 2}\n"
            "gate: {mode: both, on_inconclusive: rerun, rerun_budget: 3}\n"
        )
        Path("ci-eval.yaml").write_text(config)
        evalset = {"eval_set_id": "smoke", "eval_cases": CASES}
        Path("smoke.evalset.json").write_text(json.dumps(evalset))
        _traces("Hello, how can I help?")
        _run("run", "--out", "before")
        _run("baseline", "save", "before")
        _run("run", "--out", "before")
        _run("baseline", "save", "before")
        _traces("Go away.")
        _run("run", "--out", "after")
        for name, target in (("run.json", "run"), ("report.json", "report")):
            for which in ("before", "after"):
                write(target, f"{which}.json", Path(which, name).read_bytes())
        write("strangers_report", "after.json", Path("after/report.json").read_bytes())
        _run("plan", "--shards", "2", "--out", "plan.json")
        _run("run", "--shard", "1/2", "--plan", "plan.json", "--out", "shard")
        write("shard_plan", "two.json", Path("plan.json").read_bytes())
        again = {"rounds": [1, 2], "pairs": [["bot", "smoke"]]}
        again["confirming"] = {"bot": {"smoke": {"greets": [0, 3]}}}
        redraw = {"redraw": {"number": 1, "reports": "0", "change": again, "base": again}}
        write("shard_plan", "redraw.json", json.loads(Path("plan.json").read_text()) | redraw)
        write("shard_report", "one.json", Path("shard/shard.json").read_bytes())
        write("baseline", "two.json", Path("baseline.json").read_bytes())
        write("config", "written.yaml", config)
        _packed(Path("baseline.json"), Path("after/report.json"), Path("before/run.json"))
        _kept()
    os.chdir(ROOT)


def _run(*arguments: str) -> None:
    quiet = io.StringIO()
    with redirect_stdout(quiet), redirect_stderr(quiet):
        main(arguments)


def _traces(greeting: str) -> None:
    said = [case("greets", turn("Hello", greeting)), *CASES[1:]]
    rows = [
        {"eval_id": each["eval_id"], "repeat": repeat, "invocations": each["conversation"]}
        for each in said
        for repeat in range(6)
    ]
    Path("traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _packed(baseline: Path, report: Path, run: Path) -> None:
    for target, name, path in (
        ("baseline_archive", "baseline.json", baseline),
        ("baseline_archive", "run.json", run),
        ("report_archive", "report.json", report),
    ):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        write(target, f"{name}.zip", packed.getvalue())
    document = json.loads(baseline.read_bytes())
    document["runs"] = [{**document["runs"][0], "commit": COMMIT}]
    document["results"] = [each for each in document["results"] if each[0] == 0]
    write("digest", "baseline.txt", check_run_store._digest(json.dumps(document).encode()))
    noted = [note(past) for past in stored_runs(baseline, "baseline.json")]
    index = [each.model_copy(update={"commit": COMMIT}) for each in noted]
    write("index", "two.json", index_text("shop", index))


def _kept() -> None:
    key = TrialKey(agent="bot", evalset="smoke", case="greets")
    trial = Trial(key, CASE, of_case(CASE))
    said = Invocation.model_validate(
        {**turn("Hello", "Hi"), "duration": 1.5, "cost_usd": 0.01, "nodes": ["a"]}
    )
    call = FunctionCall(id="1", name="ask", args={"x": 1})
    waiting = said.model_copy(update={"waits_for": (call,)})
    with Journal(Path("kept/traces.jsonl"), suite="shop", resume=False) as journal:
        begun = Begun(
            invocations=(waiting,), memento={"a": 1}, answered=(Answered(call=call, response={}),)
        )
        journal.keep(trial, begun)
        write("underway", "one.jsonl", Path("kept/underway.jsonl").read_bytes())
        trace = Trace(key=key, invocations=(said,), final_state={"a": 1}, duration_s=1.5)
        journal.add(trace, trial.fingerprint)
        other = trace.model_copy(update={"key": key.model_copy(update={"repeat": 1})})
        journal.add(other, trial.fingerprint)
        write("traces", "two.jsonl", Path("kept/traces.jsonl").read_bytes())
        write("recording_lines", "two.jsonl", Path("kept/traces.jsonl").read_bytes())
    kept = Cassette(Path("cassette.jsonl"), shown="cassette.jsonl")
    kept.begin()
    for at in range(2):
        answer = Answer(text='{"valid": true}', input_tokens=7, output_tokens=3, model="m")
        kept.add(f"{at}" * 32, answer, about="adk/final_response_match_v2")
    write("cassette", "two.jsonl", Path("cassette.jsonl").read_bytes())
    calls = ModelCassette(Path("models.jsonl"), shown="models.jsonl", secrets=Secrets({}))
    calls.begin()
    key = TrialKey(agent="bot", evalset="smoke", case="greets")
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    events = f"data: {json.dumps({'model': 'm', 'usage': usage})}\n\ndata: [DONE]\n\n"
    for at, kept_answer in enumerate(
        (
            ModelAnswer(
                200, "application/json", json.dumps({"model": "m", "usage": usage}).encode()
            ),
            ModelAnswer(200, "text/event-stream", events.encode()),
            ModelAnswer(400, "text/plain", b"no"),
        )
    ):
        place = Place(digest_of_trial(key), f"{at}" * 32, at)
        request = {"model": "m", "messages": [{"role": "user", "content": f"Hello {at}"}]}
        calls.add(key, place, request, kept_answer)
    write("model_cassette", "three.jsonl", Path("models.jsonl").read_bytes())


def recordings() -> None:
    """Write what other tools leave of a conversation."""
    lines = [
        {"eval_id": "greets", "invocations": [turn("Hello", "Hi")], "final_state": {"a": 1}},
        {"eval_id": "greets", "error": "no answer", "error_kind": "timeout"},
    ]
    write("recording_lines", "hand.jsonl", "".join(json.dumps(each) + "\n" for each in lines))
    events = {
        "invocation_events": [
            {
                "author": "a",
                "content": content("x", "model"),
                "usage_metadata": {"prompt_token_count": 5, "candidates_token_count": 7},
            }
        ]
    }
    per_turn = {"actual_invocation": {**turn("Hello", "Hi"), "intermediate_data": events}}
    results = [{"eval_id": "greets", "eval_metric_result_per_invocation": [per_turn]}] * 2
    called = {"name": "refund", "args": {"order": 7}, "call_id": "1", "result": "done"}
    turns = [{"user_input": "Hello", "agent_response": "Hi", "tool_calls": [called]}]
    cases = [{"eval_id": "greets", "criterion_results": [], "turn_results": turns}]
    write("recording_agentflow_report", "one.json", {"eval_set_id": "s", "results": cases})
    write("recording_adk_result", "one.json", {"eval_set_id": "s", "eval_case_results": results})
    parts = [{"function_call": {"id": "1", "name": "refund", "args": {"order": 7}}}]
    answers = [{"function_response": {"id": "1", "name": "refund", "response": {"a": 1}}}]
    session = {
        "id": "greets",
        "state": {"a": 1},
        "events": [
            {"author": "user", "content": content("Hello", "user"), "timestamp": 1.7e9},
            {"author": "a", "content": {"parts": parts}, "usage_metadata": {"x": 1}},
            {"author": "a", "content": {"parts": answers}, "partial": False},
            {"author": "a", "content": content("Hello, how can I help?", "model")},
        ],
    }
    write("recording_adk_session", "one.json", session)
    write("recording_adk_session", "list.json", [session, session])
    turns = [{"events": session["events"]}]
    cli = {
        "eval_case_id": "greets",
        "agent_data": {"turns": turns},
        "responses": [{"response": content("x", "model")}],
    }
    write("recording_agents_cli", "one.json", {"eval_cases": [cli, {**cli, "eval_case_id": None}]})
    talk = {"messages": TALK, "eval_id": "greets", "metadata": {"a": 1}}
    write("recording_openai", "two.jsonl", f"{json.dumps(talk)}\n{json.dumps(talk)}\n")
    write("recording_otel", "otlp.json", span_language.otlp(*_spans()))
    write("recording_otel", "console.json", "\n".join(json.dumps(e) for e in _console(_spans())))
    write("recording_openinference", "otlp.json", span_language.otlp(*_phoenix()))


def _console(those: list[span_language.Sketch]) -> Iterator[Any]:
    found = span_language.console(*those)
    yield from found if isinstance(found, list) else [found]


def _spans() -> list[span_language.Sketch]:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Hello"}]}]
    spoke = [{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(spoke),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.call.arguments": '{"order": 7}',
        "gen_ai.tool.call.result": "done",
    }
    agent = {"gen_ai.operation.name": "invoke_agent", "eval_id": "greets"}
    return [
        span_language.span("agent", 0, 3, agent),
        span_language.span("tool", 1, 2, tool, parent="agent"),
        span_language.span("chat", 2, 3, chat, parent="agent"),
    ]


def _phoenix() -> list[span_language.Sketch]:
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hello",
        "llm.output_messages.0.message.content": "Hi",
        "llm.token_count.prompt": 7,
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "refund", "input.value": '{"a": 1}'}
    agent = {
        "openinference.span.kind": "AGENT",
        "input.value": "Hello",
        "metadata": '{"eval_id": "greets"}',
    }
    return [
        span_language.span("agent", 0, 3, agent),
        span_language.span("tool", 1, 2, tool, parent="agent"),
        span_language.span("model", 2, 3, model, parent="agent"),
    ]


def evalsets() -> None:
    """Write evalsets of every format."""
    adk = {"eval_set_id": "smoke", "name": "s", "eval_cases": [*CASES[:2]]}
    adk["eval_cases"][0] = {
        **CASES[0],
        "session_input": {"app_name": "a", "user_id": "u", "state": {"x": 1}},
        "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "It is kind."}}],
        "tags": ["t"],
        "tool_mocks": {"tools": {"refund": [{"args": {"a": 1}, "result": 1}]}},
        "assertions": [{"contains": "x"}],
    }
    write("evalset_adk", "two.json", adk)
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Greet.", "user_persona": "NOVICE"}
    cases = [{"evalId": "s", "conversationScenario": scenario, "creationTimestamp": 1.5}]
    write("evalset_adk", "scenario.json", {"eval_set_id": "s", "eval_cases": cases})
    old = {
        "query": "Hello",
        "reference": "Hi",
        "expected_tool_use": [{"tool_name": "t", "tool_input": {}}],
    }
    write("evalset_adk_legacy", "list.json", [old, old])
    named = {
        "name": "n",
        "data": [old],
        "initial_session": {"state": {}, "app_name": "a", "user_id": "u"},
    }
    write("evalset_adk_legacy", "named.json", [named])
    for file in sorted((ROOT / "tests/vectors").glob("agentflow-*.evalset.json")):
        write("evalset_agentflow", "one.json", file.read_bytes())
    prompt = {"eval_case_id": "a", "prompt": content("Hello", "user")}
    write("evalset_agents_cli", "one.json", {"eval_cases": [prompt]})
    for file in sorted(ROOT.glob("examples/*/evals/*.yaml")):
        write("evalset_cases", file.name, file.read_bytes())
    write("evalset_cases", "full.yaml", _OURS)
    write("evalset_table", "one.csv", _TABLE)
    talk = {"messages": TALK, "id": "a", "tags": ["t"]}
    write("evalset_openai", "two.jsonl", f"{json.dumps(talk)}\n{json.dumps(talk['messages'])}\n")
    tool = {"id": "1", "name": "refund", "arguments": '{"order": 7}', "result": "done"}
    message = {"role": "user", "content": "Hello"}
    given = {"invocationId": "i", "userContent": message, "finalResponse": message, "tools": [tool]}
    trpc = {"evalId": "a", "conversation": [given], "sessionInput": {"appName": "a", "userId": "u"}}
    write("evalset_trpc", "one.json", {"evalSetId": "s", "evalCases": [trpc]})


_OURS = """\
name: ours
cases:
  - id: refund
    tags: [billing]
    state: {user: vip}
    turns:
      - prompt: Refund order 7.
        expected_tools: [lookup, {name: refund, args: {order: 7}}]
      - prompt: Thank you!
        expected: You are welcome.
        expected_nodes: [a, b]
    final_state: {refunded: true}
    assert: [{contains: welcome}, {tokens: 100}]
    rubrics: [It is kind., {text: x, id: r, type: TRAJECTORY_QUALITY}]
    tool_mocks: {tools: {lookup: {result: {status: delivered}}}, unmatched: pass}
    human_answers: {refund: {results: [true, false]}}
  - id: books
    scenario: {start: I am hungry., plan: Book a table., goals: [a], max_turns: 4, persona: NOVICE}
    rerun_on_resume: true
"""
_TABLE = (
    "id,prompt,expected,tags,expected_tools,expected_nodes,state.user,final_state.x,assert.contains\n"
    'a,Hello,"Hi, ""you""",a;b,refund;lookup,n,vip,7,welcome\n'
    'b,"Two\nlines",,,"[{""name"": ""t"", ""args"": {}}]",,true,{},x\n'
)


def configurations() -> None:
    """Write configurations, eval configs, labels and an event."""
    for file in sorted(ROOT.glob("examples/*/ci-eval.yaml")):
        write("config", f"{file.parent.name}.yaml", file.read_bytes())
    write("config", "full.yaml", _CONFIG)
    for file in sorted((ROOT / "tests/unit/config").glob("agentflow-*.eval_config.json")):
        write("eval_config_agentflow", "one.json", file.read_bytes())
    write("eval_config_adk", "one.json", _ADK)
    lines = [
        {"id": "a", "case": "greets", "evalset": "smoke", "agent": "bot", "label": True},
        {"case": "greets", "label": [0.7, "fail"], "repeat": 1, "criterion": "c"},
    ]
    write("labels", "two.jsonl", "".join(json.dumps(each) + "\n" for each in lines))
    pull = {
        "number": 7,
        "merged": True,
        "base": {"ref": "main", "sha": COMMIT},
        "head": {"sha": COMMIT},
    }
    write("given_case", "adk.json", CASES[1])
    write("given_case", "ours.json", {"id": "a", "prompt": "Hello", "expected": "Hi"})
    write("given_adk", "session.json", {"app_name": "a", "user_id": "u", "state": {"x": 1}})
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Greet.", "user_persona": "NOVICE"}
    write("given_adk", "scenarios.json", {"scenarios": [scenario]})
    jobs = [
        comment_sections.Section("shop", name, outcome, f"It {outcome}.", COMMIT, run=7)
        for name, outcome in (("a", "passed"), ("b (x, y)", "failed"))
    ]
    write("comment", "two.md", comment_layout.compose(jobs, 65_536))
    write("github_event", "pull.json", {"pull_request": pull, "action": "opened"})


_ADK = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
        "response_match_score": 0.8,
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 3},
        },
        "rubric_based_final_response_quality_v1": {
            "threshold": 0.8,
            "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "It is kind."}}],
        },
        "mine": 0.3,
    },
    "custom_metrics": {
        "mine": {
            "code_config": {"name": "a.b"},
            "metric_info": {"metric_value_info": {"interval": {"min_value": 0, "max_value": 5}}},
        }
    },
    "user_simulator_config": {"model": "gemini-2.5-flash", "max_allowed_invocations": 20},
}
_CONFIG = """\
version: 1
name: shop
dialect: adk
agents:
  bot: {recorded: traces.jsonl}
  web: {http: "http://127.0.0.1:1/x"}
evalsets:
  smoke: {path: smoke.evalset.json, cases: ["gre*"]}
  all: "*.evalset.json"
criteria:
  tool_trajectory_avg_score: {threshold: 1.0, match_type: IN_ORDER}
  response_match_score: 0.8
  no_email: {use: ci/regex, pattern: "x+@", threshold: 1, tier: warn}
  ci/latency_s: {max_growth: 0.2}
  ci/cost_usd: {threshold: 0.1}
  ci/tokens: {}
  ci/numeric: {tolerance: 0.1, threshold: 1}
  final_response_match_v2: 0.5
judge: {provider: scripted, samples: 5, answers: [{criterion: c, contains: x, answer: [y]}]}
run: {repeats: 2, concurrency: 8, timeout_s: 120, retries: 1}
baseline: {store: file, path: b.json, window: 5, search: 50}
gate:
  mode: both
  min_pass_rate: 0.9
  min_score: {response_match_score: 0.5}
  false_block: 0.02
  max_drop: 0.02
  max_errors: 1
  on_inconclusive: rerun
  rerun_budget: 3
  accept: [{case: "a*", criterion: response_match_score, reason: r, until: 2026-12-01}]
  quarantine: [{case: b, criterion: response_match_score, reason: r, owner: o, until: 2026-12-01}]
matrix: [{agents: [bot], evalsets: [smoke], criteria: [response_match_score]}]
reports: [junit, markdown, summary, annotations]
"""


if __name__ == "__main__":
    for old in CORPUS.glob("*/seed-*"):
        old.unlink()
    written()
    recordings()
    evalsets()
    configurations()
