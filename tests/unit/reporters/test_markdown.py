import re
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html
from support.report_language import (
    GROUP,
    compared,
    compared_in_full,
    differing,
    make_meta,
    make_report,
    make_results,
    shown_by_github,
    streamed,
)

from ci_eval.pull_requests.comment_sections import MORE
from ci_eval.records.cases import Json, Status
from ci_eval.records.comparisons import (
    CaseChange,
    Comparison,
    Delta,
    Excused,
    Flaky,
    GroupKey,
    Silence,
    Together,
    Vanished,
)
from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.findings import (
    GroupSummary,
    Noted,
    NotedGroup,
    Reason,
    ReasonKind,
    Report,
    Totals,
    Verdict,
)
from ci_eval.records.results import CriterionFacts, Score, Tier, TrialResult
from ci_eval.records.trials import Failure, TrialKey
from ci_eval.reporters.markdown import MAX_CHARACTERS, MAX_SUMMARY_BYTES, Markdown, Summary, marker
from ci_eval.text.templates import NONE

ELEMENTS = (
    {"blockquote", "br", "code", "details", "em", "h2", "h4", "li", "p", "pre", "span"}
    | {"strong", "sub", "summary", "ul"}
    | {"table", "tbody", "td", "th", "thead", "tr"}
)


def comment(report: Report) -> str:
    return "".join(Markdown().render(report, streamed([])))


def summary(report: Report) -> str:
    return "".join(Summary().render(report, streamed([])))


def regressed(text: str = "greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95") -> Report:
    return make_report(text)


def with_verdict(report: Report, **changes: object) -> Report:
    if mode := changes.get("mode"):
        changes["by_threshold"] = mode != "regression" or not report.comparison
    return report.model_copy(update={"verdict": report.verdict.model_copy(update=changes)})


# --- What it says ---------------------------------------------------------------------------


def test_the_first_line_is_the_marker() -> None:
    assert comment(regressed()).startswith("<!-- ci-eval:v1 id=shop -->\n> [!CAUTION]\n")


@pytest.mark.parametrize(
    ("suite", "written"),
    [("my shop", "my%20shop"), ("a-->b", "a--%3Eb"), ("ä", "%C3%A4"), ("\ud800\n", "%3F%0A")],
)
def test_the_marker_is_one_comment_whatever_the_suite_is_called(suite: str, written: str) -> None:
    assert marker(suite) == f"<!-- ci-eval:v1 id={written} -->"


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        ("greets pass 0.9 was 0.9", "TIP"),
        ("greets pass 0.9", "NOTE"),
        ("greets fail 0.1", "CAUTION"),
        ("greets fail 0.1 was 0.9", "CAUTION"),
        ("greets error", "WARNING"),
    ],
)
def test_the_decision_comes_first(text: str, alert: str) -> None:
    assert comment(make_report(text)).splitlines()[1] == f"> [!{alert}]"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("greets pass 0.9 was 0.9", "> **shop passed{}:** no regression"),
        ("greets fail 0.1", "> **shop failed{}:** 1 of 1"),
        ("greets pass 0.9 / lost error", "> **shop has no verdict{}:** 1 of 2"),
    ],
)
def test_the_headline_says_that_only_a_part_of_the_suite_was_run(text: str, first: str) -> None:
    whole = make_report(text)
    meta = whole.meta.model_copy(update={"filtered": True})
    part = whole.model_copy(update={"meta": meta})
    assert comment(whole).splitlines()[2].startswith(first.format(""))
    which = ", for the part of the suite that was run"
    assert comment(part).splitlines()[2].startswith(first.format(which))


def test_a_pass_with_a_warning_is_noted() -> None:
    warning = Reason(severity="warns", message="the gate was loosened")
    text = comment(make_report("greets pass 0.9 was 0.9", reasons=[warning]))
    assert "> [!NOTE]\n> **shop passed:**" in text
    assert "> - the gate was loosened\n" in text


def test_a_warning_about_one_criterion_is_left_to_the_table() -> None:
    warning = Reason(kind="inconclusive", severity="warns", message="it dropped", group=GROUP)
    text = comment(make_report("greets pass 0.9 was 0.9", reasons=[warning]))
    assert "[!TIP]" in text
    assert "\n- it dropped\n" in text.partition("<details>")[2]


@pytest.mark.parametrize(
    ("text", "is_good"), [("a fail 0.2 was 0.2", False), ("a pass 1 was 1", True)]
)
def test_a_criterion_that_no_case_passes_gets_no_check_mark(text: str, is_good: bool) -> None:
    assert ("✅" in comment(make_report(text))) is is_good


def test_what_a_criterion_no_longer_measures_is_counted_beside_what_passed() -> None:
    report = make_report("greets pass 0.9 was 0.9")
    assert report.comparison
    silence = Silence(group=GROUP, cases=("greets", "x"), p_value=0.5, level=0.01)
    found = report.comparison.model_copy(update={"silent": (silence, silence)})
    text = comment(report.model_copy(update={"comparison": found}))
    assert "1 of 1 case passed · 2 not measured by a criterion\n" in text


def test_a_floor_in_doubt_is_not_in_the_table_and_stands_above_it() -> None:
    warning = Reason(kind="floor", severity="warns", message="a mean of 0.8", group=GROUP)
    text = comment(make_report("greets pass 0.9 was 0.9", reasons=[warning]))
    assert "> - a mean of 0.8\n" in text.partition("| Criterion |")[0]


