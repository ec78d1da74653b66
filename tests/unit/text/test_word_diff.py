"""Differences between two texts, word by word."""

import pytest

from ci_eval.text.word_diff import MAX_WORDS, word_diff


def marked(expected: str, actual: str) -> str:
    marks = {"same": "{}", "removed": "-{}-", "added": "+{}+"}
    return " ".join(
        marks[each.kind].format(" ".join(each.words)) for each in word_diff(expected, actual)
    )


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("a b c", "a b c", "a b c"),
        ("the door is locked", "the door is open", "the door is -locked- +open+"),
        ("on at\n half  power", "on at half power now", "on at half power +now+"),
        ("one two three", "four five six", "-one two three- +four five six+"),
        ("something", "", "-something-"),
        ("", "something", "+something+"),
        ("", "", ""),
    ],
)
def test_words_that_differ_are_marked(expected: str, actual: str, shown: str) -> None:
    assert marked(expected, actual) == shown


def test_only_the_beginning_of_a_long_text_is_compared() -> None:
    (found,) = word_diff("a " * MAX_WORDS + "b", "a " * MAX_WORDS + "c")
    assert found.kind == "same"
    assert len(found.words) == MAX_WORDS
