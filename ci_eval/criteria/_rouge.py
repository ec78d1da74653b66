"""ROUGE-1: the words that two texts share, scored as in ADK's `response_match_score`.

ROUGE-1 is Lin's unigram measure ("ROUGE: A Package for Automatic Evaluation of Summaries", 2004).
The score depends on the definition of a word, which ADK has changed, so the rules are named:

* `adk`: ADK 2.13. Words of any script count; scripts written without spaces are cut into
  characters.
* `adk@2.3`: ADK 2.3. Only a-z and 0-9 count: `café` is `caf`, and a Japanese text has no words.
* `agentflow`: the words of `adk`, unstemmed.

With ADK's rules, English words are stemmed. ASCII text is tokenized by the `rouge-score` package,
as in ADK; ADK's other dependencies (NumPy, Abseil, NLTK) are never imported.
"""

import functools
import unicodedata
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final, Literal

from ci_eval.criteria import _porter_stemmer

Rules = Literal["adk", "adk@2.3", "agentflow"]
"""The definition of a word to use."""

_Cutter = Callable[[str], list[str]]

# English texts of an evaluation use a few thousand different words; the limit bounds the memory of
# a long run over unusual texts.
_STEMS_KEPT: Final = 16_384

_TEXTS_KEPT: Final = 256
_SHORT: Final = 10_000  # longest text that is cached, in characters

# Written without spaces; every character is a word, even if unassigned.
_ALONE: Final = (
    range(0x3040, 0x3100),  # Hiragana and Katakana
    range(0x4E00, 0xA000),  # CJK unified ideographs, without their extensions
    range(0xAC00, 0xD7B0),  # Hangul syllables
)

# Written without spaces; a character starts a word, and following marks join it.
_STARTING: Final = (
    range(0x0E00, 0x0F00),  # Thai and Lao
    range(0x1000, 0x10A0),  # Myanmar
    range(0x1780, 0x1800),  # Khmer
)


def rouge1_f(candidate: str, reference: str, *, rules: Rules) -> float:
    """Score the words that a candidate, such as an agent's answer, shares with a reference.

    The score is the F1 of precision (the share of the candidate's words) and recall (the share of
    the reference's words), whatever their order: from 0.0 if no word is shared, even between two
    empty texts, to 1.0 for the same words.
    """
    given, wanted = _counted(candidate, rules), _counted(reference, rules)
    shared = (given & wanted).total()
    if not shared:
        return 0.0
    precision, recall = shared / given.total(), shared / wanted.total()
    # This order of operations agrees with rouge-score's to the last bit.
    return 2 * precision * recall / (precision + recall)


def _counted(text: str, rules: Rules) -> Counter[str]:
    """Return how often each word of a text occurs."""
    return _of_short(text, rules) if len(text) <= _SHORT else Counter(words(text, rules=rules))


@functools.lru_cache(maxsize=_TEXTS_KEPT)
def _of_short(text: str, rules: Rules) -> Counter[str]:
    # The repeats of a case have the same reference and often the same answer.
    return Counter(words(text, rules=rules))


def words(text: str, *, rules: Rules) -> list[str]:
    """Split text into words, each as often as it occurs, in no particular order."""
    cut_ascii = _ascii_cutter(stemmed=rules != "agentflow")
    return cut_ascii(text) if rules == "adk@2.3" else _cut_any_script(text, cut_ascii)


@functools.cache
def _ascii_cutter(*, stemmed: bool) -> _Cutter:
    """Return the function that splits text into words of a-z and 0-9."""
    # Imported on first use: most runs of the command never score a text.
    from rouge_score.tokenize import tokenize

    if not stemmed:
        return functools.partial(tokenize, stemmer=None)
    stem = functools.lru_cache(maxsize=_STEMS_KEPT)(_porter_stemmer.stem)
    return functools.partial(tokenize, stemmer=SimpleNamespace(stem=stem))


def _cut_any_script(text: str, cut_ascii: _Cutter) -> list[str]:
    """Split text into words as ADK 2.13 does; those in ASCII come first, split by `cut_ascii`."""
    # A shortcut with the same result: for ASCII text, the splitter alone has the same effect as
    # normalisation and `_Spacing`.
    if text.isascii():
        return cut_ascii(text)
    spaced = unicodedata.normalize("NFKC", text).lower().translate(_SPACING).split()
    plain = " ".join(word for word in spaced if word.isascii())
    return [*cut_ascii(plain), *(word for word in spaced if not word.isascii())]


class _Spacing(dict[int, str]):
    """Map for `str.translate`: each character with the spaces that separate words."""

    def __missing__(self, code: int) -> str:
        """Compute a character at its first use."""
        self[code] = spaced = _spaced(chr(code))
        return spaced


def _spaced(char: str) -> str:
    """Insert spaces where ADK 2.13 splits: around, before or instead of a character."""
    code = ord(char)
    if any(code in block for block in _ALONE):
        return f" {char} "
    if unicodedata.category(char).startswith("M"):
        return char
    if any(code in block for block in _STARTING):
        return f" {char}"
    return char if char.isalnum() else " "


_SPACING: Final = _Spacing()
