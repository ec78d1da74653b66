"""No key of ADK's or AgentFlow's files is accepted and passed over in silence."""

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.foreign_keys import (
    ACTS,
    ADK_CONFIG,
    ADK_CONFIG_ROWS,
    ADK_EVALSET,
    ADK_EVALSET_ROWS,
    AGENTFLOW_CONFIG,
    AGENTFLOW_CONFIG_ROWS,
    AGENTFLOW_EVALSET,
    AGENTFLOW_EVALSET_ROWS,
    DESCRIBES,
    WARNS,
    Row,
    changed,
    line_of,
    text,
)
from support.simulated_conversations import played

from ci_eval.agents.agentflow_agent import AgentFlow
from ci_eval.config.criterion_names import Dialect
from ci_eval.config.eval_config import read_eval_config
from ci_eval.config.open_evalset import open_evalset
from ci_eval.plugins import points
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import Content, EvalCase, FunctionCall, IntermediateData, Invocation
from ci_eval.records.errors import Problem
from ci_eval.records.scenario_settings import of_metadata
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.runtime.context import RunContext
from ci_eval.simulators.llm_simulator import LlmBacked

DETERMINISTIC = {
    "adk/tool_trajectory_avg_score": {"threshold": 1},
    "adk/response_match_score": {"threshold": 1},
    "agentflow/tool_trajectory_avg_score": {"check_args": True},
    "agentflow/node_order_match_score": {},
    "ci/final_state": {"threshold": 1},
}


def named(row: Row) -> str:
    place = ".".join(map(str, row.at))
    return f"{row.model}.{row.key} at {place}"


# --- Eval configs -------------------------------------------------------------------------------


def read_config(folder: Path, document: Any, dialect: Dialect) -> tuple[Any, list[Problem]]:
    """Return the criteria of an eval config, and the messages about it."""
    path = folder / "config.json"
    path.write_text(text(document))
    found = read_eval_config(path, shown="config.json", dialect=dialect)
    criteria = {
        name: (
            each.type_name,
            each.model_dump(exclude={"metric_info"}),
            _interval(each),
            _wordings(each),
            each.asked() if isinstance(each, JudgedCriterion) else None,
        )
        for name, each in found.criteria.items()
    }
    return (criteria, found.run, found.mock, found.simulator), found.problems


def _interval(criterion: Any) -> Any:
    info = getattr(criterion, "metric_info", None)
    return info and info.metric_value_info.model_dump()


def _wordings(criterion: Any) -> Any:
    """Return the part of rubrics that judges see; the rest is for readers."""
    return [getattr(each, "rubric_content", each) for each in getattr(criterion, "rubrics", ())]


def without_descriptions(effect: Any) -> Any:
    """Return an effect without what rubrics keep for readers."""
    criteria, *rest = effect
    for _, options, *_ in criteria.values():
        for each in options.get("rubrics") or ():
            for key in ("description", "type"):
                each.pop(key, None)
    return criteria, *rest


def assert_as_told(
    row: Row, base: Any, before: tuple[Any, list[Problem]], after: tuple[Any, list[Problem]]
) -> None:
    effect, problems = after
    if row.kind in (ACTS, DESCRIBES):
        assert problems == []
        assert (effect != before[0]) is (row.kind == ACTS)
        return
    at = row.told_at or row.at
    told = [
        (each.severity, each.line, re.split(r"[.\[\]]+", each.where.rstrip("]"))[-1])
        for each in problems
        if each not in before[1]
    ]
    severity = "warning" if row.kind == WARNS else "error"
    document = changed(base, row.at, row.value)
    assert (severity, line_of(document, at), str(at[-1])) in told
    assert len(told) == 1


@pytest.mark.parametrize("row", ADK_CONFIG_ROWS, ids=named)
def test_every_key_of_adks_eval_config_acts_or_is_told(tmp_path: Path, row: Row) -> None:
    before, after = (
        (without_descriptions(effect), problems)
        for effect, problems in (
            read_config(tmp_path, ADK_CONFIG, "adk"),
            read_config(tmp_path, changed(ADK_CONFIG, row.at, row.value), "adk"),
        )
    )
    assert before[1] == []
    assert_as_told(row, ADK_CONFIG, before, after)


@pytest.mark.parametrize("row", AGENTFLOW_CONFIG_ROWS, ids=named)
def test_every_key_of_agentflows_eval_config_acts_or_is_told(tmp_path: Path, row: Row) -> None:
    before = read_config(tmp_path, AGENTFLOW_CONFIG, "agentflow")
    assert before[1] == []
    document = changed(AGENTFLOW_CONFIG, row.at, row.value)
    assert_as_told(row, AGENTFLOW_CONFIG, before, read_config(tmp_path, document, "agentflow"))


