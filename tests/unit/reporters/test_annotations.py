import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.report_language import GROUP, make_report, make_results, streamed

from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.findings import Reason, Report
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Failure
from ci_eval.reporters.annotations import Annotations


def lines(text: str, report: Report | None = None) -> list[str]:
    shown = report or make_report(text)
    return "".join(Annotations().render(shown, streamed(make_results(text)))).splitlines()


def test_nothing_is_said_of_a_pass() -> None:
    assert lines("greets pass 0.9 was 0.9 / refunds fail 0.1 was 0.1 / asks skip") == []


def test_a_regression_is_an_error_at_its_case() -> None:
    verdict, regression = lines("greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95")
    assert verdict == "::error title=shop failed::quality on smoke with support regressed by 0.375"
    assert regression == (
        "::error file=evals/smoke.evalset.json,line=20,title=refunds%3A regressed::"
        "quality regressed from 0.950 to 0.200: 3 of 3 trials fail, 0 of 15 in the baseline"
    )


def test_what_is_suspected_is_a_warning_and_what_noise_does_is_nothing() -> None:
    (warning,) = lines("greets fail 0.2 was 0.9 noise / refunds fail 0.2 was 0.95 maybe")
    assert warning == (
        "::warning file=evals/smoke.evalset.json,line=20,title=refunds%3A possible "
        "regression%2C may be noise::quality is 0.200, below 0.8; possible regression: "
        "3 of 3 trials fail, 0 of 15 in the baseline"
    )


def test_a_regression_of_a_criterion_that_only_warns_is_a_warning() -> None:
    text = "greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95"
    report = make_report(text)
    comparison = report.comparison
    assert comparison
    (delta,) = comparison.deltas
    comparison = comparison.model_copy(
        update={"deltas": (delta.model_copy(update={"tier": "warn"}),)}
    )
    found = lines(text, report.model_copy(update={"comparison": comparison}))
    assert [line.partition(" ")[0] for line in found] == ["::error", "::warning"]
    assert found[1].endswith("0 of 15 in the baseline, only warns")


def test_what_is_excused_is_no_annotation() -> None:
    text = "greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95 maybe"
    report = make_report(text)
    comparison = report.comparison
    assert comparison
    changes = [c.model_copy(update={"excused": "quarantined"}) for c in comparison.changes]
    comparison = comparison.model_copy(update={"changes": tuple(changes)})
    assert lines(text, report.model_copy(update={"comparison": comparison})) == []


def test_by_thresholds_every_failure_is_an_error() -> None:
    verdict, failure = lines("greets pass 0.9 / refunds fail 0.2")
    assert verdict == "::error title=shop failed::1 of 2 cases failed"
    assert failure.endswith("title=refunds%3A failed::quality is 0.200, below 0.8")


def test_what_could_not_be_measured_is_a_warning() -> None:
    verdict, warning = lines("greets pass 0.9 / refunds error")
    assert verdict == "::error title=shop has no verdict::1 of 2 cases could not be measured"
    assert warning.endswith("title=refunds%3A not measured::no answer within 120 s")


def test_warnings_of_the_verdict_are_one_warning() -> None:
    reasons = [Reason(severity="warns", message=f"warning {n}", group=GROUP) for n in range(3)]
    (warning,) = lines("a pass 1.0", make_report("a pass 1.0", reasons=reasons))
    assert warning == "::warning title=shop passed::warning 0; warning 1; warning 2"


@pytest.mark.parametrize("count", [9, 10, 1_000])
def test_the_last_of_ten_says_how_many_more(count: int) -> None:
    text = " / ".join(
        [f"c{n} fail 0.1" for n in range(count)] + [f"e{n} error" for n in range(count + 1)]
    )
    found = lines(text)
    errors = [line for line in found if line.startswith("::error ")]
    warnings = [line for line in found if line.startswith("::warning ")]
    assert len(errors) == 10
    assert len(warnings) == 10
    assert ("more, see junit.xml" in errors[-1]) is (count > 9)
    if count > 9:
        # The verdict is one of them.
        assert errors[-1] == f"::error title=ci-eval::{count + 1 - 9:,} errors more, see junit.xml"
        assert warnings[-1].endswith(f"::{count + 1 - 9:,} warnings more, see junit.xml")


def test_a_case_with_repeats_is_one_annotation() -> None:
    (result,) = make_results("refunds error")
    again = result.model_copy(update={"key": result.key.model_copy(update={"repeat": 1})})
    found = "".join(Annotations().render(make_report("refunds error"), streamed([result, again])))
    assert found.count("::warning") == 1


def test_an_evalset_that_nobody_knows_has_no_file() -> None:
    report = make_report("refunds error")
    meta = report.meta.model_copy(update={"evalsets": {}})
    assert lines("refunds error", report.model_copy(update={"meta": meta}))[1].startswith(
        "::warning title="
    )


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=3, max_size=3))
def test_any_text_is_one_command_a_line(texts: list[str]) -> None:
    name, message, path = texts
    report = make_report("refunds error", suite=message)
    meta = report.meta.model_copy(
        update={"evalsets": {"smoke": EvalSet(eval_set_id="x", path=path, format="adk")}}
    )
    (plain,) = make_results("refunds error")
    result = TrialResult.model_validate(
        {
            **plain.model_dump(),
            "key": {**plain.key.model_dump(), "case": name},
            "error": {"kind": "raised", "message": message * 1_000},
        }
    )
    text = "".join(
        Annotations().render(report.model_copy(update={"meta": meta}), streamed([result]))
    )
    assert len(text.splitlines()) == 2
    for line in text.splitlines():
        assert re.match(r"::(error|warning) (file=[^,:]*,line=10,)?title=[^,:]*::", line)
        assert len(line.split("::", 2)[2]) <= 4_096
    text.encode()


def test_an_agent_that_cannot_start_is_one_warning_with_the_number_of_its_cases() -> None:
    text = " / ".join(f"c{n} error" for n in range(50))
    error = Failure(kind="start", message="cannot load 'a:b': no key\nat 10:01")
    results = [each.model_copy(update={"error": error}) for each in make_results(text)]
    found = "".join(Annotations().render(make_report(text), streamed(results))).splitlines()
    verdict, warning = found
    assert verdict.startswith("::error ")
    assert "title=c0%3A not measured (and 49 other cases)::cannot load 'a:b': no key" in warning