def test_several_reasons_are_listed_and_very_many_counted() -> None:
    reasons = [Reason(severity="blocks", message=f"reason {n}") for n in range(7)]
    text = comment(with_verdict(regressed(), reasons=tuple(reasons)))
    assert "**shop failed** for 7 reasons:\n>\n> - reason 0\n" in text
    assert "> - reason 4\n> - and 2 more, see `report.html`\n" in text


def test_what_is_missing_is_said_beside_what_blocks() -> None:
    text = comment(make_report("greets fail 0.1 was 0.9 / refunds error"))
    assert "**shop failed:** 1 case broke: `greets` (tool calls, response)." in text
    assert "> - 1 of 2 cases could not be measured\n" in text


def test_agents_and_evalsets_are_named_where_there_are_several() -> None:
    report = regressed()
    assert "support" not in comment(report).partition("Baseline:")[2].partition("Next")[0]
    meta = report.meta.model_copy(update={"agents": ("support", "sales")})
    text = comment(report.model_copy(update={"meta": meta}))
    assert "`quality`<br><sub><code>support</code> </sub>" in text
    assert "<code>support/refunds</code>" in text
    assert "`ci-eval run --agent support --case refunds`" in text
    more = {**meta.evalsets, "full": EvalSet(eval_set_id="full", path="f.json", format="adk")}
    meta = meta.model_copy(update={"evalsets": more, "config": "ci/shop.yaml"})
    text = comment(report.model_copy(update={"meta": meta}))
    assert "<code>support/smoke/refunds</code>" in text
    assert "--agent support --evalset smoke --case refunds -c ci/shop.yaml`" in text


def test_without_a_baseline_there_are_no_columns_for_it() -> None:
    text = comment(make_report("greets fail 0.1"))
    assert "Baseline |" not in text
    assert "No baseline: judged by thresholds alone." in text
    assert "#### 1 case failed" in text


def test_the_first_run_of_a_suite_with_a_baseline_says_how_to_keep_it() -> None:
    report = with_verdict(make_report("greets pass 0.9"), mode="regression")
    assert "There is no baseline yet.</sub>" in comment(report)
    assert "`ci-eval baseline save ci-eval-report/run.json`" in comment(report)


def test_accepted_cases_are_no_part_of_what_is_said_to_be_no_worse() -> None:
    report = make_report("greets pass 0.9 was 0.9")
    totals = report.totals.model_copy(update={"skipped": 1, "accepted": 1})
    text = comment(report.model_copy(update={"totals": totals}))
    assert "**shop passed:** no regression found outside of 1 accepted case.\n" in text


def test_a_suspected_case_may_be_noise() -> None:
    text = comment(make_report("greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95 maybe"))
    doubt = "no regression found, 1 criterion and 1 case are inconclusive"
    assert f"> [!NOTE]\n> **shop passed:** {doubt}" in text
    assert "> 1 of 2 cases passed · 1 suspected\n" in text
    assert "broke" not in text
    assert "#### 1 suspected case\n\n<sub>Always passed before and always fails now" in text
    assert "· 3 of 3 trials fail, 0 of 15 in the baseline</summary>" in text
    assert "| ⚠️ | `quality` |" in text
    assert ", inconclusive | 1/2 passed<br><sub>1 suspected</sub> |" in text
    assert "- `quality`: p = 0.300" in text.rpartition("<details>")[2]


def test_a_reason_that_names_a_criterion_marks_its_row() -> None:
    floor = Reason(severity="blocks", message="below the floor", group=GROUP)
    report = make_report("greets pass 0.9 was 0.9", reasons=[floor])
    assert "| ❌ | `quality` |" in comment(with_verdict(report, outcome="failed"))


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a error", "| none measured<br><sub>1 not measured</sub> |"),
        ("a skip", "| 1 skipped |"),
        ("a pass 0.9 / b error", "| 1/1 passed<br><sub>1 not measured</sub> |"),
        ("a pass 0.9", "| 1/1 passed |"),
        ("a pass 0.9 was 0.9 / b error", "| ≤&nbsp;0.000, incomplete |"),
        ("a error was 0.9", "| 0.800 | \N{EN DASH} | none measured<br><sub>1 not measured</sub>"),
    ],
)
def test_what_was_not_measured_never_looks_like_a_pass(text: str, cells: str) -> None:
    report = make_report(text)
    if "was" in text and report.comparison and report.groups[0].value is None:
        delta = report.comparison.deltas[0].model_copy(update={"effect": 0.1, "baseline": 0.8})
        comparison = report.comparison.model_copy(update={"deltas": (delta,)})
        report = report.model_copy(update={"comparison": comparison})
    assert cells in comment(report)


def test_a_criterion_that_the_baseline_lacks_is_new() -> None:
    report = make_report("a pass 0.9 was 0.9")
    comparison = report.comparison
    assert comparison
    comparison = comparison.model_copy(update={"deltas": ()})
    assert "| \N{EN DASH} | new | 1/1 passed |" in comment(
        report.model_copy(update={"comparison": comparison})
    )


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("a fail 0.1 was 0.1", "both", "±0.000, unchanged | 0/1 passed"),
        (
            "a fail 0.1 was 0.9",
            "both",
            "\N{MINUS SIGN}0.800, dropped | 0/1 passed<br><sub>1 broke</sub>",
        ),
        ("a fail 0.1 was 0.9 maybe", "regression", "inconclusive | 0/1 passed<br><sub>1 sus"),
    ],
)
def test_the_mean_and_its_cases_have_columns_of_their_own(text: str, mode: str, words: str) -> None:
    report = with_verdict(make_report(text), mode=mode)
    assert words in comment(report)


