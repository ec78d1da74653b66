"""Charts: where their points and bars are."""

import pytest
from support.report_language import make_report

from ci_eval.reporters._criteria_rows import rows_of
from ci_eval.reporters._html_charts import HEIGHT, bars_of, line_of
from ci_eval.reporters._score_history import Trend


@pytest.mark.parametrize(
    ("values", "interval", "counts"),
    [
        ([0.0, 0.05, 1.0], (0.0, 1.0), (2, 0, 0, 0, 0, 0, 0, 0, 0, 1)),
        ([3.0, 3.0], None, (2, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        ([10.0, 20.0, 14.9], None, (1, 0, 0, 0, 1, 0, 0, 0, 0, 1)),
    ],
)
def test_cases_are_counted_in_ten_bars(
    values: list[float], interval: tuple[float, float] | None, counts: tuple[int, ...]
) -> None:
    assert bars_of(values, interval).counts == counts


def test_one_case_among_thousands_has_a_bar() -> None:
    found = bars_of([0.0, *[1.0] * 5000], (0.0, 1.0))
    assert 0 < found.heights[0] < found.heights[-1] == HEIGHT


def test_the_band_lies_around_the_earlier_runs() -> None:
    [row] = rows_of(make_report("greets pass 0.9 was 0.9"))
    trend = Trend(row, (0.7, 0.8, None, 0.7, 0.8, 0.75, 0.2), (0.0, 1.0))
    low, high = trend.band or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.65, 0.85))
    line = line_of(trend)
    assert line.band is not None
    top, height = line.band
    assert 0 < top < top + height < line.last[1]
    assert Trend(row, trend.values[2:], (0.0, 1.0)).band is None
    assert Trend(row, (1.0, 0.5, 1.0, 1.0, 1.0, 1.0), (0.0, 1.0)).band == (
        pytest.approx(0.4528, abs=1e-4),
        1.0,
    )
    steady = line_of(Trend(row, (0.5,) * 6, (0.0, 1.0)))
    assert steady.band is not None
    assert steady.band[1] >= 1
