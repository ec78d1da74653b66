"""What judges found, in lines for a reader.

The evidence of judged criteria is JSON of a few shapes: votes with a rationale, rubrics,
sentences, samples. What has another shape is left to be shown as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ci_eval.records.model import Json

_MARKS = {"yes": "✔", "no": "✘"}
_GOOD = ("supported", "not_applicable")
"""Labels of sentences that need no word."""


def told(evidence: dict[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """Yield a title and its lines for each part of `evidence` that judges left, and take it out."""
    if isinstance(evidence.get("votes"), Mapping):
        yield "Verdict", [*_verdict(evidence)]
        for known in ("votes", "drawn", "rationale", "jury", "unread"):
            evidence.pop(known, None)
    for name, (title, lines) in _PARTS.items():
        found = evidence.get(name)
        if isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found):
            del evidence[name]
            yield title, [line for each in found for line in lines(each)]
    jury = evidence.get("jury")
    if isinstance(jury, Mapping) and all(isinstance(each, Mapping) for each in jury.values()):
        del evidence["jury"]
        for name, each in jury.items():
            yield from ((f"{title}, {name}", lines) for title, lines in told(dict(each)))
    unread = evidence.get("unread")
    if isinstance(unread, list):
        del evidence["unread"]
        yield "Answers that do not count", [f"- {each}" for each in unread]


def _verdict(found: Mapping[str, Json]) -> Iterator[str]:
    """Yield why it is so and how the votes fell; of a jury, what each judge says."""
    jury = found.get("jury")
    if isinstance(jury, Mapping):
        for name, each in jury.items():
            if isinstance(each, Mapping):
                yes = each.get("yes")
                said = "yes" if yes is True else "no" if yes is False else "no verdict"
                yield f"{name}: {said}{_why(each)}"
        return
    yield f"{_votes(found)}{_why(found)}"
    unread = found.get("unread")
    for each in dict.fromkeys(map(str, unread)) if isinstance(unread, list) else ():
        yield f"- does not count: {each}"


def _votes(found: Mapping[str, Json]) -> str:
    votes = found.get("votes")
    yes, no = (votes.get("yes"), votes.get("no")) if isinstance(votes, Mapping) else (0, 0)
    return f"{yes} yes, {no} no"


def _why(found: Mapping[str, Json]) -> str:
    return f": {found['rationale']}" if found.get("rationale") else ""


def _rubric(found: Mapping[str, Json]) -> Iterator[str]:
    verdict = str(found.get("verdict"))
    asked = f": {found['property']}" if found.get("property") else ""
    yield f"{_MARKS.get(verdict, '?')} {found.get('rubric_id', found.get('id', ''))}{asked}"
    for line in _verdict(found) if "votes" in found else [_said(found)]:
        if line:
            yield f"    {line}"


def _said(found: Mapping[str, Json]) -> str:
    return str(found.get("rationale") or found.get("reasoning") or "")


def _text(found: Mapping[str, Json]) -> Iterator[str]:
    """Yield the sentences of a text that are not supported."""
    jury = found.get("jury")
    for name, each in jury.items() if isinstance(jury, Mapping) else [("", found)]:
        if isinstance(each, Mapping) and isinstance(each.get("sentences"), list):
            yield from _sentences(each["sentences"], f"{name}: " if name else "")


def _sentences(found: Sequence[Json], by: str) -> Iterator[str]:
    known = [each for each in found if isinstance(each, Mapping)]
    bad = [each for each in known if each.get("label") not in _GOOD]
    yield f"{by}{len(known) - len(bad)} of {len(known)} sentences are supported"
    for each in bad:
        yield f"✘ {each.get('label')}: {each.get('sentence')}"
        if _said(each):
            yield f"    {_said(each)}"


def _sample(found: Mapping[str, Json]) -> Iterator[str]:
    said = _said(found)
    yield f"{found.get('score')}{': ' if said else ''}{said}"
    for name, each in found.items():
        if isinstance(each, Mapping):
            yield from (f"    {key}: {_scored(value)}" for key, value in each.items())
        elif isinstance(each, list) and each:
            yield f"    {name.replace('_', ' ')}: {'; '.join(map(str, each))}"


def _scored(value: Json) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    said = _said(value)
    return f"{value.get('score')}{': ' if said else ''}{said}"


_PARTS: dict[str, tuple[str, Callable[[Mapping[str, Json]], Iterator[str]]]] = {
    "rubrics": ("Rubrics", _rubric),
    "texts": ("Sentences", _text),
    "samples": ("Samples", _sample),
}
"""Lists of evidence, each with its title and what makes lines of one of it."""