def test_cases_below_a_threshold_are_shown_where_they_count() -> None:
    text = "a fail 0.1 was 0.9 / b fail 0.2 was 0.2"
    shown = comment(with_verdict(make_report(text), mode="both"))
    assert "#### 1 case broke" in shown
    others = shown.partition("#### Other cases below a threshold")[2]
    assert "<code>b</code>" in others
    assert "<code>a</code>" not in others
    assert "alone does not block" not in shown


def test_the_baseline_is_named_with_its_age() -> None:
    text = comment(regressed())
    assert (
        "Baseline: run <code>run-1</code> of commit <code>fedcba9876</code>, 2 d 2 h older" in text
    )
    meta = regressed().meta
    just_now = {"baseline_created": meta.created}
    beside = regressed().comparison.model_copy(update=just_now)
    assert " older" not in comment(regressed().model_copy(update={"comparison": beside}))
    bare = Comparison(deltas=regressed().comparison.deltas)
    text = comment(regressed().model_copy(update={"comparison": bare}))
    assert "Baseline: run <code>unknown</code>.</sub>" in text


def test_a_case_that_cannot_be_typed_is_not_in_the_command() -> None:
    report = make_report("greets\u202e fail 0.1")
    assert "`ci-eval run --failed`" in comment(report)
    report = make_report("it's fail 0.1")
    assert "ci-eval run --case 'it'\"'\"'s'" in comment(report)


@pytest.mark.parametrize("name", ["a|https://b", "a`b", "a<!--b"])
def test_a_command_that_is_not_shown_as_it_is_is_none_to_copy(name: str) -> None:
    assert "`ci-eval run --failed`" in comment(make_report(f"{name} fail 0.1"))


def test_the_rest_is_folded() -> None:
    report = regressed("greets pass 0.9 was 0.1 / new pass 1.0 / refunds fail 0.2 was 0.95")
    comparison = report.comparison
    assert comparison
    comparison = comparison.model_copy(
        update={
            "vanished": (
                Vanished(kind="case", name="weighs", where="smoke"),
                Vanished(kind="criterion", name="speed"),
            ),
            "not_comparable": ("case smoke/asks: its content changed",),
        }
    )
    meta = report.meta.model_copy(
        update={"warnings": ("odd line",), "overrides": {"ci/x": "acme.x"}, "filtered": True}
    )
    shown = comment(report.model_copy(update={"comparison": comparison, "meta": meta}))
    folded = shown.rpartition("<details>")[2]
    for expected in (
        "Details · 1 now passing · 1 new · 2 removed · 1 not comparable · 2 notes",
        "- **Now passing (1):** `greets`",
        "- **New (1):** `smoke/new`",
        "- **Only in the baseline (2):** `case smoke/weighs`, `criterion speed`",
        "- **Not comparable (1):** `case smoke/asks: its content changed`",
        "- odd line",
        "- ci/x is from acme.x, not from ci-eval",
        "3 trials, 3 s of agent time",
    ):
        assert expected in folded


@pytest.mark.parametrize("text", ["greets pass 0.9 was 0.9", "greets fail 0.1 was 0.1"])
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("vanished", "restore what is gone, or accept it with `gate.on_vanished: warn`."),
        ("weakened_gate", "undo what weakens the gate."),
        ("regressed", "reproduce it with "),
    ],
)
def test_what_no_case_shows_has_a_next_step_of_its_own(
    kind: ReasonKind, step: str, text: str
) -> None:
    reasons = (Reason(kind=kind, severity="blocks", message="it blocks"),)
    shown = comment(with_verdict(make_report(text), outcome="failed", reasons=reasons))
    is_shown = kind != "regressed" or "fail" in text
    assert (f"**Next:** {step}" in shown) is is_shown


def test_a_case_that_fails_only_a_criterion_that_warns_is_none_of_the_failed() -> None:
    report = make_report("refunds fail 0.2 was 0.2 / greets pass 0.9 was 0.9")
    group = GROUP.model_copy(update={"criterion": "tone"})
    delta = Delta(group=group, cases=2, value=0.5, baseline=1.0, outcome="regressed", tier="warn")
    broke = CaseChange(
        group=group, case="greets", change="newly_failing", value=0.0, baseline=1.0, certain=True
    )
    assert report.comparison
    deltas = (*report.comparison.deltas, delta)
    text = comment(compared(report, deltas=deltas, changes=(broke,)))
    assert "1 of 2 cases passed · 1 broke · 1 other failed" in text


def test_measures_have_a_table_of_their_own() -> None:
    report = regressed()
    group = GROUP.model_copy(update={"criterion": "tokens"})
    tokens = GroupSummary(group=group, passed=2, value=15_321.4, informational=True)
    delta = Delta(group=group, cases=2, value=15_321.4, baseline=14_000.0, outcome="inconclusive")
    comparison = report.comparison
    assert comparison
    update = {
        "groups": (*report.groups, tokens),
        "comparison": comparison.model_copy(update={"deltas": (*comparison.deltas, delta)}),
    }
    text = comment(report.model_copy(update=update))
    assert "| `tokens` | 15,321 | 14,000 |" in text.rpartition("<details>")[2]


