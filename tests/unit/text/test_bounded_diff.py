"""Differences between two sequences, found in a bounded time."""

from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.text import bounded_diff
from ci_eval.text.bounded_diff import MAX_PAIRS, BoundedMatcher

SEQUENCES = st.lists(st.sampled_from("abc"), max_size=8)


@given(SEQUENCES, SEQUENCES)
def test_ordinary_sequences_are_compared_as_difflib_does(before, after):
    expected = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert BoundedMatcher(before, after).get_opcodes() == expected


def with_many_pairs(monkeypatch: pytest.MonkeyPatch, before, after):
    monkeypatch.setattr(bounded_diff, "MAX_PAIRS", 0)
    return BoundedMatcher(before, after)


@pytest.mark.parametrize(
    ("before", "after", "tags"),
    [
        ("abxcd", "abycd", ["equal", "replace", "equal"]),
        ("xa", "ya", ["replace", "equal"]),
        ("aaa", "aaa", ["equal"]),
        ("aa", "aaa", ["equal", "insert"]),
        ("axbxc", "aybyc", ["equal", "replace", "equal"]),
    ],
)
def test_with_too_many_equal_elements_only_the_ends_match(monkeypatch, before, after, tags):
    found = with_many_pairs(monkeypatch, before, after).get_opcodes()

    assert [tag for tag, *_ in found] == tags
    assert all(before[a:b] == after[c:d] for tag, a, b, c, d in found if tag == "equal")
    assert (found[0][1], found[-1][2], found[-1][4]) == (0, len(before), len(after))
    assert all(one[2] == other[1] and one[4] == other[3] for one, other in pairwise(found))


def test_a_repeated_word_does_not_take_minutes():
    # Takes longer than any test may, if each pair of equal words is looked at.
    before, after = ["a"] * 20_000, ["a", "b"] * 20_000
    assert len(before) * len(before) > MAX_PAIRS
    assert 0 < BoundedMatcher(before, after).ratio() < 0.1
