"""The stored runs, as they are shown."""

from support.run_language import FACTS, columns, meta, past

from ci_eval.cli.baseline.command_output import show_runs, shown_runs
from ci_eval.forge.lineage import Lineage
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.score_table import Past

DAY_LATER = 1_767_225_600.0 + 86_400
"""2026-01-02, as a Unix time."""


def test_a_run_is_seen_from_what_is_checked_out():
    commits = ("c" * 40, "b" * 40, "a" * 40)
    (only,) = shown_runs(
        Baseline([Past(meta(commit="a" * 40), columns("x 1\ny 0"))], Lineage(commits, "main")),
        DAY_LATER,
    )

    assert (only.distance, only.age_s) == (2, 86_400.0)
    assert (only.cases.passed, only.cases.failed) == (1, 1)
    assert only.groups[0].value == 0.5


def test_a_run_of_the_future_or_of_no_known_time_has_no_strange_age():
    runs = [Past(meta(created=created), columns("x 1")) for created in ("2027-01-01", "never")]

    assert [each.age_s for each in shown_runs(Baseline(runs), DAY_LATER)] == [0.0, None]


def test_the_trend_goes_from_the_oldest_to_the_nearest(capsys):
    runs = past(*(f"x 0.{number}" for number in range(7, 0, -1)))
    show_runs(shown_runs(Baseline(runs), DAY_LATER), Lineage(base="main", shallow=True), "suite")

    said = capsys.readouterr().out
    # Five means, and a trend over all seven.
    assert "0.700  +0.600  … 0.300 0.400 0.500 0.600 0.700" in said
    assert "7 runs of 'suite', looked for on 'main'" in said
    assert "the clone is shallow" in said


def test_a_criterion_that_measured_nothing_has_no_mean(capsys):
    show_runs(shown_runs(Baseline(past("x skip", facts=FACTS)), DAY_LATER), Lineage(), "suite")

    assert "a      e        c          -     -      -" in capsys.readouterr().out
