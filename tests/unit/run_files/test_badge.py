"""The badge: what it says, and that it is a picture whatever the suite is called."""

import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.findings import Counts
from ci_eval.run_files.badge import Badge

COUNTS = st.builds(Counts, **dict.fromkeys(("passed", "failed", "errors"), st.integers(0, 50)))


@pytest.mark.parametrize(
    ("passed", "failed", "errors", "message", "color"),
    [
        (5, 0, 0, "5/5 passed", "brightgreen"),
        (5, 0, 1, "5/5 passed, 1 error", "yellow"),
        (9, 1, 0, "9/10 passed", "yellow"),
        (89, 11, 2, "89/100 passed, 2 errors", "orange"),
        (1, 1, 0, "1/2 passed", "orange"),
        (1, 2, 0, "1/3 passed", "red"),
        (0, 0, 0, "nothing measured", "lightgrey"),
        (0, 0, 3, "nothing measured, 3 errors", "lightgrey"),
    ],
)
def test_a_badge_says_how_many_passed(
    passed: int, failed: int, errors: int, message: str, color: str
) -> None:
    found = Badge.of("shop", Counts(passed=passed, failed=failed, errors=errors))
    assert (found.label, found.message, found.color) == ("shop", message, color)
    assert json.loads(found.endpoint()) == {
        "schemaVersion": 1,
        "label": "shop",
        "message": message,
        "color": color,
    }


@given(COUNTS)
def test_only_what_was_measured_whole_and_passed_is_green(cases: Counts) -> None:
    green = Badge.of("shop", cases).color == "brightgreen"
    assert green == (cases.passed > 0 and not cases.failed and not cases.errors)


@given(st.text(), COUNTS)
def test_the_picture_shows_the_texts_whatever_they_are(suite: str, cases: Counts) -> None:
    found = Badge.of(suite, cases)
    root = ET.fromstring(found.svg())  # our own
    space = "{http://www.w3.org/2000/svg}"
    texts = [each.text or "" for each in root.iter(f"{space}text")]
    assert texts == [found.label, found.message]
    assert json.loads(found.endpoint())["label"] == found.label
    widths = [int(each.get("width", "")) for each in root.iter(f"{space}rect")]
    assert sum(widths) == int(root.get("width", ""))
    lengths = [int(each.get("textLength", "")) for each in root.iter(f"{space}text")]
    assert all(length < width for length, width in zip(lengths, widths, strict=True))


def test_a_name_is_text_and_no_markup() -> None:
    svg = Badge.of('<script>"&', Counts(passed=1)).svg()
    assert "<script" not in svg
    assert 'aria-label="&lt;script&gt;&quot;&amp;: 1/1 passed"' in svg


def test_a_long_name_is_cut() -> None:
    assert Badge.of("x" * 200, Counts()).label == "x" * 59 + "…"
    assert Badge.of("a\nb\x1bc", Counts()).label == "a b c"