def test_many_criteria_of_one_case_are_counted() -> None:
    failed = make_results("refunds fail 0.2")[0]
    score = failed.scores[0]
    scores = [score.model_copy(update={"name": f"q{n}", "reason": "because"}) for n in range(4)]
    result = failed.model_copy(update={"scores": tuple(scores)})
    text = comment(make_report("refunds fail 0.2").model_copy(update={"worst": (result,)}))
    assert "<summary><code>refunds</code> · tool calls, response</summary>" in text
    assert "<code>q3</code> 0.200 &#60; 0.8" in text
    assert text.count("```diff") == 2, "the same evidence is shown once"
    assert text.count("because") == 4


# --- What a comparison tells ----------------------------------------------------------------


def test_what_the_change_loosens_comes_right_behind_the_decision() -> None:
    told = Reason(
        kind="weakened_gate",
        severity="warns",
        message="this change weakens its own gate: gate.max_drop: 0.02 → 0.1",
    )
    loosened = ("gate.max_drop: 0.02 → 0.1",)
    report = make_report("greets fail 0.1 was 0.9 / refunds error", reasons=[told])
    text = comment(compared(report, loosened=loosened))
    first, _, second = text.splitlines()[2:5]
    assert first.startswith("> **shop failed:** 1 case broke: `greets`")
    assert second == "> ⚠️ **This pull request weakens its own gate:** `gate.max_drop: 0.02 → 0.1`."
    assert text.count("gate.max_drop") == 1
    blocks = told.model_copy(update={"severity": "blocks"})
    alone = with_verdict(compared(report, loosened=loosened), reasons=(blocks,))
    first, _, second = comment(alone).splitlines()[2:5]
    assert first.startswith("> **shop failed:** a change that weakens its own gate fails")
    assert "`gate.max_drop: 0.02 → 0.1`." in second
    passed = make_report("greets pass 0.9 was 0.9", reasons=[told])
    assert "> [!NOTE]\n> **shop passed:**" in comment(compared(passed, loosened=loosened))
    several = tuple(Reason(severity="blocks", message=f"reason {n}") for n in range(2))
    text = comment(with_verdict(compared(report, loosened=loosened), reasons=several))
    assert text.splitlines()[2] == "> **shop failed** for 2 reasons."
    assert text.index("weakens its own gate") < text.index("> - reason 0")


@pytest.mark.parametrize(
    ("gate", "said"),
    [({}, "nothing was compared"), ({"min_pass_rate": 0.1}, "every floor is reached")],
)
def test_a_run_that_passes_with_failures_says_why(gate: dict[str, Json], said: str) -> None:
    report = make_report("a pass 1.0 / b fail 0.1")
    verdict = report.verdict.model_copy(update={"outcome": "passed", "reasons": ()})
    meta = report.meta.model_copy(update={"gate": gate})
    report = report.model_copy(update={"verdict": verdict, "meta": meta})

    assert f"> **shop passed:** {said}." in comment(report)


def test_a_change_without_a_baseline_is_said_to_weaken_its_gate_in_the_same_place() -> None:
    told = Reason(
        kind="weakened_gate",
        severity="warns",
        message="this change weakens its own gate: baseline: removed",
    )
    report = make_report("greets pass 0.9", reasons=[told])
    meta = report.meta.model_copy(update={"weakened": ("baseline: removed",)})
    text = comment(report.model_copy(update={"meta": meta}))

    assert "> ⚠️ **This pull request weakens its own gate:** `baseline: removed`." in text
    assert text.count("weakens its own gate") == 1


def test_what_noise_does_is_folded_and_what_is_suspected_stands_apart() -> None:
    text = comment(make_report("a fail 0.2 was 0.9 noise / b fail 0.2 was 0.9 maybe / c pass 1.0"))
    assert "broke" not in text
    assert "#### 1 suspected case\n" in text
    assert "> 1 of 3 cases passed · 1 suspected · 1 flaked" in text
    alarming, _, rest = text.rpartition("<details><summary>Details")
    assert "<code>a</code>" not in alarming
    assert "- **Flaked: worse in some trials, but no more than noise (1):** `a`\n" in rest


def test_in_a_criterion_that_dropped_each_case_that_got_worse_is_evidence() -> None:
    text = "a fail 0.2 was 0.9 noise / b fail 0.2 was 0.9"
    both = comment(make_report(text))
    assert "1 case broke: `b` (tool calls, response); `quality` dropped by 0.700 over 2" in both
    assert both.index("#### 1 case broke\n") < both.index("#### 1 case scored worse\n")
    report = make_report(text)
    assert report.comparison
    (delta,) = report.comparison.deltas
    # It regressed by the case that is certain; by all of them it did not.
    single = delta.model_copy(update={"p_value": 0.4, "level": 0.02})
    text = comment(compared(report, deltas=(single,)))
    assert "1 case broke: `b` (tool calls, response).\n" in text
    assert "\N{MINUS SIGN}0.700 |" in text
    assert "- **Flaked: worse in some trials, but no more than noise (1):** `a`\n" in text


def test_what_noise_did_still_counts_where_failing_is_enough() -> None:
    report = with_verdict(make_report("a fail 0.2 was 0.9 noise"), mode="both", outcome="failed")
    assert "#### 1 case failed\n\n<details open><summary><code>a</code>" in comment(report)


