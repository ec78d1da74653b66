"""Every key of ADK's and AgentFlow's config and evalset models, and what ci-eval does with it.

`ACTS`: another value changes what is run or scored.  `WARNS`, `REFUSES`: the key is told with its
line.  `DESCRIBES`: the other tool keeps it for readers alone, and so does ci-eval.
"""

import copy
import itertools
import json
from typing import Any, Literal, NamedTuple

Kind = Literal["acts", "warns", "refuses", "describes"]
ACTS, WARNS, REFUSES, DESCRIBES = "acts", "warns", "refuses", "describes"
Place = tuple[str | int, ...]


class Row(NamedTuple):
    """One key of one model."""

    model: str
    key: str
    kind: Kind
    at: Place
    """Where the value is put into the base document."""
    value: Any
    told_at: Place | None = None
    """Where a warning or an error stands; `at` unless it is told of a whole object."""


def text(document: Any) -> str:
    """Return a document with each key on a line of its own."""
    return json.dumps(document, indent=1)


def changed(base: Any, at: Place, value: Any) -> Any:
    """Return `base` with another value at a place."""
    found = copy.deepcopy(base)
    inner = found
    for step, following in itertools.pairwise(at):
        if isinstance(inner, dict):
            inner.setdefault(step, [] if isinstance(following, int) else {})
        inner = inner[step]
    inner[at[-1]] = value
    return found


def line_of(document: Any, at: Place) -> int:
    """Return the line of the key at a place of what `text` writes."""
    mark = "mark-of-this-test"
    inner = marked = copy.deepcopy(document)
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = mark
    lines = text(marked).splitlines()
    return next(number for number, line in enumerate(lines, 1) if mark in line)


def _rows(model: str, base: Place, /, **keys: Any) -> list[Row]:
    return [Row(model, key, kind, (*base, key), *more) for key, (kind, *more) in keys.items()]


# --- ADK's eval config --------------------------------------------------------------------------

_JUDGE, _RUBRICS = "final_response_match_v2", "rubric_based_final_response_quality_v1"
_TRAJECTORY, _PLAYER = "tool_trajectory_avg_score", "per_turn_user_simulator_quality_v1"
_HALLUCINATIONS = "hallucinations_v1"
_RUBRIC = {"rubric_id": "r", "rubric_content": {"text_property": "Is short."}}
_INTERVAL = {"min_value": 0, "max_value": 1}

ADK_CONFIG: Any = {
    "criteria": {
        _TRAJECTORY: {"threshold": 1.0},
        _JUDGE: {"threshold": 0.5},
        _HALLUCINATIONS: {"threshold": 0.5},
        _RUBRICS: {"threshold": 0.5, "rubrics": [_RUBRIC]},
        _PLAYER: {"threshold": 0.5},
        "mine": {"threshold": 0.5},
    },
    "custom_metrics": {
        "mine": {
            "code_config": {"name": "metrics.mine"},
            "metric_info": {"metric_name": "m", "metric_value_info": {"interval": _INTERVAL}},
        }
    },
    "user_simulator_config": {"model": "gemini-2.5-flash"},
}
_INTERMEDIATE = "include_intermediate_responses_in_final"
_OWN = "{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}"
_MINE: Place = ("custom_metrics", "mine")
_INFO: Place = (*_MINE, "metric_info")
_AT_RUBRIC: Place = ("criteria", _RUBRICS, "rubrics", 0)
_SIMULATOR = "user_simulator_config"
_AUDIO = {"type": "llm_audio"}


def _judged(model: str, criterion: str, /, **more: Any) -> list[Row]:
    at = ("criteria", criterion)
    intermediate = (WARNS, True) if criterion in (_PLAYER, _HALLUCINATIONS) else (ACTS, True)
    return _rows(
        model,
        at,
        threshold=(ACTS, 0.6),
        **{_INTERMEDIATE: intermediate},
        judge_model_options=(ACTS, {"judge_model": "gpt-4o"}),
        **more,
    )