def test_adk_2_3_compares_arguments_whatever_ignore_args_says(tmp_path: Path) -> None:
    at = ("criteria", "tool_trajectory_avg_score", "ignore_args")
    document = changed({"criteria": {at[1]: {"threshold": 1.0}}}, at, value=True)
    (tmp_path / "config.json").write_text(text(document))
    found = read_eval_config(tmp_path / "config.json", shown="config.json", dialect="adk@2.3")
    (problem,) = found.problems
    assert str(problem) == (
        "config.json:5: criteria.tool_trajectory_avg_score.ignore_args: has no effect: ADK 2.3 "
        "always compares arguments"
    )
    call = FunctionCall(name="look", args={"q": 2})
    assert found.criteria[at[1]].score(case_with({"q": 1}), trace(call)).value == 0.0
    newer = read_eval_config(tmp_path / "config.json", shown="config.json", dialect="adk")
    assert newer.problems == []
    assert newer.criteria[at[1]].score(case_with({"q": 1}), trace(call)).value == 1.0


def test_what_a_files_criterion_ignores_is_told_once(tmp_path: Path) -> None:
    options = {"threshold": 1, "include_intermediate_responses_in_final": True}
    (tmp_path / "t.json").write_text(text({"criteria": {"tool_trajectory_avg_score": options}}))
    (tmp_path / "t.jsonl").touch()
    (tmp_path / "ci-eval.yaml").write_text(
        "agents: {a: {recorded: t.jsonl}}\nevalsets: {e: e.json}\n"
        "criteria:\n  from: t.json\n  own:\n    use: adk/response_match_score\n    threshold: 1\n"
        "    include_intermediate_responses_in_final: true\n"
    )
    from ci_eval.config.load_config import load

    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    loaded = load(tmp_path / "ci-eval.yaml", shown="ci-eval.yaml", context=context)
    assert [(each.file, each.line) for each in loaded.warnings] == [
        ("ci-eval.yaml", 8),
        ("t.json", 5),
    ]


# --- Evalsets -----------------------------------------------------------------------------------


def trace(*calls: FunctionCall, nodes: tuple[str, ...] = ("MAIN",)) -> Trace:
    turn = Invocation(
        user_content=Content.of_text("Hi", role="user"),
        final_response=Content.of_text("Hello there", role="model"),
        intermediate_data=IntermediateData(tool_uses=calls),
        nodes=nodes,
    )
    key = TrialKey(agent="a", evalset="e", case="c")
    return Trace(key=key, invocations=(turn,), final_state={"paid": True})


def case_with(args: dict[str, Any]) -> EvalCase:
    call = {"name": "look", "args": args}
    turn = {"user_content": {"parts": []}, "intermediate_data": {"tool_uses": [call]}}
    return EvalCase.model_validate({"eval_id": "c", "conversation": [turn]})


def effects(case: EvalCase) -> Any:
    """Return the messages of a case, and the score of a fixed answer."""
    agent = AgentFlow.model_validate({"agentflow": "app:graph"})
    trial = Trial(TrialKey(agent="a", evalset="e", case=case.eval_id), case)
    session = agent.opening(trial, "session")
    if case.conversation is None:
        said = played(LlmBacked(max_allowed_invocations=2), case, lambda _: "More")
        return case.eval_id, session, said.messages, [each.text for each in said.asked]
    observed = trace(FunctionCall(name="look", args={"q": 1}))
    scores = [
        points.criterion[name].model_validate(options).score(case, observed).value
        for name, options in DETERMINISTIC.items()
    ]
    judged = points.criterion["adk/rubric_based_final_response_quality_v1"](threshold=1)
    return (
        (case.eval_id, case.tags, session, [turn.user for turn in case.conversation]),
        scores,
        [judged.effective(case, turn) for turn in case.conversation],
        [of_metadata(case, key) for key in ("reference_facts", "context")],
    )


def read_evalset(folder: Path, document: Any) -> tuple[Any, list[Problem]]:
    path = folder / "evals.json"
    path.write_text(text(document))
    opened = open_evalset(path, shown="evals.json")
    told = [each for each in opened.warnings if not each.concerns]
    return (opened.header.eval_set_id, [effects(each) for each in opened.cases()]), told


@pytest.mark.parametrize("row", ADK_EVALSET_ROWS, ids=named)
def test_every_key_of_adks_evalset_acts_or_describes(tmp_path: Path, row: Row) -> None:
    before = read_evalset(tmp_path, ADK_EVALSET)
    assert before[1] == []
    after = read_evalset(tmp_path, changed(ADK_EVALSET, row.at, row.value))
    assert_as_told(row, ADK_EVALSET, before, after)


@pytest.mark.parametrize("row", AGENTFLOW_EVALSET_ROWS, ids=named)
def test_every_key_of_agentflows_evalset_acts_or_describes(tmp_path: Path, row: Row) -> None:
    before = read_evalset(tmp_path, AGENTFLOW_EVALSET)
    assert before[1] == []
    after = read_evalset(tmp_path, changed(AGENTFLOW_EVALSET, row.at, row.value))
    assert_as_told(row, AGENTFLOW_EVALSET, before, after)


