"""English stemming: Porter's algorithm in the variant that ADK's ROUGE scores use.

Sources:

* M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, pp. 130-137: the
  steps 1a to 5b, the measure, and the rule that in each step the longest matching suffix decides.
* NLTK's `nltk.stem.porter.PorterStemmer` in its default mode `NLTK_EXTENSIONS`: the departures
  from the paper, each marked "NLTK:" below. Its output is the reference.

Importing NLTK's stemmer would load all of NLTK, some 0.3 s of CPU time and 40 MB of memory, for a
few tables of suffixes. The tests compare this module with NLTK's output.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class _Rule(NamedTuple):
    """The replacement of one suffix, if enough of the word precedes it."""

    becomes: str
    """The replacement."""

    after: tuple[str, ...] = ("",)
    """Endings, one of which the rest of the word must have; the empty one always matches."""


_Rules = Mapping[str, _Rule]
"""The rules of one step, by suffix."""


def _rules(becomes: Mapping[str, str]) -> dict[str, _Rule]:
    """Group suffixes by replacement: `{"ate": "ational ation"}` makes two rules."""
    return {
        suffix: _Rule(stump) for stump, suffixes in becomes.items() for suffix in suffixes.split()
    }


# NLTK: words whose stem is looked up, never computed.
_IRREGULAR: Final[Mapping[str, str]] = {
    word: stem
    for stem, words in {
        "sky": "sky skies",
        "die": "dying",
        "lie": "lying",
        "tie": "tying",
        "inning": "inning innings",
        "outing": "outing outings",
        "canning": "canning cannings",
        "news": "news",
        "howe": "howe",
        "proceed": "proceed",
        "exceed": "exceed",
        "succeed": "succeed",
    }.items()
    for word in words.split()
}

_PLURALS: Final[_Rules] = _rules({"ss": "sses ss", "i": "ies", "": "s"})

_STEP_2: Final[_Rules] = _rules(
    {
        "ate": "ational ation ator",
        "tion": "tional",
        "ence": "enci",
        "ance": "anci",
        "ize": "izer ization",
        # Porter's own later version, and NLTK, shorten the paper's "abli" to "bli".
        "ble": "bli biliti",
        "al": "alli alism aliti",
        "ent": "entli",
        "e": "eli",
        "ous": "ousli ousness",
        "ive": "iveness iviti",
        "ful": "fulness fulli",  # NLTK: "fulli".
    }
    # NLTK: "logi" becomes "log", and its "l" counts towards the measure of the part before it, so
    # that the short "geo-l-ogi" is shortened too.
) | {"ogi": _Rule("og", after=("l",))}

_STEP_3: Final[_Rules] = _rules({"ic": "icate iciti ical", "al": "alize", "": "ative ful ness"})

_STEP_4: Final[_Rules] = _rules(
    {"": "al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize"}
) | {"ion": _Rule("", after=("s", "t"))}

_LONGEST_SUFFIX: Final = max(map(len, (*_PLURALS, *_STEP_2, *_STEP_3, *_STEP_4)))

# Words this short are their own stems (Porter's own later version, and NLTK).
_SHORT: Final = 2

# The length of the "-ies" and "-ied" words that keep an e: "ties" and "tied" become "tie".
_FOUR_LETTERS: Final = 4


def stem(word: str) -> str:
    """Strip the suffixes of an English word: `relational` to `relat`.

    The word must be in lower case; characters other than a to z count as consonants. The stem is
    not always a word.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORT:
        return word
    word = _strip_past_and_ing(_strip_plural(word))
    word = _y_to_i(word)
    word = _apply_step_2(word)
    word = _apply(_STEP_3, word, measure=1)
    word = _apply(_STEP_4, word, measure=2)
    return _tidy_end(word)


def _shape(word: str) -> str:
    """Write c for each consonant and v for each vowel; y is a vowel after a consonant."""
    kinds: list[str] = []
    before = "v"
    for letter in word:
        before = "v" if letter in "aeiou" or (letter == "y" and before == "c") else "c"
        kinds.append(before)
    return "".join(kinds)


def _measure(word: str) -> int:
    """Count how often a run of vowels is followed by consonants: the paper's m."""
    return _shape(word).count("vc")


def _ends_in_pair(word: str) -> bool:
    """Return True if the word ends in a doubled consonant, such as `hopp`."""
    return word[-1:] == word[-2:-1] and _shape(word).endswith("c")


def _ends_short(word: str) -> bool:
    """Return True if the word ends as `hop` does, in a syllable that takes an e: `hope`."""
    shape = _shape(word)
    # NLTK: a whole word of a vowel and any consonant, such as "us", ends short as well.
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _apply(rules: _Rules, word: str, *, measure: int) -> str:
    """Apply the rule of the longest matching suffix, if its conditions are met."""
    for size in range(min(_LONGEST_SUFFIX, len(word)), 0, -1):
        rule = rules.get(word[-size:])
        if rule is not None:
            rest = word[:-size]
            met = rest.endswith(rule.after) and _measure(rest) >= measure
            return rest + rule.becomes if met else word
    return word


def _strip_plural(word: str) -> str:
    """Step 1a: `caresses` to `caress`, `ponies` to `poni`, `cats` to `cat`."""
    # NLTK: "dies" becomes "die", where longer words such as "flies" become "fli".
    if len(word) == _FOUR_LETTERS and word.endswith("ies"):
        return word[:-1]
    return _apply(_PLURALS, word, measure=0)


def _strip_past_and_ing(word: str) -> str:
    """Step 1b: `agreed` to `agree`, `plastered` to `plaster`, `motoring` to `motor`."""
    if word.endswith("ied"):
        # NLTK: "died" becomes "die", and longer words such as "spied" become "spi".
        return word[:-1] if len(word) == _FOUR_LETTERS else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        rest = word.removesuffix(suffix)
        if rest != word and "v" in _shape(rest):
            return _mend(rest)
    return word


def _mend(rest: str) -> str:
    """Undo the spelling change of a stripped "-ed" or "-ing": `siz` to `size`."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _ends_in_pair(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    if _measure(rest) == 1 and _ends_short(rest):
        return rest + "e"
    return rest


def _y_to_i(word: str) -> str:
    """Step 1c: `happy` to `happi`."""
    rest = word.removesuffix("y")
    # NLTK: not after a vowel ("enjoy"), nor after a lone consonant ("by"), yet also where the
    # rest holds no vowel ("fly" to "fli").
    return f"{rest}i" if rest != word and len(rest) > 1 and _shape(rest)[-1] == "c" else word


def _apply_step_2(word: str) -> str:
    """Step 2: `relational` to `relate`, `hopefulness` to `hopeful`."""
    once = _apply(_STEP_2, word, measure=1)
    # NLTK: the result of "alli" goes through the step again: "conditionalli" to "condition".
    return _apply(_STEP_2, once, measure=1) if word.endswith("alli") else once


def _tidy_end(word: str) -> str:
    """Step 5: `probate` to `probat`, `cease` to `ceas`, `controll` to `control`."""
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
