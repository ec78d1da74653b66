"""When to create a comment."""

import pytest
from support.report_language import make_report

from ci_eval.pull_requests.comment_options import Options, When, calls_for

SAME = "greets pass 0.9"
WORSE = "greets pass 0.9 / refunds fail 0.2 was 0.9"
UNMEASURED = "greets error"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        (SAME, {"always"}),
        (WORSE, {"always", "changes", "regression", "failure"}),
        (UNMEASURED, {"always", "changes", "regression", "failure"}),
    ],
)
def test_what_did_not_pass_always_calls_for_one_and_what_was_not_measured_did_not(
    text: str, called: set[When]
) -> None:
    report = make_report(text)
    every: tuple[When, ...] = ("always", "changes", "regression", "failure")
    assert {when for when in every if calls_for(report, when)} == called


def test_a_regression_that_blocks_nothing_calls_for_one_where_that_is_wanted() -> None:
    found = make_report(WORSE)
    report = found.model_copy(
        update={"verdict": found.verdict.model_copy(update={"outcome": "passed"})}
    )
    assert calls_for(report, "regression")
    assert calls_for(report, "changes")
    assert not calls_for(report, "failure")


def test_posting_is_off_only_where_no_check_run_is_wanted_either() -> None:
    assert Options("off").is_off
    assert not Options("off", check_run=True).is_off
    assert not Options("update").is_off
