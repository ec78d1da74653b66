"""Sentences of a text, split and labelled by a judge.

A judge that splits a text into sentences could invent some, omit those that matter, or repeat one.
So its sentences must follow one another in the text and cover nearly all of it; only letters and
digits are compared, so that layout makes no difference.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_eval.llm.model_answers import (
    INTEGER,
    TEXT,
    answer_text,
    json_object,
    many,
    one_of,
    strict,
    text_of,
)
from ci_eval.records.cases import Json
from ci_eval.records.questions import UnreadableError
from ci_eval.text.json_text import objects_in

MIN_COVERED = 0.8
"""Minimum share of a text's letters and digits that its sentences must cover."""
POSITIVE = frozenset({"supported", "not_applicable"})
LABELS = ("supported", "unsupported", "contradictory", "disputed", "not_applicable")
SEGMENTS: Mapping[str, Json] = strict(sentences=many(TEXT))
VERDICTS: Mapping[str, Json] = strict(
    verdicts=many(strict(number=INTEGER, rationale=TEXT, excerpt=TEXT, label=one_of(*LABELS)))
)
_BLOCK = re.compile(r"^sentence:", re.IGNORECASE | re.MULTILINE)
_FIELD = r"^{}:[^\S\n]*(.*)$"
_NULL = "null"


class Finding(NamedTuple):
    """The label of one sentence."""

    label: str
    rationale: str = ""
    excerpt: str = ""


def letters(text: str) -> str:
    """Return the letters and digits of `text`, normalized for case and form."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, plain))


def read_sentences(answer: str, text: str) -> list[str]:
    """Parse the sentences of `text` in an answer: JSON, or ADK's `<sentence>` tags.

    Raises:
        UnreadableError: there are none, or they are not those of the text.

    """
    sentences = [each for each in _sentences(answer) if letters(each)]
    if not sentences:
        raise UnreadableError("it holds no sentence")
    whole, at, covered = letters(text), 0, 0
    for number, each in enumerate(sentences, 1):
        plain = letters(each)
        found = whole.find(plain, at)
        if found < 0:
            # The judge reads this message: it must not contain untrusted text.
            raise UnreadableError(f"its sentence {number} is not in the text, or not at its place")
        at = found + len(plain)
        covered += len(plain)
    if covered < MIN_COVERED * len(whole):
        raise UnreadableError(f"its sentences are only {covered / len(whole):.0%} of the text")
    return sentences


def _sentences(answer: str) -> list[str]:
    found = json_object(answer)
    if found is None:
        tagged = answer_text(answer).split("<sentence>")[1:]
        pieces = (each.partition("</sentence>") for each in tagged)
        return [inside.strip() for inside, end, _ in pieces if end]
    listed = found.get("sentences")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def read_findings(answer: str, sentences: Sequence[str]) -> list[Finding]:
    """Parse the label of each of `sentences`: JSON, or ADK's blocks of lines.

    A block belongs to the sentence that it repeats.

    Raises:
        UnreadableError: a sentence has no label, an unknown one, or conflicting ones.

    """
    numbers: dict[str, list[int]] = {}
    for number, each in enumerate(sentences, 1):
        numbers.setdefault(letters(each), []).append(number)
    found: dict[int, Finding] = {}
    for about, finding in _findings(answer):
        for number in [about] if isinstance(about, int) else numbers.get(letters(about), ()):
            if finding.label not in LABELS:
                message = f"the label of sentence {number} is none of {', '.join(LABELS)}"
                raise UnreadableError(message, finding.label)
            if found.setdefault(number, finding).label != finding.label:
                raise UnreadableError(f"it holds two labels of sentence {number}, and they differ")
    missing = [number for number in range(1, len(sentences) + 1) if number not in found]
    if missing:
        shown = ", ".join(map(str, missing[:5]))
        raise UnreadableError(f"it holds no label of the sentences {shown}")
    return [found[number] for number in range(1, len(sentences) + 1)]


def _findings(answer: str) -> Iterator[tuple[int | str, Finding]]:
    """Yield the number or the text of each sentence, and its label."""
    found = json_object(answer)
    if found is None:
        yield from _blocks(answer)
        return
    for each in objects_in(found.get("verdicts")):
        number = each.get("number")
        if isinstance(number, int) and not isinstance(number, bool):
            label = text_of(each, "label").strip().lower()
            yield number, Finding(label, text_of(each, "rationale"), text_of(each, "excerpt"))


def _blocks(answer: str) -> Iterator[tuple[str, Finding]]:
    """Yield each sentence and its label; none after other text, which may quote them."""
    before, *blocks = _BLOCK.split(answer_text(answer))
    for block in () if before.strip() else blocks:
        labels = dict.fromkeys(each.strip().lower() for each in _fields(block, "label"))
        sentence = re.split(_FIELD.format("label"), block, maxsplit=1, flags=_FLAGS)[0]
        excerpts = (_field(block, f"{kind}_excerpt") for kind in ("supporting", "contradicting"))
        excerpt = next((each for each in excerpts if each.lower() not in ("", _NULL)), "")
        rationale = _field(block, "rationale")
        for label in filter(None, labels):
            yield sentence.strip(), Finding(label, rationale, excerpt)


_FLAGS = re.IGNORECASE | re.MULTILINE


def _fields(block: str, name: str) -> list[str]:
    return re.findall(_FIELD.format(name), block, _FLAGS)


def _field(block: str, name: str) -> str:
    return next(iter(_fields(block, name)), "").strip()
