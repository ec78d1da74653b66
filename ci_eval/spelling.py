"""How a text may be written by programs, and where another one holds it, however it is written.

A secret that an agent was given seldom comes back as it is: it stands in JSON within JSON, in an
address, or in the header of a request.  Two ways to write cover these, each character by character:

- as it is, escaped (JSON, Python, C, HTML; any number of times) or percent-encoded;
- in base64, by either alphabet, with line breaks, and as a part of a longer text.

What looks for it has to be fast where nothing is found, which is nearly always: there is a short
piece of it that every way keeps, and only where that is found the rest is looked at.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cached_property

_SAME = re.compile(r"[A-Za-z0-9._-]+")
"""Characters that nothing escapes."""
_SAME_IN_BASE64 = re.compile(r"[A-Za-z0-9]+")
"""Those of base64 that are the same in both alphabets."""
_ANCHOR = 16
"""The longest piece that is looked for."""
_LEAST = 4
"""The shortest one; shorter ones would be found everywhere."""
_SLASHES = r"\\{1,15}"
"""Escaping what is escaped already doubles them."""
_WIDTH = 24
"""In how many characters a single one is written at most, with what may stand before it."""
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_WORD = re.compile(r"[A-Za-z]+")


class Spelling:
    """One way to write a text: where another one holds it so."""

    def __init__(
        self,
        units: str,
        spell: Callable[[str], str],
        anchors: dict[str, int],
        *,
        gap: str = "",
        ends: tuple[str, str] = ("", ""),
    ) -> None:
        self.anchors = anchors
        """The pieces that are looked for, each with how many characters of the text come before."""
        self._units = units
        self._spell = spell
        self._gap = gap
        self._ends = ends

    def found_in(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield from where to where `text` has it."""
        for anchor, before in self.anchors.items():
            at = text.find(anchor)
            while at >= 0:
                found = self._around(text, at, before)
                if found:
                    yield found
                at = text.find(anchor, max(at + 1, found[1] if found else 0))

    def _around(self, text: str, at: int, before: int) -> tuple[int, int] | None:
        """Return the span round the piece that was found `at` a place."""
        head, tail = self._patterns[before]
        end = tail.match(text, at)
        if end is None:
            return None
        begin = head.search(text, max(0, at - before * _WIDTH), at)
        return (begin.start(), end.end()) if begin else None

    @cached_property
    def _patterns(self) -> dict[int, tuple[re.Pattern[str], re.Pattern[str]]]:
        """What stands before each of the pieces, and what from there on."""
        spelled = [self._spell(unit) for unit in self._units]
        found = {}
        for before in self.anchors.values():
            head = "".join(f"{each}{self._gap}" for each in spelled[:before])
            tail = self._gap.join(spelled[before:])
            found[before] = (
                re.compile(f"{self._ends[0] if before else ''}{head}\\Z"),
                re.compile(f"{'' if before else self._ends[0]}{tail}{self._ends[1]}"),
            )
        return found


def spellings(text: str) -> Iterator[Spelling]:
    """Yield the ways in which `text` may be written.

    What is but one word of letters is found only where it stands as a word.
    """
    ends = (r"(?<![\w-])", r"(?![\w-])") if _WORD.fullmatch(text) else ("", "")
    yield Spelling(text, _escaped, _anchors(text), ends=ends)
    data = text.encode(errors="surrogatepass")
    for shift in range(3):
        yield _base64(data, shift)


def literally(text: str) -> set[str]:
    """Return the usual ways to write `text`, of each what is the same wherever it stands."""
    data = text.encode(errors="surrogatepass")
    percent = (chr(byte) if _SAME.match(chr(byte)) else f"%{byte:02X}" for byte in data)
    found = {text, json.dumps(text)[1:-1], "".join(percent)}
    for core in (_core(data, shift) for shift in range(3)):
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return found


def _anchors(text: str) -> dict[str, int]:
    """Return what every way to escape `text` keeps; else how they may begin."""
    runs = list(_SAME.finditer(text))
    if not runs:
        return dict.fromkeys(_beginnings(text[:1]), 0)
    long = (run for run in runs if len(run[0]) >= 2 * _LEAST)
    best = next(long, None) or max(runs, key=lambda run: len(run[0]))
    return {best[0][:_ANCHOR]: best.start()}


