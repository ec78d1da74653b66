"""A report with room for a text of somebody else's in every field that can hold one.

`a_report(put)` asks `put(field, usual)` for each of them, in the shape that is wanted; so a test
decides what stands where, and `FIELDS` are all that are asked for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ci_eval.records.cases import Json, Status
from ci_eval.records.comparisons import (
    CaseChange,
    Comparison,
    Delta,
    Excused,
    Flaky,
    GroupKey,
    Outcome,
    Vanished,
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
from ci_eval.records.model_versions import ServedModel
from ci_eval.records.results import (
    CriterionFacts,
    InvocationScore,
    JudgeUsage,
    RunMeta,
    Score,
    TrialResult,
)
from ci_eval.records.trials import Failure, TrialKey

Put = Callable[[str, str], str]
"""Returns what stands in a field, by its name and what usually stands there."""
Shape = Literal["regressed", "failed", "incomplete", "passed"]
SHAPES: tuple[Shape, ...] = ("regressed", "failed", "incomplete", "passed")


class Told(NamedTuple):
    """A report with the results it is of."""

    report: Report
    results: list[TrialResult]


def a_report(put: Put, shape: Shape = "regressed") -> Told:
    """Return a report of that verdict; where it compares, with all that a comparison tells."""
    names = _Names(put)
    results = list(_results(put, names))
    compared = shape in ("regressed", "passed")
    report = Report(
        meta=_meta(put, names),
        totals=Totals(
            trials=6,
            cases=6,
            passed=1,
            failed=3,
            errors=1,
            skipped=1,
            duration_s=9,
            models=(
                names.model.model_copy(update={"version": put("other version", "m") + "-002"}),
            ),
        ),
        groups=tuple(_groups(names)),
        comparison=_comparison(put, names) if compared else None,
        verdict=_verdict(put, names, shape),
        judging=JudgeUsage(calls=3, cost_usd=0.25),
        history=_history(put, names),
        worst=tuple(each for each in results if each.status in (Status.FAILED, Status.ERROR)),
    )
    return Told(report, results)


class _Names:
    """The names that stand in several places, each asked for once."""

    def __init__(self, put: Put) -> None:
        self.agents = put("agent", "support"), put("other agent", "sales")
        self.evalset = put("evalset", "smoke")
        self.criterion = put("criterion", "quality")
        self.group = GroupKey(agent=self.agents[0], evalset=self.evalset, criterion=self.criterion)
        self.regressed = put("case", "refunds")
        self.suspected = put("suspected case", "tracks")
        self.failing = put("failing case", "greets")
        self.erring = put("case with an error", "ships")
        self.skipped = put("skipped case", "pays")
        self.baseline = put("baseline run", "run-1")
        self.model = ServedModel(
            role="agent",
            agent=self.agents[0],
            requested=put("requested model", "m"),
            version=put("version of a model", "m-001"),
            fingerprint=put("fingerprint of a model", "fp_1"),
        )


def _meta(put: Put, names: _Names) -> RunMeta:
    facts = CriterionFacts(criterion=put("type of criterion", "adk/x"), threshold=0.8)
    return RunMeta(
        run_id=put("run id", "run-2"),
        suite=put("suite", "shop"),
        created=put("time", "2026-03-04T05:06:07+00:00"),
        version=put("version", "0.1.0"),
        job=put("job", "evaluate (small)"),
        step=put("step", "ci.yml, ci-eval.yaml"),
        config=put("config", "evals.yaml"),
        commit=put("commit", "0123456789abcdef"),
        branch=put("branch", "main"),
        gate={"on_inconclusive": put("option of the gate", "warn")},
        store={"path": put("place of the store", "baseline.json")},
        agents=names.agents,
        evalsets={
            names.evalset: EvalSet(
                eval_set_id=put("id of the evalset", "smoke"),
                path=put("path of the evalset", "evals/smoke.json"),
                format="adk",
            )
        },
        criteria={names.criterion: facts},
        overrides={put("overridden plugin", "judge"): put("module of a plugin", "acme.judges")},
        warnings=(put("warning", "it is late"),),
    )


def _groups(names: _Names) -> list[GroupSummary]:
    decides = GroupSummary(
        group=names.group, passed=1, failed=3, errors=1, value=0.4, threshold=0.8
    )
    judged = names.group.model_copy(update={"agent": names.agents[1]})
    measured = names.group.model_copy(update={"criterion": "tokens"})
    return [
        decides,
        GroupSummary(group=judged, passed=4, value=0.9, threshold=0.8, judging=JudgeUsage(calls=3)),
        GroupSummary(group=measured, passed=4, value=812.0, informational=True),
    ]


# --- Results --------------------------------------------------------------------------------


def _results(put: Put, names: _Names) -> list[TrialResult]:
    def result(case: str, status: Status, *scores: Score, **more: Any) -> TrialResult:
        key = TrialKey(agent=names.agents[0], evalset=names.evalset, case=case)
        return TrialResult(key=key, status=status, scores=scores, **more)

    def scored(status: Status, value: float | None, **more: Any) -> Score:
        return Score(
            criterion="adk/x",
            name=names.criterion,
            status=status,
            value=value,
            threshold=0.8,
            **more,
        )

    part = InvocationScore(status=Status.FAILED, value=0.2, evidence=_evidence(put))
    judged = InvocationScore(status=Status.FAILED, value=0.3, evidence=_judged(put))
    unmeasured = scored(Status.ERROR, None, reason=put("reason of an error", "no answer"))
    reason = put("reason of a score", "the order is another")
    said = put("what the agent printed", "hello")
    not_applicable = put("reason to skip", "needs a reference")
    return [
        result(
            names.regressed,
            Status.FAILED,
            _failed(scored, reason, part),
            line=3,
            output=said,
            tags=(put("tag", "vip"),),
        ),
        result(names.suspected, Status.FAILED, _failed(scored, reason, judged)),
        result(names.failing, Status.FAILED, scored(Status.FAILED, 0.1, evidence=_other(put))),
        result(
            names.erring,
            Status.ERROR,
            error=Failure(
                kind="raised",  # no other text can be one
                message=put("message of a failure", "KeyError"),
            ),
        ),
        result("unmeasured", Status.ERROR, unmeasured),
        result(names.skipped, Status.SKIPPED, scored(Status.SKIPPED, None, reason=not_applicable)),
    ]


def _failed(scored: Callable[..., Score], reason: str, part: InvocationScore) -> Score:
    return scored(Status.FAILED, part.value, reason=reason, invocations=(part,))


def _evidence(put: Put) -> dict[str, Json]:
    called: Json = {
        "name": put("name of a tool", "refund"),
        "args": {put("key of an argument", "order"): put("value of an argument", "A-17")},
    }
    return {
        "expected_tool_calls": [{"name": "find", "args": {}}],
        "actual_tool_calls": [called],
        "expected": put("expected response", "It is refunded."),
        "actual": put("final response", "It is lost."),
    }


def _judged(put: Put) -> dict[str, Json]:
    return {
        "rubrics": [
            {
                "rubric_id": put("id of a rubric", "polite"),
                "property": put("property of a rubric", "It is polite."),
                "verdict": "no",
                "rationale": put("rationale of a judge", "It is rude."),
            }
        ],
        "texts": [
            {"sentences": [{"label": put("label", "lie"), "sentence": put("sentence", "Gold.")}]}
        ],
        "samples": [{"score": 1, "reasoning": put("reasoning of a judge", "I am sure.")}],
        "jury": {put("name of a judge", "first"): {"unread": [put("unread answer", "maybe")]}},
    }


def _other(put: Put) -> dict[str, Json]:
    return {
        put("key of evidence", "detail"): put("value of evidence", "four"),
        put("key of long evidence", "steps"): [put("result of a tool", "closed"), *range(50)],
        "result": {put("key of a result", "state"): 1},
    }


# --- What was compared and decided ----------------------------------------------------------


def _comparison(put: Put, names: _Names) -> Comparison:
    def change(case: str, **more: Any) -> CaseChange:
        given: dict[str, Any] = {
            "change": "newly_failing",
            "value": 0.2,
            "baseline": 0.9,
            "failed": 3,
        }
        given |= {"trials": 3, "trials_before": 9}
        return CaseChange(group=names.group, case=case, **(given | more))

    return Comparison(
        baseline_runs=(names.baseline, "run-0"),
        baseline_created=put("time of the baseline", "2026-03-02T03:06:07+00:00"),
        baseline_commit=put("baseline commit", "fedcba9876543210"),
        baseline_branch=put("baseline branch", "trunk"),
        shallow=True,
        rounds=1,
        deltas=(_delta(put, names.group, "regressed"),),
        changes=(
            change(names.regressed, certain=True),
            change(names.suspected, suspected=True),
            change(put("case worse by chance", "rates")),
            change(put("fixed case", "asks"), change="fixed"),
        ),
        added=(put("added case", "smoke/new"),),
        vanished=(
            Vanished(kind="case", name=put("vanished case", "old"), where=put("place of it", "e")),
        ),
        not_comparable=(put("what is not comparable", "smoke/hours: another prompt"),),
        flaky=(Flaky(group=names.group, case=put("flaky case", "advises"), failed=3, trials=15),),
        flaky_total=1,
        excused=(
            Excused(
                kind="quarantined",
                named=put("excused name", "waits"),
                owner=put("owner of an excuse", "search"),
                reason=put("reason of an excuse", "the index is rebuilt"),
                until=put("end of an excuse", "2026-12-01"),
                cases=(f"smoke/{put('excused case', 'waits')}",),
            ),
        ),
        loosened=(put("loosened threshold", "gate.max_drop: 0.02 to 0.1"),),
    )


def _delta(put: Put, group: GroupKey, outcome: Outcome) -> Delta:
    return Delta(
        group=group,
        cases=5,
        value=0.4,
        baseline=0.9,
        effect=-0.5,
        interval=(-0.7, -0.3),
        p_value=0.004,
        outcome=outcome,
        reason=put("reason of a change", "a case changed that never varied"),
    )


def _verdict(put: Put, names: _Names, shape: Shape) -> Verdict:
    blocks = put("reason that blocks", "quality fell by 0.5")
    reasons = {
        "regressed": [
            Reason(kind="regressed", severity="blocks", message=blocks, group=names.group)
        ],
        "failed": [Reason(severity="blocks", message=blocks)] * 2,
        "incomplete": [],
        "passed": [],
    }[shape]
    if shape in ("regressed", "incomplete"):
        missing = put("reason of no verdict", "1 case could not be measured")
        reasons.append(Reason(severity="incomplete", message=missing))
    warns = put("reason that warns", "it took long")
    reasons += [
        Reason(severity="warns", message=warns),
        Reason(severity="info", message=put("reason that informs", "the cache was cold")),
    ]
    outcome: Literal["passed", "failed", "incomplete"] = (
        shape if shape in ("passed", "incomplete") else "failed"
    )
    mode: Literal["regression", "threshold"] = (
        "regression" if shape in ("regressed", "passed") else "threshold"
    )
    by_threshold = mode == "threshold"
    return Verdict(outcome=outcome, mode=mode, by_threshold=by_threshold, reasons=tuple(reasons))


def _history(put: Put, names: _Names) -> tuple[Noted, ...]:
    return (
        Noted(
            run_id=names.baseline,
            created=put("time in the history", "2026-03-02T03:06:07+00:00"),
            commit=put("commit of the history", "fedcba9876543210"),
            branch=put("branch of the history", "main"),
            groups=(NotedGroup(group=names.group, value=0.9),),
            models=(names.model,),
        ),
    )


def usual(_: str, text: str) -> str:
    """Put what usually stands there."""
    return text


def in_all(text: str) -> Put:
    """Return a function that puts `text` into every field."""
    return lambda _, __: text


def only_in(field: str, text: str) -> Put:
    """Return a function that puts `text` into one field."""
    return in_some({field: text})


def in_some(texts: Mapping[str, str]) -> Put:
    """Return a function that puts a text into each of the named fields."""
    return texts.get


def _asked_for() -> tuple[str, ...]:
    asked: dict[str, None] = {}

    def noting(name: str, usual: str) -> str:
        asked[name] = None
        return usual

    for shape in SHAPES:
        a_report(noting, shape)
    return tuple(asked)


FIELDS = _asked_for()
