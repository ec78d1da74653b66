"""Changes of inputs that keep their form, so that they come further than the parser.

An input is parsed, one to four of its values are changed, mostly to extremes, and it is written
again.  What is no JSON or YAML any more, and what has another form, is changed byte by byte.
"""

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

Bytewise = Callable[[bytes, int], bytes]
"""Changes bytes: an input, and how long it may become."""

NUMBERS = (
    *(0, -1, 1, 2, 100, 101, 255, 1000, 65_536, 10**6, 10**8, 2**31, 2**53 + 1, 2**63, 2**64),
    *(10**15, 10**20, 10**100, 10**307, 10**308, 10**400, -(10**8), -(10**20), -(10**400)),
    *(0.0, -0.0, 0.5, 1e-9, 1e-15, 1e-100, 5e-324, 1e15, 1e16, 1e100, 1e200, 1e308, -1e308, -1e200),
    *(float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308, 0.1 + 0.2),
)
TEXTS = (
    *[
        "--5",
        "+5",
        "5-",
        "-",
        "1_000",
        "5.",
        "1e5",
        "0x10",
        "-0",
        "0",
        "-1",
        "1e999",
        "nan",
        "true",
        "null",
        "/",
        "..",
        "::",
        "{}",
        "[",
        "]]>",
        "\\",
        '"',
    ],
    *("", " ", " 5 ", "\u00b2", "\u0663", "9" * 29, "9" * 310, "0x" + "f" * 298),
    *("\0", "\ud800", "\udfff x", "\u202e", "\ufeff", "x" * 300, "ab " * 5000, "gr\u00fc\u00df"),
    *("2026-13-45", "2026-01-01T00:00:00+00:00", "0001-01-01T00:00:00+23:59"),
    *("9999-12-31T23:59:59-23:59", "%s{x!r}", "a|b\n| c", "<script>", "##[error]x", "{{ x }}"),
    "\U0001f600",
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [{}], {"": ""})


class Mutator:
    """Changes inputs of one form.

    `words` are keys that mean something to the reader.  Half of the time one of the `seeds` is
    changed instead: what a fuzzer keeps is mostly what is refused early.
    """

    def __init__(
        self, form: str, words: tuple[str, ...], bytewise: Bytewise, seeds: tuple[bytes, ...] = ()
    ) -> None:
        self._form = form
        self._seeds = seeds
        self._words = words
        self._bytewise = bytewise

    def __call__(self, data: bytes, most: int, seed: int) -> bytes:
        """Return `data`, changed, in at most so many bytes."""
        draw = random.Random(seed)
        if self._seeds and draw.random() < 0.5:
            data = draw.choice(self._seeds)
        if self._form == "bytes" or draw.random() < 0.1:
            return self._bytewise(data, most)
        try:
            changed = self._changed(data, draw, most)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            return self._bytewise(data, most)
        return changed if changed and len(changed) <= most else self._bytewise(data, most)

    def _changed(self, data: bytes, draw: random.Random, most: int) -> bytes:
        text = data.decode("utf-8-sig")
        if self._form != "jsonl":
            return _written(self._mutated(_parsed(text, self._form), draw), draw, most)
        lines = text.splitlines() or [""]
        for _ in range(draw.choice((1, 1, 2))):
            at = draw.randrange(len(lines))
            match draw.randrange(8):
                case 0:
                    lines.insert(draw.randrange(len(lines) + 1), lines[at])
                case 1:
                    del lines[at]
                    lines = lines or [""]
                case _:
                    value = self._mutated(json.loads(lines[at]), draw)
                    lines[at] = (
                        _written(value, draw, most).decode(errors="replace").replace("\n", " ")
                    )
        return ("\n".join(lines) + draw.choice(("\n", "\n", ""))).encode()

    def _mutated(self, value: Any, draw: random.Random) -> Any:
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            value = self._once(value, draw)
        return value

    def _once(self, value: Any, draw: random.Random) -> Any:
        """Change one value, or one entry of one list or object."""
        places = _places(value)
        numbers = [each for each in places if each[0] is not None and _is_number(each[0][each[1]])]
        if numbers and draw.random() < 0.4:
            holder, key = draw.choice(numbers)
            holder[key] = self._instead(holder[key], draw)
            return value
        holder, key = draw.choice(places)
        if holder is None:
            return self._instead(value, draw)
        match draw.randrange(12):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 1 | 2 if isinstance(holder, dict):
                holder[draw.choice(self._words or ("x",))] = holder.pop(key)
            case 3 if isinstance(holder, dict):
                other, at = draw.choice(_places(value)[1:])
                holder[draw.choice(self._words or ("x",))] = copy.deepcopy(other[at])
            case 4:
                other, at = draw.choice(_places(value)[1:])
                holder[key] = copy.deepcopy(other[at])
            case 5 if isinstance(holder, list):
                holder[key : key + 1] = [holder[key]] * draw.choice((2, 10, 300))
            case _:
                holder[key] = self._instead(holder[key], draw)
        return value

    def _instead(self, value: Any, draw: random.Random) -> Any:
        kind = draw.randrange(10)
        is_number = _is_number(value)
        if is_number and kind < 2:
            return draw.choice((value + 1, value - 1, -value, value * 10, value / 3))
        if kind == 2:
            return _nested(value, draw.choice((1, 2, 60, 190, 230, 400)), draw)
        if kind == 3 and isinstance(value, str):
            return value + draw.choice(TEXTS)
        # Mostly a number for a number: what has another type is refused early.
        choice = NUMBERS if is_number and kind < 8 else (*NUMBERS, *TEXTS, *OTHERS)
        return copy.deepcopy(draw.choice(choice))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parsed(text: str, form: str) -> Any:
    if form == "yaml" and not text.lstrip().startswith(("{", "[")):
        import yaml

        try:
            return copy.deepcopy(yaml.safe_load(text))
        except yaml.YAMLError as exc:
            raise ValueError(str(exc)) from exc
    return json.loads(text)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in `value`: what holds it, and its key or position."""
    found: list[tuple[Any, Any]] = [(None, None)]
    waiting = [value]
    while waiting and len(found) < 5000:
        holder = waiting.pop()
        keys = (
            list(holder)
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found if len(found) > 1 else [(None, None), ([value], 0)]


def _nested(value: Any, depth: int, draw: random.Random) -> Any:
    is_list = draw.random() < 0.5
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


def _written(value: Any, draw: random.Random, most: int) -> bytes:
    indent, ascii_only = draw.choice((None, None, 1)), draw.random() < 0.9
    text = ""
    for piece in json.JSONEncoder(indent=indent, ensure_ascii=ascii_only).iterencode(value):
        text += piece
        if len(text) > most:
            raise ValueError("too long")
    if draw.random() < 0.05:  # a key that is there twice
        found = list(re.finditer(r'"(\w+)": ', text))
        if found:
            each = draw.choice(found)
            again = json.dumps(draw.choice((*NUMBERS, *TEXTS, *OTHERS)))
            text = f"{text[: each.start()]}{each[0]}{again}, {text[each.start() :]}"
    return text.encode("utf-8", "surrogatepass")
