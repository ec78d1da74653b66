"""What is fuzzed: every reader of files that others may have written, with what is done next.

A target takes the path of a file.  It goes through what a command does with it, and lets through
no error but those that a command tells its user of (`CiEvalError`) or that become the error of
one trial (`TrialError`).
"""

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.baselines import artifact_store, check_run_store
from ci_eval.baselines._baseline_document import stored_runs, with_run
from ci_eval.baselines._runs_index import index_text, read_index
from ci_eval.cli import console, validate_command
from ci_eval.cli.baseline import baseline_command_output
from ci_eval.cli.evalset import added_cases
from ci_eval.cli.gate import (
    comparison_output,
    gate_command,
    power_analysis,
    power_output,
    verdict_explanation,
)
from ci_eval.cli.gate.power_costs import taken
from ci_eval.cli.judge_check.calibrated_criterion import choose_of
from ci_eval.cli.judge_check.human_labels import read_labels
from ci_eval.cli.judge_check.label_lines import POINTERS
from ci_eval.config.config_schema import GateOptions
from ci_eval.config.open_evalset import open_evalset
from ci_eval.forge.lineage import Lineage, event
from ci_eval.llm.cassette import Cassette
from ci_eval.llm.gateway.answers import restored, used
from ci_eval.llm.gateway.model_cassette import ModelCassette
from ci_eval.llm.gateway.nearest_request import nearest
from ci_eval.llm.gateway.providers import checked_call, route
from ci_eval.llm.gateway.request_digest import digest_of, normalised
from ci_eval.plugins import points
from ci_eval.pull_requests import comment_layout, comment_sections, report_artifacts
from ci_eval.pull_requests.report_artifacts import LIMITS
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import CiEvalError, TrialError
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected, collected_from
from ci_eval.run.report_assembly import compare_and_decide
from ci_eval.run.rerun import Redraw
from ci_eval.run.score import score
from ci_eval.run_files.journal import Journal
from ci_eval.run_files.report_file import read_report, report_in
from ci_eval.run_files.run_file import read_run, replacing
from ci_eval.run_files.run_summary import note, note_run
from ci_eval.run_files.score_table import Past
from ci_eval.run_files.shard_files import read_plan, read_shard_report
from ci_eval.runtime.context import RunContext
from ci_eval.text.fingerprint import of_case, of_question
from ci_eval.text.json_text import RESULT_DEPTH, parse_json
from ci_eval.text.redact import Secrets

SHOWN = "given"
"""What the user calls the file."""
EXPECTED = (CiEvalError, TrialError, artifact_store._SkippedError)
RULES = (
    GateOptions(mode="both", on_inconclusive="rerun", rerun_budget=3),
    GateOptions(mode="threshold"),
)
CASE = EvalCase.model_validate(
    {
        "eval_id": "greets",
        "conversation": [
            {
                "user_content": {"parts": [{"text": "Hello"}]},
                "final_response": {"parts": [{"text": "Hello, how can I help?"}]},
            }
        ],
    }
)
CRITERIA = {
    name: points.criterion[name].model_validate({"threshold": 0.5} if judged else {})
    for name, judged in (
        ("adk/tool_trajectory_avg_score", True),
        ("adk/response_match_score", True),
        ("ci/latency_s", False),
        ("ci/cost_usd", False),
        ("ci/total_tokens", False),
    )
    if name in points.criterion
}


class Target(NamedTuple):
    """One reader."""

    read: Callable[[Path], object]
    form: str = "json"
    """How inputs are changed: as `json`, as `jsonl`, as `yaml`, or as mere `bytes`."""


def attempt(target: Target, path: Path) -> None:
    """Read the file at `path`, as a command would; what is not expected is raised."""
    quiet = io.StringIO()
    with redirect_stdout(quiet), redirect_stderr(quiet):
        try:
            target.read(path)
        except EXPECTED as exc:
            message = str(exc)
            assert message.strip(), "an error that says nothing"
            assert len(message) < 400_000, "an error that says too much"


def context(path: Path) -> RunContext:
    return RunContext(env={"PATH": ""}, root=path.parent, now=lambda: 1.8e9)


# --- What a run leaves ----------------------------------------------------------------------


