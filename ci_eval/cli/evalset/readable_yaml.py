"""Readable YAML that YAML 1.1 and 1.2 parse alike."""

import re
from typing import Any

from ci_eval.records.cases import Json

_WIDTH = 1 << 30
"""Lines are not folded: a text stays in one line, so that a search finds it."""


def yaml_text(value: Json) -> str:
    """Return `value` in YAML that YAML 1.1 and 1.2 read alike."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  # as PyYAML calls it
            del indentless
            super().increase_indent(flow, False)  # noqa: FBT003  # as above

    Dumper.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+)$"),
        list("-+.0123456789"),
    )
    Dumper.add_representer(str, _text_node)
    dumped: str = yaml.dump(
        value,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_WIDTH,
    )
    return dumped


def _text_node(dumper: Any, text: str) -> Any:
    """Represent a multiline text as a block, and a text with invisible characters escaped."""
    lines = text.removesuffix("\n").split("\n")
    style = None
    if not all(map(str.isprintable, lines)):
        style = '"'
    elif "\n" in text:
        # A block that begins or ends with white space needs more than the indicator `|`.
        seen = len(lines) > 1 and text[0] not in " \n" and lines[-1] != ""
        style = "|" if seen else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
