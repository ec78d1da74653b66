"""Eval configs of ADK and of AgentFlow: whose a file is, and what it asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from ci_eval.config.criterion_names import AMBIGUOUS, Dialect, bare_names
from ci_eval.config.eval_config import EvalConfigFile, dialect_of, read_eval_config
from ci_eval.criteria import (
    adk_final_response_match_v2,
    agentflow_responses,
    agentflow_simulation_goals,
)
from ci_eval.criteria.adk_matches import ResponseMatch, ResponseMatch23, ToolTrajectory
from ci_eval.criteria.agentflow_sequences import NodeOrderMatch, ToolNameMatch
from ci_eval.criteria.agentflow_sequences import ToolTrajectory as AgentFlowTrajectory
from ci_eval.criteria.agentflow_texts import ContainsKeywords, RougeMatch
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.errors import Problem, UsageError
from ci_eval.text.yaml_files import MAX_CONFIG

KNOWN = sorted(set(bare_names()))
UNKNOWN = f"unknown criterion; known: {', '.join(KNOWN[:20])} and {len(KNOWN) - 20} more"
DUMP = Path(__file__).with_name("agentflow-0.10.1.eval_config.json")
"""What `EvalConfig.model_dump_json` of 10xscale-agentflow 0.10.1 wrote."""
EITHER = {"response_match_score": {"threshold": 0.5}}


def read(
    folder: Path, content: Any, dialect: Dialect | None = None, name: str = "eval.json"
) -> EvalConfigFile:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_eval_config(path, shown=name, dialect=dialect)


def from_json(
    folder: Path, text: str, dialect: Dialect = "adk"
) -> tuple[dict[str, AnyCriterion], list[str]]:
    found = read(folder, text, dialect, "test_config.json")
    return found.criteria, said(found.problems)


def said(problems: list[Problem]) -> list[str]:
    """Return each problem without the name of the file."""
    return [
        "warning: " * (problem.severity == "warning")
        + str(problem).removeprefix(f"{problem.file}:")
        for problem in problems
    ]


# --- Whose file it is -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "whose"),
    [
        ({"criteria": {"response_match_score": 0.8}}, "adk"),
        ({"criteria": {"response_match_score": "0.8"}}, "adk"),
        ({"criteria": EITHER, "custom_metrics": {}}, "adk"),
        ({"criteria": EITHER, "liveModelConfig": {}}, "adk"),
        ({"criteria": EITHER, "userSimulatorConfig": {}}, "adk"),
        ({"criteria": EITHER | {"response_evaluation_score": {"threshold": 3}}}, "adk"),
        ({"criteria": {"safety_v1": {"judge_model_options": {}}}}, "adk"),
        ({"criteria": {"safety_v1": {"judgeModelOptions": {}}}}, "adk"),
        ({"criteria": {"hallucinations_v1": {"evaluate_intermediate_nl_responses": True}}}, "adk"),
        ({"criteria": {"safety_v1": {"include_intermediate_responses_in_final": True}}}, "adk"),
        ({"criteria": {"tool_trajectory_avg_score": {"match_type": 1}}}, "adk"),
        ({"criteria": {"tool_trajectory_avg_score": {"match_type": "in_order"}}}, "adk"),
        ({"criteria": {"tool_trajectory_avg_score": {"ignore_args": True}}}, "adk"),
        ({"criteria": {"x": {"rubrics": [{"rubric_content": {"text_property": "p"}}]}}}, "adk"),
        ({"criteria": EITHER, "parallel": False}, "agentflow"),
        ({"criteria": EITHER, "reporter": {}}, "agentflow"),
        ({"criteria": EITHER | {"rouge_match": {"threshold": 1}}}, "agentflow"),
        ({"criteria": EITHER | {"trajectory": None}}, "agentflow"),
        ({"criteria": {"safety_v1": {"judge_model": "gemini-2.5-flash"}}}, "agentflow"),
        ({"criteria": {"safety_v1": {"num_samples": 3}}}, "agentflow"),
        ({"criteria": {"safety_v1": {"enabled": True}}}, "agentflow"),
        ({"criteria": {"tool_trajectory_avg_score": {"check_args": True}}}, "agentflow"),
        ({"criteria": {"x": {"rubrics": [{"rubric_id": "a", "content": "p"}]}}}, "agentflow"),
    ],
)
def test_what_only_one_system_writes_tells_whose_file_it_is(
    value: dict[str, Any], whose: Dialect
) -> None:
    assert dialect_of(value) == whose


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# of the scaffold\nmetrics_to_run:\n- quality\n", 2),
        ("custom_metrics:\n- {name: quality, prompt_template: Rate it}\n", 1),
        ('{\n  "metrics_to_run": ["quality"]}', 2),
    ],
)
def test_a_file_of_agents_cli_is_recognised(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(UsageError, match="is an eval config of agents-cli") as caught:
        read(tmp_path, text, name="eval_config.yaml")
    assert caught.value.problems[0].line == line


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"criteria": {}},
        {"criteria": None},
        {"criteria": ["safety_v1"]},
        {"criteria": EITHER},
        {"criteria": EITHER, "user_simulator_config": None},
        {"criteria": {"response_match_score": None}},
        {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "IN_ORDER"}}},
        {"criteria": {"safety_v1": {"rubrics": [5]}}},
        {"criteria": {"ci/regex": {"pattern": "x"}}},
        {"criteria": {"safety_v1": {"judge_model": "a", "ignore_args": True}, "rouge_match": 1}},
        {"criteria": {"response_match_score": 0.8}, "parallel": True},
    ],
)
def test_what_either_could_write_tells_nothing(value: dict[str, Any]) -> None:
    assert dialect_of(value) is None


@pytest.mark.parametrize("name", sorted(AMBIGUOUS))
def test_a_name_of_two_meanings_in_a_file_of_either_needs_a_dialect(
    tmp_path: Path, name: str
) -> None:
    found = read(tmp_path, {"criteria": {name: {"threshold": 0.5}}})
    assert (found.dialect, found.unclear, found.criteria) == (None, True, {})
    assert said(found.problems) == [
        (
            f"1: criteria.{name}: has different meanings in ADK and AgentFlow, and the file "
            "does not show which is meant; set `dialect: adk` or `dialect: agentflow` in the "
            "configuration"
        )
    ]


@pytest.mark.parametrize(
    ("dialect", "meant"),
    [
        ("adk", ResponseMatch),
        ("adk@2.3", ResponseMatch23),
        ("agentflow", agentflow_responses.ResponseMatch),
    ],
)
@pytest.mark.parametrize("name", ["eval.json", "test_config.json"])
def test_a_file_of_either_is_read_in_the_dialect_that_is_named(
    tmp_path: Path, name: str, dialect: Dialect, meant: type[AnyCriterion]
) -> None:
    found = read(tmp_path, {"criteria": EITHER}, dialect, name)
    assert found.criteria == {"response_match_score": meant(threshold=0.5)}
    assert (found.dialect, found.unclear, found.problems) == (dialect, False, [])


def test_a_file_of_either_with_the_name_that_adk_looks_for_is_adks(tmp_path: Path) -> None:
    found = read(tmp_path, {"criteria": EITHER}, None, "test_config.json")
    assert found.criteria == {"response_match_score": ResponseMatch(threshold=0.5)}


def test_a_file_of_either_without_a_name_of_two_meanings_needs_none(tmp_path: Path) -> None:
    found = read(tmp_path, {"criteria": {"final_response_match_v2": {"threshold": 0.5}}})
    assert found.criteria == {
        "final_response_match_v2": adk_final_response_match_v2.FinalResponseMatch(threshold=0.5)
    }
    assert (found.dialect, found.unclear, found.problems) == (None, False, [])


def test_a_file_that_is_unmistakable_is_read_so_whatever_the_configuration_says(
    tmp_path: Path,
) -> None:
    of_adk = read(tmp_path, {"criteria": {"response_match_score": 0.5}}, "agentflow")
    assert of_adk.criteria == {"response_match_score": ResponseMatch(threshold=0.5)}
    of_agentflow = read(tmp_path, {"criteria": EITHER, "verbose": False}, "adk", "test_config.json")
    assert of_agentflow.dialect == "agentflow"
    assert of_agentflow.criteria == {
        "response_match_score": agentflow_responses.ResponseMatch(threshold=0.5)
    }


def test_a_qualified_name_is_clear_in_any_file(tmp_path: Path) -> None:
    found = read(tmp_path, {"criteria": {"adk/response_match_score": {"threshold": 0.5}}})
    assert found.criteria == {"adk/response_match_score": ResponseMatch(threshold=0.5)}
    assert found.problems == []


# --- AgentFlow's ----------------------------------------------------------------------------


def test_defaults_that_agentflow_writes_give_way_to_the_judge_of_the_configuration(tmp_path):
    path = tmp_path / "eval.json"
    judge = {"provider": "openai", "model": "gpt-4o"}

    def found(judge: dict[str, Any], **options: Any) -> tuple[Any, list[str]]:
        spec = {"threshold": 0.8, "judge_model": "gemini-2.5-flash", "num_samples": 3, **options}
        path.write_text(json.dumps({"criteria": {"llm_judge": spec}}))
        read = read_eval_config(path, shown="eval.json", dialect="agentflow", judge=judge)
        return read.criteria["llm_judge"].asked(), [str(each) for each in read.problems]

    assert found({})[0][:2] == ("gemini-2.5-flash", 3)
    assert found(judge) == ((None, 3, {}), [])
    assert found({**judge, "samples": 5}) == ((None, None, {}), [])
    asked, [problem] = found(judge, judge_model="gemini-2.5-pro")
    assert asked[0] == "gemini-2.5-pro"
    assert "'gemini-2.5-pro' replaces 'gpt-4o' of `judge:`; remove it to use that" in problem
    assert found(judge, judge_model="gpt-4o") == (("gpt-4o", 3, {}), [])


def test_what_the_typed_agentflow_writes_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, DUMP.read_text())
    # What it writes unasked asks for nothing, but its reports are not written.
    assert [(each.where, each.severity) for each in found.problems] == [("reporter", "warning")]
    assert found.dialect == "agentflow"
    judge = {"judge_model": "gemini-2.5-flash", "num_samples": 3}
    rubric = {"rubric_id": "short", "content": "At most two sentences.", "weight": 2.0}
    assert found.criteria == {
        "trajectory": AgentFlowTrajectory(threshold=0.9, match_type="IN_ORDER", check_args=True),
        "node_order": NodeOrderMatch(threshold=1.0),
        "response_match": agentflow_responses.ResponseMatch(threshold=0.7, **judge),
        "contains_keywords": ContainsKeywords(threshold=1.0, keywords=("refund", "7 days")),
        "rubric_based": agentflow_responses.RubricBased.model_validate(
            judge | {"rubrics": [rubric]}
        ),
        "safety": agentflow_responses.Safety(enabled=False, **judge),
    }
    assert found.run == {"timeout_s": 45.0, "concurrency": 2}
    assert found.mock is False


def test_what_was_written_for_an_older_agentflow_is_read_by_its_names(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """{
  "criteria": {
    "tool_name_match_score": {"threshold": 1.0},
    "trajectory_match": {"threshold": 1.0, "match_type": "ANY_ORDER", "check_args": true},
    "node_order_score": {"threshold": 0.9},
    "rouge_match": {"threshold": 0.5},
    "final_response_match_v2": {"threshold": 0.7, "num_samples": 1},
    "factual_accuracy_score": {},
    "conversation_goals": {"judge_model": "gpt-4o", "api_style": "chat"}
  },
  "timeout": 10
}""",
    )
    assert found.problems == []
    assert found.criteria == {
        "tool_name_match_score": ToolNameMatch(threshold=1.0),
        "trajectory_match": AgentFlowTrajectory(
            threshold=1.0, match_type="ANY_ORDER", check_args=True
        ),
        "node_order_score": NodeOrderMatch(threshold=0.9),
        "rouge_match": RougeMatch(threshold=0.5),
        "final_response_match_v2": agentflow_responses.Quality(threshold=0.7, num_samples=1),
        "factual_accuracy_score": agentflow_responses.FactualAccuracy(threshold=0.8),
        "conversation_goals": agentflow_simulation_goals.SimulationGoals(
            judge_model="gpt-4o", api_style="chat"
        ),
    }
    assert found.run == {"timeout_s": 10, "concurrency": 1}


def test_fields_that_agentflow_gives_every_criterion_are_dropped_where_nothing_reads_them(
    tmp_path: Path,
) -> None:
    whole = json.loads(DUMP.read_text())["criteria"]["node_order"]
    found = read(tmp_path, {"criteria": {"rouge_match": whole, "tool_name_match": whole}})
    assert found.problems == []
    assert found.criteria == {
        "rouge_match": RougeMatch(threshold=1.0),
        "tool_name_match": ToolNameMatch(threshold=1.0),
    }


def test_fields_that_agentflow_does_not_have_are_warned_of_or_mistakes(tmp_path: Path) -> None:
    text = '{"criteria": {"rouge_match": {\n"notes": "x"}, "trajectory": {\n"match_typ": 1}}}'
    found = read(tmp_path, text)
    assert said(found.problems) == [
        "warning: 2: criteria.rouge_match.notes: unused option, ignored",
        "3: criteria.trajectory.match_typ: unknown key. Did you mean 'match_type'?",
    ]


def test_slots_that_are_not_used_are_no_criteria(tmp_path: Path) -> None:
    found = read(tmp_path, {"criteria": {"rouge_match": None, "safety": None}, "parallel": True})
    assert found.criteria == {}
    assert said(found.problems) == ["1: criteria: lists no criteria, so nothing would be measured"]


@pytest.mark.parametrize(
    ("given", "run"),
    [
        ({}, {"timeout_s": 300.0, "concurrency": 1}),
        ({"parallel": True}, {"timeout_s": 300.0, "concurrency": 4}),
        ({"max_concurrency": 9}, {"timeout_s": 300.0, "concurrency": 1}),
        ({"parallel": True, "max_concurrency": 9.0}, {"timeout_s": 300.0, "concurrency": 9}),
        ({"parallel": False, "timeout": 0.5}, {"timeout_s": 0.5, "concurrency": 1}),
    ],
)
def test_agentflows_file_says_how_to_run(
    tmp_path: Path, given: dict[str, Any], run: dict[str, float]
) -> None:
    found = read(tmp_path, {"criteria": {"rouge_match": {}}, **given})
    assert found.run == run
    assert found.problems == []


@pytest.mark.parametrize("switch", [True, False])
def test_agentflows_file_may_ask_for_nothing_to_be_executed(tmp_path: Path, switch: bool) -> None:
    found = read(tmp_path, {"criteria": {"rouge_match": {}}, "mock_mode": switch})
    assert found.mock is switch


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('"timeout": 0', "timeout: expected seconds, found 0"),
        ('"timeout": true', "timeout: expected seconds, found true"),
        ('"timeout": null', "timeout: expected seconds, found nothing"),
        ('"timeout": 1e300', "timeout: expected seconds, found 1e+300"),
        (
            '"parallel": true, "max_concurrency": 0',
            "max_concurrency: expected a number from 1 to 10000, found 0",
        ),
        (
            '"parallel": true, "max_concurrency": 2.5',
            "max_concurrency: expected a number from 1 to 10000, found 2.5",
        ),
        ('"parallel": "no"', "parallel: expected true or false, found 'no'"),
        ('"mock_mode": 1', "mock_mode: expected true or false, found 1"),
    ],
)
def test_how_to_run_must_make_sense(tmp_path: Path, given: str, message: str) -> None:
    found = read(tmp_path, f'{{"criteria": {{"rouge_match": {{}}}},\n{given}}}')
    assert said(found.problems) == [f"2: {message}"]


def test_keys_that_agentflow_does_not_have_are_warned_of(tmp_path: Path) -> None:
    found = read(tmp_path, '{"criteria": {"rouge_match": {}},\n"paralel": true}')
    assert said(found.problems) == [
        "warning: 2: paralel: unknown key, which AgentFlow ignores. Did you mean 'parallel'?"
    ]


# --- ADK's own file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "threshold"),
    [
        (0.8, 0.8),
        (1, 1.0),
        ("0.8", 0.8),
        (" 1e0 ", 1.0),
        (True, 1.0),
        ({"threshold": 0.5}, 0.5),
        ({"threshold": "0.5"}, 0.5),
        ({"threshold": True}, 1.0),
    ],
)
def test_a_threshold_is_whatever_adk_takes_for_one(
    tmp_path: Path, spec: object, threshold: float
) -> None:
    found, problems = from_json(tmp_path, json.dumps({"criteria": {"response_match_score": spec}}))
    assert found == {"response_match_score": ResponseMatch(threshold=threshold)}
    assert problems == []


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({"match_type": "IN_ORDER"}, {"match_type": "IN_ORDER"}),
        ({"matchType": "any order"}, {"match_type": "ANY_ORDER"}),
        ({"match_type": 0}, {"match_type": "EXACT"}),
        ({"matchType": 2}, {"match_type": "ANY_ORDER"}),
        ({"ignoreArgs": True}, {"ignore_args": True}),
    ],
)
def test_options_are_spelled_as_adk_spells_them(
    tmp_path: Path, spec: dict[str, object], meant: dict[str, object]
) -> None:
    text = json.dumps({"criteria": {"tool_trajectory_avg_score": {"threshold": 1, **spec}}})
    found, problems = from_json(tmp_path, text)
    expected = ToolTrajectory.model_validate({"threshold": 1, **meant})
    assert found["tool_trajectory_avg_score"] == expected
    assert problems == []


def test_the_dialect_decides_there_too(tmp_path: Path) -> None:
    found, _ = from_json(tmp_path, '{"criteria": {"response_match_score": 1}}', "adk@2.3")
    assert found == {"response_match_score": ResponseMatch23(threshold=1.0)}


def test_options_that_adk_keeps_and_nothing_reads_are_warned_of(tmp_path: Path) -> None:
    found, problems = from_json(
        tmp_path,
        """{"criteria": {"response_match_score": {
"threshold": 1,
"use": "nothing",
"judge_model_options": {}}}}""",
    )
    assert found == {"response_match_score": ResponseMatch(threshold=1.0)}
    ignored = "unused option, ignored"
    assert problems == [
        f"warning: 3: criteria.response_match_score.use: {ignored}",
        f"warning: 4: criteria.response_match_score.judge_model_options: {ignored}",
    ]


def test_options_that_look_misspelt_are_mistakes(tmp_path: Path) -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1,\n"match_typ": 1}}}'
    found, problems = from_json(tmp_path, text)
    assert found == {}
    assert problems == [
        ("2: criteria.tool_trajectory_avg_score.match_typ: unknown key. Did you mean 'match_type'?")
    ]


def test_an_option_in_both_spellings_is_a_mistake(tmp_path: Path) -> None:
    options = '{"threshold": 1, "matchType": 1,\n"match_type": 0}'
    _, problems = from_json(tmp_path, f'{{"criteria": {{"tool_trajectory_avg_score": {options}}}}}')
    assert problems == [
        "2: criteria.tool_trajectory_avg_score.match_type: is given twice, in two spellings"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "1: criteria: lists no criteria, so nothing would be measured"),
        ('{"criteria": {}}', "1: criteria: lists no criteria, so nothing would be measured"),
        ('{"criteria": null}', "1: criteria: lists no criteria, so nothing would be measured"),
        (
            '{"criteria":\n["a"]}',
            "2: criteria: expected an object, found a list, so nothing would be measured",
        ),
        ("[1]", "1: expected an object, found a list"),
        (
            '{"criteria": {"token_usage_v1": 1}}',
            "1: criteria.token_usage_v1: takes no threshold; it is informational",
        ),
        (
            '{"criteria": {"response_match_score": null}}',
            "1: criteria.response_match_score: needs a threshold",
        ),
        (
            '{"criteria": {"response_match_score": "nan"}}',
            "1: criteria.response_match_score: expected a threshold or options, found 'nan'",
        ),
    ],
)
def test_what_adk_would_pass_over_in_silence_is_a_mistake(
    tmp_path: Path, text: str, message: str
) -> None:
    found, problems = from_json(tmp_path, text)
    assert found == {}
    assert problems == [message]


def test_a_misspelt_key_is_named_beside_what_it_leaves_out(tmp_path: Path) -> None:
    _, problems = from_json(tmp_path, '{\n"criterias": {"response_match_score": 1}}')
    assert problems == [
        ("warning: 2: criterias: unknown key, which ADK ignores. Did you mean 'criteria'?"),
        "1: criteria: lists no criteria, so nothing would be measured",
    ]


def test_keys_that_adk_does_not_have_are_warned_of(tmp_path: Path) -> None:
    _, problems = from_json(
        tmp_path,
        """{"criteria": {"response_match_score": 1},
"userSimulatorConfig": {}, "live_model_config": null, "custom_metrics": null,
"notes": "x"}""",
    )
    assert problems == [
        (
            "warning: 3: notes: unknown key, which ADK ignores; known: criteria, "
            "custom_metrics, live_model_config, user_simulator_config"
        )
    ]


@pytest.mark.parametrize("spec", ["false", '{"threshold": false}'])
def test_false_is_a_threshold_of_0_and_warned_of(tmp_path: Path, spec: str) -> None:
    found, problems = from_json(tmp_path, f'{{"criteria": {{"response_match_score": {spec}}}}}')

    assert found == {"response_match_score": ResponseMatch(threshold=0.0)}
    (problem,) = problems
    assert problem.endswith(": `false` is 0; to disable it, remove it")


def test_comments_and_trailing_commas_are_read(tmp_path: Path) -> None:
    found, problems = from_json(
        tmp_path,
        """// what we want
{"criteria": {
  "response_match_score": 0.5, // words
}}
""",
    )
    assert found == {"response_match_score": ResponseMatch(threshold=0.5)}
    assert problems == [
        "warning: 1: a comment, which ADK does not accept in JSON",
        "warning: 3: a comment, which ADK does not accept in JSON",
        "warning: 3: a trailing comma, which ADK does not accept in JSON",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tc.json:1: is not JSON: expecting value"),
        ('{"criteria": {\n}}}', "tc.json:2: has extra text after the end"),
        ('{"criteria": {\n"a" 1}}', "tc.json:2: is not JSON: expecting ':' delimiter"),
        (" " * (MAX_CONFIG + 1), "tc.json: is larger than 1 MiB, the limit for this kind of file"),
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tc.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_eval_config(tmp_path / "tc.json", shown="tc.json", dialect="adk")
    assert str(caught.value) == message
