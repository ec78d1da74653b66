"""The stemmer answers as NLTK's does, which is the reference for ADK's scores."""

import itertools
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.slow_imports import Later

from ci_eval.criteria import _porter_stemmer

nltk: Final = Later("nltk.stem.porter")
"""The reference of this whole file."""


@cache
def reference() -> Any:
    return nltk.PorterStemmer()


BEGINNINGS: Final = """
    a ag agr air apolog at b be bl bo c ca carr cl communi cr d defin di dr e el enjo eu f fal fl
    form fr g ge general gr happ hel hop hopp i imag in is k kn l m med motor n nat o op ph philos
    pl po prob quant r rat reg relat s sens sk sl sp st t tann theo tr troubl u us v val w x xyl y
    z 4 b2b 7x yy oy ay
"""

ENDINGS: Final = """
    s ss sses ies ied y yed ying ed ing eed eeds at ated ating bled bling ized izing led ling ll
    lled lling ssed zzed e ee ational tional tionally enci anci ency izer izers abli ably bli alli
    ally ationally entli ently eli ely ousli ously ization ation ator alism iveness fulness
    ousness aliti ality iviti ivity biliti bility fulli fully logi logy logies ogi icate ative
    alize iciti ical ful ness nesses al ance ence er ic able ible ant ement ment ent sion tion ion
    ou ism ate iti ous ive ize ings
"""


def words_of_parts() -> list[str]:
    """Make words by joining each beginning to each ending: over eight thousand."""
    return ["".join(parts) for parts in itertools.product(BEGINNINGS.split(), ENDINGS.split())]


def test_words_of_every_ending_have_the_stems_nltk_gives_them() -> None:
    words = words_of_parts()
    assert len(words) > 8_000
    differing = [
        (word, _porter_stemmer.stem(word), reference().stem(word))
        for word in words
        if _porter_stemmer.stem(word) != reference().stem(word)
    ]
    assert differing == []


@given(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789", max_size=8),
    st.lists(st.sampled_from(ENDINGS.split()), max_size=3),
)
def test_any_word_has_the_stem_nltk_gives_it(beginning: str, endings: list[str]) -> None:
    word = beginning + "".join(endings)
    assert _porter_stemmer.stem(word) == reference().stem(word)


@given(st.text("aeiouylsbt", max_size=12))
def test_runs_of_vowels_and_doubled_letters_stem_as_nltk_stems_them(word: str) -> None:
    assert _porter_stemmer.stem(word) == reference().stem(word)


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("feed", "feed"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("falling", "fall"),
        ("sized", "size"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("adoption", "adopt"),
        ("controlling", "control"),
        ("rate", "rate"),
        ("cease", "ceas"),
    ],
)
def test_each_step_of_the_paper_strips_its_suffixes(word: str, stem: str) -> None:
    assert _porter_stemmer.stem(word) == stem


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("skies", "sky"),
        ("succeed", "succeed"),
        ("innings", "inning"),
        ("ties", "tie"),
        ("died", "die"),
        ("spied", "spi"),
        ("flies", "fli"),
        ("fly", "fli"),
        ("enjoy", "enjoy"),
        ("us", "us"),
        ("used", "use"),
        ("geology", "geolog"),
        ("carefully", "care"),
        ("possibly", "possibl"),
        ("conditionally", "condit"),
    ],
)
def test_nltk_departs_from_the_paper(word: str, stem: str) -> None:
    assert _porter_stemmer.stem(word) == stem


@pytest.mark.parametrize("word", ["", "a", "is", "2", "by"])
def test_words_of_up_to_two_letters_are_their_own_stems(word: str) -> None:
    assert _porter_stemmer.stem(word) == word


def test_a_token_of_a_million_letters_takes_no_quadratic_time() -> None:
    long = "y" * 1_000_000
    assert _porter_stemmer.stem(long) == long[:-1] + "i"
