"""The simulated user: the first message, the later ones, the end; whom it plays."""

import json
from typing import Any

import pytest
from support.case_language import KEY, expecting
from support.judged_scores import judged

from ci_eval.criteria.adk_per_turn_user_simulator_quality_v1 import SimulatorQuality, read
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.trials import Trace

Q = SimulatorQuality(threshold=0.5)
STOP = "</finished>"


def case(persona: Any = None) -> EvalCase:
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask A, then B."}
    return EvalCase.model_validate(
        {"eval_id": "c", "conversation_scenario": {**scenario, "user_persona": persona}}
    )


def said(*messages: str) -> Trace:
    """Return a conversation in which the user said this, and the agent answered `to` it."""
    turns = [
        {
            "user_content": {"parts": [{"text": each}]},
            "final_response": {"role": "model", "parts": [{"text": f"to {each}"}]},
        }
        for each in messages
    ]
    return Trace.model_validate({"key": KEY, "invocations": turns})


def message(question: Question) -> str:
    return question.prompt.partition("\n[message ")[2].split("\n")[1]


def finding(**said: Any) -> Any:
    """Answer by the message, and the stop signal as `end` says; what is not named is valid."""

    def say(question: Question) -> Any:
        found = said.get(message(question).replace(STOP, "end"), True)
        return found if found is None else {"reasoning": "r", "is_valid": found}

    return lambda question: None if (found := say(question)) is None else json.dumps(found)


@pytest.mark.parametrize(
    ("messages", "verdicts", "values", "value"),
    [
        (["Hi"], {}, [1.0], 1.0),
        ([" Hi\n"], {}, [1.0], 1.0),
        (["hi"], {}, [0.0], 0.0),
        (["Hi"], {"end": False}, [0.0], 0.0),
        (["Hi", "A"], {}, [1.0, 1.0], 1.0),
        (["Hi", "A"], {"A": False}, [1.0, 0.0], 0.5),
        (["Hi", "A"], {"end": False}, [1.0, 0.0], 0.5),
        (["Hi", "A", "B"], {"A": False, "end": False}, [1.0, 0.0, 0.0], 1 / 3),
        (["Hi", "A", "B"], {"B": False, "end": False}, [1.0, 1.0, 0.0], 2 / 3),
        (["Ho", "A", "B"], {}, [0.0, 1.0, 1.0], 2 / 3),
        # An end without a verdict does not matter where the last message is invalid anyway.
        (["Hi", "A"], {"A": False, "end": None}, [1.0, 0.0], 0.5),
    ],
)
def test_the_value_is_the_share_of_valid_messages(
    messages: list[str], verdicts: dict[str, Any], values: list[float], value: float
):
    found = judged(Q, case(), said(*messages), finding(**verdicts)).score

    assert [part.value for part in found.invocations] == values
    assert found.value == value


@pytest.mark.parametrize(
    ("verdicts", "statuses"),
    [
        ({"A": None}, [Status.PASSED, Status.ERROR, Status.PASSED]),
        ({"end": None}, [Status.PASSED, Status.PASSED, Status.ERROR]),
        ({"B": None}, [Status.PASSED, Status.PASSED, Status.ERROR]),
    ],
)
def test_a_message_or_an_end_without_a_verdict_makes_the_score_an_error(
    verdicts: dict[str, Any], statuses: list[Status]
):
    score = judged(Q, case(), said("Hi", "A", "B"), finding(**verdicts)).score

    assert score.status is Status.ERROR
    assert "the judge is down" in score.reason
    assert [part.status for part in score.invocations] == statuses


def test_an_invalid_end_decides_where_the_last_message_has_no_verdict():
    score = judged(Q, case(), said("Hi", "A"), finding(A=None, end=False)).score
    assert score.value == 0.5


def test_the_majority_decides_and_a_tie_is_invalid():
    def say(question: Question) -> str:
        valid = message(question) == STOP or question.sample % 2 == 0
        return json.dumps({"reasoning": "r", "is_valid": valid})

    assert judged(Q, case(), said("Hi", "A"), say, samples=3).score.value == 1.0
    assert judged(Q, case(), said("Hi", "A"), say, samples=2).score.value == 0.5


def test_each_message_is_judged_by_what_came_before_it():
    first, second, end = judged(Q, case("NOVICE"), said("Hi", "A", "B"), finding()).asked

    assert [message(each) for each in (first, second, end)] == ["A", "B", STOP]
    for question in (first, second, end):
        assert "Ask A, then B." in question.prompt
        assert "Never corrects the agent." in question.prompt
        assert "to Hi" in question.prompt
    assert ["to A" in each.prompt for each in (first, second, end)] == [False, True, True]
    assert ["to B" in each.prompt for each in (first, second, end)] == [False, False, True]


def test_what_ends_the_conversation_may_be_said():
    other = SimulatorQuality(threshold=1, stop_signal="OVER")
    [end] = judged(other, case(), said("Hi"), finding()).asked

    assert message(end) == "OVER"
    assert STOP not in end.prompt


def test_the_evidence_tells_the_first_message_and_the_end():
    found = judged(Q, case(), said("Ho", "A"), finding(end=False))
    first, last = found.evidence

    assert first == {"expected": "Hi", "actual": "Ho"}
    assert last["votes"] == {"yes": 1, "no": 0}
    assert (last["end"]["valid"], last["end"]["votes"]) == (0.0, {"yes": 0, "no": 1})


def test_only_a_scenario_can_be_judged():
    assert Q.skip_reason(expecting("a")) == "needs a scenario, which a simulated user plays"
    assert Q.skip_reason(case()) == ""
    nothing = judged(Q, case(), said(), finding())
    assert (nothing.score.status, nothing.asked) == (Status.SKIPPED, [])


# --- Verdicts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ('{"reasoning": "r", "is_valid": true}', True),
        ('```json\n{"is_valid": false}\n```', False),
        ('{"is_valid": "Valid"}', True),
        ('{"is_valid": True}', True),
        ('{"is_valid": False,\n}', False),
        ('{"is_valid": ["partially valid"]}', False),
        ('{"is_valid": [True]}', True),
        ('{"is_valid": almost, "reasoning": "r"}', False),
        ('{"is_valid": [true, "true"]}', True),
        ('<think>\nIs {"is_valid": true} so?\n</think>\n{"is_valid": false}', False),
    ],
)
def test_an_answer_is_read(answer: str, valid: bool):
    assert read(answer)["valid"].yes is valid


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Valid.", "no verdict; expected `is_valid`"),
        ('"is_valid": True', "no verdict"),
        ('{"is_valid": null}', "no verdict"),
        ('{"is_valid": ""}', "no verdict"),
        ('{"is_valid": yes}', "neither `true` nor `false`, but 'yes'"),
        ('{"is_valid": True if it is}', "but 'true if it is'"),
        ('{"is_valid": 1}', "no verdict"),
        ('{"is_valid": [true, false]}', r"no single verdict, but \['true', 'false'\]"),
        ('{"is_valid": false, "is_valid": true}', "no verdict"),
        ('{"is_valid": False, "is_valid": True}', "no verdict"),
        ('So:\n{"is_valid": True}', "no verdict"),
        ('The user wrote {"is_valid": True} into the message: it is not valid.', "no verdict"),
        ('<think>\nThe user wants {"is_valid": True}. No, that is', "no verdict"),
        ('{"reasoning": "It says "is_valid": True, a trick", "is_valid": False}', "no verdict"),
        ('{"reasoning": "It says "is_valid": True, a trick; I do not', "no verdict"),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(answer: str, reason: str):
    with pytest.raises(UnreadableError, match=reason):
        read(answer)
