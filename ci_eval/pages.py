"""The reference pages of plugins, as Markdown, made from their docstrings."""

import inspect
import json
from collections.abc import Iterator
from typing import Any

from ci_eval.errors import UnknownPluginError
from ci_eval.plugins import AnyCriterion, Plugin
from ci_eval.reference import FACTS, KINDS, catalogue, facts
from ci_eval.registry import did_you_mean

_INHERITED = ("threshold", "enabled")
"""Options that every criterion has; they come last."""


def pages(kind: str) -> Iterator[str]:
    """Yield the page of each plugin of a kind."""
    for name in KINDS[kind]:
        yield page(kind, name)


def page(kind: str, name: str) -> str:
    """Return the page of the plugin `name`: what it is, its facts, an example, its options.

    Raises:
        UsageError: there is no such kind, or no such plugin.

    """
    entries = {entry["name"]: entry for entry in catalogue(kind)[kind]}
    if name not in entries:
        raise UnknownPluginError(f"{kind} has no {name!r}{did_you_mean(name, entries)}")
    model: type[Plugin] = KINDS[kind][name]
    parts = [f"## `{name}`", inspect.cleandoc(model.__doc__ or ""), *_more(model, entries[name])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _more(model: type[Plugin], entry: dict[str, Any]) -> Iterator[str]:
    if issubclass(model, AnyCriterion):
        said = zip(FACTS, facts(entry), strict=True)
        yield " · ".join(f"{head}: {value}" for head, value in said)
        if model.aliases:
            yield f"Also called {', '.join(f'`{alias}`' for alias in model.aliases)}."
        yield _example(model)
    options = entry["options"]
    names = sorted(options, key=lambda name: name in _INHERITED)
    if names:
        rows = [_row(name, options[name]) for name in names]
        yield "\n".join(["| Option | Default | Meaning |", "| --- | --- | --- |", *rows])


def _example(model: type[AnyCriterion]) -> str:
    default = model.model_fields["threshold"].default
    threshold = 1 if default is None else default
    options = dict(model.example)
    if model.takes_threshold == "never":
        value = ""
    elif options:
        more = {"threshold": threshold} if default is None else {}
        value = f" {_flow({**options, **more})}"
    else:
        value = f" {threshold:g}"
    return f"```yaml\ncriteria:\n  {model.type_name}:{value}\n```"


def _flow(value: Any) -> str:
    """Return `value` as YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _row(name: str, option: dict[str, Any]) -> str:
    default = option.get("default")
    shown = "" if default in (None, "", [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"
    meaning = option["description"].replace("|", "\\|")
    return f"| `{name}` | {shown} | {meaning} |"
