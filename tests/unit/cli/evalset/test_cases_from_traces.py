"""What an agent did becomes what is expected of it."""

import json

import pytest
from support.project import content, turn

from ci_eval.cli.evalset import cases_from_traces as keeping
from ci_eval.cli.evalset.cases_from_traces import Wanted
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording


def saved(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def row(eval_id="refunds", asked="Refund 7", answered="Done.", **more):
    return {"eval_id": eval_id, "invocations": [turn(asked, answered)], **more}


def traces(tmp_path, *rows):
    return saved(tmp_path, "traces.jsonl", "".join(json.dumps(each) + "\n" for each in rows))


def wanted(tmp_path, *rows, **which):
    found = Wanted(case="refunds", **which)
    return keeping.from_traces(traces(tmp_path, *rows), found, shown="traces.jsonl")


def test_recordings_of_a_case_are_its_repeats(tmp_path):
    rows = [row(answered="no"), row("other"), row(answered="yes"), row(repeat=2, answered="3rd")]

    def answered(**which):
        return (wanted(tmp_path, *rows, **which).invocations or ())[0].response

    assert answered() == "no"
    assert answered(repeat=1) == "yes"
    assert answered(repeat=2) == "3rd"
    rows.append(row(repeat=2, answered="4th"))
    assert answered(repeat=2) == "4th"
    rows.append(row(repeat=1))
    with pytest.raises(UsageError, match=r"traces\.jsonl:6: is repeat 1 of case"):
        answered()


def test_sessions_called_like_the_case_are_its_repeats(tmp_path):
    rows = [
        unnamed("a", "b"),
        unnamed("c", "d", session="refunds"),
        unnamed("e", "f", session="refunds"),
    ]
    found = [wanted(tmp_path, *rows, repeat=repeat).invocations for repeat in (0, 1)]
    assert [turns[0].user for turns in found if turns] == ["c", "e"]


def test_a_recording_that_could_be_one_of_several_is_not_guessed(tmp_path):
    rows = [row(agent="a", evalset="s"), row(agent="b", evalset="s")]

    with pytest.raises(UsageError, match="holds the case 'refunds' of a on s, b on s"):
        wanted(tmp_path, *rows)
    assert wanted(tmp_path, *rows, agent="b").eval_id == "refunds"
    with pytest.raises(UsageError, match="holds no conversation of the case 'refunds'"):
        wanted(tmp_path, *rows, evalset="t")


def test_what_failed_is_no_expectation(tmp_path):
    failed = row(error="no answer within 120 s")

    with pytest.raises(UsageError, match="was not observed: no answer within 120 s"):
        wanted(tmp_path, failed)


def test_a_broken_line_is_named(tmp_path):
    path = saved(tmp_path, "traces.jsonl", json.dumps(row()) + '\n{"eval_id": 1}\n{\n')

    with pytest.raises(UsageError) as found:
        keeping.from_traces(path, Wanted("refunds"), shown="traces.jsonl")
    assert [problem.line for problem in found.value.problems][-1] == 3


def observed(**more):
    return {
        **turn("Refund 7", "Order 7 is refunded, I think.", ("refund", {"order": 7})),
        "duration": 1.5,
        "cost_usd": 0.25,
        "app_details": {"agent_details": {}},
        **more,
    }


def recording(*turns, **more):
    return Recording.model_validate({"eval_id": "refunds", "invocations": turns, **more})


def test_a_new_case_expects_what_was_done_and_not_what_it_took():
    case = keeping.expecting(recording(observed()), now=1.0)

    dumped = case.model_dump(mode="json", exclude_defaults=True)
    assert dumped == {
        "eval_id": "refunds",
        "conversation": [
            turn("Refund 7", "Order 7 is refunded, I think.", ("refund", {"order": 7}))
        ],
        "creation_timestamp": 1.0,
    }


def test_tokens_are_no_expectation():
    call = {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]}
    usage = {"prompt_token_count": 3}
    events = [
        {"author": "a", "content": call, "usage_metadata": usage},
        {"author": "a", "usage_metadata": usage},
    ]
    data = {"intermediate_data": {"invocation_events": events}}
    case = keeping.expecting(recording(observed(**data)), now=1.0)

    (expected,) = case.conversation or ()
    assert [call.name for call in expected.tool_calls] == ["f"]
    assert "usage_metadata" not in expected.model_dump_json(exclude_defaults=True)


def test_a_case_keeps_what_the_agent_did_not_do():
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "kind"}}
    old = {**turn("Refund 7", "Old."), "invocation_id": "i", "rubrics": [rubric]}
    case = EvalCase.model_validate(
        {
            "eval_id": "refunds",
            "conversation": [old],
            "session_input": {"app_name": "a", "user_id": "u", "state": {"n": 1}},
            "final_session_state": {"paid": False},
            "tags": ["slow"],
            "note": "mine",
        }
    )
    state = {"paid": True, "time": 12}
    now = keeping.now_expecting(case, recording(observed(), final_state=state))

    assert now.model_dump(exclude_defaults=True) | {"conversation": None} == {
        **case.model_dump(exclude_defaults=True),
        "conversation": None,
        "final_session_state": {"paid": True},
    }
    (expected,) = now.conversation or ()
    assert expected.response == "Order 7 is refunded, I think."
    assert expected.invocation_id == "i"
    assert [each.rubric_id for each in expected.rubrics or ()] == ["r"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"conversation": [turn("Refund 8", "x")]}, "has other user messages than the recording"),
        ({"conversation": []}, "has other user messages than the recording"),
        (
            {"conversation_scenario": {"starting_prompt": "a", "conversation_plan": "b"}},
            "is a scenario",
        ),
        (
            {
                "conversation": [{"user_content": content("Refund 7", "user")}],
                "final_session_state": {"paid": 1},
            },
            "final state has no 'paid'",
        ),
    ],
)
def test_a_recording_of_something_else_is_refused(case, said):
    with pytest.raises(UsageError, match=said):
        keeping.now_expecting(
            EvalCase.model_validate({"eval_id": "refunds", **case}), recording(observed())
        )


# --- Files without ids ------------------------------------------------------------------------


def unnamed(asked, answered, **more):
    return {"invocations": [turn(asked, answered)], **more}


def test_without_an_id_the_users_messages_tell(tmp_path):
    rows = [unnamed("Refund 8", "no"), unnamed("Refund 7", "1st"), unnamed("Refund 7", "2nd")]

    def answered(repeat):
        found = wanted(tmp_path, *rows, asked=("Refund 7",), repeat=repeat)
        assert found.eval_id == "refunds"
        return (found.invocations or ())[0].response

    assert [answered(0), answered(1)] == ["1st", "2nd"]
    with pytest.raises(UsageError, match=r"no conversation of the case 'refunds' \(repeat 3\)"):
        answered(2)
    with pytest.raises(UsageError, match="of the case 'refunds', and 3 without an id"):
        wanted(tmp_path, *rows)


def test_the_only_conversation_of_a_file_makes_a_new_case(tmp_path):
    assert wanted(tmp_path, unnamed("Hi", "Ho")).eval_id == "refunds"


def test_a_session_may_be_called_like_the_case(tmp_path):
    rows = [unnamed("a", "b"), unnamed("c", "d", session="refunds"), unnamed("e", "f")]

    (found,) = wanted(tmp_path, *rows).invocations or ()
    assert found.user == "c"
