import pytest
from support.report_language import GROUP, compared, make_report

from ci_eval.records.comparisons import CaseChange, Delta, Excused, Together
from ci_eval.records.findings import Metered, Report
from ci_eval.records.model_usage import ModelUsage
from ci_eval.run_files import report_phrases


def delta(**changes: object) -> Delta:
    plain = {"group": GROUP, "cases": 9, "value": 0.5, "baseline": 0.6, "outcome": "regressed"}
    return Delta.model_validate(plain | changes)


def change(**changes: object) -> CaseChange:
    plain = {"group": GROUP, "case": "c", "change": "newly_failing", "value": 0.0, "baseline": 1.0}
    return CaseChange.model_validate(plain | changes)


@pytest.mark.parametrize(
    ("p_value", "level", "said"),
    [
        (0.0124, 0.005, "p = 0.012 (needs ≤ 0.005)"),
        (0.3, None, "p = 0.300"),
        (0.0, 0.02, "p < 0.000001 (needs ≤ 0.02)"),
        (0.00045, 0.0005, "p = 0.00045 (needs ≤ 0.0005)"),
        # Rounded it would be on the wrong side of its level.
        (0.0025, 0.0025, "p = 0.0025 (needs ≤ 0.0025)"),
        (0.00496, 0.00504, "p = 0.005 (needs ≤ 0.005)"),
        (None, None, ""),
    ],
)
def test_a_p_value_is_said_with_its_level_and_on_the_right_side_of_it(
    p_value: float | None, level: float | None, said: str
) -> None:
    found = delta(p_value=p_value, level=level, outcome="inconclusive")
    assert report_phrases.tested(found) == said


def test_a_p_value_that_decided_nothing_is_not_told() -> None:
    assert report_phrases.tested(delta(p_value=0.5, level=0.01, steady=True)) == ""
    # Single cases did.
    assert report_phrases.tested(delta(p_value=0.13, level=0.002)) == ""
    unsure = delta(p_value=0.13, level=0.002, outcome="inconclusive")
    assert report_phrases.tested(unsure) == "p = 0.130 (needs ≤ 0.002)"
    close = delta(p_value=0.00504, level=0.00496, outcome="inconclusive")
    assert report_phrases.tested(close) == "p = 0.0050 (needs ≤ 0.00496)"


def test_an_effect_is_said_with_its_interval() -> None:
    found = delta(effect=-0.067, interval=(-0.12, -0.014), cases=8)
    assert report_phrases.moved(found, None).replace("\N{MINUS SIGN}", "-") == (
        "-0.067 (95% CI -0.120 to -0.014)"
    )
    assert report_phrases.moved(delta(effect=0.1), None) == "+0.100"
    assert report_phrases.moved(delta(), None) == ""
    assert report_phrases.moved(delta(effect=-0.1, value=None), None) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"failed": 1, "trials": 1}, "1 of 1 trial fails"),
        # It may have failed before, too: it is neither certain nor suspected.
        ({"failed": 2, "trials": 3, "trials_before": 15}, "2 of 3 trials fail"),
        (
            {"failed": 3, "trials": 3, "trials_before": 15, "suspected": True},
            "3 of 3 trials fail, 0 of 15 in the baseline",
        ),
        (
            {"failed": 1, "trials": 1, "trials_before": 5, "certain": True, "confirmed": (4, 4)},
            "1 of 1 trial fails, 0 of 5 in the baseline; 4 of 4 confirming trials fail",
        ),
    ],
)
def test_the_trials_of_a_case_are_counted(changes: dict[str, object], said: str) -> None:
    assert report_phrases.trials(change(**changes)) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("regressed", "worse by 0.031 of their ranges"),
        ("inconclusive", "worse by 0.031 of their ranges (may be noise)"),
        ("improved", "better by 0.031 of their ranges"),
        ("unchanged", "within noise"),
    ],
)
def test_all_criteria_together_have_a_sentence(outcome: str, said: str) -> None:
    effect = 0.031 if outcome == "improved" else -0.031
    found = Together.model_validate(
        {"criteria": 4, "effect": effect, "p_value": 0.1, "level": 0.2, "outcome": outcome}
    )
    assert report_phrases.together(found) == f"all blocking criteria combined: {said}"


def test_an_excuse_says_until_when_whose_it_is_and_why() -> None:
    quarantine = Excused(
        kind="quarantined", named="x", owner="search", reason="slow", until="2026-12-01"
    )
    assert report_phrases.excuse(quarantine) == "quarantined until 2026-12-01 (owner: search): slow"
    over = Excused(kind="accepted", named="x", until="2026-01-31", expired=True)
    assert report_phrases.excuse(over) == "acceptance expired on 2026-01-31"


BASE = "greets pass 0.9 was 0.9"


def on_branch(report: Report, branch: str | None) -> Report:
    return report.model_copy(update={"meta": report.meta.model_copy(update={"branch": branch})})


