"""What a GitHub runner reads in a log and in its files, written from the runner's rules.

`ActionCommand.cs`, `ActionCommandManager.cs` and `FileCommandManager.cs` of
<https://github.com/actions/runner>: both streams are read line by line; a command of the second
form begins a line, after blanks; one of the first form begins anywhere.  A real runner obeys only
the names it knows; here every name counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = (
    "\t\n\x0b\x0c\r \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What .NET's `TrimStart` takes away: `Char.IsWhiteSpace`."""
_LINE = re.compile(r"\r\n|\r|\n")
"""Where .NET's `ReadLine` ends a line."""
_DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
_PROPERTIES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What may steer a terminal, or hides something on it."""


class Command(NamedTuple):
    """What a runner is told to do."""

    name: str
    properties: dict[str, str]
    data: str


def commands(log: str) -> Iterator[Command]:
    """Yield every command in what a process printed."""
    for line in _LINE.split(log):
        if found := _second_form(line) or _first_form(line):
            yield found


def _second_form(line: str) -> Command | None:
    text = line.lstrip(_BLANKS)
    end = text.find("::", 2)
    if not text.startswith("::") or end < 0:
        return None
    name, _, properties = text[2:end].partition(" ")
    return Command(name, _read(properties, ","), _unescaped(text[end + 2 :], _DATA))


def _first_form(line: str) -> Command | None:
    start = line.find("##[")
    end = line.find("]", start)
    if start < 0 or end < 0:
        return None
    name, _, properties = line[start + 3 : end].partition(" ")
    return Command(name, _read(properties, ";"), line[end + 1 :])


def _read(properties: str, between: str) -> dict[str, str]:
    pairs = (each.strip().partition("=") for each in properties.split(between))
    return {name: _unescaped(value, _PROPERTIES) for name, _, value in pairs if name}


def _unescaped(text: str, escapes: dict[str, str]) -> str:
    for escaped, meant in escapes.items():
        text = text.replace(escaped, meant)
    return text


def values(file: str) -> dict[str, str]:
    """Return the values in a file of outputs.

    Raises:
        ValueError: the runner would refuse the file.

    """
    found: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\n", file))
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, found[name] = line.partition("=")
        elif heredoc > 0:
            name, _, delimiter = line.partition("<<")
            value: list[str] = []
            while (each := next(lines, None)) != delimiter:
                if each is None:
                    raise ValueError(f"{name} is never ended")
                value.append(each)
            found[name] = "\n".join(value)
        elif line:
            raise ValueError(f"neither a value nor the begin of one: {line!r}")
    return found
