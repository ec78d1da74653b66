"""How the reasons of a verdict are sorted for a reader."""

from support.report_language import GROUP, compared, make_report

from ci_eval.records.comparisons import Delta
from ci_eval.records.findings import Reason, Report
from ci_eval.reporters._verdict_reasons import reasons_of

NOISE = "this is more than noise"


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
    assert found.deciding == [floor.message]
    assert found.warnings == [other.message]