ADK_CONFIG_ROWS = [
    *_rows(
        "EvalConfig",
        (),
        criteria=(ACTS, {_JUDGE: {"threshold": 0.5}, "mine": 0.5}),
        custom_metrics=(ACTS, {"mine": {"code_config": {"name": "metrics.other"}}}),
        user_simulator_config=(ACTS, {"model": "gpt-4o"}),
        live_model_config=(REFUSES, {}),
    ),
    Row(
        "LiveModelConfig",
        "timeout_seconds",
        REFUSES,
        ("live_model_config", "timeout_seconds"),
        5,
        ("live_model_config",),
    ),
    *_rows(
        "CustomMetricConfig",
        _MINE,
        code_config=(ACTS, {"name": "metrics.other"}),
        metric_info=(ACTS, {"metric_value_info": {}}),
        description=(DESCRIBES, "Mine."),
    ),
    *_rows("CodeConfig", (*_MINE, "code_config"), name=(ACTS, "metrics.other")),
    *_rows(
        "MetricInfo",
        _INFO,
        metric_name=(DESCRIBES, "other"),
        description=(DESCRIBES, "Mine."),
        metric_value_info=(ACTS, {}),
        requires_threshold=(DESCRIBES, False),
    ),
    *_rows("MetricValueInfo", (*_INFO, "metric_value_info"), interval=(ACTS, None)),
    *_rows(
        "Interval",
        (*_INFO, "metric_value_info", "interval"),
        min_value=(ACTS, -1),
        max_value=(ACTS, 2),
        open_at_min=(ACTS, True),
        open_at_max=(ACTS, True),
    ),
    *_rows(
        "BaseCriterion",
        ("criteria", _TRAJECTORY),
        threshold=(ACTS, 0.9),
        **{_INTERMEDIATE: (WARNS, True)},
    ),
    *_rows(
        "ToolTrajectoryCriterion",
        ("criteria", _TRAJECTORY),
        threshold=(ACTS, 0.9),
        match_type=(ACTS, "IN_ORDER"),
        ignore_args=(ACTS, True),
        **{_INTERMEDIATE: (WARNS, True)},
    ),
    *_judged("LlmAsAJudgeCriterion", _JUDGE),
    *_judged(
        "RubricsBasedCriterion", _RUBRICS, rubrics=(ACTS, [{**_RUBRIC, "rubric_id": "other"}])
    ),
    *_judged(
        "HallucinationsCriterion", _HALLUCINATIONS, evaluate_intermediate_nl_responses=(ACTS, True)
    ),
    *_judged("LlmBackedUserSimulatorCriterion", _PLAYER, stop_signal=(ACTS, "bye")),
    *_rows(
        "JudgeModelOptions",
        ("criteria", _JUDGE, "judge_model_options"),
        judge_model=(ACTS, "gpt-4o"),
        judge_model_config=(ACTS, {"temperature": 0.1}),
        num_samples=(ACTS, 3),
        parallelism_limit=(WARNS, 4),
    ),
    *_rows(
        "Rubric",
        _AT_RUBRIC,
        rubric_id=(ACTS, "other"),
        rubric_content=(ACTS, {"text_property": "Is long."}),
        description=(DESCRIBES, "For readers."),
        type=(DESCRIBES, "FINAL_RESPONSE_QUALITY"),
    ),
    *_rows("RubricContent", (*_AT_RUBRIC, "rubric_content"), text_property=(ACTS, "Is long.")),
    *_rows(
        "LlmBackedUserSimulatorConfig",
        (_SIMULATOR,),
        type=(DESCRIBES, "llm_backed"),
        model=(ACTS, "gpt-4o"),
        model_configuration=(ACTS, {"temperature": 0.1}),
        max_allowed_invocations=(ACTS, 3),
        custom_instructions=(ACTS, _OWN),
        include_function_calls=(ACTS, True),
    ),
    *(
        Row(
            "LlmAudioUserSimulatorConfig",
            key,
            REFUSES,
            (_SIMULATOR,),
            {**_AUDIO, key: value},
            (_SIMULATOR, "type"),
        )
        for key, value in {
            **_AUDIO,
            "model": "m",
            "model_configuration": {},
            "max_allowed_invocations": 3,
            "custom_instructions": _OWN,
            "include_function_calls": True,
            "audio_model": "cloud_tts",
            "audio_model_configuration": {},
            "include_text_with_audio": True,
        }.items()
    ),
]

# --- AgentFlow's eval config ----------------------------------------------------------------------

_SLOT: Place = ("criteria", "trajectory")
_WITH_RUBRICS = {"rubrics": [{"rubric_id": "r", "content": "Is short."}]}
AGENTFLOW_CONFIG: Any = {
    "criteria": {
        "trajectory": {},
        "contains_keywords": {"keywords": ["a"]},
        "llm_judge": {},
        "rubric_based": _WITH_RUBRICS,
    },
    "user_simulator_config": {"model": "gemini-2.5-flash"},
    "parallel": True,
}
_AF_RUBRIC: Place = ("criteria", "rubric_based", "rubrics", 0)

