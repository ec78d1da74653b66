from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.results import Score
from ci_eval.reporters._evidence import exhibits_of
from ci_eval.reporters._judge_evidence import cited, extracted

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("votes", "jury", "rubrics", "texts", "samples", "unread", "sentences", "yes"),
                    *("no", "rationale", "verdict", "property", "label", "score", "drawn"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def lines(**evidence) -> dict[str, list[str]]:
    return dict(extracted(dict(evidence)))


def test_a_majority_is_told_with_its_votes_and_what_did_not_count():
    found = lines(
        rationale="It leaves out the price.",
        votes={"yes": 1, "no": 3},
        drawn=5,
        unread=["the answer was empty", "the answer was empty"],
    )
    assert found == {
        "Verdict": ["1 yes, 3 no: It leaves out the price.", "- not counted: the answer was empty"]
    }


def test_of_a_jury_each_judge_is_told():
    one = {"yes": False, "rationale": "No.", "votes": {"yes": 0, "no": 3}}
    two = {"yes": None, "rationale": "", "votes": {"yes": 0, "no": 0}}
    assert lines(votes={"yes": 0, "no": 1}, jury={"a": one, "b": two}) == {
        "Verdict": ["a: no: No.", "b: no verdict"]
    }


def test_rubrics_are_a_list_with_marks():
    rubrics = [
        {"rubric_id": "r", "property": "Polite.", "verdict": "yes", "votes": {"yes": 3, "no": 0}},
        {"rubric_id": "s", "property": "", "verdict": "no", "rationale": "Long."},
        {"rubric_id": "t", "property": "Sure.", "verdict": None},
    ]
    assert lines(rubrics=rubrics) == {
        "Rubrics": ["✔ r: Polite.", "    3 yes, 0 no", "✘ s", "    Long.", "? t: Sure."]
    }


def test_of_sentences_those_are_told_that_nothing_supports():
    sentences = [
        {"sentence": "It rains.", "label": "supported", "rationale": "The tool says so."},
        {"sentence": "It is Monday.", "label": "unsupported", "rationale": "Nobody said so."},
        {"sentence": "Hello!", "label": "not_applicable", "rationale": ""},
    ]
    assert lines(texts=[{"value": 0.5, "sentences": sentences}]) == {
        "Sentences": [
            "2 of 3 sentences are supported",
            "✘ unsupported: It is Monday.",
            "    Nobody said so.",
        ]
    }


def test_samples_are_told_with_their_parts():
    samples = [{"score": 0.2, "rationale": "Rude.", "dimensions": {"hate_speech": 0.2}}]
    assert lines(samples=samples, unread=["it holds no number"]) == {
        "Samples": ["0.2: Rude.", "    hate_speech: 0.2"],
        "Answers not counted": ["- it holds no number"],
    }


def test_goals_are_a_list_with_marks():
    goals = [
        {"goal": "A table", "reached": True, "rationale": "Booked."},
        {"goal": "A cake", "reached": False, "rationale": "Nobody asked."},
    ]
    evidence = {"samples": [{"score": 0.5, "goals": [*goals, "odd"]}]}

    ((title, lines),) = extracted(evidence)

    assert title == "Samples"
    assert lines == ["0.5", "    ✔ A table", "    ✘ A cake: Nobody asked.", "    odd"]


def test_what_has_another_shape_is_left_as_it_is():
    evidence = {"votes": 3, "rubrics": "none", "samples": [1], "other": {"a": 1}}
    assert list(extracted(evidence)) == []
    assert evidence == {"votes": 3, "rubrics": "none", "samples": [1], "other": {"a": 1}}


@given(st.dictionaries(st.sampled_from(["votes", "jury", "rubrics", "texts", "samples"]), JSON))
def test_whatever_the_evidence_is_it_can_be_shown(evidence):
    score = Score(criterion="c", name="c", status="failed", value=0.0, evidence=evidence)
    assert all(
        isinstance(line, str) for each in exhibits_of(score, max_lines=9) for line in each.lines
    )


def test_passages_that_judges_cite():
    evidence = {
        "rationale": 'It says "we ship to Mars", yet the policy “Earth only” forbids "it".',
        "texts": [
            {
                "sentences": [
                    {"label": "supported", "sentence": "Hello.", "excerpt": "hello there"},
                    {"label": "unsupported", "sentence": "It is free.", "rationale": "none"},
                ]
            }
        ],
        "expected": 'An answer with "words in quotes".',
    }
    assert [*cited(evidence)] == ["we ship to Mars", "Earth only", "hello there", "It is free."]


@given(JSON)
def test_any_evidence_can_be_searched_for_passages(evidence):
    assert all(isinstance(each, str) for each in cited(evidence))
