"""Numbers are read as people write them, and compared within a tolerance."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting, value_of, value_on

from ci_eval.criteria._numbers_in_text import near, numbers
from ci_eval.criteria.ci_text import Numeric


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("42", ["42"]),
        ("It is 5.", ["5"]),
        ("3, 4 and 5", ["3", "4", "5"]),
        ("[1,2,3]", ["1", "2", "3"]),
        ("1,234.5", ["1234.5"]),
        ("12,345,678", ["12345678"]),
        ("1,234,5678", ["1", "234", "5678"]),
        ("1'234.5 1\u2019234", ["1234.5", "1234"]),
        ("1\u202f234 1\u00a0234", ["1234", "1234"]),
        ("1 234", ["1", "234"]),
        ("-3 \u22123 +3", ["-3", "-3", "3"]),
        ("5-3 x-5", ["5", "3", "5"]),
        ("2024-05-06", ["2024", "5", "6"]),
        ("(-5)", ["-5"]),
        ("$1,234.50 -$5 $-5 5\u20ac", ["1234.5", "-5", "-5", "5"]),
        ("12 % 12%", ["12", "12"]),
        ("1.5e3 1E-2", ["1500", "0.01"]),
        ("5e 1e9999", ["5", "1"]),
        (".5 -.5", ["0.5", "-0.5"]),
        ("7kg 3rd", ["7", "3"]),
        ("H2O H20 GPT_4 v2", []),
        ("价格是5元", ["5"]),
        ("version 1.2.3", ["1.2"]),
        ("٣ \uff15 ½", []),
        ("", []),
    ],
)
def test_numbers_are_found_as_people_write_them(text: str, found: list[str]):
    assert list(numbers(text)) == [Decimal(each) for each in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [("1.234,5", ["1234.5"]), ("3,5 2", ["3.5", "2"]), ("1.234.567", ["1234567"])],
)
def test_a_comma_may_stand_before_the_fraction(text: str, found: list[str]):
    assert list(numbers(text, ",")) == [Decimal(each) for each in found]


@given(st.integers(-(10**15), 10**15), st.integers(0, 99))
def test_a_number_is_read_back_however_it_is_grouped(whole: int, cents: int):
    amount = Decimal(f"{whole}.{cents:02}")

    assert list(numbers(f"= {amount:,} in all")) == [amount]
    assert list(numbers(f"= {amount} in all")) == [amount]
    swapped = f"{amount:,}".translate(str.maketrans(",.", ".,"))
    assert list(numbers(swapped, ",")) == [amount]


@pytest.mark.parametrize(
    "text", ["9" * 300_000, "1," * 100_000, "1,111" * 100_000, "-1e" * 100_000]
)
def test_numbers_of_any_length_are_compared(text: str):
    found = list(numbers(text))

    assert found
    assert near(found[0], found[0], tolerance=0, relative=0)
    assert not near(found[0], Decimal(2), tolerance=0.5, relative=0)


@pytest.mark.parametrize(
    ("options", "response", "value"),
    [
        ({"value": 7}, "It is 7.", 1.0),
        ({"value": 7}, "7 or 8", 0.0),
        ({"value": 7, "pick": "first"}, "7 or 8", 1.0),
        ({"value": 7, "pick": "any"}, "6, 7 or 8", 1.0),
        ({"value": 7, "pick": "any"}, "6 or 8", 0.0),
        ({"value": 7}, "seven", 0.0),
        ({"value": 0.3}, "0.30", 1.0),
        ({"value": 1.0, "tolerance": 0.1}, "1.1", 1.0),  # not so in binary fractions
        ({"value": 1.0, "tolerance": 0.1}, "0.9", 1.0),
        ({"value": 1.0, "tolerance": 0.1}, "1.11", 0.0),
        ({"value": -200, "relative": 0.01}, "-202", 1.0),
        ({"value": -200, "relative": 0.01}, "-202.1", 0.0),
        ({"value": 0, "relative": 0.5}, "0.1", 0.0),
        ({"value": 100, "relative": 0.01, "tolerance": 5}, "105", 1.0),
        ({"value": 100, "relative": 0.1, "tolerance": 5}, "110", 1.0),
        ({"value": 1234.5, "decimal_mark": ","}, "1.234,5", 1.0),
    ],
)
def test_a_number_is_near_enough_or_not(options: dict[str, Any], response: str, value: float):
    assert value_on(Numeric.model_validate(options), "before 7", response) == value


def test_without_a_value_the_numbers_of_the_expected_responses_count():
    case = expecting("In 2024 it was 7.", "No idea", "8 at most")
    score = Numeric(threshold=0.5).score(case, did("7", "5", "9"))

    assert [part.value for part in score.invocations] == [1.0, None, 0.0]
    assert score.value == 0.5
    assert score.invocations[2].evidence == {
        "expected_number": "8",
        "numbers": ["9"],
        "actual": "9",
    }
    assert Numeric(pick="first").score(case, did("2024", "5", "8")).value == 1.0


@pytest.mark.parametrize(("response", "value"), [("7, not 6", 1.0), ("6", 0.0), ("8", 0.0)])
def test_any_number_may_be_the_last_one_that_is_expected(response: str, value: float):
    assert value_of(Numeric(pick="any"), expecting("First 6, then 7."), response) == value


def test_a_case_that_expects_no_number_lacks_one():
    assert Numeric().lacks(expecting("none", "at all")) == "expects no number"
    assert Numeric().lacks(SCENARIO) == "expects no number"
    assert Numeric(value=0).lacks(SCENARIO) == ""
    assert Numeric().lacks(expecting("none", "0")) == ""


@pytest.mark.parametrize("option", ["tolerance", "relative"])
def test_a_tolerance_is_not_negative(option: str):
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Numeric.model_validate({option: -0.1})


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite, finite.map(abs), finite.map(abs), st.sampled_from(["tolerance", "relative"]))
def test_more_tolerance_never_takes_a_number_away(
    value: float, said: float, less: float, more: float, option: str
):
    strict, lenient = (
        Numeric.model_validate({"value": value, option: each}) for each in sorted((less, more))
    )

    assert value_on(strict, repr(said)) <= value_on(lenient, repr(said))


@pytest.mark.parametrize("number", [2**53 + 1, 12345678901234567, -(10**400)])
def test_a_number_that_no_float_holds_is_expected_exactly(number: int):
    criterion = Numeric(value=number)

    assert criterion.score(SCENARIO, did(f"It is {number}.")).value == 1.0
    assert criterion.score(SCENARIO, did(f"It is {number + 1}.")).value == 0.0
    assert Numeric(value=42).model_dump_json() == Numeric(value=42.0).model_dump_json()
