"""What a calibration counts, and whether it is enough."""

import pytest

from ci_eval.cli.judge_check.calibration import (
    Calibration,
    Judges,
    Required,
    calibrate,
    decide,
    doubts,
)
from ci_eval.cli.judge_check.human_labels import Item, Label, Labels
from ci_eval.cli.judge_check.judge_verdicts import Verdict
from ci_eval.records.results import JudgeUsage

YES, NO, LOST = Verdict(True, 1.0), Verdict(False, 0.0, "", "the sum"), Verdict(None, None, "lost")


def item(*labels: bool | float, rubric: str | None = None) -> Item[str]:
    given = [Label(each) if isinstance(each, bool) else Label(each >= 0.5, each) for each in labels]
    return Item("a", 3, rubric, "thing", given)


def found(*both: tuple[Item[str], Verdict], others: int = 0) -> Calibration:
    labels = Labels([one for one, _ in both], others)
    return calibrate(labels, [other for _, other in both], Judges(criterion="c"), JudgeUsage())


GOOD = (item(True), YES)
BAD = (item(False), NO)
LENIENT = (item(False), YES)
STRICT = (item(True), NO)
DIVIDED = (item(True, False), YES)
UNDECIDED = (item(True), LOST)


def test_everything_that_was_labelled_is_counted_somewhere():
    made = found(GOOD, GOOD, BAD, LENIENT, DIVIDED, UNDECIDED, others=4)

    assert (made.labelled, made.others) == (6, 4)
    assert made.agreement.table.rows == ((2, 0), (1, 1))
    assert [each.reason for each in made.undecided] == ["lost"]
    assert len(made.divided) == 1


def test_what_is_seen_differently_is_listed_with_the_judges_reason():
    [one] = found(GOOD, STRICT).differing

    assert (one.id, one.line, one.people, one.judge, one.rationale) == (
        *("a", 3),
        *(True, False),
        "the sum",
    )


def test_rubrics_are_told_apart():
    made = found((item(True, rubric="a"), YES), (item(True, rubric="b"), NO), GOOD)

    assert {name: each.agreed.count for name, each in made.rubrics.items()} == {"a": 1, "b": 0}
    assert made.agreement.agreed.of == 3


def test_people_are_compared_with_each_other():
    people = found((item(True, True, False), YES), (item(False, False), NO), GOOD).people

    assert people is not None
    # one of three pairs, and the only one
    assert (people.count, people.of) == (2, 4)
    assert found(GOOD).people is None


def test_distances_are_told_only_where_people_give_grades():
    graded = found((item(0.25), NO), (item(1.0), YES), GOOD).distance

    assert graded is not None
    assert graded.count == 2
    assert found((item(0.0), NO), (item(1.0), YES)).distance is None


@pytest.mark.parametrize(
    ("required", "outcome", "reasons"),
    [
        (Required(), "passed", []),
        (Required(kappa=0.5, agreement=0.75), "passed", []),
        (Required(kappa=0.51), "failed", ["kappa is 0.500, required 0.510"]),
        (Required(agreement=0.76), "failed", ["agreement is 75.0%, required 76.0%"]),
        (
            Required(kappa=0.9, agreement=0.9),
            "failed",
            ["agreement is 75.0%, required 90.0%", "kappa is 0.500, required 0.900"],
        ),
    ],
)
def test_the_estimates_are_what_counts(required, outcome, reasons):
    # both say pass 4 times of 8, so 1/2 is expected; 6/8 is observed; (3/4 - 1/2) / (1/2) = 1/2
    made = found(GOOD, GOOD, BAD, BAD, GOOD, BAD, STRICT, LENIENT)

    assert decide(made, required) == (outcome, reasons)


def test_what_is_reached_and_may_be_chance_is_said():
    made = found(*[GOOD, BAD] * 4, STRICT)

    [doubt] = doubts(made.agreement, Required(agreement=0.8))
    assert doubt.startswith("agreement may be as low as 5")
    assert list(doubts(made.agreement, Required(agreement=0.5))) == []
    assert list(doubts(made.agreement, Required(agreement=0.9))) == []


def test_too_much_that_is_undecided_is_no_verdict_however_well_the_rest_agrees():
    made = found(*[GOOD, BAD] * 4, UNDECIDED)

    assert decide(made, Required(kappa=0.1)) == (
        "incomplete",
        ["the judge could not decide 1 of 9, at most 10.0% allowed"],
    )
    assert decide(made, Required(kappa=0.1, undecided=0.2))[0] == "passed"


def test_too_much_on_which_people_are_divided_is_no_verdict_either():
    made = found(GOOD, *[DIVIDED] * 8, UNDECIDED)
    reason = (
        "only 1 of 10 were decided by both people and the judge, at most 10.0% may be undecided"
    )

    assert decide(made, Required(agreement=0.9)) == ("incomplete", [reason])
    assert decide(made, Required(agreement=0.9, undecided=0.9))[0] == "passed"
    assert decide(made, Required())[0] == "passed"


def test_exactly_as_much_as_is_allowed_may_be_undecided():
    assert decide(found(*[GOOD, BAD, GOOD] * 3, UNDECIDED), Required())[0] == "passed"
    # 0.29 * 100 is a little less than 29
    many = found(*[GOOD] * 70, BAD, *[UNDECIDED] * 29)
    assert decide(many, Required(undecided=0.29))[0] == "passed"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (found(DIVIDED), "no item was decided by both people and the judge"),
        (found(GOOD, STRICT), "kappa cannot be computed: all labels say pass"),
    ],
)
def test_what_cannot_be_measured_is_never_good_enough(made, reason):
    assert decide(made, Required(kappa=-1.0)) == ("incomplete", [reason])


def test_nothing_decided_is_incomplete_even_where_all_may_be_undecided():
    assert decide(found(UNDECIDED), Required(undecided=1.0))[0] == "incomplete"