def _beginnings(char: str) -> set[str]:
    """Return how the ways to escape a character begin."""
    byte = char.encode(errors="surrogatepass")[:1].hex()
    percent = [f"%{'25' * again}" for again in range(4)]
    unit = f"{_utf16(char)[0]:04x}"
    return {
        *(char, f"\\x{byte}", f"\\u{unit}", f"\\u{unit.upper()}", "&"),
        *(each + byte for each in percent),
        *(each + byte.upper() for each in percent),
    }


# --- Escaped ----------------------------------------------------------------------------------


def _escaped(char: str) -> str:
    """Return the pattern of one character as it is, escaped or percent-encoded."""
    if _SAME.fullmatch(char):
        return re.escape(char)
    data = char.encode(errors="surrogatepass")
    percent = "".join(f"%(?:25){{0,3}}{_hex(f'{byte:02x}')}" for byte in data)
    units = "".join(rf"{_SLASHES}u{_hex(f'{unit:04x}')}" for unit in _utf16(char))
    ways = [percent, units]
    if char == "\n":
        ways += [r"\r\n", rf"(?:{_SLASHES}r)?{_SLASHES}n", "%0[Dd]%0[Aa]"]
    elif char == "\t":
        ways.append(rf"{_SLASHES}t")
    elif char == " ":
        ways.append(r"\+")
    elif ord(char) < 256:
        entity = f"|{_ENTITIES[char]}" if char in _ENTITIES else ""
        ways.append(rf"&(?:amp;){{0,2}}(?:#0?{ord(char)}|#x{_hex(f'{ord(char):x}')}{entity});")
        ways.append(rf"{_SLASHES}x{_hex(f'{ord(char):02x}')}")
    # As it is comes last: what else begins with it goes on.
    return f"(?:{'|'.join(ways)}|\\\\{{0,15}}{re.escape(char)})"


def _hex(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be", errors="surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


# --- Base64 -----------------------------------------------------------------------------------

_GAP = rf"(?:\s|{_SLASHES}[rn]){{0,3}}"
"""Programs break long lines."""
_IN_BASE64 = {"+": r"(?:\+|-|%2[Bb]|\\+u002[Bb])", "/": r"(?:\\{0,15}/|_|%2[Ff])"}
_PADDING = r"(?:=|%3[Dd]|\\+u003[Dd]){0,2}"


def _base64(data: bytes, shift: int) -> Spelling:
    """Return how `data` is written in base64 behind so many bytes over a multiple of 3.

    The characters at both ends that hold bits of what stands before and behind are no part of it;
    the one behind goes along.
    """
    core = _core(data, shift)
    tail = rf"(?:{_GAP}[A-Za-z0-9+/_-])?{_PADDING}" if (shift + len(data)) % 3 else _PADDING
    return Spelling(
        core, lambda char: _IN_BASE64.get(char, char), _pieces(core), gap=_GAP, ends=("", tail)
    )


def _core(data: bytes, shift: int) -> str:
    """Return what of `data` in base64 is the same whatever stands round it."""
    whole = b64encode(b"\0" * shift + data).decode().rstrip("=")
    return whole[shift + 1 if shift else 0 : -1 if (shift + len(data)) % 3 else None]


def _pieces(core: str) -> dict[str, int]:
    """Return pieces of a text in base64; a line break is not in all of them."""
    count = 1 if len(core) < 4 * _LEAST else 2 if len(core) < 100 else 5
    size = len(core) // count
    found: dict[str, int] = {}
    for number in range(count):
        runs = _SAME_IN_BASE64.finditer(core, number * size, (number + 1) * size)
        best = max(runs, key=lambda run: len(run[0]), default=None)
        if best:
            inner = max(0, (len(best[0]) - _ANCHOR) // 2)
            found[best[0][inner : inner + _ANCHOR]] = best.start() + inner
    return found
