"""A comparison, as it is shown."""

import pytest
from support.run_language import make_run, past

from ci_eval.cli.gate.comparison_output import print_comparison, show_comparison
from ci_eval.config.config_schema import GateOptions
from ci_eval.records.comparisons import CaseChange, Comparison, GroupKey
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import collected_from
from ci_eval.run.report_assembly import compare_and_decide

CHANGE = CaseChange(
    group=GroupKey(agent="a", evalset="e", criterion="c"),
    case="x",
    change="newly_failing",
    value=0.0,
    baseline=1.0,
    failed=3,
    trials=3,
    trials_before=15,
)


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"suspected": True, "p_value": 0.0123}, ": suspected, p = 0.012"),
        ({"suspected": True, "p_value": 1.0}, ": suspected"),
        ({"certain": True, "p_value": 0.0001}, ": proven"),
        ({"certain": True, "excused": "accepted"}, ": proven; accepted"),
        ({"excused": "quarantined"}, "; quarantined"),
    ],
)
def test_a_case_is_told_with_how_sure_it_is(changes, end, capsys):
    line = shown(capsys, changes=(CHANGE.model_copy(update=changes),))[2]

    assert line.startswith("- x (c on e with a): fails now, 1.000 → 0.000; 3 of 3 trials fail")
    assert line.endswith(end)


def test_a_long_list_is_cut_and_says_so(capsys):
    said = shown(capsys, added=tuple(map(str, range(25))))

    assert said[:2] == ["", "added (25):"]
    assert said[21:23] == ["- 19", "… and 5 more; --json has all"]
    assert shown(capsys)[:2] == ["", "compared with before: 0 runs"]


def shown(capsys, **found):
    """Return the lines that show a comparison without criteria, below the heads of its table."""
    report = compared("a 1").model_copy(update={"comparison": Comparison(**found)})
    show_comparison(report, "before")
    return capsys.readouterr().out.splitlines()[1:]


def compared(text, *texts, **gate):
    return compare_and_decide(
        collected_from(make_run(text)),
        GateOptions(**{"on_inconclusive": "warn", **gate}),
        Baseline(past(*texts)),
    )


def test_everything_that_changed_beside_the_means_has_its_list(capsys):
    before = "a 1 0\nb 0 0\nold 1 1\nsame@1 1 1"
    excuse = {"case": "b", "owner": "me", "reason": "flaky", "until": "2025-01-01"}
    show_comparison(
        compared("a 0 0\nb 1 1\nnew 1 1\nsame@2 1 1", before, quarantine=[excuse]), "before"
    )

    said = capsys.readouterr().out
    for line in (
        "worse (1):\n- a (c on e with a): fails now, 0.500 → 0.000; 2 of 2 trials fail",
        "better (1):\n- b (c on e with a): passes now, 0.000 → 1.000",
        "added (1):\n- e/new",
        "in the baseline but not in this run (1):\n- case old on e",
        "not comparable (1):\n- case e/same: its content changed",
        "flaky (1):\n- a (c on e): fails 1 of 2 trials of the baseline",
        "exempt (1):\n- b (0 cases): quarantine expired on 2025-01-01",
        "compared with before: 1 run, made 2026-01-01",
    ):
        assert line in said


def test_where_nothing_was_compared_json_is_null(capsys):
    print_comparison(compared("a 1"))

    assert capsys.readouterr().out == "null\n"


def test_the_mean_now_is_that_of_the_measured_cases_and_its_change_a_bound(capsys):
    show_comparison(compared("a 0\nb 1\nc error\nd error", "a 1\nb 1\nc 1\nd 1"), "before")

    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == [
        "a",
        "e",
        "c",
        "1.000",
        "0.500",
        "≤",
        "\N{MINUS SIGN}0.250",
        "-",
        "0.500",
        "inconclusive",
    ]
