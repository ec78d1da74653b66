"""What is written can be read again, and what a format does not keep is said."""

import json

import pytest
from support.project import GREETS, REFUNDS, content, turn

from ci_eval.cli.evalset.conversion_losses import losses
from ci_eval.cli.evalset.evalset_writers import FORMATS, document_text, own_case, read_back
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError, UsageError

RICH = {
    "eval_id": "rich",
    "conversation": [
        {
            "invocation_id": "i-1",
            "user_content": content("Hi", "user"),
            "final_response": content("Done.", "model"),
            "intermediate_data": {
                "tool_uses": [{"id": "1", "name": "f", "args": {"x": None}}, {"name": "g"}],
                "tool_responses": [{"id": "1", "name": "f", "response": {"y": [1, 2.0]}}],
                "intermediate_responses": [["helper", [{"text": "wait"}]]],
            },
            "creation_timestamp": 12.5,
            "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "kind"}}],
        },
        turn("Bye", "Bye."),
    ],
    "session_input": {"app_name": "shop", "user_id": "u", "state": {"n": None}, "mine": 1},
    "rubrics": [{"rubric_id": "q", "rubric_content": {"text_property": "short"}}],
    "final_session_state": {"paid": True},
    "tags": ["slow"],
    "assertions": [{"contains": "Done"}],
    "note": {"by": "me", "when": None},
}


def cases(*data):
    return [EvalCase.model_validate(each) for each in data]


def written(target, syntax, *data, **more):
    return document_text(target, syntax, "s", cases(*data), more)


def reread(name, *data):
    text = written(name, "json", *data)
    return list(read_back(text, name="s.evalset.json", shown="s").cases())


def lost(before, after, target="adk"):
    return [each.message for each in losses(before, after, shown="s", target=target)]


def test_adks_format_keeps_everything_that_adk_knows_and_keys_of_the_users_own():
    after = reread("adk", RICH, GREETS)

    dumped = [case.model_dump(exclude_defaults=True) for case in after]
    assert dumped == [case.model_dump(exclude_defaults=True) for case in cases(RICH, GREETS)]
    assert lost(cases(RICH, GREETS), after) == []


def test_adks_format_is_written_as_adk_writes_it():
    assert json.loads(written("adk", "json", REFUNDS, name="n", creation_timestamp=1.5)) == {
        "eval_set_id": "s",
        "name": "n",
        "eval_cases": [REFUNDS],
        "creation_timestamp": 1.5,
    }


def test_what_adk_would_refuse_is_left_out_and_said():
    visited = {**turn("Hi", "Hi"), "nodes": ["MAIN"], "cost_usd": 0.5, "metered": {"calls": 1}}
    before = cases({"eval_id": "a", "conversation": [visited]})
    after = reread("adk", *[case.model_dump() for case in before])

    assert lost(before, after) == [
        "the format 'adk' does not keep 'conversation[].cost_usd' of 'a'",
        "the format 'adk' does not keep 'conversation[].nodes' of 'a'",
        "the format 'adk' does not keep 'conversation[].metered' of 'a'",
    ]


def test_agentflows_format_keeps_calls_with_their_answers_and_says_what_it_has_no_place_for():
    simple = {**RICH, "conversation": [turn("Hi", "Done.", ("f", {"x": 1}))]}
    kept = {key: simple[key] for key in ("eval_id", "conversation", "tags", "session_input")}
    kept["session_input"] = {"app_name": "shop", "user_id": "u", "state": {"n": 1}}

    assert lost(cases(kept), reread("agentflow", kept)) == []
    assert lost(cases(simple), reread("agentflow", simple)) == [
        f"the format 'adk' does not keep {part!r} of 'rich'"
        for part in ("session_input.mine", "rubrics", "final_session_state", "assertions", "note")
    ]


