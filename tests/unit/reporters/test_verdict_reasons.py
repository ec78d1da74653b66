"""How the reasons of a verdict are sorted and joined for a reader."""

from support.report_language import GROUP, compared, make_report

from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.findings import Delta, Reason, Report
from ci_eval.reporters._verdict_reasons import reasons_of

NOISE = "the drop is larger than noise"


def regressed(*names: str, more: tuple[Reason, ...] = (), why: str = NOISE) -> Report:
    """Return a report in which criteria regressed by 0.1, 0.2 and so on."""
    groups = [GROUP.model_copy(update={"criterion": name}) for name in names]
    deltas = tuple(
        Delta(
            group=group,
            cases=2,
            value=0.1,
            baseline=0.9,
            effect=-number / 10,
            outcome="regressed",
            reason=why,
        )
        for number, group in enumerate(groups, start=1)
    )
    reasons = tuple(
        Reason(
            kind="regressed",
            severity="blocks",
            message=f"{each.criterion} regressed: {why} ('x')",
            group=each,
        )
        for each in groups
    )
    report = compared(make_report("x fail 0.1 was 0.9"), deltas=deltas)
    verdict = report.verdict.model_copy(update={"reasons": (*reasons, *more)})
    return report.model_copy(update={"verdict": verdict})


def test_one_criterion_is_told_without_the_cases_that_are_listed_below():
    assert reasons_of(regressed("tone")).deciding == [f"tone regressed by 0.100: {NOISE}"]


def test_criteria_that_regressed_alike_are_one_reason():
    assert reasons_of(regressed("a", "b", "c")).deciding == [
        f"3 criteria regressed: a by 0.100, b by 0.200 and c by 0.300; {NOISE}"
    ]


def test_of_many_criteria_some_are_named_and_all_are_counted():
    (said,) = reasons_of(regressed(*"abcdefg")).deciding
    assert said.startswith("7 criteria regressed: a by 0.100, b ")
    assert said.endswith(f"d by 0.400 and 3 more; {NOISE}")


def test_where_there_are_several_evalsets_the_one_is_named():
    report = regressed("tone")
    names = ("smoke", "billing")
    evalsets = {name: EvalSet(eval_set_id=name, path="", format="adk") for name in names}
    meta = report.meta.model_copy(update={"evalsets": evalsets})
    (said,) = reasons_of(report.model_copy(update={"meta": meta})).deciding
    assert said.startswith("tone on smoke regressed")


def test_a_floor_of_the_same_criterion_stays_a_reason_of_its_own():
    tone = GROUP.model_copy(update={"criterion": "tone"})
    floor = Reason(
        kind="floor",
        severity="blocks",
        message="tone has a mean of 0.100, required 0.5",
        group=tone,
    )
    other = Reason(severity="incomplete", message="2 cases of 3 could not be measured")
    found = reasons_of(regressed("tone", more=(floor, other)))
    assert found.deciding == [f"tone regressed by 0.100: {NOISE}", floor.message]
    assert found.warnings == [other.message]
