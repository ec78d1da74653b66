"""Plain messages for pydantic's validation errors, for the author of the file."""

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import InitErrorDetails

from ci_eval.records.errors import Problem, UsageError
from ci_eval.text.json_text import JsonText
from ci_eval.text.suggest import as_number, as_share, did_you_mean
from ci_eval.text.yaml_files import Document, Loc, dotted

M = TypeVar("M", bound=BaseModel)
_EXPECTED = {
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "path": "a path",
}
_SAID = {
    "greater_than": "must be more than {gt:g}, found {found}",
    "greater_than_equal": "must be at least {ge:g}, found {found}",
    "less_than": "must be less than {lt:g}, found {found}",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_too_long": "must not be longer than {max_length} characters",
    "too_long": "expected at most {max_length} elements, found {actual_length}",
    "literal_error": "expected {expected}, found {found}",
    "finite_number": "expected a finite number, found {found}",
    "int_from_float": "expected a whole number, found {found}",
}
_FOUND = {list: "a list", tuple: "a list", dict: "an object", type(None): "nothing"}
_IN_UNION = re.compile(r"<\w+>|function-\w+\[.*\]", re.DOTALL)
"""Steps that unions add to the location of an error, but that do not exist in the file."""


class Fault(NamedTuple):
    """One error in a value."""

    loc: Loc
    """Where it is; for a missing key, the location of its parent."""
    message: str
    kind: str
    """Pydantic's type of the error, such as `missing` or `string_type`."""
    key: str
    """The last step of pydantic's location; for a missing key, the key itself."""


def errors_in(error: ValidationError, model: type[BaseModel]) -> Iterator[Fault]:
    """Yield each error in a value of `model`."""
    details = error.errors(include_url=False)
    misspelt = {
        (*each["loc"][:-1], meant)
        for each in details
        if each["type"] == "extra_forbidden"
        for meant in _likely(str(each["loc"][-1]), _model_at(model, each["loc"][:-1]))
    }
    for detail in details:
        if detail["type"] == "missing" and detail["loc"] in misspelt:
            continue  # its misspelt key is reported as unknown already
        steps, kind = detail["loc"], detail["type"]
        message, key = _message(detail, model, steps), str(steps[-1]) if steps else ""
        shown = steps[:-1] if kind == "missing" else steps
        loc = [step for step in shown if not _IN_UNION.fullmatch(str(step))]
        yield Fault(loc, message, kind, key)


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Loc, str]]:
    """Yield the location and the message of each error in a value of `model`."""
    return ((each.loc, each.message) for each in errors_in(error, model))


def read_as(model: type[M], value: Any, refuse: Callable[[str, Loc], None]) -> M | None:
    """Return `value` as a `model`; if it is invalid, pass its errors to `refuse`: return `None`."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        for loc, message in explain(exc, model):
            # Unions add names of types, which the file does not have.
            place, _ = existing(value, loc)
            refuse(message, tuple(each for each in loc if isinstance(each, int) or each in place))
        return None


def read_document(document: Document | JsonText, model: type[M]) -> M:
    """Return the value of `document` as a `model`.

    Raises:
        UsageError: it is invalid; names the place of each error.

    """
    problems: list[Problem] = []
    found = read_as(model, document.value, lambda *at: problems.append(document.problem(*at)))
    if found is None:
        raise UsageError(problems=problems)
    return found


def existing(value: Any, loc: Loc) -> tuple[tuple[int | str, ...], Any]:
    """Return the steps of `loc` that exist in `value`, and the value there; unions add others."""
    place: list[int | str] = []
    for step in loc:
        inside = isinstance(value, Mapping) and step in value
        if inside or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            value = value[step]
            place.append(step)
    return tuple(place), value


def described(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Yield each error in a value of `model` as `location: message`."""
    for loc, message in explain(error, model):
        yield f"{dotted(loc)}: {message}" if loc else message


def _message(detail: Any, model: type[BaseModel], loc: Loc) -> str:
    kind, name = detail["type"], loc[-1] if loc else ""
    if kind == "missing":
        inside = _model_at(model, loc[:-1])
        field = written(inside, _field(inside, str(name)))
        return "has too few elements" if isinstance(name, int) else f"{field!r} is missing"
    if kind == "extra_forbidden":
        return _unknown(str(name), _model_at(model, loc[:-1]))
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    found = describe(detail["input"])
    if kind == "less_than_equal":
        most = detail["ctx"]["le"]
        return f"must be at most {most:g}, found {found}{as_share(detail['input'], most)}"
    if kind in _SAID:
        return _SAID[kind].format(found=found, **detail.get("ctx", {}))
    expected = _EXPECTED.get(re.sub("_(type|parsing)$", "", kind))
    message: str = detail["msg"]
    share = as_number(detail["input"]) if _is_share(model, loc) else ""
    said = f"expected {expected}, found {found}{_unspaced(detail['input']) or share}"
    return said if expected else message[:1].lower() + message[1:]


