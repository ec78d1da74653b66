"""Which rubrics an invocation is judged on, and how verdicts on them are read."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_eval.criteria._answers import json_object, text_of
from ci_eval.criteria._forms import TEXT, many, one_of, strict
from ci_eval.criteria._majority import Vote, Votes
from ci_eval.records.model import Json, Rubric
from ci_eval.records.questions import UnreadableError

SCHEMA: Mapping[str, Json] = strict(
    verdicts=many(strict(rubric_id=TEXT, rationale=TEXT, verdict=one_of("yes", "no")))
)
_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_PROPERTY = re.compile(r"^[^\S\n]*Property: (.*)$", re.MULTILINE)
_ID = re.compile(r"^[^\S\n]*ID: (.*)$", re.MULTILINE)
_SMART = str.maketrans("‘’“”–—", "''\"\"--")  # noqa: RUF001  # what models write
_DECORATION = " *_`#>-•\"'"


def meant_for(kind: str, rubrics: Iterable[Rubric] | None) -> Iterator[Rubric]:
    """Yield those of a case or an invocation that say that they are of the type `kind`."""
    return (each for each in rubrics or () if each.type == kind)


def fault(rubrics: Sequence[Rubric]) -> str:
    """Say what keeps `rubrics` from being judged together; nothing where they can be."""
    seen: set[str] = set()
    for each in rubrics:
        if each.rubric_id in seen:
            return f"the rubric {each.rubric_id!r} is there twice; give one of them another id"
        if not (each.rubric_content.text_property or "").strip():
            return f"the rubric {each.rubric_id!r} has no text"
        seen.add(each.rubric_id)
    return ""


def shown(rubrics: Iterable[Rubric]) -> list[Json]:
    """Return `rubrics` as the judge sees them."""
    return [
        {"rubric_id": each.rubric_id, "property": each.rubric_content.text_property}
        for each in rubrics
    ]


class _Said(NamedTuple):
    """What an answer says of one property."""

    rubric_id: str
    text: str
    rationale: str
    verdict: str


def read(text: str, rubrics: Sequence[Rubric]) -> Votes:
    """Return the verdicts in an answer: JSON, or the blocks of lines that ADK's judges write.

    A rubric is found by its id, else by its text.

    Raises:
        UnreadableError: there is no verdict on any of `rubrics`, or two on one that differ.

    """
    by_id = {each.rubric_id: each.rubric_id for each in rubrics}
    by_text = {_plain(each.rubric_content.text_property or ""): each.rubric_id for each in rubrics}
    votes: dict[str, Vote] = {}
    for said in _said(text):
        name = by_id.get(said.rubric_id) or by_text.get(_plain(said.text))
        found = _VERDICT.search(said.verdict)
        if name is None or not found:
            continue
        vote = Vote(found[1].lower() == "yes", said.rationale)
        if votes.setdefault(name, vote).yes != vote.yes:
            raise UnreadableError(f"it holds two verdicts on {name!r}, and they differ")
    if not votes:
        names = ", ".join(repr(name) for name in list(by_id)[:5])
        raise UnreadableError(f"it holds no verdict, `yes` or `no`, on the rubrics {names}")
    return votes


def _said(text: str) -> list[_Said]:
    found = json_object(text)
    if found is None:
        return _blocks(text)
    listed = found.get("verdicts")
    return [
        _Said(_word(each, "rubric_id"), "", text_of(each, "rationale"), text_of(each, "verdict"))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]


def _word(found: Mapping[str, Json], key: str) -> str:
    """Return the text under `key`, or the number, which some models make of an id."""
    value = found.get(key)
    return str(value) if isinstance(value, str | int) else ""


def _blocks(text: str) -> list[_Said]:
    """Return what stands behind `ID:`, `Property:`, `Rationale:` and `Verdict:`.

    As in ADK, an id belongs to the property that comes next, and three counts that differ spoil
    the answer: nobody knows which verdict is missing.
    """
    properties = list(_PROPERTY.finditer(text))
    rationales = re.findall(r"Rationale: (.*)", text)
    verdicts = re.findall(r"Verdict: (.*)", text)
    if not len(properties) == len(rationales) == len(verdicts):
        message = (
            f"it holds {len(properties)} properties, {len(rationales)} rationales and "
            f"{len(verdicts)} verdicts"
        )
        raise UnreadableError(message)
    ids = list(_ID.finditer(text))
    found, after = [], 0
    for each, rationale, verdict in zip(properties, rationales, verdicts, strict=True):
        named = ""
        while after < len(ids) and ids[after].start() < each.start():
            named, after = ids[after][1].strip(), after + 1
        found.append(_Said(named, each[1], rationale.strip(), verdict))
    return found


def _plain(text: str) -> str:
    """Return `text` without what models change when they repeat it: quotes, dashes, markup."""
    plain = unicodedata.normalize("NFKC", text).translate(_SMART)
    return " ".join(plain.split()).strip(_DECORATION).lower()
