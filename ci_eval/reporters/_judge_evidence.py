"""Evidence from judges, as lines of text.

The evidence of judged criteria is JSON of a few shapes: votes with a rationale, rubrics,
sentences, samples. Other shapes are left to be shown as JSON.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ci_eval.records.cases import Json

_MARKS = {"yes": "✔", "no": "✘"}
_REASONING = ("rationale", "reasoning")
_QUOTED = re.compile(r'"([^"]{6,500})"|“([^”]{6,500})”')
"""A passage in quotes; shorter quotes are words that may occur anywhere."""
_GOOD = ("supported", "not_applicable")
"""Labels of sentences that need not be listed."""


def extracted(evidence: dict[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """Remove each part of `evidence` that comes from judges, and yield it as a title with lines."""
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
            yield from ((f"{title}, {name}", lines) for title, lines in extracted(dict(each)))
    unread = evidence.get("unread")
    if isinstance(unread, list):
        del evidence["unread"]
        yield "Answers not counted", [f"- {each}" for each in unread]


def cited(evidence: Json) -> Iterator[str]:
    """Yield the passages of a conversation that judges cite: by a label, or in quotes."""
    match evidence:
        case list():
            for each in evidence:
                yield from cited(each)
        case dict():
            for name, each in evidence.items():
                if not isinstance(each, str):
                    yield from cited(each)
                elif name == "excerpt" or (
                    name == "sentence" and evidence.get("label") not in _GOOD
                ):
                    yield each
                elif name in _REASONING:
                    yield from (first or second for first, second in _QUOTED.findall(each))
        case _:
            pass


def _verdict(found: Mapping[str, Json]) -> Iterator[str]:
    """Yield the votes and the rationale; for a jury, the verdict of each judge."""
    jury = found.get("jury")
    if isinstance(jury, Mapping):
        for name, each in jury.items():
            if isinstance(each, Mapping):
                yes = each.get("yes")
                verdict = "yes" if yes is True else "no" if yes is False else "no verdict"
                yield f"{name}: {verdict}{_rationale(each)}"
        return
    yield f"{_votes(found)}{_rationale(found)}"
    unread = found.get("unread")
    for each in dict.fromkeys(map(str, unread)) if isinstance(unread, list) else ():
        yield f"- not counted: {each}"


def _votes(found: Mapping[str, Json]) -> str:
    votes = found.get("votes")
    yes, no = (votes.get("yes"), votes.get("no")) if isinstance(votes, Mapping) else (0, 0)
    return f"{yes} yes, {no} no"


def _rationale(found: Mapping[str, Json]) -> str:
    return f": {found['rationale']}" if found.get("rationale") else ""


def _rubric(found: Mapping[str, Json]) -> Iterator[str]:
    verdict = str(found.get("verdict"))
    prop = f": {found['property']}" if found.get("property") else ""
    yield f"{_MARKS.get(verdict, '?')} {found.get('rubric_id', found.get('id', ''))}{prop}"
    for line in _verdict(found) if "votes" in found else [_reasoning(found)]:
        if line:
            yield f"    {line}"


def _reasoning(found: Mapping[str, Json]) -> str:
    return next((str(found[name]) for name in _REASONING if found.get(name)), "")


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
        if _reasoning(each):
            yield f"    {_reasoning(each)}"


def _sample(found: Mapping[str, Json]) -> Iterator[str]:
    yield _scored(found)
    for name, each in found.items():
        if isinstance(each, Mapping):
            yield from (f"    {key}: {_scored(value)}" for key, value in each.items())
        elif name == "goals" and isinstance(each, list):
            yield from (f"    {line}" for goal in each for line in _goal(goal))
        elif isinstance(each, list) and each:
            yield f"    {name.replace('_', ' ')}: {'; '.join(map(str, each))}"


def _goal(found: Json) -> Iterator[str]:
    """Yield a goal of a simulated user, and why it was not reached."""
    if not isinstance(found, Mapping):
        yield str(found)
        return
    reached = found.get("reached") is True
    why = "" if reached else _reasoning(found)
    yield f"{_MARKS['yes' if reached else 'no']} {found.get('goal')}{': ' if why else ''}{why}"


def _scored(value: Json) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    reasoning = _reasoning(value)
    return f"{value.get('score')}{': ' if reasoning else ''}{reasoning}"


_PARTS: dict[str, tuple[str, Callable[[Mapping[str, Json]], Iterator[str]]]] = {
    "rubrics": ("Rubrics", _rubric),
    "texts": ("Sentences", _text),
    "samples": ("Samples", _sample),
}
"""Lists in the evidence, each with its title and the function that formats an entry."""