@pytest.mark.parametrize("tier", ["warn", "inform"])
def test_a_criterion_that_does_not_block_says_so(tier: Tier) -> None:
    report = make_report("greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95")
    assert report.comparison
    (delta,) = report.comparison.deltas
    report = compared(report, deltas=(delta.model_copy(update={"tier": tier}),))
    groups = (report.groups[0].model_copy(update={"tier": tier}),)
    report = report.model_copy(update={"groups": groups})
    report = with_verdict(report, outcome="passed", reasons=())
    text = comment(report)
    assert "> **shop passed:** no blocking regression found." in text
    assert f"| ⚠️ | `quality`<br><sub>only {tier}s</sub> |" in text
    assert f"<code>quality</code> 0.950 → 0.200, only {tier}s\n" in text


def test_all_criteria_together_have_a_row_where_they_got_worse() -> None:
    report = make_report("greets pass 0.9 was 0.9")
    found = Together(criteria=4, effect=-0.031, p_value=0.002, level=0.004, outcome="regressed")
    text = comment(compared(report, together=found))
    change = "\N{MINUS SIGN}0.031 of their ranges, regressed"
    cells = ("❌", "*all blocking criteria combined*", NONE, NONE, NONE, change, NONE)
    assert f"| {' | '.join(cells)} |\n" in text
    assert "- All blocking criteria combined: p = 0.002 (needs ≤ 0.004)\n" in text
    worse = compared(make_report("greets fail 0.1 was 0.9"), together=found)
    assert "combined" not in comment(worse), "it does not decide alone"
    calm = found.model_copy(update={"outcome": "unchanged"})
    assert "together" not in comment(compared(report, together=calm))


def test_a_measure_that_grew_is_in_the_table_with_what_is_tolerated() -> None:
    report = make_report("greets pass 0.9 was 0.9")
    group = GROUP.model_copy(update={"criterion": "tokens"})
    facts = CriterionFacts(criterion="ci/tokens", better="lower", max_growth=0.2, tier="warn")
    tokens = GroupSummary(
        group=group, passed=9, value=1_321.4, informational=True, better="lower", tier="warn"
    )
    delta = Delta(
        group=group,
        cases=9,
        value=1_321.4,
        baseline=1_000.0,
        effect=321.4,
        interval=(200.0, 450.0),
        p_value=0.001,
        level=0.01,
        outcome="regressed",
        tier="warn",
    )
    assert report.comparison
    meta = report.meta.model_copy(update={"criteria": {**report.meta.criteria, "tokens": facts}})
    report = report.model_copy(update={"groups": (*report.groups, tokens), "meta": meta})
    table = comment(compared(report, deltas=(*report.comparison.deltas, delta)))
    assert (
        "| ⚠️ | `tokens`<br><sub>only warns</sub> | 1,321 | ≤&nbsp;+20.0% | 1,000 | "
        "+321, rose<br><sub>95%&nbsp;CI +200&nbsp;to&nbsp;+450</sub> | 9 cases |"
    ) in table
    assert "- `tokens`: p = 0.001 (needs ≤ 0.01)\n" in table
    calm = compared(report, deltas=(delta.model_copy(update={"outcome": "unchanged"}),))
    assert "| ✅ | `tokens`" not in comment(calm)
    assert "</sub> | 1,321 | 1,000 |" in comment(calm).rpartition("<details>")[2]


def test_the_baseline_is_told_with_its_place_and_what_was_drawn() -> None:
    report = compared(
        make_report("greets pass 0.9 was 0.9"),
        baseline_distance=3,
        baseline_branch="ma|n",
        shallow=True,
        rounds=2,
        confirming=4,
    )
    text = comment(report)
    assert (
        "2 d 2 h older, 3 commits before the merge base with ma&#124;n, pooled with 1 other run."
        in text
    )
    assert "The clone is shallow" in text
    assert "<code>fetch-depth: 0</code>" in text
    assert "Compared after 2 reruns and 4 confirming trials.</sub>" in text


def test_flaky_cases_and_exceptions_are_folded_with_what_is_to_be_known_of_them() -> None:
    many = tuple(f"smoke/c{n}" for n in range(7))
    other = GROUP.model_copy(update={"criterion": "tone"})
    report = compared(
        make_report("greets pass 0.9 was 0.9"),
        flaky=(
            Flaky(group=GROUP, case="greets", failed=3, trials=15),
            Flaky(group=other, case="greets", failed=3, trials=15),
            Flaky(group=GROUP, case="refunds", failed=3, trials=15),
            Flaky(group=other, case="refunds", failed=1, trials=15),
        ),
        flaky_total=5,
        excused=(
            Excused(kind="quarantined", named="c*", owner="search", until="2027-01-01", cases=many),
            Excused(kind="accepted", named="x", reason="curt", until="2026-01-01", expired=True),
        ),
    )
    folded = comment(report).partition("<summary>2 flaky cases and more · 2 gate exceptions")[2]
    for line in (
        "- `greets` · <code>quality</code> <code>tone</code> fails 3 of 15\n",
        "- `refunds` · <code>quality</code> fails 3 of 15, <code>tone</code> fails 1 of 15\n",
        (
            "- `c*`: quarantined until 2027-01-01 (owner: search) "
            "(`c0`, `c1`, `c2`, `c3`, `c4` and 2 more,"
        ),
        "- `x`: acceptance expired on 2026-01-01: curt\n",
    ):
        assert line in folded


def test_exempted_cases_that_got_worse_are_named_at_the_top() -> None:
    said = "smoke/refunds did not pass or got worse; accepted until 2027-01-01: *curt*"
    reason = Reason(kind="exempt_worse", severity="info", message=said)
    text = comment(with_verdict(make_report("greets pass 0.9 was 0.9"), reasons=(reason,)))
    top = text.partition("| Criterion")[0]
    assert f"> Exempt from the gate:\n> - {said.replace('*', '&#42;')}\n" in top
    assert "Exempt" not in comment(make_report("greets pass 0.9 was 0.9"))


