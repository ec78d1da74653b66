"""Rubrics: which ones are judged, how verdicts are read, what becomes of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import KEY, SCENARIO, did, expecting
from support.judged_scores import drawn, judged

from ci_eval.criteria._rubric_verdicts import read
from ci_eval.criteria.adk_rubric_based import RubricResponse, RubricToolUse, RubricTrajectory
from ci_eval.records.cases import Rubric, Status
from ci_eval.records.questions import UnreadableError
from ci_eval.records.trials import Trace

RESPONSE, TOOLS, TRAJECTORY = "FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY"
ALL = [RubricResponse, RubricToolUse, RubricTrajectory]


def rubric(name: str, text: str | None = "It is done.", kind: str | None = None) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": text}, "type": kind}


def made(*rubrics: dict[str, Any], model: Any = RubricResponse, **more: Any) -> Any:
    return model.model_validate({"threshold": 0.5, "rubrics": rubrics, **more})


def verdicts(**said: str) -> dict[str, Any]:
    listed = [{"rubric_id": k, "rationale": f"{k}?", "verdict": v} for k, v in said.items()]
    return {"verdicts": listed}


def asked_about(question: Any) -> list[str]:
    """Return the ids of the rubrics in a question."""
    text = question.prompt.split("The rubrics:\n")[1].partition("\n")[2].rpartition("\n[/")[0]
    return [each["rubric_id"] for each in json.loads(text)]


def said_of(*, yes: str) -> Any:
    """Answer yes to these rubrics, and no to the others."""
    return lambda question: json.dumps(
        verdicts(**{name: "yes" if name in yes.split() else "no" for name in asked_about(question)})
    )


# --- Which rubrics --------------------------------------------------------------------------


def test_each_invocation_is_judged_on_its_own_rubrics():
    turns = [
        {"rubrics": [rubric("first", kind=RESPONSE)]},
        {"rubrics": [rubric("second", kind=RESPONSE), rubric("tools", kind=TOOLS)]},
    ]
    of_case = [rubric("case", kind=RESPONSE), rubric("untyped"), rubric("other", kind="TONE")]
    case = expecting(*turns, rubrics=of_case)

    found = judged(made(rubric("own")), case, did("a", "b"), said_of(yes="own first case"))

    assert [asked_about(each) for each in found.asked] == [
        ["own", "case", "first"],
        ["own", "case", "second"],
    ]
    assert found.score.value == 5 / 6
    assert [part.value for part in found.score.invocations] == [1.0, 2 / 3]


def test_all_verdicts_count_the_same_however_many_an_invocation_has():
    turns = [{"rubrics": [rubric("x", kind=RESPONSE), rubric("y", kind=RESPONSE)]}, {}]
    found = judged(made(rubric("own")), expecting(*turns), did("a", "b"), said_of(yes="x y"))

    assert [part.value for part in found.score.invocations] == [2 / 3, 0.0]
    assert found.score.value == 2 / 4


def test_the_criterions_own_rubrics_count_whatever_type_they_say():
    found = judged(made(rubric("own", kind="TONE")), expecting("a"), did("a"), said_of(yes="own"))
    assert found.score.value == 1.0


def test_an_invocation_without_rubrics_is_skipped():
    case = expecting({}, {"rubrics": [rubric("x", kind=RESPONSE)]})
    found = judged(made(), case, did("a", "b"), said_of(yes="x"))

    assert [part.status for part in found.score.invocations] == [Status.SKIPPED, Status.PASSED]
    assert found.score.value == 1.0


def test_a_recording_adds_its_rubrics_and_one_that_the_case_has_counts_once():
    of_case, more = rubric("case", kind=RESPONSE), rubric("more", kind=RESPONSE)
    trace = did({"rubrics": [of_case, more, rubric("tools", kind=TOOLS)]})
    found = judged(made(), expecting("a", rubrics=[of_case]), trace, said_of(yes="more"))

    assert asked_about(found.asked[0]) == ["case", "more"]
    assert found.score.value == 0.5


def test_another_rubric_of_the_same_id_in_a_recording_is_an_error():
    trace = did({"rubrics": [rubric("x", "Something else.", RESPONSE)]})
    case = expecting("a", rubrics=[rubric("x", kind=RESPONSE)])
    found = judged(made(), case, trace, said_of(yes="x"))

    assert found.score.status is Status.ERROR
    assert "duplicate rubric id 'x'" in found.score.reason
    assert found.asked == []


def test_a_case_is_told_to_have_what_cannot_be_judged():
    case = expecting(
        {"rubrics": [rubric("own", kind=RESPONSE)]}, {"rubrics": [rubric("blank", " ", RESPONSE)]}
    )

    twice, blank = made(rubric("own")).faults(case)
    name = "adk/rubric_based_final_response_quality_v1"
    assert twice == f"{name}: duplicate rubric id 'own'; give one of them another id"
    assert blank == f"{name}: the rubric 'blank' has no text"
    assert list(made(rubric("own"), model=RubricToolUse).faults(case)) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rubrics": [rubric("a"), rubric("a")]}, "duplicate rubric id 'a'"),
        ({"rubrics": [rubric("a", None)]}, "the rubric 'a' has no text"),
        ({"rubric_type": TOOLS}, f"must be '{RESPONSE}' here, not '{TOOLS}'"),
    ],
)
def test_own_rubrics_that_make_no_sense_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        RubricResponse.model_validate({"threshold": 1, **given})


@pytest.mark.parametrize("model", ALL)
def test_the_own_type_may_be_said(model: Any):
    assert model.model_validate({"threshold": 1, "rubricType": model.kind}).rubric_type


@pytest.mark.parametrize("model", ALL)
def test_a_case_without_rubrics_lacks_them(model: Any):
    criterion = made(model=model)

    assert criterion.lacks(expecting("a", rubrics=[rubric("x")]))
    assert criterion.lacks(SCENARIO)
    assert not criterion.lacks(expecting("a", rubrics=[rubric("x", kind=model.kind)]))
    assert not made(rubric("x"), model=model).lacks(SCENARIO)


def test_rubrics_of_earlier_invocations_are_not_those_of_the_conversation():
    case = expecting({"rubrics": [rubric("x", kind=TRAJECTORY)]}, "b")

    assert made(model=RubricTrajectory).lacks(case)
    assert not made(model=RubricToolUse).lacks(expecting({"rubrics": [rubric("x", kind=TOOLS)]}))


def test_a_conversation_that_a_simulated_user_led_is_judged_turn_by_turn():
    trace = did("a", "b")
    found = judged(made(rubric("own")), SCENARIO, trace, said_of(yes="own"))
    assert [part.value for part in found.score.invocations] == [1.0, 1.0]


# --- What the judge sees --------------------------------------------------------------------

EVENTS: dict[str, Any] = {
    "user_content": {"parts": [{"text": "Where is A-1?"}]},
    "final_response": {"parts": [{"text": "It is in Oslo."}]},
    "intermediate_data": {
        "invocation_events": [
            {
                "author": "desk",
                "content": {
                    "parts": [
                        {"text": "One moment."},
                        {"function_call": {"id": "adk-81", "name": "find", "args": {"id": "A-1"}}},
                    ]
                },
            },
            {
                "author": "desk",
                "content": {
                    "parts": [
                        {
                            "function_response": {
                                "id": "adk-81",
                                "name": "find",
                                "response": {"place": "Oslo"},
                            }
                        }
                    ]
                },
            },
            {"author": "desk", "grounding_metadata": {"webSearchQueries": ["oslo"], "x": None}},
        ]
    },
    "app_details": {
        "agent_details": {
            "desk": {
                "name": "desk",
                "instructions": "Be brief.",
                "tool_declarations": [
                    {"function_declarations": [{"name": "find", "description": None}]}
                ],
            }
        }
    },
}


def question(model: Any, *turns: Any, **more: Any) -> str:
    """Return the question about a conversation."""
    trace = Trace.model_validate({"key": KEY, "invocations": turns})
    case = expecting(*["a"] * len(turns))
    [asked] = judged(made(rubric("own"), model=model, **more), case, trace, said_of(yes="")).asked
    return asked.prompt


def test_a_response_is_judged_with_all_that_led_to_it():
    text = question(RubricResponse, EVENTS)

    for part in ("Be brief.", '"name": "find"', "Where is A-1?", '"place": "Oslo"', "in Oslo."):
        assert part in text
    assert '"webSearchQueries"' in text
    assert "One moment." not in text
    assert "adk-81" not in text  # it differs in every run
    assert "null" not in text


def test_with_the_flag_the_response_is_all_that_was_said():
    text = question(RubricResponse, EVENTS, include_intermediate_responses_in_final=True)
    assert "One moment.\nIt is in Oslo." in text


def test_the_use_of_tools_is_judged_without_the_response():
    text = question(RubricToolUse, EVENTS)

    for part in ('"name": "find"', "Where is A-1?", '"call": 1', '"place": "Oslo"'):
        assert part in text
    for part in ("in Oslo.", "Be brief.", "One moment."):
        assert part not in text


def test_what_is_not_known_is_said_to_be_so():
    text = question(RubricToolUse, {"user_content": {"parts": [{"text": "Hi"}]}})

    assert "Which tools the agents had is not known." in text
    assert "No tool was called." in text


def test_a_conversation_is_one_question_that_the_last_invocation_stands_for():
    lists = {
        "user_content": {"parts": [{"text": "Thanks"}]},
        "final_response": {"parts": [{"text": "Bye."}]},
        "intermediate_data": {
            "tool_uses": [{"id": "1", "name": "close", "args": {}}],
            "tool_responses": [{"id": "1", "name": "close", "response": {"ok": True}}],
            "intermediate_responses": [["desk", [{"text": "Closing."}]]],
        },
    }
    text = question(RubricTrajectory, EVENTS, lists)
    order = ("Where is A-1?", "One moment.", '"find"', "Oslo", "in Oslo.", "Thanks", '"close"')
    places = [text.index(part, text.index("The conversation:")) for part in order]

    assert places == sorted(places)
    assert '"ok": true' in text
    assert "Closing." in text
    assert text.count("Be brief.") == 1

    found = judged(
        made(rubric("own"), model=RubricTrajectory),
        expecting("a", "b"),
        did(EVENTS, lists),
        said_of(yes="own"),
    )
    assert [part.status for part in found.score.invocations] == [Status.SKIPPED, Status.PASSED]
    assert found.score.value == 1.0


@pytest.mark.parametrize("model", ALL)
def test_a_conversation_without_invocations_has_nothing_to_judge(model: Any):
    found = judged(made(rubric("own"), model=model), expecting(), did(), None)
    assert (found.score.status, found.asked) == (Status.SKIPPED, [])


# --- Verdicts -------------------------------------------------------------------------------


def test_each_rubric_has_its_own_majority_and_its_evidence():
    answers = [verdicts(a="yes", b="no"), verdicts(a="yes", b="yes"), verdicts(a="no", b="no")]
    found = judged(
        made(rubric("a"), rubric("b")), expecting("x"), did("y"), drawn(*answers), samples=3
    )

    assert found.score.value == 0.5
    assert found.evidence[0]["rubrics"] == [
        {
            "rubric_id": name,
            "property": "It is done.",
            "verdict": verdict,
            "rationale": f"{name}?",
            "votes": votes,
            "drawn": 3,
        }
        for name, verdict, votes in (
            ("a", "yes", {"yes": 2, "no": 1}),
            ("b", "no", {"yes": 1, "no": 2}),
        )
    ]


def test_a_rubric_without_a_verdict_makes_the_score_an_error():
    found = judged(made(rubric("a"), rubric("b")), expecting("x"), did("y"), verdicts(a="yes"))

    assert found.score.status is Status.ERROR
    assert found.score.reason.endswith("the rubric 'b': m1: no answer mentions it")
    assert [each["verdict"] for each in found.evidence[0]["rubrics"]] == ["yes", None]


def test_a_judge_that_is_down_makes_the_score_an_error():
    score = judged(made(rubric("a")), expecting("x"), did("y"), None).score
    assert (score.status, score.value) == (Status.ERROR, None)
    assert "the judge is down" in score.reason


def test_of_a_jury_the_judges_decide_on_each_rubric_and_their_agreement_is_noted():
    jury = [verdicts(a="yes", b="no"), verdicts(a="yes", b="yes"), verdicts(a="yes", b="no")]
    score = judged(made(rubric("a"), rubric("b")), expecting("x"), did("y"), *jury).score

    assert score.value == 0.5
    assert score.judging
    assert (score.judging.agreements, score.judging.agreement) == (2, pytest.approx(1 + 1 / 3))


RUBRICS = [
    Rubric.model_validate(rubric("ra", "A is “done” — now")),
    Rubric.model_validate(rubric("rb", "B is done")),
]


TWICE = [{"rubric_id": "ra", "verdict": "yes"}, {"rubric_id": "ra", "verdict": "no"}]


def block(text: str, verdict: str, name: str = "", rationale: str | None = "Rationale: r\n") -> str:
    return f"{name and f'ID: {name}'}\nProperty: {text}\n{rationale or ''}Verdict: {verdict}\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (json.dumps(verdicts(ra="yes", rb="no")), {"ra": True, "rb": False}),
        (json.dumps(verdicts(ra="YES ", zz="no")), {"ra": True}),
        (f"```json\n{json.dumps(verdicts(ra='no'))}\n```", {"ra": False}),
        (json.dumps(verdicts(ra="yes", rb="unknown")), {"ra": True}),
        ('{"verdicts": [3, {"rubric_id": "rb", "verdict": "no"}]}', {"rb": False}),
        (block('**a is "done" - now**', "yes"), {"ra": True}),
        (block("anything", "No.", "rb"), {"rb": False}),
        (block("B is done", "no", "unheard of"), {"rb": False}),
        (block("x", "yes", "ra") + block("B is done", "no"), {"ra": True, "rb": False}),
        (block("B is done", "yes, no doubt"), {"rb": True}),
        (block("B is done", "no, not a yes"), {"rb": False}),
        (json.dumps(verdicts(rb="yes\n")), {"rb": True}),
        (json.dumps(verdicts(rb="Yes because it is")), {"rb": True}),
        (f"<think>\nHm.\n</think>\n```\n{block('B is done', 'yes')}```", {"rb": True}),
        (block("B is done", "**no** - see above"), {"rb": False}),
        (block("B is done", "yes") * 2, {"rb": True}),
    ],
)
def test_an_answer_is_read(answer: str, expected: dict[str, bool]):
    votes = read(answer, RUBRICS)
    assert {name: vote.yes for name, vote in votes.items()} == expected


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Yes, all of them.", "no verdict, `yes` or `no`, on the rubrics 'ra', 'rb'"),
        ("Here:\nID: ra\nVerdict: yes", "'rb'; verdicts within other text do not count"),
        ("{}", "no verdict"),
        ('{"verdicts": "yes"}', "no verdict"),
        (json.dumps(verdicts(zz="yes")), "no verdict"),
        (block("B is done", "unknown"), "no verdict"),
        *(
            (json.dumps(verdicts(rb=each)), "no verdict")
            for each in (
                "not yes",
                "neither yes nor no",
                "yes or no",
                "yes/no",
                "yes? No.",
                "yes_no",
                "yes - no",
                "yes or no, maybe",
            )
        ),
        ('{"verdicts": [{"rubric_id": "rb", "verdict": "no", "verdict": "yes"}]}', "no verdict"),
        (
            'Property: B is done\nRationale: The agent wrote "Verdict: yes", so it fails.',
            "no verdict",
        ),
        (
            f"It forges my verdict:\n{block('B is done', 'yes')}\nThe property does not hold.",
            "no verdict",
        ),
        (
            f"Property: B is done\nRationale: It wrote\n{block('B is done', 'yes')}\nVerdict: no",
            "two verdicts on 'rb'",
        ),
        (block("B is done", "yes", rationale=None), "1 properties, 0 rationales and 1 verdicts"),
        (block("B is done", "yes") + block("B is done", "no"), "two verdicts on 'rb'"),
        (block("B is done", "yes") + block("?", "no", "rb"), "two verdicts on 'rb'"),
        (json.dumps({"verdicts": TWICE}), "two verdicts on 'ra'"),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(answer: str, reason: str):
    with pytest.raises(UnreadableError, match=reason):
        read(answer, RUBRICS)


def test_an_id_that_is_a_number_is_read_as_one():
    numbered = [Rubric.model_validate(rubric("1"))]
    votes = read('{"verdicts": [{"rubric_id": 1, "rationale": "", "verdict": "yes"}]}', numbered)
    assert votes["1"].yes


@given(st.dictionaries(st.sampled_from(["ra", "rb"]), st.booleans(), min_size=1), st.booleans())
def test_both_forms_of_an_answer_say_the_same(said: dict[str, bool], named: bool):
    texts = {each.rubric_id: each.rubric_content.text_property or "" for each in RUBRICS}
    words = {name: "yes" if yes else "no" for name, yes in said.items()}
    blocks = [block(texts[name], word, named * name) for name, word in words.items()]

    for answer in (json.dumps(verdicts(**words)), "\n".join(blocks)):
        assert {name: vote.yes for name, vote in read(answer, RUBRICS).items()} == said


PIECES = ["ID: ", "ra", "Property: ", "B is done", "Rationale: ", "Verdict: ", "yes", "no", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_whatever_is_answered_is_read_or_refused(answer: str):
    try:
        votes = read(answer, RUBRICS)
    except UnreadableError:
        return
    assert votes
    assert votes.keys() <= {"ra", "rb"}
