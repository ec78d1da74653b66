from collections.abc import Callable

import pytest
from support.report_language import compared_in_full, make_report, make_results, streamed

from ci_eval.plugins.points import reporter
from ci_eval.records.findings import Metered, Reason
from ci_eval.records.model_usage import ModelUsage

REPORTS = {
    "passed": "greets pass 0.9 was 0.9 / refunds pass 0.95 was 0.85 / cancels fail 0.1 was 0.1",
    "regressed": (
        "greets pass 0.9 was 0.9 / refunds fail 0.2 was 0.95 / cancels pass 1.0 was 0.3 / "
        "returns fail 0.4 was 0.4 / tracks error / advises pass 0.9"
    ),
    "incomplete": "greets pass 0.9 was 0.9 / refunds error was 0.9 / cancels error was 0.8",
    "metered": "greets pass 0.9 was 0.9 / refunds pass 0.95 was 0.85",
    "first": "greets pass 0.9 / refunds fail 0.2 / cancels skip",
}
METERED = Metered(
    usage=ModelUsage(calls=240, input_tokens=100_000, output_tokens=20_400, cost_usd=0.35),
    trials=24,
    baseline=ModelUsage(calls=220, input_tokens=90_000, output_tokens=18_000, cost_usd=0.31),
    baseline_trials=24,
)
REASONS = {
    "regressed": [
        Reason(severity="warns", message="in the baseline but not in this run: case 'weighs'"),
        Reason(
            severity="info", message="1 case below a threshold (does not block in regression mode)"
        ),
    ]
}


@pytest.mark.parametrize("kind", ["markdown", "summary", "junit", "annotations"])
@pytest.mark.parametrize("name", REPORTS)
def test_whole_documents(name: str, kind: str, golden: Callable[[str, str], None]) -> None:
    report = make_report(REPORTS[name], reasons=REASONS.get(name, ()))
    if name == "regressed":
        report = compared_in_full(report)
    if name == "metered":
        report = report.model_copy(update={"metered": METERED})
    document = reporter[kind]()
    text = "".join(document.render(report, streamed(make_results(REPORTS[name]))))
    golden(f"{name}.{document.file}", text)