def test_a_trajectory_of_events_is_the_same_as_one_of_lists():
    call = {"function_call": {"id": "1", "name": "f", "args": {}}}
    answer = {"function_response": {"id": "1", "name": "f", "response": {"y": 1}}}
    events = [
        {"author": "bot", "content": {"role": "model", "parts": [call]}},
        {"author": "bot", "content": {"role": "user", "parts": [answer]}},
    ]
    spoken = {"author": "bot", "content": {"parts": [{"text": "wait"}]}}

    def of(data):
        return cases({"eval_id": "a", "conversation": [{**turn("x", "y"), **data}]})

    lists = {"tool_uses": [call["function_call"]], "tool_responses": [answer["function_response"]]}
    as_lists = of({"intermediate_data": lists})

    assert lost(of({"intermediate_data": {"invocation_events": events}}), as_lists) == []
    assert lost(of({"intermediate_data": {"invocation_events": [*events, spoken]}}), as_lists) == [
        "the format 'adk' does not keep 'conversation[].events' of 'a'"
    ]
    without_answer = of({"intermediate_data": {"tool_uses": [call["function_call"]]}})
    assert lost(as_lists, without_answer) == [
        "the format 'adk' does not keep 'conversation[].tool_results' of 'a'"
    ]


def test_expecting_no_tools_is_not_the_same_as_saying_nothing_of_tools():
    nothing = {"user_content": content("x", "user")}
    none = {**nothing, "intermediate_data": {}}

    for before, after in ((nothing, none), (none, nothing)):
        pair = [cases({"eval_id": "a", "conversation": [each]}) for each in (before, after)]
        assert lost(*pair) == ["the format 'adk' does not keep 'conversation[].tool_calls' of 'a'"]


def test_a_loss_of_many_cases_is_said_once():
    before = cases(*({**GREETS, "eval_id": each, "note": 1} for each in "abcde"))
    after = cases(*({**GREETS, "eval_id": each} for each in "abcde"))

    assert lost(before, after) == [
        "the format 'adk' does not keep 'note' of 5 cases, 'a', 'b', 'c' among them"
    ]


def test_other_cases_than_before_are_an_error():
    with pytest.raises(EvalSetError, match="would not contain the same cases as before: 'greets'"):
        lost(cases(GREETS), cases(REFUNDS))


def test_our_own_format_says_what_a_person_would_write():
    assert own_case(cases(REFUNDS)[0]) == {
        "id": "refunds",
        "prompt": "Refund 7",
        "expected": "Order 7 is refunded.",
        "expected_tools": [{"name": "refund", "args": {"order": 7}}],
    }
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Buy."}
    assert own_case(cases({"eval_id": "s", "conversation_scenario": scenario})[0]) == {
        "id": "s",
        "scenario": {"start": "Hi", "plan": "Buy."},
    }


def test_a_format_is_written_in_its_own_syntaxes_only():
    with pytest.raises(UsageError, match="'adk' cannot be written as yaml, only as json"):
        written("adk", "yaml", GREETS)
    lines = written("cases", "jsonl", GREETS, REFUNDS)
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["greets", "refunds"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_that_is_written_is_written_as_text_with_an_end(name):
    assert written(name, FORMATS[name].syntaxes[0], GREETS).endswith("\n")


MOCKED = {
    **GREETS,
    "tool_mocks": {
        "tools": {"find": [{"args": {"x": 1}, "result": None}, {"results": [None, 2]}]},
        "unmatched": "pass",
    },
    "human_answers": {"approve": [{"error": "nobody is there"}, {"result": None}]},
    "rerun_on_resume": True,
}


@pytest.mark.parametrize("target", ["adk", "cases"])
def test_what_is_canned_is_kept_and_null_is_a_result(target):
    before = cases(MOCKED)
    after = reread(target, MOCKED)

    assert lost(before, after, target) == []
    assert after[0].tool_mocks == before[0].tool_mocks
    assert after[0].human_answers == before[0].human_answers


def test_a_format_that_has_no_place_for_what_is_canned_says_so():
    told = lost(cases(MOCKED), reread("agentflow", MOCKED), "agentflow")

    for name in ("tool_mocks", "human_answers", "rerun_on_resume"):
        assert f"the format 'agentflow' does not keep {name!r} of 'greets'" in told