def test_the_history_is_folded_with_a_chart_of_what_regressed() -> None:
    text = comment(compared_in_full(make_report("refunds fail 0.2 was 0.9")))
    folded = text.partition("<details><summary>History · the last 4 runs</summary>")[2]
    assert "| `quality` | `▄▇█▁` | 0.200 | 0.200 | 0.900 |\n" in folded
    assert "\n\n```mermaid\n%%{init: " in folded
    assert "History" not in comment(make_report("refunds fail 0.2 was 0.9"))


def test_of_many_criteria_those_that_are_good_are_folded() -> None:
    report = make_report("greets pass 0.9 / refunds fail 0.2")
    good = GroupSummary(group=GROUP, passed=2, value=1.0, threshold=0.8)
    groups = [
        good.model_copy(update={"group": GROUP.model_copy(update={"criterion": f"good{n:02}"})})
        for n in range(20)
    ]
    text = comment(report.model_copy(update={"groups": (*groups, *report.groups)}))
    first, _, rest = text.partition("<details><summary>11 more criteria, none of them worse")
    assert first.count("| ❌ | `quality` | 0.550 |") == 1
    assert first.count("| ✅ |") == 9
    assert rest.count("| ✅ |") == 11


# --- How much of it -------------------------------------------------------------------------

HUGE: dict[str, Json] = {
    "expected": "e" * 1_000_000 + "1",
    "actual": "e" * 1_000_000 + "2",
    "expected_tool_calls": [{"name": "f", "args": {"x": "`|@a " * 200_000}}] * 50,
    "actual_tool_calls": [{"name": "g" * 1_000_000, "args": None}],
    "rationale": "<@octocat>\n" * 90_000,
    "samples": ["|" * 1_000_000],
}


def many(count: int, *, name: str = "case", evidence: dict[str, Json] | None = None) -> Report:
    """Return a report of which every third case broke, every third fails, every third errs."""
    verbs = ("fail 0.2 was 0.9", "fail 0.1 was 0.1", "error")
    text = " / ".join(f"{name}{n} {verbs[n % 3]}" for n in range(count))
    return make_report(text, evidence=evidence)


def test_cases_that_fail_alike_are_one_entry_that_names_them() -> None:
    text = comment(make_report(" / ".join(f"c{n} fail 0.2 was 0.9" for n in range(4))))
    assert "4 cases broke: `c0` (tool calls, response) and 3 like it." in text
    assert text.count("<summary><code>c") == 1
    assert "<summary><code>c0</code> and 3 like it · tool calls, response · 3 of 3" in text
    assert "\nSame failure: `c1`, `c2`, `c3`\n" in text


@pytest.mark.parametrize(("cases", "entries"), [(20, 20), (21, 1)])
def test_what_is_offered_to_accept_covers_every_broken_case(cases: int, entries: int) -> None:
    text = comment(make_report(" / ".join(f"c{n} fail 0.2 was 0.9" for n in range(cases))))
    assert text.count("reason: say why") == entries
    assert ('{case: "c19"' in text) == ('{criterion: "quality"' not in text) == (cases == 20)


def test_the_first_line_counts_and_names_only_cases_that_block() -> None:
    report = differing(make_report(" / ".join(f"c{n} fail 0.2 was 0.9" for n in range(63))))
    assert report.comparison
    style = GROUP.model_copy(update={"criterion": "style"})
    (delta,) = report.comparison.deltas
    warned = delta.model_copy(update={"group": style, "tier": "warn"})
    changes = tuple(
        each if each.case in ("c20", "c61", "c62") else each.model_copy(update={"group": style})
        for each in report.comparison.changes
    )
    text = comment(compared(report, deltas=(delta, warned), changes=changes))
    assert "3 cases broke: `c20` (response), `c61` (quality), `c62` (quality)" in text
    assert "#### 63 cases broke\n" in text


def test_the_evidence_begins_with_what_the_user_asked() -> None:
    report = make_report("c fail 0.2")
    (result,) = report.worst
    result = result.model_copy(update={"messages": ("What does *it* cost?",)})
    text = comment(report.model_copy(update={"worst": (result,)}))
    assert "\n**User:** What does &#42;it&#42; cost? <sub><code>evals/smoke" in text


RUN = "https://github.com/o/r/actions/runs/1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            RUN,
            f"[Log]({RUN}) · [Reports]({RUN}#artifacts) · Commit [<code>0123456789</code>](https://github.com/o/r/commit/0123456789abcdef",
        ),
        (
            "https://gitlab.com/g/p/-/pipelines/1",
            "/-/pipelines/1) · Commit [<code>0123456789</code>](https://gitlab.com/g/p/-/commit/0123456789abcdef",
        ),
        ("", "<sub>Commit <code>0123456789</code></sub>"),
        ("javascript:alert(1)", "<sub>Commit <code>0123456789</code></sub>"),
        ("https://evil.example/x", "<sub>Commit <code>0123456789</code></sub>"),
    ],
)
def test_the_log_its_files_and_the_commit_are_linked(url: str, shown: str) -> None:
    report = make_report("c pass 0.9")
    meta = report.meta.model_copy(update={"url": url})
    assert shown in comment(report.model_copy(update={"meta": meta}))


