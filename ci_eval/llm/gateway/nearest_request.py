"""The difference between an unrecorded call and the nearest recorded one."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any

from ci_eval.records.cases import Json
from ci_eval.text.bounded_diff import BoundedMatcher
from ci_eval.text.sanitize import one_line

MAX_COMPARED = 200
"""Maximum number of recorded calls that are compared."""
MAX_CHANGES = 4
"""Maximum number of differences that are shown."""
SHOWN_CHARS = 120
_BEFORE_CHARS = 30
"""How much of a long text is shown before the first difference."""


def nearest(asked: Mapping[str, Json], recorded: Iterable[dict[str, Json]]) -> Iterator[str]:
    """Yield, as lines of a diff, how `asked` differs from the most similar of the `recorded`."""
    wanted = dict(leaves(asked))
    found = max(
        (dict(leaves(each)) for each in islice(recorded, MAX_COMPARED)),
        key=lambda each: _similarity(wanted, each),
        default=None,
    )
    if found is None:
        return
    # The digest tells 1 from 1.0, and from True.
    paths = [
        path for path in {**found, **wanted} if repr(found.get(path)) != repr(wanted.get(path))
    ]
    for path in paths[:MAX_CHANGES]:
        yield from _change(path, found.get(path), wanted.get(path))
    if len(paths) > MAX_CHANGES:
        yield f"  … and {len(paths) - MAX_CHANGES} more differences"


def _similarity(one: Mapping[str, Json], other: Mapping[str, Json]) -> float:
    common = len(one.items() & other.items())
    return common / max(len(one) + len(other) - common, 1)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the path and the value of each text, number and empty container."""
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from leaves(each, f"{path}[{at}]")
    else:
        yield path, json.dumps(value) if isinstance(value, Mapping | list) else value


def _change(path: str, before: Json, now: Json) -> Iterator[str]:
    """Yield the diff of one value; for texts, only the lines that differ."""
    olds, news = _lines(before), _lines(now)
    if olds == news:  # the text "1" and the number 1
        olds, news = [json.dumps(before)], [json.dumps(now)]
    shown = 0
    for tag, first, last, begin, end in BoundedMatcher(olds, news).get_opcodes():
        for old, new in () if tag == "equal" else zip_longest(olds[first:last], news[begin:end]):
            if old == new:
                continue
            shown += 1
            if shown > MAX_CHANGES:
                return
            at = _first_difference(old or "", new or "") if old and new else 0
            name = one_line(path, SHOWN_CHARS)
            if old is not None:
                yield f"- {name}: {_excerpt(old, at)}"
            if new is not None:
                yield f"+ {name}: {_excerpt(new, at)}"


def _lines(value: Json) -> list[str]:
    if value is None:
        return []
    return value.splitlines()[:1000] if isinstance(value, str) else [json.dumps(value)]


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    begin = max(at - _BEFORE_CHARS, 0) if len(text) > SHOWN_CHARS else 0
    cut = text[begin : begin + SHOWN_CHARS]
    before, after = "…" * (begin > 0), "…" * (begin + SHOWN_CHARS < len(text))
    return one_line(f"{before}{cut}{after}", SHOWN_CHARS + 2)
