import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.report_language import GROUP, compared_in_full, make_report

from ci_eval.records.bounds import MAX_VALUE
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Noted, NotedGroup, Report
from ci_eval.reporters._criteria_rows import Row, rows_of
from ci_eval.reporters._score_history import MAX_CHARTS, MAX_RUNS, Trend, charted, trends

REPORT = make_report("greets pass 0.9 was 0.9")
(ROW,) = rows_of(REPORT)
BARS = "▁▂▃▄▅▆▇█"


def run(run_id: str, value: float | None, group: GroupKey = GROUP) -> Noted:
    return Noted(run_id=run_id, created="", groups=(NotedGroup(group=group, value=value),))


def trend(*values: float | None, interval: tuple[float, float] | None = (0.0, 1.0)) -> Trend:
    return Trend(ROW, values, interval)


def shown(*history: Noted, report: Report = REPORT) -> list[tuple[float | None, ...]]:
    report = report.model_copy(update={"history": history})
    return [each.values for each in trends(report, rows_of(report))]


def test_the_newest_run_is_at_the_right_and_this_one_behind_it() -> None:
    assert shown(run("b", 0.7), run("a", 0.5)) == [(0.5, 0.7, 0.9)]


def test_this_run_is_shown_once_though_it_is_stored_already() -> None:
    assert shown(run("run-2", 0.9), run("a", 0.5)) == [(0.5, 0.9)]


def test_a_run_that_did_not_measure_is_a_gap_unless_it_is_the_first() -> None:
    other = GROUP.model_copy(update={"criterion": "other"})
    history = (run("d", 0.7), run("c", None), run("b", 0.5), run("a", 0.1, other))
    assert shown(*history) == [(0.5, None, 0.7, 0.9)]
    assert trend(0.0, None, 1.0).sparkline == "▁·█"


def test_without_a_past_there_is_nothing_to_show() -> None:
    assert shown() == []
    assert shown(run("a", None)) == []
    assert shown(run("a", 0.5), report=make_report("greets error")) == []


def test_only_so_many_runs_are_shown() -> None:
    [values] = shown(*(run(f"r{n}", 1 / (n + 1)) for n in range(100)))
    assert len(values) == MAX_RUNS
    assert values[-2] == 1.0


def test_the_blocks_are_as_high_as_the_means() -> None:
    assert trend(*(n / 7 for n in range(8))).sparkline == BARS


def test_what_hardly_moved_looks_flat() -> None:
    assert set(trend(0.50, 0.51, 0.49).sparkline) <= set("▄▅")
    # At the end of the interval there is no room above it.
    assert trend(1.0, 0.99, 1.0).bounds == pytest.approx((0.8, 1.0))
    assert trend(0.0, 0.01).bounds == pytest.approx((0.0, 0.2))
    assert trend(100.0, 101.0, interval=None).bounds == pytest.approx((90.4, 110.6))


def test_a_chart_is_a_program_of_known_lines() -> None:
    assert trend(0.25, None, 1.0).chart.splitlines()[1:] == [
        "xychart-beta",
        '  title "quality on smoke with support"',
        '  x-axis "last runs, this run on the right" ["1", "2"]',
        '  y-axis "mean" 0.25 --> 1',
        "  line [0.25, 1]",
    ]


def test_only_what_regressed_has_a_chart_and_few_of_them() -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    found = list(trends(report, rows_of(report)))
    assert [each.row.summary.group.criterion for each in charted(found)] == ["quality"]
    assert len(charted(found * 9)) == MAX_CHARTS
    assert charted([trend(0.5, 0.6)]) == []


@given(st.lists(st.text(), min_size=3, max_size=3))
def test_no_name_can_leave_the_title_of_a_chart(names: list[str]) -> None:
    agent, evalset, criterion = names
    group = GroupKey(agent=agent, evalset=evalset, criterion=criterion)
    row: Row = replace(ROW, summary=ROW.summary.model_copy(update={"group": group}))
    lines = Trend(row, (0.5, 0.6), None).chart.splitlines()
    assert len(lines) == 6
    assert re.fullmatch(r'  title "[^"`<>&;%{}#\\]{0,63}"', lines[2])
    assert lines[0].count("%%") == 2


@given(
    st.lists(st.none() | st.floats(-MAX_VALUE, MAX_VALUE), max_size=40),
    st.floats(-MAX_VALUE, MAX_VALUE),
)
def test_any_numbers_make_lines_of_bounded_length(past: list[float | None], now: float) -> None:
    summary = REPORT.groups[0].model_copy(update={"value": now, "interval": None})
    history = tuple(run(f"r{n}", value) for n, value in enumerate(past))
    report = REPORT.model_copy(update={"groups": (summary,), "history": history})
    for each in trends(report, rows_of(report)):
        assert len(each.sparkline) == len(each.values) <= MAX_RUNS
        assert set(each.sparkline) <= {*BARS, "·"}
        assert len(each.chart) < 2_000
        assert not re.search(r"nan|inf|\de", each.chart.splitlines()[-1])
