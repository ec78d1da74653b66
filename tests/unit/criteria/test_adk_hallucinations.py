"""Sentences of a text: whether they are its sentences, what they are found to be, what they see."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.case_language import KEY, SCENARIO, did, expecting
from support.judged_scores import judged
from support.scripted_judge import asker, judge

from ci_eval.criteria._judged_sentences import LABELS, read_findings, read_sentences
from ci_eval.criteria.adk_hallucinations_v1 import Hallucinations
from ci_eval.records.cases import Status
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

H = Hallucinations(threshold=0.5)
INTERMEDIATE = Hallucinations(threshold=0.5, evaluate_intermediate_nl_responses=True)
CASE = expecting("a")


def is_cut(question: Question) -> bool:
    return "sentences" in question.schema["properties"]


def given_in(question: Question, name: str) -> str:
    """Return the value of this name in a question."""
    _, _, rest = question.prompt.partition(f"\n[{name} ")
    return rest.partition("\n")[2].partition(f"\n[/{name} ")[0]


def labelling(label: Callable[[str], str]) -> Callable[[Question], str]:
    """Cut texts at lines, and label each of them so."""

    def say(question: Question) -> str:
        if is_cut(question):
            return json.dumps({"sentences": given_in(question, "text").split("\n")})
        listed = json.loads(given_in(question, "sentences"))
        found = [
            {"number": each["number"], "rationale": "r", "excerpt": "x", "label": label(s)}
            for each in listed
            for s in (each["sentence"],)
        ]
        return json.dumps({"verdicts": found})

    return say


NAMED = labelling(lambda sentence: sentence.split()[-1])
"""Each line ends with its label."""


# --- Values ---------------------------------------------------------------------------------


def test_the_value_is_the_share_of_sentences_that_are_supported_or_claim_nothing():
    found = judged(H, CASE, did("\n".join(f"It is {label}" for label in LABELS)), NAMED)

    assert found.score.value == 2 / 5
    [text] = found.evidence[0]["texts"]
    assert [each["label"] for each in text["sentences"]] == list(LABELS)
    assert text["sentences"][0] == {
        "sentence": "It is supported",
        "label": "supported",
        "rationale": "r",
        "excerpt": "x",
    }


def test_an_invocation_has_the_mean_over_its_texts_and_a_case_that_over_its_invocations():
    first = {
        "final_response": {"parts": [{"text": "A supported"}]},
        "intermediate_data": {
            "invocation_events": [
                {"author": "a", "content": {"parts": [{"text": "B unsupported\nC supported"}]}}
            ]
        },
    }
    trace = did(first, "D unsupported")
    cases = expecting("a", "b")

    assert judged(H, cases, trace, NAMED).score.value == 0.5
    found = judged(INTERMEDIATE, cases, trace, NAMED).score
    assert [part.value for part in found.invocations] == [0.75, 0.0]
    assert found.value == 0.375


@pytest.mark.parametrize("text", ["", "👍", " … "])
def test_what_claims_nothing_is_not_judged(text: str):
    found = judged(H, expecting("a", "b"), did(text, "B supported"), NAMED)

    assert [part.status for part in found.score.invocations] == [Status.SKIPPED, Status.PASSED]
    assert found.score.value == 1.0
    assert len(found.asked) == 2

    nothing = judged(H, CASE, did(text), NAMED)
    assert (nothing.score.status, nothing.asked) == (Status.SKIPPED, [])


def test_each_step_is_asked_once_whatever_the_samples():
    many = H.model_validate({"threshold": 0.5, "judge_model_options": {"num_samples": 7}})

    assert len(judged(many, CASE, did("A supported"), NAMED, samples=5).asked) == 2
    assert (many.asked().samples, many.default_samples) == (1, 1)


def test_a_conversation_that_a_simulated_user_led_is_judged_too():
    assert judged(H, SCENARIO, did("A supported"), NAMED).score.value == 1.0


# --- What cannot be judged --------------------------------------------------------------------


def test_a_sentence_without_a_label_is_asked_for_once_more():
    def say(question: Question) -> str:
        if is_cut(question) or question.remark:
            return NAMED(question)
        return json.dumps({"verdicts": [{"number": 1, "label": "supported"}]})

    found = judged(H, CASE, did("A supported\nB unsupported"), say)
    assert found.score.value == 0.5
    assert [each.remark for each in found.asked] == ["", "", "it holds no label of the sentences 2"]

    in_vain = judged(
        H, CASE, did("A supported"), lambda q: NAMED(q) if is_cut(q) else '{"verdicts": []}'
    )
    assert in_vain.score.status is Status.ERROR
    assert in_vain.score.reason == (
        "no verdict was reached: m1: it holds no label of the sentences 1"
    )


@pytest.mark.parametrize("fails", [is_cut, lambda question: not is_cut(question)])
def test_a_judge_that_is_down_makes_the_score_an_error(fails: Callable[[Question], bool]):
    said = judged(
        H,
        expecting("a", "b"),
        did("A supported", "B supported"),
        lambda q: None if fails(q) else NAMED(q),
    )
    assert said.score.status is Status.ERROR
    assert "the judge is down" in said.score.reason


def test_one_text_without_a_value_makes_the_score_an_error():
    def say(question: Question) -> Any:
        return None if "B supported" in question.prompt else NAMED(question)

    score = judged(H, expecting("a", "b"), did("A supported", "B supported"), say).score
    assert score.status is Status.ERROR
    assert [part.status for part in score.invocations] == [Status.PASSED, Status.ERROR]


def test_an_answer_that_was_kept_and_cannot_be_read_is_asked_for_anew(tmp_path: Path):
    async def score(say: Callable[[Question], str]) -> Score:
        async with asker(tmp_path, judge(say)) as found:
            return await H.score(CASE, did("A supported"), found.panel(H))

    def in_part(question: Question) -> str:
        return NAMED(question) if is_cut(question) else "Fine."

    assert asyncio.run(score(in_part)).status is Status.ERROR
    assert asyncio.run(score(NAMED)).value == 1.0
    assert asyncio.run(score(in_part)).value == 1.0  # kept, now that it could be read


# --- A jury ---------------------------------------------------------------------------------


def test_of_a_jury_the_mean_of_the_shares_counts_and_who_passes_it_agrees():
    always = [labelling(lambda _, label=label: label) for label in ("supported", "unsupported")]
    found = judged(H, CASE, did("A"), NAMED_ALL, *always)

    assert found.score.value == pytest.approx(2 / 3)
    assert found.score.judging
    assert (found.score.judging.agreements, found.score.judging.agreement) == (
        1,
        pytest.approx(1 / 3),
    )
    jury = found.evidence[0]["texts"][0]["jury"]
    assert {name: each["value"] for name, each in jury.items()} == {"m1": 1.0, "m2": 1.0, "m3": 0.0}


def test_judges_and_invocations_at_the_threshold_are_no_less_together():
    lines = "\n".join(["supported"] * 7 + ["unsupported"] * 3)
    for trace, judges in ((did(lines), [NAMED] * 3), (did(lines, lines, lines), [NAMED])):
        assert judged(H, CASE, trace, *judges).score.value == 0.7


NAMED_ALL = labelling(lambda _: "not_applicable")


def test_a_jury_that_lacks_a_judge_has_no_mean():
    score = judged(H, CASE, did("A"), NAMED_ALL, None).score

    assert score.status is Status.ERROR
    assert score.reason == "no verdict was reached: m2: the judge is down"


# --- What the judge sees --------------------------------------------------------------------


def event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"author": "root", "content": {"parts": parts}, **more}


TURN = {
    "user_content": {"parts": [{"text": "Warm?"}]},
    "final_response": {"parts": [{"text": "Yes, 20 °C."}]},
    "intermediate_data": {
        "invocation_events": [
            event({"text": "First I look."}, {"function_call": {"id": "1", "name": "look"}}),
            event({"function_response": {"id": "1", "name": "look", "response": {"t": 20}}}),
            event({"text": "Then I tell."}, grounding_metadata={"source": "almanac"}),
        ]
    },
    "app_details": {"agent_details": {"root": {"name": "root", "instructions": "Be warm."}}},
}


def contexts(criterion: Hallucinations, turn: dict[str, Any]) -> dict[str, str]:
    """Return, for each text that is judged, what is shown with its sentences."""
    trace = Trace.model_validate({"key": KEY, "invocations": [turn]})
    asked = judged(criterion, CASE, trace, NAMED_ALL).asked
    return {
        json.loads(given_in(each, "sentences"))[0]["sentence"]: each.prompt
        for each in asked
        if not is_cut(each)
    }


def test_a_response_is_judged_by_all_that_came_before_it():
    [(text, shown)] = contexts(H, TURN).items()

    assert text == "Yes, 20 °C."
    for part in ("Be warm.", "Warm?", "First I look.", '"t": 20', "Then I tell.", "almanac"):
        assert part in shown


def test_what_was_said_on_the_way_is_judged_by_what_came_before_that_alone():
    shown = contexts(INTERMEDIATE, TURN)

    assert sorted(shown) == ["First I look.", "Then I tell.", "Yes, 20 °C."]
    assert '"t": 20' not in shown["First I look."]
    assert '"calls"' not in shown["First I look."]
    assert '"t": 20' in shown["Then I tell."]
    assert "almanac" in shown["Then I tell."]
    assert "almanac" not in shown["First I look."]


def test_earlier_invocations_are_not_shown():
    found = judged(H, expecting("a", "b"), did("A supported", "B supported"), NAMED)
    [about_b] = [each for each in found.asked if not is_cut(each) and "B supp" in each.prompt]

    assert "A supported" not in about_b.prompt


def test_a_trajectory_of_lists_is_context_too():
    data = {
        "tool_uses": [{"id": "1", "name": "look"}],
        "tool_responses": [{"id": "1", "name": "look", "response": {"t": 20}}],
        "intermediate_responses": [["root", [{"text": "First I look."}]]],
    }
    turn = {**TURN, "intermediate_data": data}

    assert '"t": 20' in contexts(H, turn)["Yes, 20 °C."]
    assert sorted(contexts(INTERMEDIATE, turn)) == ["First I look.", "Yes, 20 °C."]


# --- Sentences ------------------------------------------------------------------------------

TEXT = "# Oslo\n\n- It is **20 °C**. Dr. No said so!\n1. Bye."


@pytest.mark.parametrize(
    "sentences",
    [
        ["# Oslo", "- It is **20 °C**.", "Dr. No said so!", "1. Bye."],
        ["Oslo", "It is 20 °C.", "Dr. No said so", "Bye"],
        ["oslo", "It  is\n20 °C. Dr. No said so!", "---", "Bye."],
        ["It is 20 °C.", "Dr. No said so!", "Bye."],
    ],
)
def test_sentences_are_those_of_the_text_whatever_their_layout(sentences: list[str]):
    kept = [each for each in sentences if each != "---"]
    tagged = "".join(f"<sentence>{each}</sentence>\n" for each in sentences)

    assert read_sentences(json.dumps({"sentences": sentences}), TEXT) == kept
    assert read_sentences(f"Here:\n{tagged}", TEXT) == kept


@pytest.mark.parametrize(
    ("sentences", "reason"),
    [
        ([], "it holds no sentence"),
        (["…"], "it holds no sentence"),
        ([3, None], "it holds no sentence"),
        (["Oslo", "It is 21 °C."], "its sentence 2 is not in the text"),
        (["Bye.", "Oslo"], "its sentence 2 is not .* at its place"),
        (["It is 20 °C.", "It is 20 °C."], "not at its place"),
        (["Oslo", "Bye."], "only 28% of the text"),
    ],
)
def test_sentences_that_are_not_those_of_the_text_are_refused(sentences: list[Any], reason: str):
    with pytest.raises(UnreadableError, match=reason):
        read_sentences(json.dumps({"sentences": sentences}), TEXT)


@pytest.mark.parametrize("answer", ["Sure.", "<sentence>Oslo", '{"sentences": "Oslo"}', "[]"])
def test_an_answer_without_sentences_is_refused(answer: str):
    with pytest.raises(UnreadableError, match="no sentence"):
        read_sentences(answer, TEXT)


@given(st.lists(st.text(min_size=1).filter(lambda text: any(map(str.isalnum, text))), min_size=1))
def test_any_text_that_is_cut_anywhere_is_its_sentences(pieces: list[str]):
    answer = json.dumps({"sentences": pieces})
    try:
        assert read_sentences(answer, "\n".join(pieces)) == pieces
    except UnreadableError:
        # What a letter becomes, and whether it stays one, may depend on its neighbours.
        assert not "".join(pieces).isascii()


def blocks(*labels: str, sentences: list[str] | None = None) -> str:
    texts = sentences or [f"Sentence {n}." for n in range(1, len(labels) + 1)]
    return "\n\n".join(
        f"sentence: {text}\nlabel: {label}\nrationale: r\nsupporting_excerpt: null\n"
        "contradicting_excerpt: c"
        for text, label in zip(texts, labels, strict=True)
    )


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=8))
def test_both_forms_of_labels_say_the_same(labels: list[str]):
    sentences = [f"Sentence {n}." for n in range(1, len(labels) + 1)]
    listed = [{"number": n, "label": label} for n, label in enumerate(labels, 1)]

    for answer in (json.dumps({"verdicts": listed}), blocks(*labels), blocks(*labels).upper()):
        assert [each.label for each in read_findings(answer, sentences)] == labels


def test_blocks_are_about_the_sentence_that_they_repeat():
    answer = blocks(
        "unsupported", "supported", "supported", sentences=["*Two.*", "One", "I made it up."]
    )
    one, two = read_findings(answer, ["One.", "Two."])

    assert (one.label, two.label) == ("supported", "unsupported")
    assert (two.rationale, two.excerpt) == ("r", "c")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (blocks("supported"), "no label of the sentences 2"),
        (blocks("supported", "partly"), "the label of sentence 2 is none of .*, but 'partly'"),
        (
            blocks("supported", "unsupported", sentences=["Sentence 1.", "sentence 1"]),
            "two labels of sentence 1",
        ),
        (
            "sentence: Sentence 1.\nlabel: supported\nrationale: No.\nlabel: unsupported",
            "two labels of sentence 1",
        ),
        ("**sentence:** Sentence 1.\n**label:** supported", "no label of the sentences 1, 2"),
        (
            '{"verdicts": [{"number": true, "label": "supported"}]}',
            "no label of the sentences 1, 2",
        ),
        ('{"verdicts": [{"number": 1, "label": null}]}', "the label of sentence 1 is none of"),
        ("Fine.", "no label of the sentences 1, 2"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(answer: str, reason: str):
    with pytest.raises(UnreadableError, match=reason):
        read_findings(answer, ["Sentence 1.", "Sentence 2."])


def test_a_long_answer_is_read_in_no_time():
    opened = "<sentence>" * 20_000
    with pytest.raises(UnreadableError):
        read_sentences(opened, TEXT)
    with pytest.raises(UnreadableError):
        read_findings("sentence:\n" * 20_000, ["One."])


def test_samples_that_change_nothing_are_remarked_upon():
    def remarks(samples):
        options = {"num_samples": samples}
        return list(Hallucinations(threshold=0.5, judge_model_options=options).remarks())

    assert remarks(None) == remarks(1) == []
    ((option, remark),) = remarks(5)
    assert option == ("judge_model_options", "num_samples")
    assert "`num_samples` has no effect here" in remark
