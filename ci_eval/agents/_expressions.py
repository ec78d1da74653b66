"""The language of the `http` agent: what goes into a request, and what is taken from an answer.

It is Jinja's, in its sandbox, both ways.  JMESPath reads answers more briefly, but it cannot write
requests, so that there would be two languages to learn; its package has no types and would be
one more to install, while Jinja is here.  Paths with dots alone could neither choose (`answer.text
or answer.error`) nor filter (`answer.steps | selectattr("kind", "equalto", "tool")`).

In a request a text is a template, `Bearer {{ session.id }}`; one that is nothing but an expression,
`{{ history }}`, becomes its value, whatever kind of JSON that is.  An answer is read by
expressions without braces.  `a.b` is the key `b` of `a` and never one of Python's methods.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator

from ci_eval.records.model import Json
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean

MAX_ELEMENTS = 100_000
"""How many elements a list may have that an expression makes."""
SHOWN_CHARS = 200
_WRONG = (
    *(ArithmeticError, AttributeError, LookupError, NameError, RecursionError),
    *(TypeError, ValueError),
)
"""What the operators and filters of an expression may raise beside Jinja's own errors."""


class ExpressionError(ValueError):
    """An expression has no value here; says which one, and why."""


class Nothing:
    """What an expression finds that leads nowhere."""


# --- Expressions ------------------------------------------------------------------------------


def value_of(expression: str, data: Mapping[str, Json]) -> Any:
    """Return what `expression` makes of `data`: JSON, or `Nothing` where it leads nowhere.

    Raises:
        ExpressionError: it cannot be computed.

    """
    from jinja2 import TemplateError, UndefinedError

    try:
        return _plain(_compiled(expression)(**data))
    except UndefinedError:
        return Nothing
    except (TemplateError, *_WRONG) as exc:
        raise _wrong(expression, exc) from exc


def filled(form: Json, data: Mapping[str, Json]) -> Json:
    """Return the JSON value `form` with every text in it filled with `data`.

    Raises:
        ExpressionError: a text asks for what there is not.

    """
    if isinstance(form, Mapping):
        return {key: filled(value, data) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [filled(value, data) for value in form]
    if not isinstance(form, str):
        return form
    alone = _alone(form)
    if alone is None:
        return _rendered(form, data)
    value = value_of(alone, data)
    if value is Nothing:
        raise ExpressionError(f"`{one_line(form, SHOWN_CHARS)}` finds nothing")
    return value


def filled_address(address: str, data: Mapping[str, Json]) -> str:
    """Return `address` with what is put into it percent-encoded.

    Raises:
        ExpressionError: as `filled` does.

    """
    return _rendered(address, data, "addresses")


def _rendered(
    text: str, data: Mapping[str, Json], of: Literal["texts", "addresses"] = "texts"
) -> str:
    from jinja2 import TemplateError

    try:
        made: str = _environment(of).from_string(text).render(**data)
    except (TemplateError, *_WRONG) as exc:
        raise _wrong(text, exc) from exc
    return made


def _wrong(text: str, exc: Exception) -> ExpressionError:
    said = one_line(str(exc), SHOWN_CHARS)
    return ExpressionError(f"`{one_line(text, SHOWN_CHARS)}` has no value: {said}")


def _plain(value: Any) -> Any:
    """Return `value` as JSON has it."""
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
    raise TypeError(f"it is {type(value).__name__}, which JSON has not")


# --- What may stand in a configuration --------------------------------------------------------

_OF_REQUESTS = frozenset({"message", "messages", "history", "session", "tool_mocks"})
_OF_ANSWERS = frozenset({"answer", "event", "call"})


def asked_for(form: Json) -> set[str]:
    """Return the names of the values that the texts in `form` ask for."""
    from jinja2.meta import find_undeclared_variables

    found: set[str] = set()
    for text in _texts(form):
        found |= find_undeclared_variables(_environment("texts").parse(text))
    return found


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
        raise ValueError(f"is no template: {one_line(str(exc), SHOWN_CHARS)}") from None
    if unknown:
        name = min(unknown)
        raise ValueError(f"asks for {name!r}, which there is not here{did_you_mean(name, known)}")


def _template(form: Json) -> Json:
    _checked(form, _OF_REQUESTS)
    return form


def _expression(text: str) -> str:
    from jinja2 import TemplateError

    try:
        _compiled(text)
    except TemplateError as exc:
        raise ValueError(f"is no expression: {one_line(str(exc), SHOWN_CHARS)}") from None
    _checked(f"{{{{ {text} }}}}", _OF_ANSWERS)
    return text


Form = Annotated[Json, AfterValidator(_template)]
"""JSON for a request, whose texts are templates."""
Template = Annotated[str, AfterValidator(_template)]
"""A text of a request."""
Expression = Annotated[str, AfterValidator(_expression)]
"""What is read from an answer."""


# --- Jinja ------------------------------------------------------------------------------------


@cache
def _environment(of: Literal["texts", "addresses", "expressions"]) -> Any:
    """Return the environment; the import takes a while."""
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
        # An expression may try what is not there, as in `answer.text or answer.error`.
        undefined=ChainableUndefined if of == "expressions" else StrictUndefined,
        finalize=_in_address if of == "addresses" else _in_text,
    )
    environment.globals.clear()
    return environment


def _in_text(value: Any) -> Any:
    """Return how a value is written into a text: as itself, or as JSON."""
    if isinstance(value, str) or _plain(value) is Nothing:
        return value  # what is undefined raises an error of its own
    return "" if value is None else json.dumps(_plain(value), ensure_ascii=False)


def _in_address(value: Any) -> Any:
    written = _in_text(value)
    return quote(written, safe="") if isinstance(written, str) else written


@cache
def _compiled(expression: str) -> Any:
    return _environment("expressions").compile_expression(expression, undefined_to_none=False)


@cache
def _alone(text: str) -> str | None:
    """Return the expression that `text` is nothing but; `None` where there is more."""
    from jinja2.nodes import Output, TemplateData

    body = _environment("texts").parse(text.strip()).body
    match body:
        case [Output(nodes=[node])] if not isinstance(node, TemplateData):
            return text.strip().removeprefix("{{").removesuffix("}}").strip("-+")
    return None
