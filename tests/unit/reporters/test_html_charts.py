"""Charts: where their points and bars are."""

import pytest

from ci_eval.reporters._html_charts import HEIGHT, bars_of


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
