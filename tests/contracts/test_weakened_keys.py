"""No key of the configuration can be changed silently so that what was blocked passes.

`CHANGES` has for each key a change that may turn a block into a pass, and what is said of it;
`HARMLESS` has why there is no such change.  A new key needs an entry in one of them.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support.run_language import meta
from support.slow_params import some

from ci_eval.config.config_schema import (
    Acceptance,
    ConfigFile,
    EvalSetSpec,
    GateOptions,
    MatrixRow,
    Quarantine,
    RunOptions,
    Unjudged,
)
from ci_eval.config.criterion_facts import facts_of
from ci_eval.config.load_config import load
from ci_eval.gate.earlier_config import read_earlier
from ci_eval.gate.weakened_by_change import weaker
from ci_eval.gate.weakened_gate import loosened
from ci_eval.gate.weakened_settings import STORED, surroundings
from ci_eval.llm.gateway.gateway_options import Faults, ModelOptions
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.results import RunMeta
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.storage.gcs import GcsOptions
from ci_eval.text.yaml_files import read_yaml

Keys = dict[str, Any]

BASE: Keys = {
    "name": "shop",
    "agents": {"a": {"python": "m:f"}, "b": {"python": "m:g"}},
    "evalsets": {"e": {"path": "e.json"}},
    "criteria": {"response_match_score": 0.5, "ci/tool_errors": 0},
}
"""The configuration that each change is made in."""


@dataclass(frozen=True)
class Change:
    """A change of some keys of `BASE`."""

    before: Keys
    after: Keys
    said: str
    """How a reason begins."""


def gate(before: Keys, after: Keys, said: str) -> Change:
    return Change({"gate": before}, {"gate": after}, f"gate{said}")


def run(before: Keys, after: Keys, said: str) -> Change:
    return Change({"run": before}, {"run": after}, f"run.{said}")


def store(before: Keys, after: Keys, said: str) -> Change:
    return Change({"baseline": before}, {"baseline": after}, f"baseline{said}")


JUDGED = {"criteria": {"safety": {"use": "agentflow/safety_v1", "threshold": 0.5}}}
OPENAI = {"provider": "openai", "model": "gpt-5"}
VERTEX = {"provider": "vertex", "model": "gemini-2.5-pro"}
RECORDED = {"recorded": "old.jsonl"}
ANOTHER = "criterion safety changed its definition"
MOVED = "judge: provider or address changed"


def judge(before: Keys, after: Keys, said: str, **beside: Any) -> Change:
    both = ({**JUDGED, "judge": {**OPENAI, **beside, **each}} for each in (before, after))
    return Change(*both, said)


def simulator(after: Keys) -> Change:
    given = {**JUDGED, "judge": OPENAI}
    said = "simulator: users are simulated differently"
    return Change(given, {**given, "simulator": after}, said)


def evalset(before: Keys, after: Keys, said: str) -> Change:
    both = ({"evalsets": {"e": {"path": "e.json", **each}}} for each in (before, after))
    return Change(*both, f"evalset e: {said}")


def matrix(row: Keys, said: str) -> Change:
    return Change({}, {"matrix": [row]}, said)


def excuse(kind: str, given: Keys, said: str) -> Change:
    others = {"owner": "o"} if kind == "quarantine" else {"reason": "r"}
    excuses = [{"until": "2099-01-01", **others, **given}]
    return gate({}, {kind: excuses}, f": {said} until 2099-01-01")


def unjudged(given: Keys, said: str) -> Change:
    return gate({}, {"allow_unjudged": [given]}, f".allow_unjudged: {said} is added")


def criteria(before: Any, after: Any, said: str) -> Change:
    both = ({"criteria": {"c": each, "ci/tool_errors": 0}} for each in (before, after))
    return Change(*both, said)


FAULTS = {"faults": {"rate": 0.5}}


def models(before: Any, after: Any, said: str) -> Change:
    both = ({"agents": {"a": {"python": "m:f", "models": each}}} for each in (before, after))
    return Change(*both, f"agent a: models.{said}")


def faults(after: Keys, shown: Keys) -> Change:
    now = {"faults": FAULTS["faults"] | after}
    return models(FAULTS, now, f"faults: {FAULTS['faults']} → {shown}")


WORDS = {"use": "response_match_score", "threshold": 0.5}
SLOW = {"use": "ci/latency_s", "max_growth": 0.1}
CODE = {"use": "ci/python", "python": "m:f"}

CHANGES: dict[str, Change] = {
    "name": Change({}, {"name": "other"}, "name: 'shop' → 'other', which has its own"),
    "dialect": Change(
        {"criteria": {"safety_v1": 0.5}, "judge": VERTEX},
        {"criteria": {"safety_v1": 0.5}, "judge": VERTEX, "dialect": "agentflow"},
        "criterion safety_v1 changed its definition",
    ),
    "agents": Change({}, {"agents": {"b": {"python": "m:g"}}}, "agent a is removed"),
    "agents.recorded": Change(
        {}, {"agents": {"a": RECORDED}}, "agent a: a recording instead of the agent"
    ),
    "agents.models": models("auto", "replay", "mode: auto → replay"),
    "agents.models.mode": models({}, {"mode": "replay"}, "mode: auto → replay"),
    "agents.models.cassette": models({}, {"cassette": "x"}, "cassette: .ci-eval/models.jsonl → x"),
    "agents.models.ignore": models({}, {"ignore": [".*"]}, "ignore: none → ['.*']"),
    "agents.models.prices": models(
        {"mode": "live"},
        {"mode": "live", "prices": {"m": {"input": 0, "output": 0}}},
        "prices: none → {'m': {'input': 0, 'output': 0}}",
    ),
    "agents.models.faults": models(FAULTS, {}, "faults: {'rate': 0.5} → none"),
    "agents.models.faults.rate": faults({"rate": 0.1}, {"rate": 0.1}),
    "agents.models.faults.kinds": faults({"kinds": ["slow"]}, {"rate": 0.5, "kinds": ["slow"]}),
    "agents.models.faults.seed": faults({"seed": 1}, {"rate": 0.5, "seed": 1}),
    "agents.models.faults.slow_s": faults({"slow_s": 1}, {"rate": 0.5, "slow_s": 1}),
    "agents.gcs": Change(
        {"agents": {"a": RECORDED}},
        {"agents": {"a": RECORDED | {"gcs": {"project": "p"}}}},
        "agent a: another recording",
    ),
    "evalsets": Change({}, {"evalsets": {"f": {"path": "e.json"}}}, "evalset e is removed"),
    "evalsets.path": evalset({}, {"path": "f.json"}, "path changed"),
    "evalsets.cases": evalset({"cases": ["x", "y"]}, {"cases": ["x"]}, "cases changed"),
    "evalsets.tags": evalset({}, {"tags": ["quick"]}, "tags changed"),
    "evalsets.tool_mocks": evalset(
        {}, {"tool_mocks": {"tools": {"find": [{"result": 1}]}}}, "tool_mocks changed"
    ),
    "criteria": Change(
        {}, {"criteria": {"ci/tool_errors": 0}}, "criterion response_match_score is removed"
    ),
    "criteria.from": Change(
        {}, {"criteria": {"from": "loose.json"}}, "threshold of response_match_score: 0.5 → 0.1"
    ),
    "criteria.use": criteria(WORDS, WORDS | {"use": "ci/exact_match"}, "criterion c changed its"),
    "criteria.threshold": criteria(WORDS, WORDS | {"threshold": 0.4}, "threshold of c: 0.5 → 0.4"),
    "criteria.enabled": criteria(WORDS, WORDS | {"enabled": False}, "criterion c is disabled"),
    "criteria.tier": criteria(WORDS, WORDS | {"tier": "warn"}, "tier of c: block → warn"),
    "criteria.max_growth": criteria(SLOW, SLOW | {"max_growth": 0.2}, "max_growth of c: 0.1 → 0.2"),
    "criteria.env": criteria(CODE, CODE | {"env": {"LENIENT": "1"}}, "criterion c: 'env' changed"),
    "preset": Change(
        {"preset": "regression"},
        {"preset": []},
        "criterion adk/tool_trajectory_avg_score is removed",
    ),
    "judge": Change(
        {**JUDGED, "judge": OPENAI}, {**JUDGED, "judge": VERTEX | {"provider": "gemini"}}, ANOTHER
    ),
    "judge.provider": judge({}, {"provider": "gemini"}, MOVED),
    "judge.model": judge({}, {"model": "gpt-4"}, ANOTHER),
    "judge.settings": judge({}, {"settings": {"temperature": 1}}, ANOTHER),
    "judge.samples": judge({"samples": 5}, {"samples": 1}, ANOTHER),
    "judge.jury": Change(
        {**JUDGED, "judge": {"jury": [OPENAI, VERTEX]}},
        {**JUDGED, "judge": {"jury": [OPENAI]}},
        ANOTHER,
    ),
    "judge.mode": judge({}, {"mode": "replay"}, "judge.mode: auto → replay"),
    "judge.cassette": judge(
        {}, {"cassette": "x"}, "judge.cassette: .ci-eval/cache/judge.jsonl → x"
    ),
    "judge.prompts": judge({}, {"prompts": "prompts"}, ANOTHER),
    "judge.env_file": judge({}, {"env_file": ".env"}, "judge.env_file: none → .env"),
    "judge.answers": Change(
        {**JUDGED, "judge": {"provider": "scripted", "answers": [{"answer": "no"}]}},
        {**JUDGED, "judge": {"provider": "scripted", "answers": [{"answer": "yes"}]}},
        ANOTHER,
    ),
    "judge.base_url": judge({}, {"base_url": "https://example.com"}, MOVED),
    "judge.azure_endpoint": judge({}, {"azure_endpoint": "https://example.com"}, MOVED),
    "judge.api_version": judge({}, {"api_version": "2"}, MOVED),
    "judge.api_key_env": judge({}, {"api_key_env": "OTHER"}, MOVED),
    "judge.api": judge({}, {"api": "responses"}, MOVED),
    "judge.structured": judge({}, {"structured": "json"}, MOVED),
    "judge.extra_body": judge({}, {"extra_body": {"x": 1}}, MOVED),
    "judge.vertex": judge({}, {"vertex": True}, MOVED, provider="gemini", model="gemini-2.5-pro"),
    "judge.project": judge({}, {"project": "p"}, MOVED, **VERTEX),
    "judge.location": judge({}, {"location": "l"}, MOVED, **VERTEX),
    "simulator": simulator({"type": "agentflow"}),
    "simulator.provider": simulator({"provider": "gemini", "model": "gemini-2.5-pro"}),
    "simulator.model": simulator({"model": "gpt-4"}),
    "simulator.settings": simulator({"settings": {"temperature": 1}}),
    "simulator.max_invocations": simulator({"type": "agentflow", "max_invocations": 1}),
    "simulator.temperature": simulator({"type": "agentflow", "temperature": 0.1}),
    "simulator.max_allowed_invocations": simulator({"max_allowed_invocations": 1}),
    "simulator.custom_instructions": simulator(
        {
            "custom_instructions": "{{ stop_signal }} {{ conversation_plan }} "
            "{{ conversation_history }}"
        }
    ),
    "simulator.include_function_calls": simulator({"include_function_calls": True}),
    "run.repeats": run({"repeats": 3}, {}, "repeats: 3 → 1"),
    "run.timeout_s": run({}, {"timeout_s": 600}, "timeout_s: 120 → 600"),
    "run.engine": run({}, {"engine": "ray"}, "engine: local → ray"),
    "run.address": run(
        {"engine": "ray"}, {"engine": "ray", "address": "h:6379"}, "address: none → h:6379"
    ),
    "run.retries": run({}, {"retries": 2}, "retries: 0 → 2"),
    "baseline": Change({"baseline": {"store": "file"}}, {}, "baseline: removed"),
    "baseline.store": store({"store": "file"}, {"store": "git"}, ": location changed"),
    "baseline.window": store({}, {"window": 1}, ".window: 5 → 1"),
    "baseline.search": store({}, {"search": 1}, ".search: 50 → 1"),
    "baseline.base": store({}, {"base": "old"}, ": location changed"),
    "baseline.path": store({}, {"path": "x.json"}, ": location changed"),
    "baseline.ref": store({"store": "git"}, {"store": "git", "ref": "x"}, ": location changed"),
    "baseline.name": store(
        {"store": "artifact"}, {"store": "artifact", "name": "x"}, ": location changed"
    ),
    "baseline.workflow": store(
        {"store": "artifact"}, {"store": "artifact", "workflow": "x.yml"}, ": location changed"
    ),
    "baseline.branch": store(
        {"store": "branch"}, {"store": "branch", "branch": "x"}, ": location changed"
    ),
    "baseline.remote": store(
        {"store": "branch"}, {"store": "branch", "remote": "x"}, ": location changed"
    ),
    "baseline.app": store(
        {"store": "check_run"}, {"store": "check_run", "app": "x"}, ": location changed"
    ),
    "baseline.uri": store(
        {"store": "gcs", "uri": "gs://a/b"}, {"store": "gcs", "uri": "gs://a/c"}, ": location"
    ),
    "baseline.gcs": store(
        {"store": "gcs", "uri": "gs://a/b"},
        {"store": "gcs", "uri": "gs://a/b", "gcs": {"project": "p"}},
        ": location changed",
    ),
    "gcs": Change({}, {"gcs": {"project": "p"}}, "gcs: evalsets, recordings or baselines"),
    "gcs.project": Change({}, {"gcs": {"project": "p"}}, "gcs: evalsets"),
    "gcs.endpoint": Change(
        {"gcs": {"anonymous": True}},
        {"gcs": {"anonymous": True, "endpoint": "https://example.com"}},
        "gcs: evalsets",
    ),
    "gcs.anonymous": Change({}, {"gcs": {"anonymous": True}}, "gcs: evalsets"),
    "gate.mode": gate({"mode": "both"}, {"mode": "threshold"}, ".mode: both → threshold"),
    "gate.min_pass_rate": gate(
        {"mode": "both"}, {"mode": "both", "min_pass_rate": 0.5}, ".min_pass_rate: 1 → 0.5"
    ),
    "gate.min_score": gate(
        {"min_score": {"response_match_score": 0.5}}, {}, ".min_score.response_match_score: 0.5 →"
    ),
    "gate.floors": gate({"floors": "point"}, {}, ".floors: point → interval"),
    "gate.false_block": gate({}, {"false_block": 0.01}, ".false_block: 0.02 → 0.01"),
    "gate.max_drop": gate({}, {"max_drop": 0.5}, ".max_drop: 0.02 → 0.5"),
    "gate.max_errors": gate({}, {"max_errors": 3}, ".max_errors: 0 → 3"),
    "gate.on_missing": gate({}, {"on_missing": "pass"}, ".on_missing: threshold → pass"),
    "gate.on_inconclusive": gate(
        {}, {"on_inconclusive": "pass"}, f".on_inconclusive: {GateOptions().on_inconclusive} → pass"
    ),
    "gate.rerun_budget": gate({}, {"rerun_budget": 1}, ".rerun_budget: 10 → 1"),
    "gate.on_vanished": gate({}, {"on_vanished": "warn"}, ".on_vanished: fail → warn"),
    "gate.on_loosened": gate({"on_loosened": "fail"}, {}, ".on_loosened: fail → warn"),
    "gate.allow_unjudged": unjudged({"case": "x"}, "x"),
    "gate.allow_unjudged.case": unjudged({"case": "x"}, "x"),
    "gate.allow_unjudged.evalset": unjudged({"evalset": "e"}, "e"),
    "gate.allow_unjudged.agent": unjudged({"case": "x", "agent": "a"}, "a/x"),
    "gate.confirm": gate({}, {"confirm": "off"}, ".confirm: both → off"),
    "gate.accept": excuse("accept", {"case": "x"}, "x is accepted"),
    "gate.accept.case": excuse("accept", {"case": "x"}, "x is accepted"),
    "gate.accept.criterion": excuse("accept", {"criterion": "c"}, "c is accepted"),
    "gate.accept.evalset": excuse("accept", {"case": "x", "evalset": "e"}, "e/x is accepted"),
    "gate.accept.agent": excuse("accept", {"case": "x", "agent": "a"}, "a/x is accepted"),
    "gate.accept.until": gate(
        {"accept": [{"case": "x", "reason": "r", "until": "2098-01-01"}]},
        {"accept": [{"case": "x", "reason": "r", "until": "2099-01-01"}]},
        ": x is accepted until 2099-01-01",
    ),
    "gate.quarantine": excuse("quarantine", {"case": "x"}, "x is quarantined"),
    "gate.quarantine.case": excuse("quarantine", {"case": "x"}, "x is quarantined"),
    "gate.quarantine.criterion": excuse(
        "quarantine", {"case": "x", "criterion": "c"}, "c/x is quarantined"
    ),
    "gate.quarantine.evalset": excuse(
        "quarantine", {"case": "x", "evalset": "e"}, "e/x is quarantined"
    ),
    "gate.quarantine.agent": excuse(
        "quarantine", {"case": "x", "agent": "a"}, "a/x is quarantined"
    ),
    "gate.quarantine.until": gate(
        {"quarantine": [{"case": "x", "owner": "o", "until": "2098-01-01"}]},
        {"quarantine": [{"case": "x", "owner": "o", "until": "2099-01-01"}]},
        ": x is quarantined until 2099-01-01",
    ),
    "matrix": matrix({"agents": ["a"]}, "matrix: ci/tool_errors, response_match_score on e with b"),
    "matrix.agents": matrix({"agents": ["a"]}, "matrix: ci/tool_errors, response_match_score"),
    "matrix.evalsets": matrix({"evalsets": []}, "matrix: ci/tool_errors, response_match_score"),
    "matrix.criteria": matrix({"criteria": ["ci/tool_errors"]}, "matrix: response_match_score on"),
}

EVALUATED = "the agent is what is evaluated: a worse one is blocked, a better one may pass"
SPEED = "only how fast, or how much may be spent: what is not measured never passes"
SHOWN = "only what reports show"

HARMLESS: dict[str, str] = {
    "version": "there is one version",
    "reports": SHOWN,
    "reports.profile": SHOWN,
    "reports.template": SHOWN,
    "reports.max_mb": SHOWN,
    "reports.style": SHOWN,
    "reports.labels": SHOWN,
    "reports.assignees": SHOWN,
    "reports.events": SHOWN,
    "agents.base": "the base arm is run as the merge base's own configuration says",
    "run": "its keys have entries",
    "run.concurrency": SPEED,
    **dict.fromkeys(("run.cpus", "run.per_task", "run.start_timeout_s", "run.upload"), SPEED),
    "run.exclude": "an agent that lacks a file fails, and is never measured less",
    "gate": "its keys have entries",
    "gate.allow_unjudged.reason": SHOWN,
    "gate.accept.reason": SHOWN,
    "gate.quarantine.reason": SHOWN,
    "gate.quarantine.owner": SHOWN,
    "gcs.timeout_s": SPEED,
    "baseline.branches": "where runs are stored from; a change is compared with its merge base",
    "baseline.squash": "how the history of stored runs is kept",
    "agents.models.providers": EVALUATED,
    "agents.models.allow": EVALUATED,
    "agents.models.requests_per_minute": SPEED,
    "agents.models.tokens_per_minute": SPEED,
    "agents.models.max_calls": SPEED,
    "agents.models.max_cost_usd": SPEED,
    "agents.models.max_calls_per_trial": SPEED,
    "agents.models.max_cost_usd_per_trial": SPEED,
    "judge.concurrency": SPEED,
    "judge.requests_per_minute": SPEED,
    "judge.tokens_per_minute": SPEED,
    "judge.timeout_s": SPEED,
    "judge.attempts": SPEED,
    "judge.patience_s": SPEED,
    "judge.max_calls": SPEED,
    "judge.max_cost_usd": SPEED,
    "judge.max_prompt_chars": SPEED,
    "judge.prices": SPEED,
    **dict.fromkeys(
        (
            *("agents.a2a", "agents.adk", "agents.adk_server", "agents.agent", "agents.agentflow"),
            *("agents.api_key_env", "agents.app", "agents.base_url", "agents.body", "agents.card"),
            *("agents.command", "agents.config", "agents.context", "agents.cwd", "agents.delta"),
            *("agents.deps", "agents.endpoint", "agents.env", "agents.features", "agents.gemini"),
            *("agents.headers",),
            *("agents.http", "agents.input", "agents.input_required", "agents.instruction"),
            *("agents.interpreter", "agents.langgraph", "agents.launched", "agents.location"),
            *("agents.max_calls", "agents.max_turns", "agents.method", "agents.openai_agents"),
            *("agents.openai_chat", "agents.output", "agents.per", "agents.project"),
            *("agents.pydantic_ai", "agents.python", "agents.ready", "agents.response"),
            *("agents.results", "agents.resumable", "agents.session", "agents.settings"),
            *("agents.setup", "agents.start_timeout_s", "agents.state", "agents.stream"),
            *("agents.threads", "agents.timeout_s", "agents.tool_calls", "agents.tools"),
            *("agents.usage", "agents.vertex", "agents.workers"),
        ),
        EVALUATED,
    ),
}


def keys() -> Iterator[str]:
    """Yield every key of the configuration; those of criteria are walked on their own."""
    nested: dict[str, list[type[BaseModel]]] = {
        "": [ConfigFile],
        "run.": [RunOptions, *_types(points.engine)],
        "gate.": [GateOptions],
        "gate.accept.": [Acceptance],
        "gate.quarantine.": [Quarantine],
        "gate.allow_unjudged.": [Unjudged],
        "evalsets.": [EvalSetSpec],
        "matrix.": [MatrixRow],
        "gcs.": [GcsOptions],
        "agents.models.": [ModelOptions],
        "agents.models.faults.": [Faults],
        "judge.": [JudgeOptions, *_types(points.judge)],
        "simulator.": _types(points.simulator),
        "baseline.": _types(points.baseline),
        "agents.": _types(points.agent),
        "reports.": _types(points.reporter),
    }
    for start, models in nested.items():
        yield from (f"{start}{name}" for model in models for name in model.model_fields)
    yield from (f"criteria.{name}" for name in STORED)


def _types(point: Mapping[str, type[BaseModel]]) -> list[type[BaseModel]]:
    return [point[name] for name in point]


def test_each_key_has_an_entry():
    more = {"criteria.from", "criteria.use", "criteria.env", "baseline.store", "simulator.provider"}

    assert {*CHANGES} & {*HARMLESS} == set()
    assert {*CHANGES, *HARMLESS} == {*keys(), *more}


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    for name in ("old.jsonl", ".env"):
        (tmp_path / name).touch()
    prompt = Path("agentflow/safety_v1.md.j2")
    text = (Path(__file__).parents[2] / "templates/judge" / prompt).read_text(encoding="utf-8")
    (tmp_path / "prompts" / prompt.parent).mkdir(parents=True)
    (tmp_path / "prompts" / prompt).write_text(text + "{# lenient #}", encoding="utf-8")
    (tmp_path / "loose.json").write_text(
        json.dumps({"criteria": {"response_match_score": 0.1, "tool_trajectory_avg_score": 1.0}})
    )
    return RunContext(env={}, root=tmp_path, now=lambda: 0.0)


def told(before: Keys, after: Keys, context: RunContext, *, compared: bool) -> list[str]:
    """Return the findings about a change, compared with an earlier run or not."""
    paths = [context.root / name for name in ("before.yaml", "after.yaml")]
    for path, each in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(BASE | each))
    old = read_earlier(read_yaml(paths[0], shown="c"), "HEAD", "ci-eval.yaml", context)
    assert old
    run_now = described(paths[1], context)
    config = load(paths[1], shown="c", context=context)
    found = list(weaker(config, old, run_now))
    if compared:
        found += loosened(run_now, described(paths[0], context))
    return found


def described(path: Path, context: RunContext) -> RunMeta:
    """Return the metadata of a run of a configuration."""
    config = load(path, shown="c", context=context)
    kept = config.baseline
    return meta(
        gate=config.gate.model_dump(mode="json", exclude_defaults=True),
        store={"store": kept.type_name, **kept.model_dump(mode="json", exclude_defaults=True)}
        if kept
        else {},
        configured_repeats=config.run.repeats,
        disabled=config.disabled,
        criteria={
            name: facts_of(each, config.judging, context) for name, each in config.criteria.items()
        },
    )


@pytest.mark.parametrize("compared", some([False, True], 1))
@pytest.mark.parametrize("key", CHANGES)
def test_a_change_that_may_turn_a_block_into_a_pass_is_told(key, compared, context):
    change = CHANGES[key]
    found = told(change.before, change.after, context, compared=compared)

    assert [each for each in found if each.startswith(change.said)], found
    assert told(change.before, change.before, context, compared=compared) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, FAULTS, "agent a: models.faults: none → {'rate': 0.5}"),
        ("auto", "live", "agent a: models.mode: auto → live"),
        ("replay", "record", "agent a: models.mode: replay → record"),
    ],
)
def test_faults_that_are_added_and_answers_that_are_no_longer_replayed_are_told(
    before, after, said, context
):
    change = models(before, after, "")
    assert told(change.before, change.after, context, compared=True) == [said]


OPTIONS = [
    (name, option)
    for name in points.criterion
    for option in sorted(points.criterion[name].model_fields.keys() - STORED)
]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_each_option_of_a_criterion_has_a_fingerprint_or_is_told(name, option):
    before = made(name)
    after = before.model_copy(update={option: another(getattr(before, option))})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a value of another type
        compared = after.options() != before.options()
        said = [*surroundings("c", after, before)]
    assert compared or said == [f"criterion c: {option!r} changed"]


def made(name: str) -> AnyCriterion:
    model = points.criterion[name]
    given = dict(model.example)
    if model.takes_threshold == "always" and model.model_fields["threshold"].default is None:
        given["threshold"] = model.interval[1] if model.interval else 1
    return model.model_validate(given)


def another(value: Any) -> Any:
    """Return another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case tuple():
            return (*value, "x")
        case dict():
            return value | {"x": 1}
        case _:
            return f"{value}x"