AGENTFLOW_CONFIG_ROWS = [
    *_rows(
        "EvalConfig",
        (),
        criteria=(ACTS, {"rouge_match": {}}),
        user_simulator_config=(ACTS, {"max_invocations": 3}),
        parallel=(ACTS, False),
        max_concurrency=(ACTS, 3),
        timeout=(ACTS, 5.0),
        verbose=(WARNS, True),
        mock_mode=(ACTS, True),
        reporter=(WARNS, {}),
    ),
    *(
        Row("CriteriaConfig", slot, ACTS, ("criteria", slot), options)
        for slot, options in {
            **{key: {} for key in ("tool_name_match", "node_order", "response_match")},
            **{key: {} for key in ("rouge_match", "factual_accuracy", "hallucination", "safety")},
            "simulation_goals": {},
            "trajectory": {"threshold": 0.5},
            "llm_judge": {"threshold": 0.5},
            "contains_keywords": {"keywords": ["b"]},
            "rubric_based": {**_WITH_RUBRICS, "threshold": 0.5},
        }.items()
    ),
    *_rows(
        "CriterionConfig",
        _SLOT,
        threshold=(ACTS, 0.5),
        match_type=(ACTS, "IN_ORDER"),
        check_args=(ACTS, True),
        enabled=(ACTS, False),
        judge_model=(WARNS, "gpt-4o"),
        num_samples=(WARNS, 5),
        rubrics=(WARNS, [{"rubric_id": "r", "content": "x"}]),
        keywords=(WARNS, ["a"]),
        api_style=(WARNS, "chat"),
    ),
    *_rows(
        "CriterionConfig",
        ("criteria", "llm_judge"),
        judge_model=(ACTS, "gpt-4o"),
        num_samples=(ACTS, 5),
        api_style=(ACTS, "chat"),
        match_type=(WARNS, "IN_ORDER"),
        check_args=(WARNS, True),
    ),
    *_rows("CriterionConfig", ("criteria", "contains_keywords"), keywords=(ACTS, ["b"])),
    *_rows(
        "Rubric",
        _AF_RUBRIC,
        rubric_id=(ACTS, "other"),
        content=(ACTS, "Is long."),
        weight=(ACTS, 2.0),
    ),
    *_rows(
        "UserSimulatorConfig",
        (_SIMULATOR,),
        model=(ACTS, "gpt-4o"),
        max_invocations=(ACTS, 3),
        temperature=(ACTS, 0.1),
        thinking_enabled=(WARNS, True),
        thinking_budget=(WARNS, 5),
        api_style=(WARNS, "chat"),
    ),
    *(
        Row("ReporterConfig", key, WARNS, ("reporter", key), value, ("reporter",))
        for key, value in {
            "output_dir": "out",
            **dict.fromkeys(
                (
                    *("enabled", "console", "json_report", "html", "verbose", "include_details"),
                    *("include_trajectory", "include_node_responses", "include_actual_response"),
                    *("include_tool_call_details", "timestamp_files"),
                ),
                False,
            ),
            "junit_xml": True,
        }.items()
    ),
]

# --- ADK's evalset --------------------------------------------------------------------------------

_TOOL = {"id": "1", "name": "look", "args": {"q": 1}}
_SESSION = {"app_name": "shop", "user_id": "u"}
_TYPED = {**_RUBRIC, "type": "FINAL_RESPONSE_QUALITY"}
ADK_EVALSET: Any = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "c",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "Hi"}]},
                    "final_response": {"parts": [{"text": "Hello there"}]},
                    "intermediate_data": {"tool_uses": [_TOOL]},
                    "rubrics": [_TYPED],
                }
            ],
            "session_input": _SESSION,
        },
        {
            "eval_id": "played",
            "conversation_scenario": {"starting_prompt": "Hey", "conversation_plan": "Buy."},
        },
    ],
}
_CASE: Place = ("eval_cases", 0)
_TURN: Place = (*_CASE, "conversation", 0)
_PLAYED: Place = ("eval_cases", 1)
_SAID = {"parts": [{"text": "Other words"}]}
_EVENT = {"author": "a", "content": {"parts": [{"function_call": {**_TOOL, "name": "other"}}]}}

