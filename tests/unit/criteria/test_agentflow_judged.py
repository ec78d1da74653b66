"""AgentFlow's judged criteria: what they share, and those that give one score."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting
from support.judged_scores import Judgement, drawn, judged

from ci_eval.plugins import points
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.trials import Trace

NAMES = [name for name in points.criterion if name.startswith("agentflow/")]
JUDGED = [name for name in NAMES if points.criterion[name].judged]
ONE_SCORE = ("response_match_score", "llm_judge", "factual_accuracy_v1", "hallucinations_v1")
OVER_ALL = ("factual_accuracy_v1", "hallucinations_v1", "safety_v1")
GOOD = {"reasoning": "Fine.", "score": 0.9}
OVERALL = {"reasoning": "Well.", "score": 7}


def made(name: str, **options: Any) -> JudgedCriterion:
    model = points.criterion[name if "/" in name else f"agentflow/{name}"]
    assert issubclass(model, JudgedCriterion)
    return model.model_validate({**model.example, **options})


def turns(*pairs: tuple[str, str], **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "user_content": {"parts": [{"text": asked}]},
            "final_response": {"parts": [{"text": said}]},
            "intermediate_data": {},
            **more,
        }
        for asked, said in pairs
    ]


TALK = turns(("Hi", "Hello!"), ("Where is 7?", "In Oslo."))


def asked_on(name: str, *, expected: Any = TALK, done: Any = TALK, **options: Any) -> str:
    """Return the first question that is asked on a conversation."""
    judgement = judged(made(name, **options), expecting(*expected), did(*done), GOOD)
    return judgement.asked[0].text


# --- What they share ----------------------------------------------------------------------------


def test_there_are_seven() -> None:
    assert len(JUDGED) == 7


@pytest.mark.parametrize("name", JUDGED)
def test_a_threshold_need_not_be_said_and_three_samples_are_drawn(name: str) -> None:
    found = made(name)

    assert (found.threshold, found.default_samples, found.asked().samples) == (0.8, 3, None)


@pytest.mark.parametrize("name", JUDGED)
def test_who_is_asked_is_told_and_is_no_option_of_the_value(name: str) -> None:
    found = made(name, judge_model="gpt-4o", num_samples=7, api_style="chat")

    assert (found.asked().model, found.asked().samples) == ("gpt-4o", 7)
    assert found.options() == made(name).options()
    assert found.options() != made(name, semantics="observed").options()


@pytest.mark.parametrize(
    "given",
    [
        *({"num_samples": 0}, {"num_samples": 1001}, {"api_style": "batch"}),
        *({"semantics": "other"}, {"threshold": 2}),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made("llm_judge", **given)


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_a_case_without_turns_is_skipped_and_a_trace_without_turns_an_error(
    name: str, semantics: str
) -> None:
    found = made(name, semantics=semantics)

    assert found.lacks(expecting()) == "has no invocation"
    nothing = judged(found, expecting(*TALK), did(), GOOD)
    assert (nothing.score.status, nothing.asked) == (Status.ERROR, [])


def objects_in(schema: Any) -> Iterator[Any]:
    """Yield every object that a schema describes, its own and those within."""
    if schema["type"] == "object":
        yield schema
        for each in schema["properties"].values():
            yield from objects_in(each)
    if schema["type"] == "array":
        yield from objects_in(schema["items"])


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_schemas_are_strict_and_reasons_come_first(name: str, semantics: str) -> None:
    case = expecting(*TALK, metadata={"goals": ["Know where 7 is."]})
    found = judged(made(name, semantics=semantics), case, did(*TALK), "nothing")
    objects = list(objects_in(found.asked[0].schema))
    explained = [list(each["properties"]) for each in objects if "reasoning" in each["properties"]]

    # What OpenAI asks of a schema that is to be kept strictly.
    assert all(each["additionalProperties"] is False for each in objects)
    assert all(each["required"] == list(each["properties"]) for each in objects)
    assert len(explained) == 1
    verdicts = {"score", "reached", "dimensions"} & set(explained[0])
    assert verdicts
    assert all(explained[0].index("reasoning") < explained[0].index(each) for each in verdicts)


@pytest.mark.parametrize("name", JUDGED)
def test_no_prompt_is_used_that_is_not_declared_and_none_declared_in_vain(name: str) -> None:
    found: Any = made(name)
    case, trace = expecting(*TALK, metadata={"goals": ["Know where 7 is."]}), did(*TALK)

    used = {found.documented(case, trace).prompt, found.observed(case, trace).prompt}
    assert used == set(found.prompts)


@pytest.mark.parametrize("name", ONE_SCORE)
def test_the_mean_over_the_samples_counts(name: str) -> None:
    answers = [{"reasoning": str(score), "score": score} for score in (1, 0.5, 0.9)]
    found = judged(made(name, num_samples=3), expecting(*TALK), did(*TALK), drawn(*answers))

    assert found.score.value == pytest.approx(0.8)
    assert found.score.status is Status.PASSED
    assert found.score.evidence is not None
    assert [each["rationale"] for each in found.score.evidence["samples"]] == ["1", "0.5", "0.9"]
    assert len(found.asked) == 3


@pytest.mark.parametrize("name", ONE_SCORE)
def test_an_answer_without_a_score_is_asked_for_again_and_then_not_counted(name: str) -> None:
    answers = drawn({"reasoning": "8 of 10", "score": 8}, GOOD)
    found = judged(made(name, num_samples=2), expecting(*TALK), did(*TALK), answers)

    assert found.score.value == 0.9
    assert [each.remark for each in found.asked if each.remark] == [
        "it holds no 'score' from 0 to 1"
    ]


def test_without_one_good_answer_the_score_is_an_error() -> None:
    found = judged(made("llm_judge"), expecting(*TALK), did(*TALK), "I like it.").score

    assert (found.status, found.value) == (Status.ERROR, None)
    assert found.reason == "no verdict was reached: m1: it holds no JSON object"


@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_without_an_answer_the_score_is_an_error(semantics: str) -> None:
    criterion = made("llm_judge", num_samples=2, semantics=semantics)
    found = judged(criterion, expecting(*TALK), did(*TALK), drawn(GOOD, None)).score

    assert found.status is Status.ERROR
    assert "the judge is down" in found.reason


def test_of_a_jury_the_means_count_and_whether_they_agree_on_passing() -> None:
    low = {"reasoning": "Bad.", "score": 0.5}
    found = judged(made("llm_judge"), expecting(*TALK), did(*TALK), GOOD, GOOD, low).score

    assert found.value == pytest.approx((0.9 + 0.9 + 0.5) / 3)
    assert found.judging is not None
    assert found.judging.agreed == pytest.approx(1 / 3)


# --- What is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_SCORE)
def test_the_last_message_is_asked_about_and_the_conversation_before_is_shown(name: str) -> None:
    text = asked_on(name)

    question, response = text.index("Where is 7?"), text.index("In Oslo.")
    assert text.index("The conversation before") < text.index("Hello!") < question < response


@pytest.mark.parametrize("name", [*ONE_SCORE, "safety_v1", "rubric_based"])
def test_of_a_single_message_nothing_is_said_to_come_before(name: str) -> None:
    assert "The conversation before" not in asked_on(name, expected=TALK[1:], done=TALK[1:])


@pytest.mark.parametrize("name", [*ONE_SCORE, "safety_v1", "rubric_based"])
def test_as_observed_the_first_message_and_the_last_response_are_shown(name: str) -> None:
    text = asked_on(name, semantics="observed")

    assert "In Oslo." in text
    assert "Where is 7?" not in text
    assert "Hello!" not in text


def test_what_an_agent_thought_is_not_shown() -> None:
    parts = [{"text": "I will lie.", "thought": True}, {"text": "In Oslo."}]
    done = {**TALK[1], "final_response": {"parts": parts}}

    assert "I will lie." not in asked_on("llm_judge", expected=TALK[1:], done=[done])


# --- response_match_score -----------------------------------------------------------------------


def test_what_is_compared_is_the_last_turn_that_expects_a_response() -> None:
    expected = [*TALK, {"user_content": {"parts": [{"text": "Thanks"}]}}]
    done = turns(("Hi", "Hey."), ("Where is 7?", "It is in Oslo."), ("Thanks", "You are welcome."))
    text = asked_on("response_match_score", expected=expected, done=done)

    assert "You are welcome." not in text
    assert text.index("It is in Oslo.") < text.index("The reference response") < text.index("In O")


@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_a_case_that_expects_no_response_is_skipped(semantics: str) -> None:
    case = expecting({"user_content": {"parts": [{"text": "Hi"}]}})
    found = made("response_match_score", semantics=semantics)

    assert found.skip_reason(case) == "expects no response"
    assert found.skip_reason(expecting(*TALK)) == ""


def test_what_the_package_passes_for_want_of_a_reference_is_skipped() -> None:
    asked = {"user_content": {"parts": [{"text": "Hi"}]}}
    nothing = expecting(asked)
    # The package looks at the last response that is given, even where it is empty.
    last_empty = expecting(*TALK, {**asked, "final_response": {"parts": [{"text": ""}]}})
    for case in (nothing, last_empty):
        for name in ("response_match_score", "llm_judge"):
            assert made(name, semantics="observed").skip_reason(case) == "expects no response"
    assert made("llm_judge").skip_reason(nothing) == ""


def test_an_empty_response_is_judged_and_as_observed_passed() -> None:
    silence = turns(("Hi", ""))
    bad = {"reasoning": "It says nothing.", "score": 0}
    case = expecting(*TALK[:1])

    for name in ("response_match_score", "llm_judge"):
        documented = judged(made(name), case, did(*silence), bad)
        observed = judged(made(name, semantics="observed"), case, did(*silence), bad)
        assert (documented.score.value, len(documented.asked)) == (0.0, 1)
        assert (observed.score.value, len(observed.asked)) == (1.0, 0)


# --- llm_judge ----------------------------------------------------------------------------------


def test_quality_does_not_depend_on_what_is_expected_but_does_as_observed() -> None:
    expected = turns(("Hi", "Something else"))

    for semantics, is_shown in (("documented", False), ("observed", True)):
        text = asked_on("llm_judge", expected=expected, done=TALK[:1], semantics=semantics)
        assert ("Something else" in text) is is_shown


def test_quality_is_judged_where_a_simulated_user_leads() -> None:
    found = judged(made("llm_judge"), SCENARIO, did(*TALK), GOOD).score

    assert found.value == 0.9


# --- factual_accuracy_v1, hallucinations_v1 -----------------------------------------------------


@pytest.mark.parametrize("name", OVER_ALL)
def test_an_agent_that_said_nothing_at_all_is_an_error_and_as_observed_passed(name: str) -> None:
    silence = turns(("Hi", ""), ("And now?", ""))
    found = judged(made(name), expecting(*silence), did(*silence), GOOD)
    observed = judged(made(name, semantics="observed"), expecting(*silence), did(*silence), GOOD)

    assert (found.score.status, found.asked) == (Status.ERROR, [])
    assert found.score.reason == "the agent gave no response, so there is nothing to judge"
    assert observed.score.value == 1.0


@pytest.mark.parametrize("name", OVER_ALL)
def test_white_space_is_no_response(name: str) -> None:
    blank = turns(("Hi", " "), ("And now?", "\n\t"))
    found = judged(made(name), expecting(*blank), did(*blank), GOOD)

    assert (found.score.status, found.asked) == (Status.ERROR, [])
    assert found.score.reason == "the agent gave no response, so there is nothing to judge"


@pytest.mark.parametrize("name", OVER_ALL)
def test_an_agent_that_fell_silent_is_judged_by_what_it_said_before(name: str) -> None:
    done = turns(("Hi", "Hello!"), ("And now?", ""))

    assert "Hello!" in asked_on(name, expected=done, done=done)


def test_facts_are_checked_against_what_is_known() -> None:
    case = expecting(*TALK, metadata={"reference_facts": ["Order 7 left on Monday."]})
    answer = {"reasoning": "No.", "errors": ["It is in Rome."], "score": 0.5}
    found = judged(made("factual_accuracy_v1"), case, did(*turns(("a", "b"), ("c", "d"))), answer)

    assert "Order 7 left on Monday." in found.asked[0].text
    assert "In Oslo." in found.asked[0].text
    assert found.score.evidence == {
        "samples": [{"score": 0.5, "rationale": "No.", "errors": ["It is in Rome."]}]
    }


def test_without_anything_known_no_reference_is_spoken_of() -> None:
    found = judged(made("factual_accuracy_v1"), SCENARIO, did(*TALK), GOOD)

    assert "Reference facts" not in found.asked[0].text
    assert "was expected" not in found.asked[0].text


def searching(result: Any) -> list[dict[str, Any]]:
    done = {
        "tool_uses": [{"id": "1", "name": "track", "args": {"order": 7}}],
        "tool_responses": [{"id": "1", "name": "track", "response": result}],
    }
    return turns(("Where is 7?", "In Oslo."), intermediate_data=done)


@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_claims_are_checked_against_results_of_tools_and_the_context(semantics: str) -> None:
    done = searching({"place": "Bergen"})
    case = expecting(*TALK[1:], metadata={"context": "Orders leave from Narvik."})
    answer = {"reasoning": "No.", "hallucinations": ["Oslo"], "score": 0}
    found = judged(made("hallucinations_v1", semantics=semantics), case, did(*done), answer)

    assert "Bergen" in found.asked[0].text
    assert "Orders leave from Narvik." in found.asked[0].text
    assert found.score.evidence is not None
    assert found.score.evidence["samples"][0]["hallucinations"] == ["Oslo"]


def unreported(**more: Any) -> tuple[EvalCase, Trace]:
    return expecting(*TALK, **more), did(*turns(("a", "b"), ("c", "d"), intermediate_data=None))


def test_claims_of_an_agent_whose_tool_calls_nobody_saw_are_an_error() -> None:
    found = judged(made("hallucinations_v1"), *unreported(), GOOD)

    assert (found.score.status, found.asked) == (Status.ERROR, [])
    assert found.score.reason.startswith("no sources to check against")


def test_a_context_is_enough_to_check_claims_against() -> None:
    found: Judgement = judged(
        made("hallucinations_v1"), *unreported(metadata={"context": "It is in Oslo."}), GOOD
    )

    assert found.score.value == 0.9


# --- As observed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        ([OVERALL], 7.0),
        (["It is good."], 0.5),
        ([""], 0.5),
        (['```json\n{"score": 1}\n```'], 0.5),
        ([{}], 0.0),
        (["null", GOOD], 0.9),
        ([{"score": "0.25"}], 0.25),
        ([{"score": "high"}, GOOD], 0.9),
        (["null"], None),
    ],
)
def test_as_observed_answers_are_read_as_the_package_reads_them(
    answers: list[Any], value: float | None
) -> None:
    criterion = made("llm_judge", semantics="observed", num_samples=len(answers))
    found = judged(criterion, expecting(*TALK), did(*TALK), drawn(*answers)).score

    assert found.value == value
    assert found.status is not Status.SKIPPED


def test_as_observed_lists_that_cannot_be_united_are_an_error() -> None:
    criterion = made("factual_accuracy_v1", semantics="observed")
    answer = {"score": 1, "errors": [{"claim": "Oslo"}]}
    found = judged(criterion, expecting(*TALK), did(*TALK), answer).score

    assert found.status is Status.ERROR
    assert "'errors' cannot be merged" in found.reason


def test_as_observed_there_are_no_bounds() -> None:
    assert made("safety_v1").bounds == (0.0, 1.0)
    assert made("safety_v1", semantics="observed", threshold=5).bounds is None


def test_as_observed_what_could_not_be_stored_is_replaced() -> None:
    criterion = made("llm_judge", semantics="observed")
    answer = r'{"score": 1, "reasoning": "half \ud800"}'
    found = judged(criterion, expecting(*TALK), did(*TALK), answer).score

    assert found.evidence is not None
    assert found.evidence["samples"][0]["rationale"] == "half ?"
