"""What a score says of a response, and what its evidence says of one rubric."""

import pytest

from ci_eval.cli.judge_check.judge_verdicts import Verdict, verdict_of
from ci_eval.records.cases import Json, Status
from ci_eval.records.results import CriterionFacts, InvocationScore, Score

FACTS = CriterionFacts(criterion="x/y", threshold=0.6)


def scored(value: float | None, *evidence: dict[str, Json], whole: Json = None, reason="") -> Score:
    status = {None: Status.ERROR, True: Status.PASSED, False: Status.FAILED}
    return Score(
        criterion="x/y",
        name="y",
        status=status[None if value is None else FACTS.passes(value)],
        value=value,
        reason=reason,
        evidence=whole,
        invocations=tuple(InvocationScore(status=Status.PASSED, evidence=e) for e in evidence),
    )


def by_rubric(*said: tuple[str, str | None, str]) -> dict[str, Json]:
    """Return the evidence that ADK's criteria leave."""
    return {"rubrics": [{"rubric_id": i, "verdict": v, "rationale": r} for i, v, r in said]}


def samples(*scores: float) -> dict[str, Json]:
    """Return the evidence that AgentFlow's criteria leave of the rubric `short`."""
    said = [{"score": each, "weight": 1.0, "rationale": f"gave {each}"} for each in scores]
    return {"samples": [{"score": 0.1, "rubrics": {"short": each}} for each in said]}


def test_a_score_is_a_verdict_with_the_first_reason_that_was_given():
    found = verdict_of(scored(0.7, {"votes": {"yes": 2}}, {"rationale": "so"}), None, FACTS)

    assert found == Verdict(True, 0.7, "", "so")
    assert verdict_of(scored(0.5), None, FACTS) == Verdict(False, 0.5)


def test_a_score_without_a_value_is_undecided_and_says_why():
    found = verdict_of(scored(None, reason="no verdict was reached"), None, FACTS)

    assert found == Verdict(None, None, "no verdict was reached")


def test_a_rubric_is_judged_by_its_own_verdict_not_by_the_score():
    score = scored(0.5, by_rubric(("polite", "no", "rude"), ("short", "yes", "two words")))

    assert verdict_of(score, "short", FACTS) == Verdict(True, 1.0, "", "two words")
    assert verdict_of(score, "polite", FACTS) == Verdict(False, 0.0, "", "rude")


def test_a_rubric_of_several_invocations_has_the_mean():
    turns = [by_rubric(("short", said, "")) for said in ("yes", "no", "yes")]

    assert verdict_of(scored(0.7, *turns), "short", FACTS).value == pytest.approx(2 / 3)


def test_a_rubric_without_a_verdict_is_undecided_though_another_has_one():
    score = scored(
        None, by_rubric(("a", None, ""), ("b", "yes", "")), reason="the rubric 'a': lost"
    )

    assert verdict_of(score, "a", FACTS) == Verdict(None, None, "the rubric 'a': lost")
    assert verdict_of(score, "b", FACTS).passes is True


def test_a_rubric_that_was_scored_by_samples_has_their_mean():
    found = verdict_of(scored(0.1, whole=samples(0.5, 0.9)), "short", FACTS)

    assert found == Verdict(True, pytest.approx(0.7), "", "gave 0.5")


def test_a_rubric_that_a_jury_scored_has_the_mean_of_all():
    whole = {"jury": {"one": samples(1.0), "other": samples(0.0)}}

    assert verdict_of(scored(0.1, whole=whole), "short", FACTS).value == 0.5


@pytest.mark.parametrize("whole", [None, {}, {"rubrics": "gone"}, {"rubrics": [1, "x", None]}])
def test_a_rubric_that_nobody_spoke_of_is_undecided(whole):
    found = verdict_of(scored(0.7, whole=whole), "short", FACTS)

    assert found.passes is None
    assert "said nothing about the rubric 'short'" in found.reason