ADK_EVALSET_ROWS = [
    *_rows(
        "EvalSet",
        (),
        eval_set_id=(ACTS, "other"),
        name=(DESCRIBES, "Name"),
        description=(DESCRIBES, "Words."),
        eval_cases=(ACTS, [{"eval_id": "x", "conversation": [{"user_content": _SAID}]}]),
        creation_timestamp=(DESCRIBES, 5.0),
    ),
    *_rows(
        "EvalCase",
        _CASE,
        eval_id=(ACTS, "other"),
        conversation=(ACTS, [{"user_content": _SAID}]),
        session_input=(ACTS, {**_SESSION, "user_id": "other"}),
        creation_timestamp=(DESCRIBES, 5.0),
        rubrics=(ACTS, [{**_TYPED, "rubric_id": "more"}]),
        final_session_state=(ACTS, {"paid": False}),
    ),
    Row(
        "EvalCase",
        "conversation_scenario",
        ACTS,
        (*_PLAYED, "conversation_scenario"),
        {"starting_prompt": "Ho", "conversation_plan": "Buy."},
    ),
    *_rows(
        "ConversationScenario",
        (*_PLAYED, "conversation_scenario"),
        starting_prompt=(ACTS, "Ho"),
        conversation_plan=(ACTS, "Sell."),
        user_persona=(ACTS, "NOVICE"),
    ),
    *_rows(
        "Invocation",
        _TURN,
        invocation_id=(DESCRIBES, "i"),
        user_content=(ACTS, _SAID),
        final_response=(ACTS, _SAID),
        intermediate_data=(ACTS, {}),
        creation_timestamp=(DESCRIBES, 5.0),
        duration=(DESCRIBES, 1.5),
        model_duration=(DESCRIBES, 1.0),
        tool_duration=(DESCRIBES, 0.5),
        rubrics=(ACTS, []),
        app_details=(
            DESCRIBES,
            {"agent_details": {"a": {"name": "a", "instructions": "Be kind."}}},
        ),
    ),
    *_rows(
        "IntermediateData",
        (*_TURN, "intermediate_data"),
        tool_uses=(ACTS, [{**_TOOL, "name": "other"}]),
        tool_responses=(DESCRIBES, [{"id": "1", "name": "look", "response": {"found": 1}}]),
        intermediate_responses=(DESCRIBES, [["a", [{"text": "One moment."}]]]),
    ),
    *_rows("Rubric", (*_TURN, "rubrics", 0), type=(ACTS, "TOOL_USE_QUALITY")),
    Row("Rubric", "type", WARNS, (*_TURN, "rubrics", 0), _RUBRIC),
    Row(
        "InvocationEvents",
        "invocation_events",
        ACTS,
        (*_TURN, "intermediate_data"),
        {"invocation_events": [_EVENT]},
    ),
    *_rows(
        "SessionInput",
        (*_CASE, "session_input"),
        app_name=(ACTS, "other"),
        user_id=(ACTS, "other"),
        session_id=(ACTS, "pinned"),
        state=(ACTS, {"cart": []}),
    ),
]

# --- AgentFlow's evalset --------------------------------------------------------------------------


def _message(said: str) -> Any:
    return {"role": "user", "content": said}


AGENTFLOW_EVALSET: Any = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "c",
            "conversation": [
                {
                    "user_content": _message("Hi"),
                    "expected_final_response": _message("Hello there"),
                    "expected_tool_trajectory": [{"name": "look", "args": {"q": 1}}],
                    "expected_node_order": ["MAIN"],
                }
            ],
        }
    ],
}
AGENTFLOW_EVALSET_ROWS = [
    *_rows(
        "EvalSet",
        (),
        eval_set_id=(ACTS, "other"),
        name=(DESCRIBES, "Name"),
        description=(DESCRIBES, "Words."),
        eval_cases=(ACTS, [{"eval_id": "x", "conversation": [{"user_content": _message("Ho")}]}]),
        metadata=(DESCRIBES, {"owner": "us"}),
    ),
    *_rows(
        "EvalCase",
        _CASE,
        eval_id=(ACTS, "other"),
        name=(DESCRIBES, "Name"),
        description=(DESCRIBES, "Words."),
        conversation=(ACTS, [{"user_content": _message("Ho")}]),
        session_input=(ACTS, {"user_id": "other"}),
        tags=(ACTS, ["slow"]),
        metadata=(ACTS, {"reference_facts": "It is blue.", "context": "The shop."}),
    ),
    *_rows(
        "Invocation",
        _TURN,
        invocation_id=(DESCRIBES, "i"),
        user_content=(ACTS, _message("Ho")),
        expected_tool_trajectory=(ACTS, []),
        expected_node_order=(ACTS, ["OTHER"]),
        expected_intermediate_responses=(DESCRIBES, [_message("One moment.")]),
        expected_final_response=(ACTS, _message("Other words")),
    ),
    *_rows(
        "ToolCall",
        (*_TURN, "expected_tool_trajectory", 0),
        name=(ACTS, "other"),
        args=(ACTS, {"q": 2}),
        call_id=(DESCRIBES, "1"),
        result=(DESCRIBES, {"found": 1}),
    ),
    *_rows(
        "MessageContent",
        (*_TURN, "user_content"),
        role=(DESCRIBES, "human"),
        content=(ACTS, "Ho"),
        metadata=(DESCRIBES, {"at": 5}),
    ),
    *_rows(
        "SessionInput",
        (*_CASE, "session_input"),
        app_name=(ACTS, "other"),
        user_id=(ACTS, "other"),
        state=(ACTS, {"cart": []}),
        config=(ACTS, {"recursion_limit": 3}),
    ),
]
