"""The stored runs, as they are shown."""

import pytest
from support.run_language import FACTS, columns, meta, past

from ci_eval.cli.baseline.baseline_command_output import show_runs, shown_runs
from ci_eval.forge.lineage import Lineage
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past

DAY_LATER = 1_767_225_600.0 + 86_400
"""2026-01-02, as a Unix time."""


def test_a_run_is_seen_from_what_is_checked_out():
    commits = ("c" * 40, "b" * 40, "a" * 40)
    (only,) = shown_runs(
        Baseline([Past(meta(commit="a" * 40), columns("x 1\ny 0"))], Lineage(commits, "main")),
        "s",
        DAY_LATER,
    )

    assert (only.distance, only.age_s) == (2, 86_400.0)
    assert (only.cases.passed, only.cases.failed) == (1, 1)
    assert only.groups[0].value == 0.5


def test_a_run_of_the_future_or_of_no_known_time_has_no_strange_age():
    runs = [Past(meta(created=created), columns("x 1")) for created in ("2027-01-01", "never")]

    assert [each.age_s for each in shown_runs(Baseline(runs), "suite", DAY_LATER)] == [0.0, None]


def test_the_trend_goes_from_the_oldest_to_the_nearest(capsys):
    runs = past(*(f"x 0.{number}" for number in range(7, 0, -1)))
    show_runs(
        shown_runs(Baseline(runs), "suite", DAY_LATER), Lineage(base="main", shallow=True), "suite"
    )

    said = capsys.readouterr().out
    # Five means, and a trend over all seven.
    assert "0.700  +0.600  … 0.300 0.400 0.500 0.600 0.700" in said
    assert "a change with base branch 'main' would be compared with 7 of 7 stored runs" in said
    assert "the clone is shallow" in said


def test_a_criterion_that_measured_nothing_has_no_mean(capsys):
    show_runs(
        shown_runs(Baseline(past("x skip", facts=FACTS)), "suite", DAY_LATER), Lineage(), "suite"
    )

    assert "a      e        c          -     -      -" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shallow", "why"),
    [
        (False, "not an ancestor of the merge base"),
        (True, "unknown whether it is an ancestor, as the clone is shallow"),
    ],
)
def test_a_run_that_is_not_compared_says_why(capsys, shallow, why):
    commits = ("c" * 40, "b" * 40)
    own, old, other = (
        note(Past(meta(run_id=name, commit=commit), columns("x 1")))
        for name, commit in (("own", "d" * 40), ("old", "b" * 40), ("other", "e" * 40))
    )
    near = Past(meta(run_id="near", commit="c" * 40), columns("x 1"))
    lineage = Lineage(commits, "main", own="d" * 40, shallow=shallow)
    show_runs(
        shown_runs(Baseline([near], lineage, (own, old, other)), "suite", DAY_LATER),
        lineage,
        "suite",
    )

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:5]] == ["near", "own", "old", "other"]
    assert lines[1].endswith("  yes")
    assert lines[2].endswith("  no: of this commit itself")
    assert lines[3].endswith("  no: enough runs are nearer")
    assert lines[4].endswith(f"  no: {why}")
    assert lines[-1 - shallow].endswith("would be compared with 1 of 4 stored runs of 'suite'")