def test_an_interval_is_cut_to_what_is_possible_and_left_out_for_few_pairs() -> None:
    report = make_report("greets pass 0.9 was 0.9")
    assert report.comparison
    (delta,) = report.comparison.deltas
    wide = delta.model_copy(update={"interval": (-6.853, 5.853), "cases": 8, "baseline": 0.9})
    group = report.groups[0].model_copy(update={"interval": (0.0, 1.0)})
    report = report.model_copy(update={"groups": (group,)})
    text = comment(compared(report, deltas=(wide,)))
    assert "<sub>95%&nbsp;CI \N{MINUS SIGN}0.900&nbsp;to&nbsp;+0.100</sub>" in text
    few = compared(report, deltas=(wide.model_copy(update={"cases": 7}),))
    assert "CI" not in comment(few)


def test_long_lists_are_folded_and_counted() -> None:
    text = comment(differing(make_report(" / ".join(f"c{n} fail 0.2 was 0.9" for n in range(75)))))
    assert text.count("<details open><summary><code>c") == 1
    assert text.count("<details><summary><code>c") == 9
    assert "<details><summary>65 more</summary>\n\n- `c10` ·" in text
    assert "… and 25 more, see `report.html`.\n\n</details>" in text
    text = comment(differing(make_report(" / ".join(f"c{n} fail 0.2" for n in range(75)))))
    assert "#### 75 cases failed" in text
    assert "All 75 failing cases are in `report.html`." in text


def test_errors_are_listed_by_what_went_wrong() -> None:
    report = make_report(" / ".join(f"c{n} error" for n in range(60)))
    text = comment(report)
    assert "#### 60 cases could not be measured" in text
    assert (
        "- `timeout`: `no answer within 120 s` (`c0`, `c1`, `c2`, `c3`, `c4` and others)\n" in text
    )
    names = ["".join(pair) for pair in product("abcdefgh", repeat=2)]
    different = tuple(
        result.model_copy(update={"error": Failure(kind="raised", message=f"no {names[n]} in {n}")})
        for n, result in enumerate(make_results(" / ".join(f"c{n} error" for n in range(60))))
    )
    text = comment(report.model_copy(update={"worst": different}))
    assert f"- `raised`: `no {names[49]} in 49` (`c49`)\n" in text
    assert "… and 10 more, see `report.html`." in text


def test_a_criterion_that_could_not_be_measured_is_named() -> None:
    (result,) = make_results("c fail 0.1")
    judged = Score(criterion="c", name="judged", status=Status.ERROR, reason="no answer")
    result = result.model_copy(update={"scores": (*result.scores, judged)})
    text = comment(make_report("c fail 0.1").model_copy(update={"worst": (result,)}))
    assert "#### Not measured\n\n- `judged`: `no answer` (`c`)" in text


@pytest.mark.parametrize("count", [1, 30, 3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_documents_fit_whatever_the_number_of_cases(count: int) -> None:
    report = many(count)
    report = compared(
        report,
        flaky=tuple(
            Flaky(group=GROUP, case=f"flaky{n}", failed=1, trials=9) for n in range(min(count, 200))
        ),
        flaky_total=count,
        excused=(
            Excused(
                kind="quarantined",
                named="*",
                until="2027-01-01",
                cases=tuple(f"smoke/case{n}" for n in range(count)),
            ),
        )
        * 50,
        loosened=tuple(f"gate.x{n}" for n in range(count)),
    )
    text = comment(report)
    assert len(text) <= MAX_CHARACTERS
    assert len(summary(report).encode()) <= MAX_SUMMARY_BYTES
    worse = len(range(0, count, 3))
    assert f"#### {worse:,} case{'s' if worse > 1 else ''} broke" in text
    assert whole(text)


@pytest.mark.parametrize("count", [1, 30, pytest.param(3_000, marks=pytest.mark.slow)])
def test_documents_fit_whatever_the_size_of_values(count: int) -> None:
    report = many(count, evidence=HUGE)
    assert len(comment(report)) <= MAX_CHARACTERS
    assert len(summary(report).encode()) <= MAX_SUMMARY_BYTES
    assert whole(comment(report))


@pytest.mark.slow
def test_documents_fit_whatever_the_length_of_names_and_the_number_of_criteria() -> None:
    name = "|<" * 500_000
    groups = tuple(
        GroupSummary(
            group=GroupKey(agent=f"{n}{name}", evalset=name, criterion=name), failed=1, value=0.1
        )
        for n in range(300)
    )
    report = many(30, name="`" * 1_000).model_copy(
        update={
            "groups": groups,
            "meta": make_meta(name).model_copy(
                update={"agents": ("a", "b"), "run_id": name, "version": name}
            ),
            "verdict": Verdict(
                outcome="failed",
                mode="regression",
                reasons=tuple(
                    Reason.model_validate({"severity": severity, "message": name})
                    for severity in ("blocks", "warns", "info")
                    for _ in range(20)
                ),
            ),
        }
    )
    body = comment(report)
    assert len(body) <= MAX_CHARACTERS
    assert len(summary(report).encode()) <= MAX_SUMMARY_BYTES
    assert "more, see `report.html`" in body


def whole(text: str) -> bool:
    """Return True if every element that was opened is closed, and no text is cut."""
    page = shown_by_github(text)
    return all(
        page.count(f"<{tag}") == page.count(f"</{tag}>") for tag in ("details", "table", "pre")
    )


# --- Whatever is in it ----------------------------------------------------------------------

TEXT = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=()), max_size=30),
    st.sampled_from(
        [
            "@octocat", "|", "`", "```\n", "<img src=//x.y>", "</details>", "https://x.y",
            "www.x.y",
            "![a](//x.y)", "a@x.y", "-->", "\n\n# x\n", "{{ 7 * 7 }}", "{% raw %}", "\ud800", "#1",
        ]
    ),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60)
