"""Parser of scores from 0 to 1 in judges' answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from ci_eval.criteria._mean_of_samples import Sample
from ci_eval.llm.model_answers import json_object, text_of
from ci_eval.records.cases import Json
from ci_eval.records.questions import UnreadableError
from ci_eval.text.json_text import is_number

_MAX_CHARS = 2_000
"""Length limit of each text of an answer in the evidence."""
_MAX_TEXTS = 50


def object_in(text: str) -> dict[str, Any]:
    """Parse an answer as a JSON object.

    Raises:
        UnreadableError: it is not one.

    """
    found = json_object(text)
    if found is None:
        raise UnreadableError("it holds no JSON object")
    return found


def share_in(found: Mapping[str, Json], key: str, *, of: str = "") -> float:
    """Return the number from 0 to 1 under `key`; `of` names its owner in the error.

    Raises:
        UnreadableError: there is no such number.

    """
    value = found.get(key)
    whose = f" for {of}" if of else ""
    if not is_number(value):
        raise UnreadableError(f"it holds no number under {key!r}{whose}")
    if not 0 <= value <= 1:
        raise UnreadableError(f"it holds no {key!r} from 0 to 1{whose}", value)
    return float(value)


def rationale_in(found: Mapping[str, Json]) -> str:
    """Return the reasoning, shortened if it is long."""
    return short(text_of(found, "reasoning"))


def texts_in(found: Mapping[str, Json], key: str) -> list[Json]:
    """Return the texts listed under `key`, at most 50."""
    value = found.get(key)
    items = value if isinstance(value, list) else []
    return [short(each) for each in items[:_MAX_TEXTS] if isinstance(each, str)]


def each_in(
    found: Mapping[str, Json], key: str, by: str, wanted: Iterable[Json]
) -> dict[Json, Mapping[str, Json]]:
    """Return the objects under `key`, by their value of `by`: exactly one for each `wanted`.

    Raises:
        UnreadableError: one is missing, duplicate or not among `wanted`.

    """
    value = found.get(key)
    entries = value if isinstance(value, list) else []
    by_name: dict[Json, Mapping[str, Json]] = {}
    names = list(wanted)
    for entry in entries:
        name = entry.get(by) if isinstance(entry, dict) else None
        if isinstance(name, bool) or name not in names:
            raise UnreadableError(f"it names no {by!r} that was given", name)
        if name in by_name:
            raise UnreadableError(f"it holds the {by!r} {name!r:.80} twice")
        by_name[name] = entry
    for name in names:
        if name not in by_name:
            raise UnreadableError(f"it holds nothing under {key!r} for {name!r:.80}")
    return {name: by_name[name] for name in names}


def read_score(text: str, *, listed: str = "") -> Sample:
    """Parse an answer with one `score`, and with a list of texts under `listed`.

    Raises:
        UnreadableError: it has no score from 0 to 1.

    """
    found = object_in(text)
    details = {listed: texts_in(found, listed)} if listed else {}
    return Sample(share_in(found, "score"), rationale_in(found), details)


def short(text: str) -> str:
    """Return `text` for the evidence, shortened if it is long."""
    # Lone surrogates could not be stored as UTF-8.
    kept = text.encode(errors="replace").decode()
    return kept if len(kept) <= _MAX_CHARS else f"{kept[:_MAX_CHARS]}…"
