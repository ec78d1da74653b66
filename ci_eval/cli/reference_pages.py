"""Markdown reference of plugins, presets and configuration, generated from docstrings."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ci_eval.cli.reference import FACTS, KINDS, catalogue, facts, options_of
from ci_eval.config.presets import PRESETS, expanded
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.plugin import Plugin
from ci_eval.records.errors import UnknownPluginError
from ci_eval.text.suggest import did_you_mean

_INHERITED = ("threshold", "enabled", "tier", "max_growth")
"""Options common to all criteria, listed last."""


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading.

    >>> anchor("`ci/tool_order` and more")
    'citool_order-and-more'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def presets() -> Iterator[str]:
    """Yield the page of each preset: description, example, criteria, options."""
    for name, model in PRESETS.items():
        doc = inspect.cleandoc(model.__doc__ or "")
        asked = f"{{{name}: {_flow(model.example)}}}" if model.example else name
        example = f"```yaml\npreset: {asked}\n```"
        specs = expanded(name, model.example)
        parts = [f"## `{name}`", doc, example, _specs(specs), option_table(options_of(model))]
        yield "\n\n".join(part for part in parts if part) + "\n"


def _specs(specs: dict[str, dict[str, Any]]) -> str:
    """Return a table of the criteria that a preset expands to."""
    rows = []
    for name, options in specs.items():
        said = {key: value for key, value in options.items() if value not in (None, "", [])}
        shown = ", ".join(f"`{key}: {_flow(value)}`" for key, value in said.items())
        judged = "yes" if KINDS["criteria"][name].judged else "no"
        rows.append((f"[`{name}`](criteria.md#{anchor(name)})", judged, shown))
    return table(("Criterion", "judge", "Options"), rows)


def page(kind: str, name: str) -> str:
    """Return the page of the plugin `name`: description, facts, example, options.

    Raises:
        UsageError: there is no such kind, or no such plugin.

    """
    entries = {entry["name"]: entry for entry in catalogue(kind, options=False)[kind]}
    if name not in entries:
        raise UnknownPluginError(f"{kind} has no {name!r}{did_you_mean(name, entries)}")
    if name in PRESETS and kind not in KINDS:
        return dict(zip(PRESETS, presets(), strict=True))[name]
    model: type[Plugin] = KINDS[kind][name]
    entry = {**entries[name], "options": options_of(model)}
    parts = [f"## `{name}`", inspect.cleandoc(model.__doc__ or ""), *_more(model, entry)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _more(model: type[Plugin], entry: dict[str, Any]) -> Iterator[str]:
    if issubclass(model, AnyCriterion):
        said = zip(FACTS, facts(entry), strict=True)
        yield " · ".join(f"{head}: {value}" for head, value in said)
        if model.aliases:
            yield f"Also called {', '.join(f'`{alias}`' for alias in model.aliases)}."
        yield _example(model)
    options = dict(entry["options"])
    if issubclass(model, AnyCriterion) and model.interval:
        # `max_growth` is only for criteria without an interval.
        options.pop("max_growth", None)
    if options:
        yield option_table(options)


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


def option_table(options: dict[str, dict[str, Any]]) -> str:
    """Return a table of options, given by their schemas; empty if there are none."""
    if not options:
        return ""
    names = sorted(options, key=lambda name: name in _INHERITED)
    return table(("Option", "Default", "Meaning"), [_row(name, options[name]) for name in names])


def _row(name: str, option: dict[str, Any]) -> tuple[str, str, str]:
    default = option.get("default")
    plain = default not in (None, "", [], {}) and not isinstance(default, dict)
    shown = f"`{json.dumps(default, ensure_ascii=False)}`" if plain else ""
    return f"`{name}`", shown, option["description"]


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    ruled = [heads, ("---",) * len(heads), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in ruled)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)
