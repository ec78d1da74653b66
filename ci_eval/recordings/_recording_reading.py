"""Shared parts of recording readers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording
from ci_eval.text.file_problems import FileProblems
from ci_eval.text.json_text import JsonText
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import MAX_TEXT, Loc, dotted

M = TypeVar("M", bound=BaseModel)


def refuse_long(path: Path, *, shown: str) -> None:
    """Refuse a file that is too large, because recordings are held in memory.

    Raises:
        UsageError: it is larger than `MAX_TEXT`.

    """
    if path.stat().st_size > MAX_TEXT:
        message = (
            f"is larger than {MAX_TEXT >> 20} MiB, the limit for recordings of other tools; "
            "split it into several files, with an agent for each"
        )
        raise UsageError(message, file=shown, line=1)


def read_list(
    document: JsonText, key: str, model: type[M], convert: Callable[[M], Recording]
) -> Iterator[Recording]:
    """Yield the recordings in the list `key` of `document`, numbering the repeats of each case.

    Raises:
        UsageError: there is no such list, or one of its values is not a valid `model`.

    """
    value = document.value if isinstance(document.value, dict) else {}
    if not isinstance(value.get(key), list):
        raise UsageError(f"has no list {key!r}", file=document.shown, line=1)
    listed: dict[Loc, Json] = {(key, position): case for position, case in enumerate(value[key])}
    return numbered(read_each(document, listed, model, convert))


def read_each(
    document: JsonText,
    values: Mapping[Loc, Json],
    model: type[M],
    convert: Callable[[M], Recording],
) -> list[Recording]:
    """Return the recordings in `values`, given by their location in `document`.

    Raises:
        UsageError: one of them is not a valid `model`; the error lists all problems.

    """
    found: list[Recording] = []
    problems = FileProblems(document.shown)
    for place, value in values.items():
        try:
            found.append(convert(model.model_validate(value)))
        except ValidationError as exc:
            for inner, message in explain(exc, model):
                loc = (*place, *inner)
                problems.add(message, document.line(loc), dotted(loc))
    problems.raise_errors()
    return found


def numbered(recordings: Iterable[Recording]) -> Iterator[Recording]:
    """Yield `recordings`, numbering the repeats of each case from 0."""
    seen: Counter[str] = Counter()
    for each in recordings:
        if each.eval_id is None:
            yield each
            continue
        yield each.model_copy(update={"repeat": seen[each.eval_id]})
        seen[each.eval_id] += 1
