"""How sequences match: a table by hand, and laws that hold for all."""

import json
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.criteria import _sequence_scores
from ci_eval.criteria._sequence_scores import MatchType, as_key, longest_common, matches, share
from ci_eval.records.errors import TrialError

KINDS: tuple[MatchType, ...] = get_args(MatchType)

sequences = st.text("abc", max_size=7)
kinds = st.sampled_from(KINDS)


@pytest.mark.parametrize(
    ("expected", "actual", "exact", "in_order", "any_order"),
    [
        ("", "", 1.0, 1.0, 1.0),
        ("", "a", 0.0, 1.0, 1.0),
        ("a", "", 0.0, 0.0, 0.0),
        ("ab", "ab", 1.0, 1.0, 1.0),
        ("ab", "abc", 2 / 3, 1.0, 1.0),
        ("ab", "xab", 2 / 3, 1.0, 1.0),
        ("ab", "ba", 1 / 2, 1 / 2, 1.0),
        ("abc", "xbc", 2 / 3, 2 / 3, 2 / 3),
        ("aa", "a", 1 / 2, 1 / 2, 1 / 2),
        ("aab", "abb", 2 / 3, 2 / 3, 2 / 3),
        ("abcd", "dcba", 1 / 4, 1 / 4, 1.0),
        ("ab", "xyz", 0.0, 0.0, 0.0),
    ],
)
def test_the_share_is_what_a_hand_count_gives(
    expected: str, actual: str, exact: float, in_order: float, any_order: float
) -> None:
    shares = [share(expected, actual, kind) for kind in KINDS]

    assert shares == [exact, in_order, any_order]


@given(sequences, sequences, kinds)
def test_a_share_is_whole_exactly_where_all_matches(
    expected: str, actual: str, kind: MatchType
) -> None:
    found = share(expected, actual, kind)

    assert 0.0 <= found <= 1.0
    assert (found == 1.0) is matches(expected, actual, kind)


@given(sequences, kinds)
def test_a_sequence_matches_itself(sequence: str, kind: MatchType) -> None:
    assert matches(sequence, sequence, kind)


@given(sequences, sequences)
def test_a_stricter_type_never_gives_more(expected: str, actual: str) -> None:
    strict = [matches(expected, actual, kind) for kind in KINDS]
    partial = [share(expected, actual, kind) for kind in KINDS]

    assert strict == sorted(strict)
    assert partial == sorted(partial)


@given(sequences, sequences, st.integers(0, 7), st.sampled_from("abcx"))
def test_doing_more_never_lowers_what_allows_others(
    expected: str, actual: str, at: int, more: str
) -> None:
    longer = actual[:at] + more + actual[at:]

    for kind in KINDS[1:]:
        assert share(expected, longer, kind) >= share(expected, actual, kind)


@given(sequences, sequences)
def test_any_order_does_not_know_the_order(expected: str, actual: str) -> None:
    found = share(expected, actual, "ANY_ORDER")

    assert share(expected[::-1], "".join(sorted(actual)), "ANY_ORDER") == found


@given(sequences, sequences)
def test_the_longest_common_subsequence_is_that_of_the_textbook(one: str, other: str) -> None:
    @cache
    def by_definition(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if one[i - 1] == other[j - 1]:
            return by_definition(i - 1, j - 1) + 1
        return max(by_definition(i - 1, j), by_definition(i, j - 1))

    assert longest_common(one, other) == by_definition(len(one), len(other))


def test_thousands_of_elements_are_compared_at_once() -> None:
    many = [*range(10_000), *range(10_000)]

    # Twice up against twice down: each run has one element in common with a run of the other,
    # and of the four pairs of runs three can follow one another.
    assert longest_common(many, many[::-1]) == 3
    assert longest_common(many, list(range(0, 10_000, 3))) == 3334


def test_more_than_can_be_compared_in_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sequence_scores, "MAX_ORDERED", 3)

    with pytest.raises(TrialError, match="of more than 3 elements have no partial score"):
        share("ab", "abcd", "EXACT")
    assert share("ab", "abcd", "ANY_ORDER") == 1.0
    assert matches("abcd", "abcd", "EXACT")


# --- Keys -----------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0, 0.5])
values = st.recursive(
    scalars | st.sampled_from(["", "a", "1"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(values, values)
def test_keys_are_equal_where_the_values_are(one: Any, other: Any) -> None:
    same = as_key(one) == as_key(other)

    assert same is (one == other)
    assert not same or hash(as_key(one)) == hash(as_key(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [([], {}), ("", None), ([], ""), ("1", 1), ([1, 2], [2, 1]), ([["a", 1]], {"a": 1})],
)
def test_values_of_different_kinds_have_different_keys(one: Any, other: Any) -> None:
    assert as_key(one) != as_key(other)


def test_deeply_nested_values_have_keys() -> None:
    deep = json.loads('{"a": [' * 100 + "]}" * 100)

    assert as_key(deep) == as_key(json.loads(json.dumps(deep)))