# --- The models themselves ------------------------------------------------------------------------

DUMP = """
import importlib, json, sys
found = {}
for each in sys.argv[1:]:
    module, name = each.split(":")
    model = getattr(importlib.import_module(module), name, None)
    found[each] = sorted(model.model_fields) if model else None
print(json.dumps(found))
"""
_ADK = "google.adk.evaluation"
ADK_MODELS = {
    **dict.fromkeys(("EvalConfig", "LiveModelConfig", "CustomMetricConfig"), f"{_ADK}.eval_config"),
    "CodeConfig": "google.adk.agents.common_configs",
    **dict.fromkeys(
        (
            *("MetricInfo", "MetricValueInfo", "Interval", "BaseCriterion"),
            *("ToolTrajectoryCriterion", "LlmAsAJudgeCriterion", "RubricsBasedCriterion"),
            *("HallucinationsCriterion", "LlmBackedUserSimulatorCriterion", "JudgeModelOptions"),
        ),
        f"{_ADK}.eval_metrics",
    ),
    **dict.fromkeys(("Rubric", "RubricContent"), f"{_ADK}.eval_rubrics"),
    "LlmBackedUserSimulatorConfig": f"{_ADK}.simulation.llm_backed_user_simulator",
    "LlmAudioUserSimulatorConfig": f"{_ADK}.eval_config",
    "EvalSet": f"{_ADK}.eval_set",
    "ConversationScenario": f"{_ADK}.conversation_scenarios",
    **dict.fromkeys(
        ("EvalCase", "Invocation", "IntermediateData", "InvocationEvents", "SessionInput"),
        f"{_ADK}.eval_case",
    ),
}
_AGENTFLOW = "agentflow.qa.evaluation"
AGENTFLOW_MODELS = {
    **dict.fromkeys(("EvalConfig", "CriteriaConfig"), f"{_AGENTFLOW}.config.eval_config"),
    **dict.fromkeys(("CriterionConfig", "Rubric"), f"{_AGENTFLOW}.config.criterion_config"),
    **dict.fromkeys(
        ("UserSimulatorConfig", "ReporterConfig"), f"{_AGENTFLOW}.config.reporter_config"
    ),
    **dict.fromkeys(
        ("EvalSet", "EvalCase", "Invocation", "ToolCall", "MessageContent", "SessionInput"),
        f"{_AGENTFLOW}.dataset.eval_set",
    ),
}
LATER = {
    "EvalConfig": {"live_model_config"},
    "LiveModelConfig": {"timeout_seconds"},
    "MetricInfo": {"requires_threshold"},
    "ToolTrajectoryCriterion": {"ignore_args"},
    "JudgeModelOptions": {"parallelism_limit"},
    "LlmBackedUserSimulatorConfig": {"type"},
    "Invocation": {"duration", "model_duration", "tool_duration"},
    "SessionInput": {"session_id"},
}
"""What ADK got after 2.3.0."""


def test_the_table_is_of_these_models() -> None:
    of_adk = {row.model for row in [*ADK_CONFIG_ROWS, *ADK_EVALSET_ROWS]}
    of_agentflow = {row.model for row in [*AGENTFLOW_CONFIG_ROWS, *AGENTFLOW_EVALSET_ROWS]}
    assert of_adk == ADK_MODELS.keys()
    assert of_agentflow == AGENTFLOW_MODELS.keys()


@pytest.mark.parametrize(
    ("variable", "models", "rows", "later"),
    [
        ("CI_EVAL_ADK_PYTHON", ADK_MODELS, [*ADK_CONFIG_ROWS, *ADK_EVALSET_ROWS], {}),
        ("CI_EVAL_ADK23_PYTHON", ADK_MODELS, [*ADK_CONFIG_ROWS, *ADK_EVALSET_ROWS], LATER),
        (
            "CI_EVAL_AGENTFLOW_PYTHON",
            AGENTFLOW_MODELS,
            [*AGENTFLOW_CONFIG_ROWS, *AGENTFLOW_EVALSET_ROWS],
            {},
        ),
    ],
)
def test_the_table_has_every_key_that_the_models_have(
    variable: str, models: dict[str, str], rows: Iterable[Row], later: dict[str, set[str]]
) -> None:
    python = os.environ.get(variable, "")
    if not python:
        pytest.skip(f"{variable} names no interpreter")
    table: dict[str, set[str]] = {}
    for row in rows:
        table.setdefault(row.model, set()).add(row.key)
    if later:
        models = {name: module for name, module in models.items() if "Audio" not in name}
    asked = {f"{module}:{name}": name for name, module in models.items()}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", DUMP, *asked], capture_output=True, text=True, check=True
    )
    found = {asked[each]: keys for each, keys in json.loads(done.stdout).items()}
    expected = {name: table[name] - later.get(name, set()) for name in models}
    assert {name: set(keys or ()) for name, keys in found.items()} == expected