def describe(value: object) -> str:
    """Return a short description of `value`."""
    if isinstance(value, str):
        shown = f"{value[:40]!r}" if value else "an empty text"
        return shown + "…" if len(value) > 40 else shown
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)[:40]
    return _FOUND.get(type(value), type(value).__name__)


def _unspaced(value: object) -> str:
    """Return the end of a message: the key in a text such as `name:shop`, which lacks a space."""
    found = re.match(r"([a-z_]+:)[^\s/]", value) if isinstance(value, str) else None
    return f"; put a space after {found[1]!r}" if found else ""


def _is_share(model: type[BaseModel], loc: Loc) -> bool:
    """Return True if the number at `loc` is at most 1."""
    info = _model_at(model, loc[:-1]).model_fields.get(str(loc[-1])) if loc else None
    bounds = info.metadata if info else ()
    return any(getattr(each, "le", getattr(each, "lt", 0)) == 1 for each in bounds)


def validated(model: type[M], value: Any, **more: Any) -> M:
    """Return `value`, which a user wrote, as a `model`; a boolean does not count as a number.

    Raises:
        ValidationError: it is invalid.

    """
    found = model.model_validate(value, **more)
    if wrong := [*_booleans(value, found)]:
        raise ValidationError.from_exception_data(model.__name__, wrong)
    return found


def _booleans(given: Any, found: Any, loc: Loc = ()) -> Iterator[InitErrorDetails]:
    """Yield the booleans in `given` that became numbers in `found`."""
    if isinstance(given, bool):
        if isinstance(found, int | float) and not isinstance(found, bool):
            kind = "int_type" if isinstance(found, int) else "float_type"
            yield InitErrorDetails(type=kind, loc=tuple(loc), input=given)
    elif isinstance(given, Mapping):
        for key, inner in given.items():
            if isinstance(found, BaseModel):
                part = getattr(found, _field(type(found), str(key)), None)
            else:
                part = found.get(key) if isinstance(found, Mapping) else None
            yield from _booleans(inner, part, (*loc, key))
    elif isinstance(given, list | tuple) and isinstance(found, list | tuple):
        for index, (inner, part) in enumerate(zip(given, found, strict=False)):
            yield from _booleans(inner, part, (*loc, index))


def _field(model: type[BaseModel], key: str) -> str:
    """Return the name of the field of `model` for the file's `key`, which may be an alias."""
    aliases = {info.alias: name for name, info in model.model_fields.items()}
    return aliases.get(key, key)


def _likely(key: str, model: type[BaseModel]) -> list[str]:
    return get_close_matches(key, sorted(model.model_fields), n=1)


def _unknown(key: str, model: type[BaseModel]) -> str:
    known = [name for name, info in model.model_fields.items() if not info.exclude]
    if _field(model, key) in known:
        return "is given twice, in two spellings"
    return f"unknown key{did_you_mean(key, [written(model, name) for name in known])}"


def written(model: type[BaseModel], name: str) -> str:
    """Return the key that users write for a field: an alias if it was set on the field itself.

    Other aliases are ADK's spellings.
    """
    info = model.model_fields.get(name)
    return info.alias if info and info.alias and info.alias_priority == _BY_HAND else name


_BY_HAND = 2
"""Pydantic's priority of such an alias."""


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """Return the innermost model on the path `loc` into `model`."""
    annotation: Any = model
    for step in loc:
        if isinstance(step, str):
            tagged = _tagged(annotation, step)
            info = model.model_fields.get(_field(model, step))
            annotation = tagged or (info.annotation if info else annotation)
            model = _model_in(annotation) or model
    return model


def _tagged(annotation: Any, tag: str) -> Any:
    """Return the member of a union that has `tag`."""
    if Tag(tag) in getattr(annotation, "__metadata__", ()):
        return annotation
    found = (_tagged(inner, tag) for inner in typing.get_args(annotation))
    return next(filter(None, found), None)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)