@pytest.mark.parametrize(
    ("steps", "base", "own", "said"),
    [
        (0, "main", None, "the merge base with main"),
        (1, "main", None, "1 commit before the merge base with main"),
        (3, "main", "topic", "3 commits before the merge base with main"),
        (None, "main", None, "not an ancestor of the merge base with main"),
        (None, None, None, ""),
        (0, "main", "main", ""),
        (1, "main", "main", "1 newer commit has no run"),
        (3, "main", "main", "3 newer commits have no run"),
        (2, None, None, "2 newer commits have no run"),
    ],
)
def test_the_place_of_the_baseline_is_told(
    steps: int | None, base: str | None, own: str | None, said: str
) -> None:
    report = compared(make_report(BASE), baseline_distance=steps, baseline_branch=base)
    assert report_phrases.distance(on_branch(report, own)) == said


def test_a_baseline_of_the_same_commit_is_told_as_that() -> None:
    report = make_report(BASE)
    report = compared(report, baseline_commit=report.meta.commit, baseline_branch="main")
    assert report_phrases.distance(report) == "same commit as this run"


def test_nothing_is_told_of_a_place_outside_a_repository() -> None:
    report = compared(make_report(BASE), baseline_branch="main")
    meta = report.meta.model_copy(update={"commit": None})
    assert report_phrases.distance(report.model_copy(update={"meta": meta})) == ""
    assert report_phrases.distance(make_report("greets pass 0.9")) == ""


@pytest.mark.parametrize(("steps", "told"), [(0, False), (1, True), (None, True)])
def test_a_shallow_clone_matters_where_the_exact_commit_was_not_found(
    steps: int | None, *, told: bool
) -> None:
    report = compared(make_report(BASE), shallow=True, baseline_distance=steps)
    assert report.comparison
    assert report_phrases.shallow(report.comparison) is told


def test_in_a_shallow_clone_a_run_elsewhere_may_be_an_ancestor() -> None:
    report = compared(make_report(BASE), shallow=True, baseline_branch="main")
    assert report_phrases.distance(report) == (
        "perhaps not an ancestor of the merge base with main"
    )


@pytest.mark.parametrize(
    ("rounds", "confirming", "said"),
    [
        (0, 0, ""),
        (1, 0, "Compared after 1 rerun"),
        (0, 1, "Compared after 1 confirming trial"),
        (2, 12, "Compared after 2 reruns and 12 confirming trials"),
    ],
)
def test_what_was_drawn_again_is_told(rounds: int, confirming: int, said: str) -> None:
    report = compared(make_report(BASE), rounds=rounds, confirming=confirming)
    assert report.comparison
    assert report_phrases.drawn(report.comparison) == said


def test_the_baseline_is_one_line_of_a_log() -> None:
    report = compared(make_report(BASE), baseline_distance=0, baseline_branch="main")
    assert report_phrases.baseline(report) == (
        "run run-1 of commit fedcba9876, 2026-03-02, the merge base with main, "
        "pooled with 1 other run"
    )
    assert report_phrases.baseline(make_report("greets pass 0.9")) == ""


USED = ModelUsage(calls=240, input_tokens=100_000, output_tokens=20_400, cost_usd=0.35)
BEFORE = USED.model_copy(update={"calls": 200, "cost_usd": 0.31})


@pytest.mark.parametrize(
    ("usage", "base", "base_trials", "said"),
    [
        (USED, None, 0, "240 model calls, 120k tokens, $0.35"),
        (USED, BEFORE, 24, "240 model calls, 120k tokens, $0.35; baseline: $0.31"),
        (
            USED,
            BEFORE,
            20,
            "240 model calls, 120k tokens, $0.35; $0.0146 a trial, baseline: $0.0155 a trial",
        ),
        (
            USED.model_copy(update={"replayed": 240}),
            BEFORE,
            24,
            "240 model calls (240 replayed), 120k tokens, $0.35; baseline: $0.31",
        ),
        (
            USED.model_copy(update={"unpriced": 240, "cost_usd": 0.0}),
            BEFORE,
            24,
            (
                "240 model calls, 120k tokens, 240 calls without a known price "
                "(set models.prices); baseline: 120k tokens"
            ),
        ),
        (
            USED.model_copy(update={"errors": 2, "retries": 1, "faults": 12}),
            None,
            24,
            (
                "240 model calls, 120k tokens, $0.35, 2 answers with an error, 1 retry, "
                "12 injected faults"
            ),
        ),
        (
            USED,
            BEFORE.model_copy(update={"unpriced": 1}),
            20,
            (
                "240 model calls, 120k tokens, $0.35; "
                "5,017 tokens a trial, baseline: 6,020 tokens a trial"
            ),
        ),
        (ModelUsage(), None, 0, "0 model calls, 0 tokens, $0.00"),
    ],
)
def test_calls_of_models_are_compared_by_trial_where_the_numbers_differ(
    usage: ModelUsage, base: ModelUsage | None, base_trials: int, said: str
) -> None:
    found = Metered(usage=usage, trials=24, baseline=base, baseline_trials=base_trials)
    assert report_phrases.model_calls(found) == said
