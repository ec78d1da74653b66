"""The rubrics that apply to an invocation, and the parser of verdicts on them."""

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_eval.criteria._majority_of_samples import Vote, Votes
from ci_eval.llm.model_answers import TEXT, answer_text, json_object, many, one_of, strict, text_of
from ci_eval.records.cases import Json, Rubric
from ci_eval.records.questions import UnreadableError
from ci_eval.text.json_text import objects_in

SCHEMA: Mapping[str, Json] = strict(
    verdicts=many(strict(rubric_id=TEXT, rationale=TEXT, verdict=one_of("yes", "no")))
)
_VERDICT = re.compile(
    r"(yes|no)\b(?!\s*\?|\W*(?:yes|no)\W*$|\W*(?:or|and)\s+(?:yes|no)\b|\s*/)", re.IGNORECASE
)
"""A verdict that a remark may follow; `yes or no`, `yes/no`, `yes?` and `not yes` are none."""
_ONLY_BLOCKS = re.compile(r"(?:STEP|ID|Property)\b.*\n[^\S\n]*+Verdict: [^\n]*", re.DOTALL)
"""What ADK's judges write: steps and blocks, which end with a verdict."""
_SMART = str.maketrans("‘’“”–—", "''\"\"--")  # noqa: RUF001  # what models write
_DECORATION = " *_`#>-•\"'"


def meant_for(kind: str, rubrics: Iterable[Rubric] | None) -> Iterator[Rubric]:
    """Yield the rubrics of a case or an invocation that have the type `kind`."""
    return (each for each in rubrics or () if each.type == kind)


def fault(rubrics: Sequence[Rubric]) -> str:
    """Return why `rubrics` cannot be judged together; empty if they can."""
    seen: set[str] = set()
    for each in rubrics:
        if each.rubric_id in seen:
            return f"duplicate rubric id {each.rubric_id!r}; give one of them another id"
        if not (each.rubric_content.text_property or "").strip():
            return f"the rubric {each.rubric_id!r} has no text"
        seen.add(each.rubric_id)
    return ""


def shown(rubrics: Iterable[Rubric]) -> list[Json]:
    """Return `rubrics` as shown to the judge."""
    return [
        {"rubric_id": each.rubric_id, "property": each.rubric_content.text_property}
        for each in rubrics
    ]


class _Said(NamedTuple):
    """The part of an answer about one property."""

    rubric_id: str
    text: str
    rationale: str
    verdict: str


def read(text: str, rubrics: Sequence[Rubric]) -> Votes:
    """Parse the verdicts in an answer: JSON, or the blocks of lines that ADK's judges write.

    A rubric is identified by its id, else by its text.

    Raises:
        UnreadableError: no verdict on any of `rubrics`, or conflicting ones on one.

    """
    by_id = {each.rubric_id: each.rubric_id for each in rubrics}
    by_text = {_plain(each.rubric_content.text_property or ""): each.rubric_id for each in rubrics}
    votes: dict[str, Vote] = {}
    for said in _said(text):
        name = by_id.get(said.rubric_id) or by_text.get(_plain(said.text))
        found = _VERDICT.match(said.verdict.strip(_DECORATION + string.whitespace))
        if name is None or not found:
            continue
        vote = Vote(found[1].lower() == "yes", said.rationale)
        if votes.setdefault(name, vote).yes != vote.yes:
            raise UnreadableError(f"it holds two verdicts on {name!r}, and they differ")
    if not votes:
        names = ", ".join(repr(name) for name in list(by_id)[:5])
        is_in_text = _line("Verdict").search(text) and not _ONLY_BLOCKS.fullmatch(answer_text(text))
        why = "; verdicts within other text do not count" if is_in_text else ""
        raise UnreadableError(f"it holds no verdict, `yes` or `no`, on the rubrics {names}{why}")
    return votes


def _said(text: str) -> list[_Said]:
    found = json_object(text)
    if found is None:
        return _blocks(text)
    return [
        _Said(_word(each, "rubric_id"), "", text_of(each, "rationale"), text_of(each, "verdict"))
        for each in objects_in(found.get("verdicts"))
    ]


def _word(found: Mapping[str, Json], key: str) -> str:
    """Return the text under `key`, or a number as text: some models write ids as numbers."""
    value = found.get(key)
    return str(value) if isinstance(value, str | int) else ""


def _blocks(text: str) -> list[_Said]:
    """Parse the values of `ID:`, `Property:`, `Rationale:` and `Verdict:`.

    As in ADK, an id belongs to the next property, and unequal counts make the answer unreadable,
    because it is unknown which verdict is missing.  Blocks within other text do not count, because
    the judge may be quoting the agent.
    """
    text = answer_text(text)
    if not _ONLY_BLOCKS.fullmatch(text):
        return []
    properties = list(_line("Property").finditer(text))
    rationales, verdicts = _line("Rationale").findall(text), _line("Verdict").findall(text)
    if not len(properties) == len(rationales) == len(verdicts):
        message = (
            f"it holds {len(properties)} properties, {len(rationales)} rationales and "
            f"{len(verdicts)} verdicts"
        )
        raise UnreadableError(message)
    ids = list(_line("ID").finditer(text))
    found, after = [], 0
    for each, rationale, verdict in zip(properties, rationales, verdicts, strict=True):
        named = ""
        while after < len(ids) and ids[after].start() < each.start():
            named, after = ids[after][1].strip(), after + 1
        found.append(_Said(named, each[1], rationale.strip(), verdict))
    return found


def _line(name: str) -> re.Pattern[str]:
    """Return the pattern of a line with a name and its value.

    The name begins the line, because rationales may quote a verdict that an agent wrote.
    """
    return re.compile(rf"^[^\S\n]*{name}: (.*)$", re.MULTILINE)


def _plain(text: str) -> str:
    """Normalize the quotes, dashes and markup that models change when they repeat a text."""
    plain = unicodedata.normalize("NFKC", text).translate(_SMART)
    return " ".join(plain.split()).strip(_DECORATION).lower()
