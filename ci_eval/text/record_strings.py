"""Extracting all texts from a record, at any depth, and putting changed ones back.

Fields with fixed values (`Literal`) are skipped, because other values would be invalid.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

_LONG = 10_000_000
"""Integers of at least this size are treated as texts, because they may be a whole secret."""


Kind = Literal["key", "value"]


class Leaves:
    """The texts of a record, including keys, in order."""

    def __init__(self, record: Any) -> None:
        self.texts: list[str] = []
        self.values: list[int] = []
        """Indices of the texts that are not keys."""
        _changed(record, self._add)

    def rebuilt(self, record: Any) -> Any:
        """Return `record` with the current `texts`."""
        texts = iter(self.texts)
        return _changed(record, lambda _text, _kind: next(texts))

    def _add(self, text: str, kind: Kind) -> str:
        if kind == "value":
            self.values.append(len(self.texts))
        self.texts.append(text)
        return text


Change = Callable[[str, Kind], str]
"""Function that returns the new text for a text."""


def _changed(value: Any, change: Change, *, is_json: bool = False) -> Any:
    """Return `value`, a record or part of one, with every text changed.

    In JSON, long integers are texts, too.
    """
    kind: Any = type(value)
    if kind is str:
        return change(value, "value")
    if is_json and kind is int and abs(value) >= _LONG:
        text = change(str(value), "value")
        return value if text == str(value) else text
    if kind is tuple or kind is list:
        return kind([_changed(each, change, is_json=is_json) for each in value])
    if hasattr(kind, "model_fields"):
        update = {name: _changed(getattr(value, name), change) for name in _free_fields(kind)}
        if value.__pydantic_extra__:
            update |= _changed(value.__pydantic_extra__, change)
        copy = value.model_copy(update=update)
        for name in vars(copy).keys() - kind.model_fields.keys():
            del vars(copy)[name]  # a cached property, with the earlier texts
        return copy
    return _changed_items(value, change) if isinstance(value, Mapping) else value


def _changed_items(value: Mapping[Any, Any], change: Change) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, each in value.items():
        name = change(key, "key") if type(key) is str else key
        while name in found:  # several keys may be replaced by the same name
            name += "'"
        found[name] = _changed(each, change, is_json=True)
    return found


@cache
def _free_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record that may hold any text."""
    fields = kind.model_fields.items()
    return tuple(name for name, field in fields if not _is_literal(field.annotation))


def _is_literal(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or any(map(_is_literal, get_args(annotation)))


def gathered(value: Any, values: list[str], every: list[str]) -> None:
    """Add the texts of a dumped record to `every`, and those that are not keys to `values`.

    Finds all that `Leaves` finds and some fixed values, but much faster.
    """
    is_object = type(value) is dict
    for key in value:
        if is_object:
            every.append(str(key))
        each = value[key] if is_object else key
        kind = type(each)
        if kind is str:
            values.append(each)
            every.append(each)
        elif kind is dict or kind is list or kind is tuple:
            gathered(each, values, every)
        elif kind is int and abs(each) >= _LONG:
            values.append(str(each))
            every.append(values[-1])