def run_json(path: Path) -> None:
    """`report`, `compare`, `baseline save` and the others that read a run."""
    observed = collected_from(read_run(path, shown=SHOWN))
    meta = observed.run.meta
    note_run(observed.run)
    past = Past(meta.model_copy(update={"run_id": "before"}), observed.tally.columns)
    for rules in RULES:
        report = compare_and_decide(observed, rules, Baseline([past], history=[note(past)]))
        _show(report, observed)
    out = path.with_name("stored")
    with replacing(out) as file:
        file.writelines(with_run(observed.run, (), Path(), SHOWN, window=1))
    assert stored_runs(out, SHOWN)[0].meta.run_id == meta.run_id, "what is stored is read again"


def _show(report: Any, observed: Collected) -> None:
    for name in points.reporter:
        for _ in points.reporter[name]().render(report, observed.run.results):
            pass
    comparison_output.show_explanation(verdict_explanation.explain(report))
    comparison_output.show_comparison(report, "the baseline")
    again = report_in(report.model_dump_json(), shown=SHOWN)
    assert again.verdict == report.verdict, "a report is read again"


def baseline(path: Path) -> None:
    """`baseline show`, `baseline diff`, `gate power`, and a run that is compared."""
    runs = stored_runs(path, SHOWN)
    before = Baseline(runs, history=[note(each) for each in runs])
    baseline_command_output.show_runs(
        baseline_command_output.shown_runs(before, "shop", 1.8e9), Lineage(), "shop"
    )
    known = taken(runs, before.history, None, judged=False)
    for past in runs[:1]:
        asked = power_analysis.Asked(past.meta.suite, RULES[0], past.meta.repeats, 5, 0.8, 0.05)
        power_output.show_outlook(power_analysis.outlook(asked, before, known))
        _compared(path, past, runs)


def _compared(path: Path, past: Past, runs: list[Past]) -> None:
    """Compare a run that is all as in the newest stored one."""
    from ci_eval.records.results import Run
    from ci_eval.run.collect import Tally

    meta = past.meta.model_copy(update={"run_id": "now", "suite": past.meta.suite})
    observed = Collected(Run(meta, lambda: iter(())), Tally(columns=past.columns))
    report = compare_and_decide(observed, RULES[0], Baseline(runs))
    _show(report, observed)
    for _ in with_run(observed.run, runs, path, SHOWN, window=5):
        pass


def index(path: Path) -> None:
    """The index of a data branch."""
    runs = read_index(path, "shop", shown=SHOWN)
    again = path.with_name("again.json")
    again.write_text(index_text("shop", runs))
    assert read_index(again, "shop", shown=SHOWN) == runs


def report_json(path: Path) -> None:
    """`gate explain`, of a report of one's own."""
    report = gate_command.report_of(str(path.rename(path.with_name("report.json"))), None)
    comparison_output.show_explanation(verdict_explanation.explain(report))
    comparison_output.show_comparison(report, "the baseline")


def strangers_report(path: Path) -> None:
    """`publish`, of a report that a fork's job left."""
    report = report_artifacts.checked(read_report(path, shown=SHOWN, limits=LIMITS), SHOWN)
    for name in points.reporter:
        if name != "junit":
            for _ in points.reporter[name]().render(report, lambda: iter(())):
                pass


def shard_plan(path: Path) -> None:
    """`run --shard`, of a plan."""
    plan = read_plan(path, shown=SHOWN)
    assert plan.manifest.differences(plan.manifest) == ""
    for each in plan.shards:
        sorted(each.places)
    for stored in (plan.redraw.change, plan.redraw.base) if plan.redraw else ():
        redraw = Redraw.of(stored)
        assert redraw == Redraw.of(redraw.stored())


def shard_report(path: Path) -> None:
    """`merge`, of what a shard says about itself."""
    report = read_shard_report(path, shown=SHOWN)
    other = report.manifest.model_copy(update={"suite": "", "criteria": {}})
    assert other.differences(report.manifest) or other == report.manifest
    assert str(report.shard)


def _trials() -> Iterator[Trial]:
    for agent in ("bot", "other"):
        for repeat in (0, 1):
            key = TrialKey(agent=agent, evalset="smoke", case="greets", repeat=repeat)
            yield Trial(key, CASE, of_case(CASE))


def journal(path: Path) -> None:
    """`run --resume`: of traces, and of conversations that were not over."""
    with Journal(path.rename(path.with_name("traces.jsonl")), suite="shop", resume=True) as kept:
        found = [(trial, kept.observed(trial)) for trial in _trials()]
        for trial, each in found:
            if isinstance(each, Trace):
                _score(trial, each)
                kept.add(each, trial.fingerprint)


