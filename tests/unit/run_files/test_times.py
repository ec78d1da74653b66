"""Times in records, which may be anything."""

import pytest

from ci_eval.run_files.times import age_s, moment

NOW = 1_000_000_000.0


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("2001-09-09T01:46:30+00:00", 10.0),
        ("2001-09-09T01:46:30", 10.0),
        ("2001-09-09T02:46:30+01:00", 10.0),
        ("2001-09-09T01:46:50Z", 0.0),
    ],
)
def test_the_age_of_a_run_is_at_least_0_and_without_a_zone_utc(text: str, age: float) -> None:
    assert age_s(text, NOW) == age


@pytest.mark.parametrize("text", ["", "yesterday", "0001-01-01T00:00:00+05:00", "2001-13-01"])
def test_what_is_no_time_has_no_age(text: str) -> None:
    assert moment(text) is None
    assert age_s(text, NOW) is None
