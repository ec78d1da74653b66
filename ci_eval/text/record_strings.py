"""Extracting all texts from a record, at any depth, and putting changed ones back.

Fields with fixed values (`Literal`) are left out: a record with others would be invalid.
"""

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, Literal, cast, get_args, get_origin

_LONG = 10_000_000
"""Integers of at least this size are treated as texts, because they may be a whole secret."""


class Leaves:
    """The texts of a record, including keys, in order."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.values: list[int] = []
        """Indices of the texts that are not keys."""
        self._next = 0

    def visit(self, value: Any) -> None:
        """Add the texts of `value`, a record or part of one."""
        kind = type(value)
        if kind is str:
            self._add(value)
        elif kind is tuple or kind is list:
            for each in value:
                self.visit(each)
        elif hasattr(kind, "model_fields"):
            for name in _free_fields(cast("Hashable", kind)):
                self.visit(getattr(value, name))
            if value.__pydantic_extra__:
                self.visit_json(value.__pydantic_extra__)
        elif isinstance(value, Mapping):
            for key, each in value.items():
                self._visit_key(key)
                self.visit(each) if hasattr(type(each), "model_fields") else self.visit_json(each)

    def visit_json(self, value: Any) -> None:
        """Add the texts of a JSON value, including long integers."""
        if _is_long(value):
            self._add(str(value))
        elif isinstance(value, list | tuple):
            for each in value:
                self.visit_json(each)
        else:
            self.visit(value)

    def _visit_key(self, key: Any) -> None:
        if type(key) is str:
            self.texts.append(key)

    def _add(self, text: str) -> None:
        self.values.append(len(self.texts))
        self.texts.append(text)

    def rebuilt(self, value: Any) -> Any:
        """Return `value` with the current `texts`; walks in the same order as `visit`."""
        kind = type(value)
        if kind is str:
            return self._take()
        if kind is tuple or kind is list:
            return kind([self.rebuilt(each) for each in value])
        if hasattr(kind, "model_fields"):
            update = {
                name: self.rebuilt(getattr(value, name))
                for name in _free_fields(cast("Hashable", kind))
            }
            if value.__pydantic_extra__:
                update |= self.rebuilt_json(value.__pydantic_extra__)
            return value.model_copy(update=update)
        return self._rebuilt_mapping(value) if isinstance(value, Mapping) else value

    def rebuilt_json(self, value: Any) -> Any:
        """Return a JSON value likewise; walks in the same order as `visit_json`."""
        if _is_long(value):
            text = self._take()
            return value if text == str(value) else text
        if isinstance(value, list | tuple):
            return type(value)([self.rebuilt_json(each) for each in value])
        return self.rebuilt(value)

    def _rebuilt_mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, each in value.items():
            name = self._take() if type(key) is str else key
            while name in found:  # several keys are replaced by the same name
                name += "'"
            is_record = hasattr(type(each), "model_fields")
            found[name] = self.rebuilt(each) if is_record else self.rebuilt_json(each)
        return found

    def _take(self) -> str:
        self._next += 1
        return self.texts[self._next - 1]


def _is_long(value: Any) -> bool:
    return type(value) is int and abs(value) >= _LONG


@cache
def _free_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record that may hold any text."""
    return tuple(
        name for name, field in kind.model_fields.items() if not _is_literal(field.annotation)
    )


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