@given(texts=st.lists(TEXT, min_size=8, max_size=8))
def test_nothing_in_a_report_is_live(texts: Sequence[str]) -> None:
    for text in (comment(hostile(texts)), summary(hostile(texts))):
        shown = text.removeprefix(marker(texts[0])).replace(f"\n{MORE}\n", "\n", 1)
        page = lxml_html.fragment_fromstring(shown_by_github(shown), create_parent="div")
        for element in page.iterdescendants():
            assert element.tag in ELEMENTS
            assert set(element.attrib) <= {"open", "align", "lang"}
        outside = "".join(page.xpath(".//text()[not(ancestor::code or ancestor::pre)]"))
        assert not re.search(r"@\w|#\d|://|www\.", outside)
        for row in page.iter("tr"):
            assert len(row) == len(row.getparent().getparent().find(".//tr"))


def hostile(texts: Sequence[str]) -> Report:
    """Return a report in which every text is one of `texts`."""
    suite, agent, evalset, case, criterion, reason, value, kind = texts
    group = GroupKey(agent=agent, evalset=evalset, criterion=criterion)
    evidence: dict[str, Json] = {
        "expected": value,
        "actual": reason,
        "expected_tool_calls": [{"name": case, "args": {value: reason}}],
        "actual_tool_calls": [],
        kind: [value, {reason: case}],
        "rationale": value,
    }
    failed = Score(
        criterion=criterion,
        name=criterion,
        status=Status.FAILED,
        value=0.1,
        threshold=0.8,
        reason=reason,
        invocations=({"status": "failed", "value": 0.1, "evidence": evidence},),
    )
    results = (
        TrialResult(
            key=TrialKey(agent=agent, evalset=evalset, case=case),
            status=Status.FAILED,
            scores=(failed,),
        ),
        TrialResult(
            key=TrialKey(agent=agent, evalset=evalset, case=value),
            status=Status.ERROR,
            error={"kind": kind, "message": reason},
        ),
    )
    change = CaseChange(
        group=group, case=case, change="newly_failing", value=0.1, baseline=0.9, certain=True
    )
    other = group.model_copy(update={"criterion": f"{criterion} 2"})
    history = (
        Noted(run_id=value, created=kind, groups=(NotedGroup(group=group, value=0.5),)),
        Noted(run_id=reason, created=kind, groups=(NotedGroup(group=group, value=1e15),)),
        Noted(run_id=case, created=kind, groups=(NotedGroup(group=group, value=0.6),)),
    )
    report = Report(
        meta=make_meta(suite).model_copy(
            update={
                "agents": (agent, "b"),
                "evalsets": {
                    evalset: EvalSet(eval_set_id=case, path=value, format="adk"),
                    "other": EvalSet(eval_set_id=case, path=value, format="adk"),
                },
                "run_id": value,
                "version": value,
                "commit": value,
                "warnings": (reason,),
            }
        ),
        totals=Totals(trials=2, cases=2, failed=1, errors=1),
        groups=(
            GroupSummary(group=group, failed=1, errors=1, value=0.1, threshold=0.8),
            GroupSummary(group=group, passed=1, value=0.1, informational=True),
        ),
        comparison=Comparison(
            baseline_runs=(value,),
            baseline_created=value,
            baseline_commit=value,
            baseline_branch=evalset,
            shallow=True,
            deltas=(Delta(group=group, cases=1, value=0.1, baseline=0.9, outcome="regressed"),),
            changes=(
                change,
                change.model_copy(update={"case": value, "change": "fixed"}),
                change.model_copy(
                    update={"case": reason, "group": other, "certain": False, "suspected": True}
                ),
                change.model_copy(update={"case": agent, "group": other, "certain": False}),
            ),
            flaky=(Flaky(group=group, case=reason, failed=1, trials=2),),
            excused=(
                Excused(
                    kind="quarantined",
                    named=case,
                    owner=value,
                    reason=reason,
                    until=kind,
                    cases=(f"{evalset}/{value}", reason),
                ),
            ),
            loosened=(f"tier of {criterion}", value),
            added=(value,),
            vanished=(Vanished(kind="case", name=value, where=reason),),
            not_comparable=(reason,),
        ),
        verdict=Verdict(
            outcome="failed",
            mode="regression",
            reasons=(
                Reason(severity="blocks", message=reason),
                Reason(severity="warns", message=value),
                Reason(severity="info", message=case),
            ),
        ),
        worst=results,
    )
    return report.model_copy(update={"history": history})


def test_a_case_is_linked_where_the_page_has_a_known_address() -> None:
    report = make_report("re/funds fail 0.2 was 0.9")
    assert "artifacts" not in comment(differing(report))
    page = "https://gitlab.example/g/p/-/jobs/7/artifacts/file/ci-eval-report/report.html"
    known = report.model_copy(update={"meta": report.meta.model_copy(update={"page_url": page})})
    text = comment(differing(known))
    assert f"[whole case]({page}#case=support%2Fsmoke%2Fre%252Ffunds)" in text
    assert f"[Report]({page})" in text
    bare = known.model_copy(update={"meta": known.meta.model_copy(update={"commit": None})})
    assert f"<sub>[Report]({page})</sub>" in comment(bare)
