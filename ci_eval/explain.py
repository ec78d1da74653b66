"""What pydantic found wrong, in the words of the person who wrote the file."""

import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from ci_eval.documents import Loc
from ci_eval.registry import did_you_mean

_EXPECTED = {
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "path": "a path",
}
_FOUND = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "nothing",
}


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Loc, str]]:
    """Yield the place and the message of each thing that is wrong with a value of `model`."""
    for detail in error.errors(include_url=False):
        steps = [step for step in detail["loc"] if not str(step).startswith("function-")]
        loc = [step for step in steps if step not in TAGS]
        yield loc, _message(detail, model, loc)


TAGS = frozenset({"<data>", "<events>"})
"""Names that discriminated unions put into the places of errors; no file has them."""


def _message(detail: Any, model: type[BaseModel], loc: Loc) -> str:
    kind, name = detail["type"], str(loc[-1]) if loc else ""
    if kind == "missing":
        return f"{name!r} is missing"
    if kind == "extra_forbidden":
        return f"unknown key{did_you_mean(name, _known(model, loc[:-1]))}"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    for ending in ("_type", "_parsing"):
        stem = kind.removesuffix(ending)
        if kind.endswith(ending) and stem in _EXPECTED:
            return f"expected {_EXPECTED[stem]}, found {describe(detail['input'])}"
    message: str = detail["msg"]
    return message[:1].lower() + message[1:]


def describe(value: object) -> str:
    """Return what kind of value `value` is, in words."""
    if isinstance(value, str):
        return f"{value[:40]!r}" if value else "an empty text"
    if isinstance(value, bool | int | float):
        return repr(value)[:40]
    return _FOUND.get(type(value), type(value).__name__)


def _known(model: type[BaseModel], loc: Loc) -> list[str]:
    """Return the fields of the model that `loc` leads to inside `model`."""
    for step in loc:
        if isinstance(step, str):
            fields = model.model_fields
            by_alias = {info.alias or name: info for name, info in fields.items()}
            info = fields.get(step) or by_alias.get(step)
            inner = _model_in(info.annotation) if info else None
            model = inner or model
    return [name for name, info in model.model_fields.items() if not info.exclude]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in typing.get_args(annotation):
        found = _model_in(inner)
        if found:
            return found
    return None
