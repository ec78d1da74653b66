"""ADK's evalsets: what ADK reads is read, and every mistake has its line."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.reader_problems import in_lines, told

from ci_eval.evalsets import _evalset_reading
from ci_eval.evalsets.adk_evalset import Adk
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet

HELLO = {"parts": [{"text": "Hello"}]}
CASE: dict[str, Any] = {"eval_id": "a", "conversation": [{"user_content": HELLO}]}


def opened(folder: Path, value: object) -> OpenedEvalSet:
    path = folder / "a.evalset.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return Adk().read(path, shown="a.evalset.json")


def evalset(*cases: object) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": list(cases)}


def turn(**more: object) -> dict[str, Any]:
    """Return a case of one turn."""
    return {"eval_id": "a", "conversation": [{"user_content": HELLO, **more}]}


def only(folder: Path, case: object) -> EvalCase:
    (found,) = opened(folder, evalset(case)).cases()
    return found


def said(folder: Path, value: object, *, silence: bool = False) -> list[str]:
    """Return the problems, without the name of the file."""
    return told(lambda: opened(folder, value), "a.evalset.json", silence=silence)


def test_what_is_not_stated_and_counts_all_the_same_is_warned_of(tmp_path: Path) -> None:
    empty = {"parts": [{"text": " "}]}
    silent = turn(final_response=empty)
    stated = turn(final_response=HELLO, intermediate_data={"tool_uses": []})
    both = {**stated, "conversation": [*stated["conversation"], *silent["conversation"]]}
    text = in_lines(json.dumps(stated) + ",", json.dumps({**both, "eval_id": "b"}))
    where = "eval_cases[1].conversation[1]"

    assert said(tmp_path, text, silence=True) == [
        (
            f"warning: 3: {where}: does not state the expected tool calls, so ADK's "
            "'tool_trajectory_avg_score' expects none: an agent that calls no tool passes"
        ),
        f"warning: 3: {where}: expects no response, which scores 0 in ADK's 'response_match_score'",
    ]
    assert only(tmp_path, stated).of_adk


# --- What is read ---------------------------------------------------------------------------


def test_a_set_has_its_id_its_cases_and_their_lines(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id": "a", "conversation": []},', "", '{"eval_id": "b", "conversation":[]}'
    )
    found = opened(tmp_path, text)
    assert found.header.model_dump() == {
        "eval_set_id": "s",
        "path": "a.evalset.json",
        "format": "adk",
    }
    assert [(case.eval_id, case.line) for case in found.cases()] == [("a", 2), ("b", 4)]
    assert [case.eval_id for case in found.cases()] == ["a", "b"]  # and again


def test_an_empty_set_is_one(tmp_path: Path) -> None:
    found = opened(tmp_path, evalset())
    assert list(found.cases()) == []
    assert found.facts.cases == 0
    assert found.warnings == ()


@pytest.mark.parametrize("key", ["intermediate_data", "intermediateData"])
@pytest.mark.parametrize(
    "data",
    [
        {
            "tool_uses": [{"id": "1", "name": "t", "args": {"x": 1}}, {"name": "u", "args": {}}],
            "tool_responses": [{"id": "1", "name": "t", "response": {"y": 2}}],
            "intermediate_responses": [["agent", [{"text": "wait"}]]],
        },
        {
            "toolUses": [{"id": "1", "name": "t", "args": {"x": 1}}, {"name": "u", "args": {}}],
            "toolResponses": [{"id": "1", "name": "t", "response": {"y": 2}}],
        },
        {
            "invocation_events": [
                {"author": "a", "content": {"parts": [{"text": "wait"}]}},
                {"author": "a"},
                {
                    "author": "a",
                    "content": {
                        "parts": [{"function_call": {"id": "1", "name": "t", "args": {"x": 1}}}]
                    },
                },
                {
                    "author": "user",
                    "content": {
                        "parts": [
                            {"functionResponse": {"id": "1", "response": {"y": 2}}},
                            {"functionCall": {"name": "u", "args": {}}},
                        ]
                    },
                },
            ]
        },
        {
            "invocationEvents": [
                {
                    "author": "a",
                    "content": {
                        "parts": [
                            {"functionCall": {"id": "1", "name": "t", "args": {"x": 1}}},
                            {"functionCall": {"name": "u", "args": {}}},
                            {"functionResponse": {"id": "1", "response": {"y": 2}}},
                        ]
                    },
                    "somethingNew": "ADK ignores it here",
                }
            ]
        },
    ],
)
def test_a_trajectory_is_read_in_every_spelling(tmp_path: Path, key: str, data: object) -> None:
    (invocation,) = only(tmp_path, turn(**{key: data})).conversation or ()
    assert [tuple(call) for call in invocation.tool_calls] == [
        ("t", {"x": 1}, {"y": 2}),
        ("u", {}, None),
    ]


def test_both_spellings_may_stand_side_by_side(tmp_path: Path) -> None:
    case = {
        "evalId": "a",
        "conversation": [
            {"userContent": HELLO, "final_response": HELLO, "invocationId": "1", "rubrics": []}
        ],
        "sessionInput": {"appName": "x", "user_id": "u", "state": {"k": 1}},
        "final_session_state": {"k": 2},
    }
    found = only(tmp_path, case)
    assert (found.eval_id, (found.conversation or ())[0].response) == ("a", "Hello")
    assert found.session_input
    assert found.session_input.app_name == "x"


def test_the_texts_of_a_message_are_put_under_one_another(tmp_path: Path) -> None:
    parts = [{"text": "a"}, {"inline_data": {}}, {"text": ""}, {"text": "b", "thought": True}]
    (invocation,) = only(tmp_path, turn(final_response={"parts": parts})).conversation or ()
    assert invocation.response == "a\nb"


def test_a_case_may_be_led_by_a_simulated_user(tmp_path: Path) -> None:
    plot = {"startingPrompt": "Hello", "conversation_plan": "Be kind.", "userPersona": "NOVICE"}
    found = only(tmp_path, {"eval_id": "a", "conversationScenario": plot})
    assert found.conversation is None
    assert found.conversation_scenario
    assert found.conversation_scenario.user_persona == "NOVICE"


def test_what_adk_keeps_in_a_case_is_kept(tmp_path: Path) -> None:
    found = only(tmp_path, {**CASE, "labels": ["x"], "line": "theirs"})
    assert found.model_extra == {"labels": ["x"]}
    assert found.line == 1


def test_what_the_cases_offer_is_counted(tmp_path: Path) -> None:
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "polite"}}
    plot = {"starting_prompt": "Hello", "conversation_plan": "Be kind."}
    facts = opened(
        tmp_path,
        evalset(
            turn(final_response=HELLO),
            {**CASE, "eval_id": "b", "rubrics": [rubric]},
            {**turn(rubrics=[rubric], final_response=HELLO), "eval_id": "c"},
            {"eval_id": "d", "conversation_scenario": plot},
        ),
    ).facts
    assert (facts.cases, facts.scenarios, facts.with_rubrics) == (4, 1, 2)


def test_a_long_file_is_read_again_instead_of_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_evalset_reading, "KEPT_BYTES", 10)
    found = opened(tmp_path, evalset(CASE, {**CASE, "eval_id": "b"}))
    assert [case.eval_id for case in found.cases()] == ["a", "b"]
    assert next(found.cases()) is not next(found.cases())


@pytest.mark.parametrize(
    ("head", "is_adk"),
    [
        ({"eval_set_id": "s"}, True),
        ({"eval_cases": [{}]}, True),
        ({"evalCases": []}, True),
        ({"other": 1}, False),
        ([{"eval_cases": []}], False),
        (None, False),
    ],
)
def test_the_format_is_told_from_the_beginning(head: Any, *, is_adk: bool) -> None:
    assert Adk.sniff(head) is is_adk


# --- What is read with a warning ------------------------------------------------------------


def test_turns_may_be_written_as_in_the_older_format(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id": "a", "conversation": [{',
        '"user_content": "Roll", "reference": "Rolled.",',
        '"expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}, {"name": "x"}],',
        '"expected_intermediate_agent_responses": [{"author": "dice", "text": "…"}, "so"]}]}',
    )
    (case,) = opened(tmp_path, text).cases()
    (found,) = case.conversation or ()
    assert (found.user, found.response) == ("Roll", "Rolled.")
    assert (found.user_content.role, found.final_response and found.final_response.role) == (
        "user",
        "model",
    )
    assert [(call.name, call.args) for call in found.tool_calls] == [
        ("roll", {"sides": 6}),
        ("x", None),
    ]
    first, second = said(tmp_path, text)
    assert first == (
        "warning: 2: eval_cases[0].conversation[0]: 'reference', 'expected_tool_use', "
        "'expected_intermediate_agent_responses', 'user_content' are written in ADK's older "
        "format, which ADK refuses here"
    )
    assert second.startswith("warning: 2: eval_cases[0].conversation[0]: the expected call of 'x'")


def test_what_is_wrong_in_the_older_way_is_wrong_in_the_new_one(tmp_path: Path) -> None:
    turn = {
        "query": "x",
        "expected_tool_use": [5],
        "expected_intermediate_agent_responses": {"author": "a"},
    }
    data = "1: eval_cases[0].conversation[0].intermediate_data"
    assert said(tmp_path, evalset({"eval_id": "a", "conversation": [turn]}))[1:] == [
        f"{data}.tool_uses[0]: expected an object, found 5",
        f"{data}.intermediate_responses: expected a list, found an object",
    ]
    turn["expected_intermediate_agent_responses"] = [5]
    assert said(tmp_path, evalset({"eval_id": "a", "conversation": [turn]}))[2:] == [
        f"{data}.intermediate_responses[0]: expected a list, found 5"
    ]


def test_what_is_written_the_new_way_counts_more_than_the_old(tmp_path: Path) -> None:
    both = {"query": "old", "user_content": HELLO, "reference": "old", "final_response": HELLO}
    (found,) = only(tmp_path, {"eval_id": "a", "conversation": [both]}).conversation or ()
    assert (found.user, found.response) == ("Hello", "Hello")


def test_one_old_key_is_enough_for_a_warning(tmp_path: Path) -> None:
    text = in_lines('{"eval_id": "a", "conversation": [', '{"query": "Roll"}]}')
    assert said(tmp_path, text) == [
        (
            "warning: 3: eval_cases[0].conversation[0]: "
            "'query' is written in ADK's older format, which ADK refuses here"
        )
    ]


def test_a_header_in_camel_case_is_warned_of_as_adk_refuses_it(tmp_path: Path) -> None:
    text = '{"evalSetId": "s",\n"evalCases": [\n{"evalId": "a", "conversation": [{}]}]}'
    assert said(tmp_path, text) == [
        "warning: 1: evalSetId: ADK itself reads only 'eval_set_id'",
        "warning: 2: evalCases: ADK itself reads only 'eval_cases'",
        "3: evalCases[0].conversation[0]: 'user_content' is missing",
    ]


def test_unknown_keys_that_adk_ignores_are_warned_of(tmp_path: Path) -> None:
    text = '{"eval_set_id": "s",\n"descripton": "x",\n"tags": [1], "eval_cases": []}'
    known = "creation_timestamp, description, eval_cases, eval_set_id, name"
    assert said(tmp_path, text) == [
        "warning: 2: descripton: unknown key, ignored. Did you mean 'description'?",
        f"warning: 3: tags: unknown key, ignored; known: {known}",
    ]


def test_unknown_keys_of_a_case_are_warned_of_where_they_look_misspelt(tmp_path: Path) -> None:
    text = in_lines('{"eval_id": "a", "conversation": [{"user_content": {}}],', '"rubric": [],')
    text = text.replace(",]}", ', "lines": 1, "zebra": 1}]}')
    assert said(tmp_path, text) == [
        "warning: 3: eval_cases[0].rubric: unknown key, ignored. Did you mean 'rubrics'?"
    ]


def test_a_key_of_a_case_in_two_spellings_is_warned_of(tmp_path: Path) -> None:
    text = in_lines('{"eval_id": "a", "evalId": "b", "conversation": [{"user_content": {}}]}')
    (found,) = said(tmp_path, text)
    assert found.startswith("warning: 2: eval_cases[0].eval_id: is given in two spellings; this")


def test_our_own_keys_of_a_turn_are_read_although_adk_refuses_them(tmp_path: Path) -> None:
    case = turn(nodes=["a"], costUsd=0.1)
    message = "ADK refuses the file because of 'nodes', 'costUsd', which only ci-eval knows"
    assert said(tmp_path, evalset(case)) == [
        f"warning: 1: eval_cases[0].conversation[0]: {message}"
    ]
    (found,) = only(tmp_path, case).conversation or ()
    assert (found.nodes, found.cost_usd) == (("a",), 0.1)


@pytest.mark.parametrize("key", ["of_adk", "ofAdk", "line"])
def test_no_key_of_a_case_says_where_it_comes_from(tmp_path: Path, key: str) -> None:
    case = only(tmp_path, {**CASE, key: 0})

    assert (case.of_adk, case.line) == (True, 1)


def test_an_expected_call_without_arguments_is_warned_of(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id": "a", "conversation": [',
        '{"user_content": {}, "intermediate_data": {"tool_uses": [{"name": "t"}]}}]}',
    )
    assert said(tmp_path, text) == [
        (
            "warning: 3: eval_cases[0].conversation[0]: the expected call of 't' has no 'args', "
            "which matches no call with arguments, not even empty ones; "
            'write "args": {} if none are expected'
        )
    ]


@pytest.mark.parametrize(
    ("case", "where"),
    [
        (
            {"conversation_scenario": {"starting_prompt": "", "conversation_plan": "Ask."}},
            "conversation_scenario.starting_prompt",
        ),
        ({**turn(), "session_input": {"app_name": "", "user_id": "u"}}, "session_input.app_name"),
    ],
)
def test_texts_that_adk_needs_are_warned_of_if_empty(
    tmp_path: Path, case: dict[str, object], where: str
) -> None:
    (found,) = said(tmp_path, in_lines(json.dumps({"eval_id": "a", **case})))

    assert found.endswith(f"eval_cases[0].{where}: is empty, so that ADK fails")


def test_a_conversation_without_a_turn_is_warned_of(tmp_path: Path) -> None:
    assert said(tmp_path, evalset({"eval_id": "a", "conversation": []})) == [
        "warning: 1: eval_cases[0].conversation: has no invocation, so there is nothing to measure"
    ]


# --- What is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("{}", ["1: 'eval_set_id' is missing", "1: 'eval_cases' is missing"]),
        ('{"eval_set_id": "s"}', ["1: 'eval_cases' is missing"]),
        ('{"eval_cases": []}', ["1: 'eval_set_id' is missing"]),
        (
            '{"eval_set_id": 5,\n"eval_cases": {}}',
            [
                "1: eval_set_id: expected text, found 5",
                "2: eval_cases: expected a list of cases, found an object",
            ],
        ),
        (
            '{"eval_set_id": "s", "eval_cases": null}',
            ["1: eval_cases: expected a list of cases, found nothing"],
        ),
        (
            '{"eval_set_id": "s", "eval_cases": [],\n"eval_cases": [\n{}]}',
            ["2: duplicate key 'eval_cases'", "3: eval_cases[0]: 'eval_id' is missing"],
        ),
        (
            '{"eval_set_id": "s", "eval_set_id": "t", "eval_cases": []}',
            ["1: duplicate key 'eval_set_id'"],
        ),
        (
            '{"eval_set_id": "s", "eval_cases": [\n{"eval_id": "a",\n"eval_id": "b"}]}',
            ["3: duplicate key 'eval_id'"],
        ),
        ("[]", ["1: 'eval_set_id' is missing", "1: 'eval_cases' is missing"]),
    ],
)
def test_the_set_itself_must_be_right(tmp_path: Path, text: str, messages: list[str]) -> None:
    found = [each for each in said(tmp_path, text) if not each.startswith("warning")]
    assert found == messages


WRONG_CASES: list[tuple[Any, str]] = [
    (5, ": expected an object, found 5"),
    (None, ": expected an object, found nothing"),
    ("x", ": expected an object, found 'x'"),
    ([], ": expected an object, found a list"),
    ({}, ": 'eval_id' is missing"),
    ({**CASE, "eval_id": 5}, ".eval_id: expected text, found 5"),
    ({"eval_id": "a"}, ": needs either 'conversation' or 'conversation_scenario'"),
    ({"eval_id": "a", "conversation": {}}, ".conversation: expected a list, found an object"),
    ({"eval_id": "a", "conversation": [5]}, ".conversation[0]: expected an object, found 5"),
    ({"eval_id": "a", "conversation": [{}]}, ".conversation[0]: 'user_content' is missing"),
    (
        {**CASE, "conversation_scenario": {"starting_prompt": "", "conversation_plan": ""}},
        ": needs either 'conversation' or 'conversation_scenario'",
    ),
    (
        {"eval_id": "a", "conversation_scenario": {"startingPrompt": ""}},
        ".conversation_scenario: 'conversation_plan' is missing",
    ),
    (turn(final_response=[]), ".conversation[0].final_response: expected an object, found a list"),
    (
        turn(final_response={"parts": [{"text": 5}]}),
        ".conversation[0].final_response.parts[0].text: expected text, found 5",
    ),
    (
        turn(finalResponse={"parts": [{"txt": "x"}]}),
        ".conversation[0].finalResponse.parts[0].txt: unknown key. Did you mean 'text'?",
    ),
    (
        turn(final_respons={}),
        ".conversation[0].final_respons: unknown key. Did you mean 'final_response'?",
    ),
    (
        turn(intermediate_data={"tool_uses": {"name": "t"}}),
        ".conversation[0].intermediate_data.tool_uses: expected a list, found an object",
    ),
    (
        turn(intermediate_data={"tool_uses": [{"name": "t", "args": []}]}),
        ".conversation[0].intermediate_data.tool_uses[0].args: expected an object, found a list",
    ),
    (
        turn(intermediate_data={"tool_uses": [], "invocation_events": []}),
        ".conversation[0].intermediate_data.tool_uses: unknown key; known: invocation_events",
    ),
    (
        turn(intermediateData={"invocationEvents": [{}]}),
        ".conversation[0].intermediateData.invocationEvents[0]: 'author' is missing",
    ),
    (
        turn(intermediate_data={"intermediate_responses": [["agent"]]}),
        ".conversation[0].intermediate_data.intermediate_responses[0]: has too few elements",
    ),
    (
        turn(rubrics=[{"rubric_id": "r"}]),
        ".conversation[0].rubrics[0]: 'rubric_content' is missing",
    ),
    ({**CASE, "session_input": {"app_name": "x"}}, ".session_input: 'user_id' is missing"),
    ({**CASE, "final_session_state": []}, ".final_session_state: expected an object, found a list"),
    (
        {**CASE, "creation_timestamp": 10**300},
        f".creation_timestamp: must be at most 1e+20, found 1{'0' * 39}",
    ),
]


@pytest.mark.parametrize(("case", "message"), WRONG_CASES)
def test_a_case_must_be_right(tmp_path: Path, case: object, message: str) -> None:
    text = in_lines(json.dumps({**CASE, "eval_id": "first"}) + ",", json.dumps(case))
    assert said(tmp_path, text) == [f"3: eval_cases[1]{message}"]


def test_every_mistake_is_named_in_the_order_of_the_file(tmp_path: Path) -> None:
    cases = [copy.deepcopy(case) for case, _ in WRONG_CASES]
    text = in_lines(",\n".join(map(json.dumps, cases)))
    found = said(tmp_path, text)
    assert len(found) == len(WRONG_CASES)
    lines = [int(each.partition(":")[0]) for each in found]
    assert lines == list(range(2, 2 + len(WRONG_CASES)))


def test_each_mistake_in_a_case_has_a_line_of_its_own(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id":',
        "  5,",
        '"conversation": [{',
        '  "user_content": {"parts": [',
        '     {"text": "x"}, {"text":',
        "7}]},",
        '  "creation_timestamp": "x"}]}',
    )
    assert said(tmp_path, text) == [
        "2: eval_cases[0].eval_id: expected text, found 5",
        "6: eval_cases[0].conversation[0].user_content.parts[1].text: expected text, found 7",
        "8: eval_cases[0].conversation[0].creation_timestamp: expected a number, found 'x'",
    ]


def test_an_id_is_there_once(tmp_path: Path) -> None:
    text = in_lines(json.dumps(CASE) + ",", "", json.dumps(CASE) + ",", json.dumps(CASE))
    assert said(tmp_path, text) == [
        "4: duplicate id 'a'; the first is on line 2",
        "5: duplicate id 'a'; the first is on line 2",
    ]


def test_what_is_wrong_before_the_json_breaks_is_named_too(tmp_path: Path) -> None:
    text = in_lines('{"eval_id": 5, "conversation": []},', "{]")
    assert said(tmp_path, text) == [
        "2: eval_cases[0].eval_id: expected text, found 5",
        "3: is not JSON: expecting property name enclosed in double quotes",
    ]


def test_a_mistake_in_every_case_is_told_a_few_times_and_counted(tmp_path: Path) -> None:
    text = in_lines(",\n".join(['{"eval_id": "a", "conversation": [{}, {}]}'] * 100))
    found = said(tmp_path, text)
    assert found == [
        "2: eval_cases[0].conversation[0]: 'user_content' is missing",
        "2: eval_cases[0].conversation[1]: 'user_content' is missing",
        "3: eval_cases[1].conversation[0]: 'user_content' is missing",
        "3: eval_cases[1].conversation[1]: 'user_content' is missing",
        (
            "4: eval_cases[2].conversation[0]: 'user_content' is missing "
            "(and in 195 more places, down to line 101)"
        ),
    ]
    six = in_lines(",\n".join(['{"eval_id": "a", "conversation": [{}]}'] * 6))
    assert said(tmp_path, six)[-1].endswith("(and in 1 more place, down to line 7)")


def test_a_file_full_of_different_mistakes_is_not_read_to_its_end(tmp_path: Path) -> None:
    text = in_lines(",\n".join(json.dumps(f"case {n}") for n in range(5000)))
    found = said(tmp_path, text)
    assert len(found) == _evalset_reading.MAX_PROBLEMS
    assert found[-1] == "1001: eval_cases[999]: expected an object, found 'case 999'"


@pytest.mark.slow
def test_many_warnings_take_no_time(tmp_path: Path) -> None:
    cases = [{**CASE, "eval_id": f"{n}", "rubric": 1} for n in range(5_000)]
    found = opened(tmp_path, in_lines(",\n".join(map(json.dumps, cases))))
    assert found.facts.cases == 5_000
    misspelt = [each for each in found.warnings if not each.concerns]
    assert [problem.line for problem in misspelt] == [2, 3, 4, 5, 6]
    assert misspelt[-1].message.endswith("(and in 4995 more places, down to line 5001)")


@pytest.mark.parametrize("name", ["human_answers", "humanAnswers"])
def test_what_a_human_answers_is_read_in_both_spellings(tmp_path: Path, name: str) -> None:
    case = {"eval_id": "a", "conversation": [], name: {"approve": {"result": False}}}

    assert only(tmp_path, case).human_answers["approve"][0].result is False


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("human_answers", {"approve": {}}, "approve[0]"),
        ("humanAnswers", {"approve": [{"error": "no", "result": 1}]}, "approve[0]"),
        ("tool_mocks", {"tools": {"find": {}}}, "tools.find[0]"),
        ("toolMocks", {"tools": {"find": [{"result": 1}, {"args": {}}]}}, "tools.find[1]"),
    ],
)
def test_what_is_canned_wrongly_is_told_in_the_spelling_of_the_file(
    tmp_path: Path, name: str, value: object, where: str
) -> None:
    (problem,) = said(tmp_path, evalset({**turn(), name: value}))

    place = f"eval_cases[0].{name}.{where}"
    assert problem.endswith(f"{place}: needs one of 'result', 'results' and 'error'")


@pytest.mark.parametrize(
    ("persona", "said"),
    [
        ("NOVICE", []),
        (None, []),
        ({"id": "x", "description": "d", "behaviors": []}, []),
        ("NOVISE", ["unknown persona 'NOVISE'. Did you mean 'NOVICE'?"]),
        ({"id": "x", "behaviors": []}, ["'description' is missing"]),
        (5, ["expected the name or the description of a persona, found 5"]),
    ],
)
def test_a_persona_that_nobody_knows_is_told_with_its_line(
    tmp_path: Path, persona: Any, said: list[str]
) -> None:
    plot = {"starting_prompt": "a", "conversation_plan": "b", "user_persona": persona}
    text = json.dumps(evalset({"eval_id": "led", "conversation_scenario": plot}), indent=1)
    found = tmp_path / "a.evalset.json"
    found.write_text(text)
    line = 1 + text[: text.index("user_persona")].count("\n")
    where = f"a.evalset.json:{line}: eval_cases[0].conversation_scenario.user_persona: "
    try:
        problems = Adk().read(found, shown=found.name).warnings
    except EvalSetError as exc:
        problems = exc.problems
    assert [str(each) for each in problems] == [where + each for each in said]
