"""Template and expression language of the `http` agent.

It is sandboxed Jinja, for requests and answers.  JMESPath is shorter for answers, but cannot write
requests, so users would have to learn two languages; and it would be another package to install,
without types, while Jinja is already a dependency.  Dotted paths alone could neither choose
(`answer.text or answer.error`) nor filter (`answer.steps | selectattr("kind", "equalto", "tool")`).

In a request, a text is a template, such as `Bearer {{ session.id }}`; a text that is a single
expression, such as `{{ history }}`, becomes its value, of any JSON type.  Answers are read by
expressions without braces.  `a.b` is the key `b` of `a`, never a Python method.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator

from ci_eval.records.cases import Json
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean

MAX_ELEMENTS = 100_000
"""Maximum number of elements of a list that an expression returns."""
SHOWN_CHARS = 200
_EVALUATION_ERRORS = (
    *(ArithmeticError, AttributeError, LookupError, NameError, RecursionError),
    *(TypeError, ValueError),
)
"""Exceptions that operators and filters raise, in addition to Jinja's own."""


class ExpressionError(ValueError):
    """An expression could not be evaluated; the message names it and the reason."""


class Nothing:
    """The value of an expression that finds nothing."""


# --- Expressions ------------------------------------------------------------------------------


def value_of(expression: str, data: Mapping[str, Json]) -> Any:
    """Evaluate `expression` with `data`; return JSON, or `Nothing` if it finds nothing.

    Raises:
        ExpressionError: it cannot be evaluated.

    """
    from jinja2 import TemplateError, UndefinedError

    try:
        return _plain(_compiled(expression)(**data))
    except UndefinedError:
        return Nothing
    except (TemplateError, *_EVALUATION_ERRORS) as exc:
        raise _error(expression, exc) from exc


def filled(form: Json, data: Mapping[str, Json]) -> Json:
    """Render every text in the JSON value `form` with `data`.

    Raises:
        ExpressionError: a text refers to a value that does not exist.

    """
    if isinstance(form, Mapping):
        return {key: filled(value, data) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [filled(value, data) for value in form]
    if not isinstance(form, str):
        return form
    alone = _single_expression(form)
    if alone is None:
        return _rendered(form, data)
    value = value_of(alone, data)
    if value is Nothing:
        raise ExpressionError(f"`{one_line(form, SHOWN_CHARS)}` finds nothing")
    return value


def filled_address(address: str, data: Mapping[str, Json]) -> str:
    """Render `address` with percent-encoded values.

    Raises:
        ExpressionError: as for `filled`.

    """
    return _rendered(address, data, "addresses")


def _rendered(
    text: str, data: Mapping[str, Json], of: Literal["texts", "addresses"] = "texts"
) -> str:
    from jinja2 import TemplateError

    try:
        made: str = _environment(of).from_string(text).render(**data)
    except (TemplateError, *_EVALUATION_ERRORS) as exc:
        raise _error(text, exc) from exc
    return made


def _error(text: str, exc: Exception) -> ExpressionError:
    why = one_line(str(exc), SHOWN_CHARS)
    return ExpressionError(f"`{one_line(text, SHOWN_CHARS)}` has no value: {why}")


def _plain(value: Any) -> Any:
    """Convert `value` to JSON."""
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        return Nothing
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Iterator):
        found = [_plain(each) for each in islice(value, MAX_ELEMENTS + 1)]
        if len(found) > MAX_ELEMENTS:
            raise ValueError(f"it has more than {MAX_ELEMENTS} elements")
        return found
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is not a finite number")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"it is {type(value).__name__}, which is not a JSON type")


# --- Validation of configurations -------------------------------------------------------------

_REQUEST_NAMES = frozenset({"message", "messages", "history", "session", "tool_mocks"})
_ANSWER_NAMES = frozenset({"answer", "event", "call"})


def asked_for(form: Json) -> set[str]:
    """Return the names of the values that the texts in `form` refer to."""
    from jinja2.meta import find_undeclared_variables

    parsed = map(_environment("texts").parse, _texts(form))
    return set[str]().union(*map(find_undeclared_variables, parsed))


def _texts(form: Json) -> Iterator[str]:
    if isinstance(form, str):
        yield form
    elif isinstance(form, Mapping | list | tuple):
        for each in form.values() if isinstance(form, Mapping) else form:
            yield from _texts(each)


def _checked(form: Json, known: frozenset[str]) -> None:
    from jinja2 import TemplateError

    try:
        unknown = asked_for(form) - known
    except TemplateError as exc:
        raise ValueError(f"is not a valid template: {one_line(str(exc), SHOWN_CHARS)}") from None
    if unknown:
        name = min(unknown)
        hint = did_you_mean(name, known)
        raise ValueError(f"refers to {name!r}, which is not available here{hint}")


def _template(form: Json) -> Json:
    _checked(form, _REQUEST_NAMES)
    return form


def _expression(text: str) -> str:
    from jinja2 import TemplateError

    try:
        _compiled(text)
    except TemplateError as exc:
        raise ValueError(f"is not a valid expression: {one_line(str(exc), SHOWN_CHARS)}") from None
    _checked(f"{{{{ {text} }}}}", _ANSWER_NAMES)
    return text


Form = Annotated[Json, AfterValidator(_template)]
"""The JSON of a request; its texts are templates."""
Template = Annotated[str, AfterValidator(_template)]
"""A template for a text of a request."""
Expression = Annotated[str, AfterValidator(_expression)]
"""An expression that is evaluated on an answer."""


# --- Jinja ------------------------------------------------------------------------------------


@cache
def _environment(of: Literal["texts", "addresses", "expressions"]) -> Any:
    """Return the Jinja environment, imported on first use because it is slow."""
    from jinja2 import ChainableUndefined, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        def getattr(self, obj: Any, attribute: str) -> Any:
            if isinstance(obj, Mapping):
                return obj.get(attribute, self.undefined(obj=obj, name=attribute))
            if obj is None or isinstance(obj, str | int | float | list | tuple):
                return self.undefined(obj=obj, name=attribute)
            return super().getattr(obj, attribute)

        def getitem(self, obj: Any, argument: Any) -> Any:
            if isinstance(argument, str):
                return self.getattr(obj, argument)
            return super().getitem(obj, argument)

    environment = Environment(
        # An expression may refer to missing values, as in `answer.text or answer.error`.
        undefined=ChainableUndefined if of == "expressions" else StrictUndefined,
        finalize=_in_address if of == "addresses" else _in_text,
    )
    environment.globals.clear()
    return environment


def _in_text(value: Any) -> Any:
    """Return a value for use in a text: unchanged if it is text, else as JSON."""
    if isinstance(value, str) or _plain(value) is Nothing:
        return value  # undefined values raise their own error
    return "" if value is None else json.dumps(_plain(value), ensure_ascii=False)


def _in_address(value: Any) -> Any:
    written = _in_text(value)
    return quote(written, safe="") if isinstance(written, str) else written


@cache
def _compiled(expression: str) -> Any:
    return _environment("expressions").compile_expression(expression, undefined_to_none=False)


@cache
def _single_expression(text: str) -> str | None:
    """Return the expression if `text` is only one expression; else `None`."""
    from jinja2.nodes import Output, TemplateData

    body = _environment("texts").parse(text.strip()).body
    match body:
        case [Output(nodes=[node])] if not isinstance(node, TemplateData):
            return text.strip().removeprefix("{{").removesuffix("}}").strip("-+")
    return None
