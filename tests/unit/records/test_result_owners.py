"""Tool results belong to the right call, or to none."""

import pytest
from support.case_language import did

from ci_eval.records.cases import FunctionCall, FunctionResponse
from ci_eval.records.result_owners import result_owners


def owners(calls: str, results: str) -> list[int | None]:
    """Return the owners of results; each word is `name`, `name#id` or `#id`."""
    asked, told = (
        [
            {"name": name or None, "id": identity or None}
            for name, _, identity in (word.partition("#") for word in words.split())
        ]
        for words in (calls, results)
    )
    return result_owners(
        [FunctionCall.model_validate(each) for each in asked],
        [FunctionResponse.model_validate(each) for each in told],
    )


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        ("a#1 b#2", "b#2 a#1", [1, 0]),
        ("a#1 b#2", "#2", [1]),
        ("a#1 b#2", "b#2 a#1 a#1", [1, 0, 0]),
        ("a b", "a b", [0, 1]),
        ("a b", "b a", [1, 0]),
        ("a b a", "a a b", [0, 2, 1]),
        ("a#1 b#1", "b#1 a#1", [1, 0]),
        ("a#1 a#1", "a#1 a#1", [0, 1]),
        ("a#1 b#1 c#2", "#1 c#2 #1", [0, 2, 1]),
        ("a#1 a#2", "a a", [0, 1]),
        ("a#1 b b", "b a#1 b", [1, 0, 2]),
        ("a b", "b", [1]),
    ],
)
def test_a_result_belongs_to_the_call_that_its_id_its_name_or_the_order_identifies(
    calls: str, results: str, expected: list[int | None]
):
    assert owners(calls, results) == expected


@pytest.mark.parametrize(
    ("calls", "results"),
    [
        ("a a", "a"),
        ("a#1 a#1", "a#1"),
        ("a#1 b#1", "#1"),
        ("a b", "b #"),
        ("a#1 b#2", "c#3"),
        ("a b", "a#1"),
        ("a", "b"),
        ("", "a"),
    ],
)
def test_a_result_whose_call_nothing_identifies_belongs_to_none(calls: str, results: str):
    found = owners(calls, results)
    assert found == [None] * len(found)


def test_an_invocation_shows_each_result_at_its_call():
    uses = [{"name": "weather"}, {"name": "price"}]
    results = [
        {"name": "weather", "response": {"error": "down"}},
        {"name": "price", "response": {"eur": 25}},
    ]
    data = {"tool_uses": uses, "tool_responses": results}
    (found,) = did({"intermediate_data": data}).invocations

    assert [call.result for call in found.tool_calls] == [{"error": "down"}, {"eur": 25}]