def underway(path: Path) -> None:
    """`run --resume`: of conversations that were not over."""
    path.rename(path.with_name("underway.jsonl"))
    with Journal(path.with_name("traces.jsonl"), suite="shop", resume=True) as kept:
        for trial in _trials():
            each = kept.observed(trial)
            if each and not isinstance(each, Trace):
                kept.keep(trial, each)
    assert of_question(CASE)


def _score(trial: Trial, trace: Trace) -> None:
    result = asyncio.run(score(trial, trace, CRITERIA, {}))
    for each in result.scores:
        unexpected = ("OverflowError", "RecursionError", "MemoryError", "ValidationError")
        assert not each.reason.startswith(unexpected), each.reason
    stored = parse_json(result.model_dump_json(), max_depth=RESULT_DEPTH)
    assert type(result).model_validate(stored) == result, "a result is read again"


def cassette(path: Path) -> None:
    """Answers of judges."""
    kept = Cassette(path, shown=SHOWN)
    kept.load()
    for key in list(kept._positions):
        kept.get(key)
    kept.tidy()
    Cassette(path, shown=SHOWN).load()


def model_cassette(path: Path) -> None:
    """Calls of agents' models: what each answer says, and how near each request is to another."""
    kept = ModelCassette(path, shown=SHOWN, secrets=Secrets({"API_KEY": "hunter2-hunter2"}))
    kept.load()
    found = list(kept.calls())
    for each in found:
        for api, routed in ROUTES.items():
            body = {**each.request, "model": "m"}
            if call := checked_call(routed, body, {}):
                digest_of(normalised(call, (), "http://127.0.0.1:1/secret"))
                assert used(call, each.answer).model is not None, api
        assert kept.answer(each.place) == each.answer, "the request before it makes no difference"
        assert restored(each.answer.kept()).status == each.answer.status
        list(nearest(each.request, (other.request for other in found)))
    kept.keep([each.trial for each in found])
    again = ModelCassette(path, shown=SHOWN, secrets=Secrets({}))
    again.load()
    assert len(again) == len(kept), "a file that was sorted holds the same calls"


PATHS = {
    "gemini": "/gemini/v1/models/m:generateContent",
    "chat": "/openai/v1/chat/completions",
    "responses": "/openai/v1/responses",
    "messages": "/anthropic/v1/messages",
}
ROUTES = {
    api: routed
    for api, path in PATHS.items()
    if (routed := route(path, "", ("gemini", "openai", "anthropic")))
}


# --- What other tools leave -----------------------------------------------------------------


def recording(path: Path) -> None:
    """A recording of any format, replayed and scored."""
    agent = Recorded(recorded=path.name)
    here = context(path)
    list(agent.check(here))

    async def replay() -> None:
        async with agent.start(here) as running:
            for trial in _trials():
                try:
                    session = await running.open(trial)
                except TrialError:
                    continue
                held = session.held or ()
                trace = Trace(key=trial.key, invocations=held, final_state=await session.close())
                found.append((trial, trace))

    found: list[tuple[Trial, Trace]] = []
    asyncio.run(replay())
    for trial, trace in found:
        _score(trial, trace)


def evalset(path: Path) -> None:
    """An evalset of any format, as `validate` and `run` read it."""
    checked = validate_command.check(str(path), lambda _: context(path))
    checked.summary()
    if checked.kind == "evalset":
        opened = open_evalset(path, shown=SHOWN)
        for case in opened.cases():
            of_case(case)
            case.model_dump_json()


def config(path: Path) -> None:
    """A configuration, or ADK's or AgentFlow's eval config, as `validate` and `run` read it."""
    _beside(path)
    _checked(path)


def _beside(path: Path) -> None:
    """Write what a configuration may name, so that it is planned, too."""
    path.with_name("traces.jsonl").write_text('{"eval_id": "greets", "invocations": []}\n')
    evalset = {"eval_set_id": "smoke", "eval_cases": [CASE.model_dump(exclude_unset=True)]}
    path.with_name("smoke.evalset.json").write_text(json.dumps(evalset))


def _checked(path: Path) -> None:
    checked = validate_command.check(str(path), lambda _: context(path))
    console.say_problems(checked.problems)
    checked.as_json()


def criteria_file(path: Path) -> None:
    """An eval config that a configuration names."""
    _beside(path)
    _checked(path)
    for dialect in ("adk", "agentflow"):
        naming = path.with_name("ci-eval.yaml")
        naming.write_text(
            f"dialect: {dialect}\nagents: {{bot: {{recorded: traces.jsonl}}}}\n"
            f"evalsets: {{smoke: smoke.evalset.json}}\ncriteria: {{from: {path.name}}}\n"
        )
        _checked(naming)


