"""Errors of providers: what they say, what they keep to themselves, and when to ask again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ci_eval.llm.providers.model_failures import Failures
from ci_eval.runtime.retry import retry_after, seconds

KEY = "sk-a-key-of-this-test"
NOW = 1_750_000_000.0
"""Sunday, 15 June 2025, 15:06:40 GMT."""


def failures(key: str = KEY) -> Failures:
    return Failures("m", "the key comes from THE_KEY", key)


@pytest.mark.parametrize(
    ("text", "after_s"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("Sun, 15 Jun 2025 15:07:10 GMT", 30.0),
        ("Sun, 15 Jun 2025 15:07:10 -0000", 30.0),
        ("Sun, 15 Jun 2025 15:00:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, after_s: float | None) -> None:
    assert retry_after({"Retry-After": text}, NOW) == after_s


def test_without_the_header_nothing_is_known() -> None:
    assert retry_after({}, NOW) is None


@given(st.text() | st.from_regex(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \S+", fullmatch=True))
def test_whatever_the_header_holds_the_time_is_not_before_now(text: str) -> None:
    after_s = retry_after({"Retry-After": text}, NOW)

    assert after_s is None or 0 <= after_s < float("inf")


@pytest.mark.parametrize(
    ("text", "found"), [("20.04466179s", 20.04466179), ("3s", 3.0), ("3m", None), (3, None)]
)
def test_a_duration_is_read(text: object, found: float | None) -> None:
    assert seconds(text) == found


@given(st.text(max_size=400), st.text(max_size=400))
def test_no_message_holds_the_key_nor_is_long(before: str, after: str) -> None:
    said = f"{before}{KEY}{after}"
    for found in (
        failures().refused(401, said, kind=said),
        failures().unreached(OSError(said)),
        failures().unreadable(ValueError(said), said),
        failures().unasked(said),
    ):
        assert KEY not in str(found)
        assert len(str(found)) < 500
        assert "\n" not in str(found)


def test_a_short_key_is_a_placeholder_and_no_secret() -> None:
    assert "it is empty" in str(failures("e").unreadable(ValueError("is empty")))


@pytest.mark.parametrize("status", [200, 204, 408, 409, 425, 500, 503, 529])
def test_what_may_be_better_in_a_while_passes(status: int) -> None:
    found = failures().refused(status, "No.")

    assert (found.passing, found.throttled) == (True, False)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422])
def test_what_is_the_same_in_a_while_does_not_pass(status: int) -> None:
    assert not failures().refused(status, "No.").passing


def test_exhausted_resources_throttle_whatever_the_code_is() -> None:
    assert failures().refused(503, "No.", kind="RESOURCE_EXHAUSTED").throttled


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert str(failures().unreached(TimeoutError())) == "'m' could not be reached: TimeoutError"


def test_a_body_of_another_shape_is_quoted() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_json('"x"')

    said = str(failures().unreadable(caught.value, '"x"'))
    wrong = "returned something other than an answer: it is not of the expected form"
    assert said == f"'m' {wrong}: \"x\""
