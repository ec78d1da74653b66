"""A small language for reports: `make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")`.

A case is `NAME pass|fail|error|skip [VALUE] [was VALUE] [maybe|noise]`.  `was` gives the value it
had in the baseline; a change is certain unless it ends with `maybe`, which makes it suspected, or
`noise`.  A case that passes or
fails has one score, under the criterion `quality` with the threshold 0.8.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import cmarkgfm
from cmarkgfm.cmark import Options

from ci_eval.records.cases import Json, Status
from ci_eval.records.comparisons import (
    CaseChange,
    Comparison,
    Delta,
    Excused,
    Flaky,
    GroupKey,
    Outcome,
    Together,
)
from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.findings import (
    GroupSummary,
    Noted,
    NotedGroup,
    Reason,
    Report,
    Totals,
    Verdict,
)
from ci_eval.records.results import CriterionFacts, InvocationScore, RunMeta, Score, TrialResult
from ci_eval.records.trials import Failure, TrialKey

CRITERION = "quality"
THRESHOLD = 0.8
_STATUSES = {
    "pass": Status.PASSED,
    "fail": Status.FAILED,
    "error": Status.ERROR,
    "skip": Status.SKIPPED,
}
EVIDENCE: dict[str, Json] = {
    "expected_tool_calls": [
        {"name": "find_order", "args": {"order": "A-17"}},
        {"name": "refund", "args": {"order": "A-17", "amount": 20}},
    ],
    "actual_tool_calls": [
        {"name": "find_order", "args": {"order": "A-17"}},
        {"name": "refund", "args": {"order": "A-17", "amount": 25}},
    ],
    "expected": "I have refunded 20 euros for order A-17.",
    "actual": "I have refunded 25 euros for order A-17.",
}


@dataclass(frozen=True)
class Case:
    """One case of the language."""

    name: str
    status: Status
    value: float | None
    before: float | None
    doubt: str

    @classmethod
    def parse(cls, text: str) -> "Case":
        """Read `NAME VERB [VALUE] [was VALUE] [maybe|noise]`."""
        name, verb, *rest = text.split()
        before = float(rest[rest.index("was") + 1]) if "was" in rest else None
        value = float(rest[0]) if rest and rest[0] not in ("was", "maybe") else None
        doubt = rest[-1] if rest and rest[-1] in ("maybe", "noise") else ""
        return cls(name, _STATUSES[verb], value, before, doubt)

    def result(
        self, line: int, evidence: dict[str, Json] | None, *, repeat: int = 0
    ) -> TrialResult:
        """Return the result of a trial of this case."""
        return TrialResult(
            key=TrialKey(agent="support", evalset="smoke", case=self.name, repeat=repeat),
            status=self.status,
            error=Failure(kind="timeout", message="no answer within 120 s")
            if self.status is Status.ERROR
            else None,
            scores=() if self.status is Status.ERROR else (self._score(evidence),),
            duration_s=1.25,
            line=line,
        )

    def _score(self, evidence: dict[str, Json] | None) -> Score:
        failed = self.status is Status.FAILED
        part = InvocationScore(
            status=self.status, value=self.value, evidence=evidence if failed else None
        )
        return Score(
            criterion="adk/response_match_score",
            name=CRITERION,
            status=self.status,
            value=self.value,
            threshold=THRESHOLD,
            reason="needs a reference" if self.status is Status.SKIPPED else "",
            invocations=(part,),
        )

    def change(self, group: GroupKey) -> CaseChange | None:
        """Return the changes from the baseline."""
        if self.before is None or self.value is None or self.before == self.value:
            return None
        passed, passes = self.before >= THRESHOLD, self.value >= THRESHOLD
        kind: Literal["newly_failing", "fixed", "dropped"] = "dropped"
        if passed != passes:
            kind = "fixed" if passes else "newly_failing"
        elif self.value > self.before:
            return None
        return CaseChange(
            group=group,
            case=self.name,
            change=kind,
            value=self.value,
            baseline=self.before,
            certain=not self.doubt and kind != "fixed",
            suspected=self.doubt == "maybe",
            failed=3 if kind == "newly_failing" else 0,
            trials=3,
            trials_before=15,
        )


GROUP = GroupKey(agent="support", evalset="smoke", criterion=CRITERION)


def make_cases(text: str) -> list[Case]:
    """Read `CASE / CASE / …`."""
    return [Case.parse(each) for each in text.split(" / ")]


def make_results(text: str, evidence: dict[str, Json] | None = None) -> list[TrialResult]:
    """Return the results of `CASE / CASE / …`."""
    shown = EVIDENCE if evidence is None else evidence
    return [case.result(10 * number, shown) for number, case in enumerate(make_cases(text), 1)]


def make_meta(suite: str = "shop") -> RunMeta:
    """Return the metadata of a run of the suite."""
    return RunMeta(
        run_id="run-2",
        suite=suite,
        created="2026-03-04T05:06:07.891+00:00",
        version="0.1.0",
        config="ci-eval.yaml",
        commit="0123456789abcdef0123456789abcdef01234567",
        agents=("support",),
        evalsets={
            "smoke": EvalSet(eval_set_id="smoke", path="evals/smoke.evalset.json", format="adk")
        },
        criteria={
            CRITERION: CriterionFacts(criterion="adk/response_match_score", threshold=THRESHOLD)
        },
    )


def make_report(
    text: str,
    *,
    evidence: dict[str, Json] | None = None,
    reasons: Sequence[Reason] = (),
    suite: str = "shop",
) -> Report:
    """Return the report of `CASE / CASE / …`; with a baseline where a case has a `was`."""
    cases = make_cases(text)
    comparison = _comparison(cases) if any(case.before is not None for case in cases) else None
    results = make_results(text, evidence)
    order = (Status.FAILED, Status.ERROR)
    return Report(
        meta=make_meta(suite),
        totals=_totals(cases),
        groups=(_summary(cases),),
        comparison=comparison,
        verdict=_verdict(cases, comparison, tuple(reasons)),
        worst=tuple(each for status in order for each in results if each.status is status)[:50],
    )


def differing(report: Report) -> Report:
    """Return `report` with another response in each failing case."""
    parts = (
        each.scores[0].invocations[0].model_copy(update={"evidence": {"actual": each.key.case}})
        for each in report.worst
    )
    worst = [
        each.model_copy(
            update={"scores": (each.scores[0].model_copy(update={"invocations": (part,)}),)}
        )
        for each, part in zip(report.worst, parts, strict=True)
    ]
    return report.model_copy(update={"worst": tuple(worst)})


def streamed(results: Sequence[TrialResult]) -> Callable[[], Iterator[TrialResult]]:
    """Return the input of a reporter: results that can be read again."""
    return lambda: iter(results)


def _count(cases: list[Case], status: Status) -> int:
    return sum(case.status is status for case in cases)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _totals(cases: list[Case]) -> Totals:
    return Totals(
        trials=len(cases),
        cases=len(cases),
        passed=_count(cases, Status.PASSED),
        failed=_count(cases, Status.FAILED),
        errors=_count(cases, Status.ERROR),
        skipped=_count(cases, Status.SKIPPED),
        duration_s=1.25 * len(cases),
    )


def _summary(cases: list[Case]) -> GroupSummary:
    return GroupSummary(
        group=GROUP,
        passed=_count(cases, Status.PASSED),
        failed=_count(cases, Status.FAILED),
        errors=_count(cases, Status.ERROR),
        skipped=_count(cases, Status.SKIPPED),
        value=_mean([case.value for case in cases if case.value is not None]),
        threshold=THRESHOLD,
    )


def _comparison(cases: list[Case]) -> Comparison:
    pairs = [(c.value, c.before) for c in cases if c.value is not None and c.before is not None]
    changes = [change for case in cases if (change := case.change(GROUP))]
    effect = _mean([now - before for now, before in pairs])
    outcome: Outcome = "unchanged"
    if any(change.certain for change in changes):
        outcome = "regressed"
    elif any(change.change != "fixed" for change in changes):
        outcome = "inconclusive"
    delta = Delta(
        group=GROUP,
        cases=len(pairs),
        value=_mean([case.value for case in cases if case.value is not None]),
        baseline=_mean([before for _, before in pairs]),
        effect=effect,
        interval=None if effect is None else (effect - 0.05, effect + 0.05),
        p_value=0.004 if outcome == "regressed" else 0.3,
        outcome=outcome,
        reason="a case changed that never varied before" if outcome == "regressed" else "",
    )
    return Comparison(
        baseline_runs=("run-1", "run-0"),
        baseline_created="2026-03-02T03:06:07+00:00",
        baseline_commit="fedcba9876543210fedcba9876543210fedcba98",
        deltas=(delta,),
        changes=tuple(changes),
        added=tuple(f"smoke/{c.name}" for c in cases if c.before is None and c.value is not None),
    )


def _verdict(cases: list[Case], comparison: Comparison | None, more: tuple[Reason, ...]) -> Verdict:
    reasons: list[Reason] = []
    failed, errors = _count(cases, Status.FAILED), _count(cases, Status.ERROR)
    outcome: Literal["passed", "failed", "incomplete"] = "passed"
    if errors:
        outcome = "incomplete"
        message = f"{errors} of {len(cases)} cases could not be measured"
        reasons.append(Reason(kind="unmeasured_cases", severity="incomplete", message=message))
    if comparison and comparison.deltas[0].outcome == "regressed":
        outcome = "failed"
        delta = comparison.deltas[0]
        message = f"quality on smoke with support regressed by {abs(delta.effect or 0):.3f}"
        reasons.insert(0, Reason(kind="regressed", severity="blocks", message=message, group=GROUP))
    if failed and not comparison:
        outcome = "failed"
        message = f"{failed} of {len(cases)} cases failed"
        reasons.insert(0, Reason(kind="floor", severity="blocks", message=message))
    mode: Literal["regression", "threshold"] = "regression" if comparison else "threshold"
    every = (*reasons, *more)
    return Verdict(outcome=outcome, mode=mode, by_threshold=not comparison, reasons=every)


def compared(report: Report, **changes: object) -> Report:
    """Return `report` with parts of its comparison changed."""
    assert report.comparison
    comparison = report.comparison.model_copy(update=changes)
    return report.model_copy(update={"comparison": comparison})


def compared_in_full(report: Report) -> Report:
    """Return `report` with everything that a comparison may tell."""
    other = GROUP.model_copy(update={"criterion": "tone"})
    drop = Delta(
        group=other,
        cases=8,
        value=0.7,
        baseline=0.8,
        effect=-0.1,
        interval=(-0.25, 0.05),
        p_value=0.031,
        level=0.0067,
        outcome="inconclusive",
        tier="warn",
    )
    assert report.comparison
    (delta,) = report.comparison.deltas
    report = compared(
        report,
        deltas=(delta.model_copy(update={"level": 0.005}), drop),
        baseline_distance=3,
        baseline_branch="main",
        shallow=True,
        rounds=2,
        confirming=4,
        together=Together(
            criteria=2, effect=-0.031, p_value=0.0042, level=0.0044, outcome="regressed"
        ),
        flaky=(Flaky(group=GROUP, case="advises", failed=3, trials=15),),
        flaky_total=1,
        excused=(
            Excused(
                kind="quarantined",
                named="tracks",
                owner="search",
                reason="the index is rebuilt",
                until="2026-12-01",
                cases=("smoke/tracks",),
            ),
            Excused(
                kind="accepted", named="tone/*", reason="curt", until="2026-01-31", expired=True
            ),
        ),
        loosened=("gate.max_drop: 0.02 → 0.1",),
    )
    tone = GroupSummary(group=other, passed=2, failed=1, value=0.7, threshold=0.7, tier="warn")
    return report.model_copy(update={"groups": (*report.groups, tone), "history": HISTORY})


HISTORY = tuple(
    Noted(
        run_id=f"run-{number}",
        created=f"2026-03-{number:02}T03:06:07+00:00",
        groups=(NotedGroup(group=GROUP, value=value),),
    )
    for number, value in ((3, 0.9), (1, 0.8), (0, 0.5))
)
"""Of the criterion `quality`, newest first."""


# --- What GitHub makes of a document --------------------------------------------------------


def shown_by_github(markdown: str) -> str:
    """Return the HTML of a comment, with all that GitHub would have to sanitise."""
    html: str = cmarkgfm.github_flavored_markdown_to_html(
        markdown, options=Options.CMARK_OPT_UNSAFE
    )
    return html