def labels(path: Path) -> None:
    """Labels that people gave, for `judge check`."""
    run = path.with_name("run.json")
    run.write_text(_RUN)
    found = read_run(run, shown=SHOWN)
    read_labels(path, POINTERS, choose_of(found, "c", SHOWN), shown=SHOWN)


_RUN = (
    '{"schema_version":1,"meta":{"run_id":"r","suite":"shop","created":"2026-01-01T00:00:00+00:00",'
    '"version":"0","criteria":{"c":{"criterion":"adk/final_response_match_v2","threshold":0.5}}},'
    '"results":[]}'
)


def given_case(path: Path) -> None:
    """A case, for `evalset add` and `update`."""
    for case in added_cases.from_file(path, shown=SHOWN):
        of_case(case)


def given_adk(path: Path) -> None:
    """Scenarios and sessions, as ADK's own command takes them."""
    for read in (added_cases.read_session, added_cases.read_initial_session):
        with suppress(*EXPECTED):
            read(str(path))
    for case in added_cases.from_scenarios(str(path), None, now=1.8e9):
        of_case(case)


# --- What comes from GitHub -----------------------------------------------------------------


def github_event(path: Path) -> None:
    """What GitHub says of the event that a workflow runs for."""
    event({"GITHUB_EVENT_PATH": str(path)})


def baseline_archive(path: Path) -> None:
    """An artifact that holds a baseline."""
    note(artifact_store._read(path.read_bytes(), SHOWN))


def report_archive(path: Path) -> None:
    """An artifact that holds a report."""
    report_artifacts.read(path.read_bytes(), SHOWN)


def comment(path: Path) -> None:
    """The comment that is on a pull request already."""
    there = comment_sections.read("shop", path.read_bytes().decode(errors="replace"))
    if there:
        body = comment_layout.compose(comment_sections.merged(there), 65_536)
        assert comment_sections.read("shop", body), "what is posted is read again"


def digest(path: Path) -> None:
    """The text of a check run."""
    text = path.read_bytes().decode("latin-1")
    made = check_run_store._CheckRun.model_validate(
        {"id": 1, "name": "x", "output": {"text": text}}
    )
    check_run_store._past(made, "c" * 40)


TARGETS = {
    "run": Target(run_json),
    "baseline": Target(baseline),
    "index": Target(index),
    "report": Target(report_json),
    "strangers_report": Target(strangers_report),
    "shard_plan": Target(shard_plan),
    "shard_report": Target(shard_report),
    "traces": Target(journal, "jsonl"),
    "underway": Target(underway, "jsonl"),
    "cassette": Target(cassette, "jsonl"),
    "model_cassette": Target(model_cassette, "jsonl"),
    "recording_lines": Target(recording, "jsonl"),
    "recording_adk_result": Target(recording),
    "recording_adk_session": Target(recording),
    "recording_agentflow_report": Target(recording),
    "recording_agents_cli": Target(recording),
    "recording_openai": Target(recording, "jsonl"),
    "recording_otel": Target(recording),
    "recording_openinference": Target(recording),
    "evalset_adk": Target(evalset),
    "evalset_adk_legacy": Target(evalset),
    "evalset_agentflow": Target(evalset),
    "evalset_agents_cli": Target(evalset),
    "evalset_cases": Target(evalset, "yaml"),
    "evalset_openai": Target(evalset, "jsonl"),
    "evalset_trpc": Target(evalset),
    "evalset_table": Target(evalset, "bytes"),
    "config": Target(config, "yaml"),
    "eval_config_adk": Target(criteria_file),
    "eval_config_agentflow": Target(criteria_file),
    "labels": Target(labels, "jsonl"),
    "given_case": Target(given_case),
    "given_adk": Target(given_adk),
    "comment": Target(comment, "bytes"),
    "github_event": Target(github_event),
    "baseline_archive": Target(baseline_archive, "bytes"),
    "report_archive": Target(report_archive, "bytes"),
    "digest": Target(digest, "bytes"),
}
SUFFIXES = {"json": ".json", "jsonl": ".jsonl", "yaml": ".yaml", "bytes": ".bin"}
"""What files of a form are called, but for those that `NAMES` names."""
NAMES = {
    "evalset_table": "given.csv",
    "config": "ci-eval.yaml",
    "eval_config_adk": "test_config.json",
    "eval_config_agentflow": "eval_config.json",
}


def name_of(target: str) -> str:
    """Return the file name of a target."""
    return NAMES.get(target, "given" + SUFFIXES[TARGETS[target].form])
