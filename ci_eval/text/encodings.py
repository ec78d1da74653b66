"""How a text may be written by programs, and where another one holds it, however it is written.

A secret that an agent was given seldom comes back as it is: it stands in JSON within JSON, in an
address, or in the header of a request.  So the other text is read before it is searched
(`Reading`): all that is escaped for JSON, Python, C, HTML or an address, any number of times,
becomes what it stands for, and blanks and slashes go, which programs add where they break lines
and quote, and so do colours.  The secret is read the same way, and is then found as it is; in
hexadecimal digits, joined or with a mark or `0x` between its bytes; or in base64, where it was
written as it is or as in JSON, by either alphabet and as a part of a longer text.

What looks for it has to be fast where nothing is found, which is nearly always: there is a short
piece of it that every way to write it keeps, but for the blanks, and only where that is found
(`squeezed`) a text is read at all.
"""

import json
import re
import shlex
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from urllib.parse import quote, quote_plus

_SAME = re.compile(r"[A-Za-z0-9._-]+")
"""Characters that nothing escapes."""
_SAME_IN_BASE64 = re.compile(r"[A-Za-z0-9]+")
"""Those of base64 that are the same in both alphabets."""
_ANCHOR = 16
"""The longest piece that is looked for."""
_LEAST = 4
"""The shortest one; shorter ones would be found everywhere."""
_WORD = re.compile(r"[A-Za-z]{1,20}")
"""What may be a word of a language."""
_IN_WORD = re.compile(r"[\w-]")
SEQUENCE = r"""
    (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]?                  # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )                # OSC, DCS, SOS, PM, APC:
      [^\x07\x1b\x90-\x9f]* (?: \x07 | \x1b\\ | \x9c )        #   a string that is ended
    | \x1b [ -/]* [0-~]?                                      # any other
"""
"""What a terminal obeys and does not show: a pattern of `re.VERBOSE`."""


class Spellings:
    """How a text may be written: where another one holds it."""

    def __init__(self, text: str, *, encoded: bool = True) -> None:
        self._text = text
        written = dict.fromkeys((text, json.dumps(text)[1:-1])) if encoded else ()
        cores = [core for each in written for core in _cores(each)]
        self._cores = [core.translate(_STANDARD) for core in cores]
        self._digits = _bytes(text).hex()
        first = self._digits[:_ANCHOR]
        pieces = (piece for core in cores for piece in _pieces(core))
        self.anchors = {_anchor(text), first, first.upper(), *pieces}
        """Of these pieces every way to write the text keeps one, where it is `squeezed`."""

    def found_in(self, reading: "Reading") -> Iterator[tuple[int, int]]:
        """Yield from where to where a text has it.

        What is but one word of letters is found only where it stands as a word.
        """
        for form in self._plain:
            yield from reading.places(form, as_word=bool(_WORD.fullmatch(self._text)))
        for core in self._cores:
            yield from reading.places_in_base64(core)
        yield from reading.places_in_hex(self._digits)

    @cached_property
    def _plain(self) -> set[str]:
        """What the text becomes where it is read, in an address and in quotes, too.

        These are the same but where it holds a blank, a quote or a letter that is written as one
        byte, or looks escaped itself.  One of which next to nothing is left is not looked for.
        """
        text, data = self._text, _bytes(self._text)
        written = [text, quote(data), quote_plus(data), ascii(text)[1:-1]]
        written += [text.replace(each, each * 2) for each in "'\"" if each in text]
        if "'" in text:
            written.append(shlex.quote(text)[1:-1])
        read = (Reading(each).plain for each in written)
        return {each for each in read if len(each) >= _LEAST}


def literally(text: str) -> set[str]:
    """Return the usual ways to write `text`, of each what is the same wherever it stands."""
    as_json = json.dumps(text)[1:-1]
    found = {text, as_json, quote(_bytes(text), safe=""), _bytes(text).hex()}
    for core in (*_cores(text), *_cores(as_json)):
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return found


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _anchor(text: str) -> str:
    """Return what every way to escape `text` keeps: of a text that all escape nothing."""
    runs = [run[0] for run in _SAME.finditer(text)]
    long = (run for run in runs if len(run) >= 2 * _LEAST)
    return (next(long, None) or max(runs, key=len, default=""))[:_ANCHOR]


# --- Base64 -----------------------------------------------------------------------------------

_STANDARD = str.maketrans("-_", "+/")
"""From the alphabet for addresses to the usual one."""
_LOWER = str.maketrans("ABCDEF", "abcdef")
"""From the one case of hexadecimal digits to the other; other letters would change in number."""
_BEHIND = re.compile(r"[A-Za-z0-9+/]?={0,2}")
"""The character that holds bits of what stands behind, too, and the padding."""


def _cores(text: str) -> list[str]:
    """Return what of `text` in base64 is the same whatever stands round it.

    There may be any number of bytes before it: over a multiple of 3 none, 1 or 2.
    """
    data = _bytes(text)
    cores = []
    for shift in range(3):
        whole = b64encode(b"\0" * shift + data).decode().rstrip("=")
        cores.append(whole[shift + 1 if shift else 0 : -1 if (shift + len(data)) % 3 else None])
    return cores


def _pieces(core: str) -> Iterator[str]:
    """Yield pieces of a text in base64; a line break is not in all of them."""
    count = 1 if len(core) < 4 * _LEAST else 2 if len(core) < 100 else 5
    size = len(core) // count
    for number in range(count):
        runs = _SAME_IN_BASE64.findall(core, number * size, (number + 1) * size)
        best = max(runs, key=len, default="")
        if best:
            inner = max(0, (len(best) - _ANCHOR) // 2)
            yield best[inner : inner + _ANCHOR]


# --- A text that is read ----------------------------------------------------------------------

_HIDDEN = re.compile(SEQUENCE + r"| [\xad\u200b-\u200d\u2060\ufeff]", re.VERBOSE)
"""What is not seen between two letters."""
_WHOLLY = [
    re.compile(rf"{one}(?:{one}){{{_LEAST - 1}}}")
    for one in (
        r"%[\da-fA-F]{2}",
        r"&\#[xX]?[\da-fA-F]{1,7};",
        r"\\{1,9}x[\da-fA-F]{2}",
        r"\\{1,9}u[\da-fA-F]{4}",
    )
]
"""Where letters may be escaped that need not be."""
_PATTERN = r"""
    (?P<utf16> \\+u [dD][89abAB][0-9a-fA-F]{2} \\+u [dD][c-fC-F][0-9a-fA-F]{2}
               | \\+u [0-9a-fA-F]{4} )
    | \\+U (?P<long> [0-9a-fA-F]{8} )
    | (?: \\+x | %(?:25)* ) (?P<byte> [0-9a-fA-F]{2} )
    | & (?: amp; )* (?: \# (?P<number> \d{1,7} ) | \#[xX] (?P<hex> [0-9a-fA-F]{1,6} )
                    | (?P<named> amp | lt | gt | quot | apos ) ) ;
    | (?P<skipped> \\+ [nrt]? | [ \t\r\n]+ )
    | (?P<foreign> [^\x00-\x7f] )
"""
_ESCAPED = re.compile(_PATTERN, re.VERBOSE)
_SHOWN = re.compile(rf"(?P<unseen> {_HIDDEN.pattern} ) | {_PATTERN}", re.VERBOSE)
_BETWEEN = r"(?<=[0-9a-fA-F]{2}) (?: [:,;._|-] [ \t\r\n]* (?:0[xX])? | [ \t\r\n]* 0[xX] )"
"""What stands between two bytes in hexadecimal digits: `aa:bb`, `aa-bb`, `0xaa, 0xbb`."""
_JOINT = rf"{_BETWEEN} (?=[0-9a-fA-F]{{2}})"
_JOINTS = re.compile(_JOINT, re.VERBOSE)
_APART = re.compile(rf"(?: [0-9a-fA-F]{{2}} {_JOINT} (?:[0-9a-fA-F]{{2}})*? ){{3}}", re.VERBOSE)
"""Where bytes in hexadecimal digits stand apart."""
_PREFIX = r"\\x (?=(?:[0-9a-fA-F]{2}){4})"
"""What PostgreSQL writes before digits; else it would escape the first byte alone."""
_IN_HEX_SEEN = re.compile(rf"{_PREFIX} | {_JOINT}", re.VERBOSE)
_IN_HEX = re.compile(rf"(?P<unseen> \\*{_PREFIX} | {_JOINT} ) | {_PATTERN}", re.VERBOSE)
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LAST = 0x10FFFF
_SKIPPED = frozenset("\\ \t\r\n")


def squeezed(text: str) -> str:
    """Return `text` without what may part the letters of a secret.

    Where that may have been a part of the secret, `text` as it is stands before it.
    """
    dense = "".join(text.replace("\\n", "").split())
    found = [text, dense] if "\\n" in text else [dense]
    if not dense.isprintable():
        found.append(_HIDDEN.sub("", dense))
    if any(each.search(dense) for each in _WHOLLY):
        found.append(Reading(dense).plain)
    if _APART.search(dense):
        found.append(_JOINTS.sub("", dense))
    return "\0".join(found)


def readings(text: str) -> list["Reading"]:
    """Return `text` as it is read, and as it is read by those who do not see all of it."""
    seen = [Reading(text)]
    if _HIDDEN.search(text):
        seen.append(Reading(text, _SHOWN))
    if _IN_HEX_SEEN.search(text):
        seen.append(Reading(text, _IN_HEX))
    return seen


class Reading:
    """A text with all that is escaped in it as what it stands for.

    Characters beyond ASCII stand there as the bytes of UTF-8, for these are what addresses escape.
    """

    def __init__(self, text: str, escaped: re.Pattern[str] = _ESCAPED) -> None:
        self._text = text
        self._escaped = escaped
        self._begins: list[int] = []
        """Where in what was read its parts begin."""
        self._parts: list[tuple[int, int]] = []
        """From where to where in the text each was."""
        self.plain = "".join(self._read())

    def _read(self) -> Iterator[str]:
        at = size = 0
        for found in self._escaped.finditer(self._text):
            begin, end = found.span()
            for part, span in ((self._text[at:begin], (at, begin)), (_meant(found), (begin, end))):
                if part:
                    self._begins.append(size)
                    self._parts.append(span)
                    size += len(part)
                    yield part
            at = end
        self._begins += [size, size + len(self._text) - at]
        self._parts.append((at, len(self._text)))
        yield self._text[at:]

    def places(self, plain: str, *, as_word: bool) -> Iterator[tuple[int, int]]:
        """Yield from where to where the text holds what is read as `plain`."""
        for at in _all(plain, self.plain):
            begin, end = self._span(at, at + len(plain))
            if not as_word or self._is_word(begin, end):
                yield begin, end

    def _is_word(self, begin: int, end: int) -> bool:
        """Say whether a part of the text is one word, with no letters round it."""
        round_it = self._text[max(0, begin - 1) : begin], self._text[end : end + 1]
        parted = len(self._text[begin:end].split()) > 1
        return not parted and not any(map(_IN_WORD.match, round_it))

    def places_in_hex(self, digits: str) -> Iterator[tuple[int, int]]:
        """Yield from where to where it holds bytes in hexadecimal digits, of either case."""
        for at in _all(digits, self._lower):
            yield self._span(at, at + len(digits))

    def places_in_base64(self, core: str) -> Iterator[tuple[int, int]]:
        """Yield from where to where it holds a text in base64, with the end of it."""
        for at in _all(core, self._standard):
            behind = _BEHIND.match(self._standard, at + len(core))
            yield self._span(at, behind.end() if behind else at + len(core))

    @cached_property
    def _lower(self) -> str:
        return self.plain.translate(_LOWER)

    @cached_property
    def _standard(self) -> str:
        return self.plain.translate(_STANDARD)

    def _span(self, begin: int, end: int) -> tuple[int, int]:
        """Return from where to where in the text something was that was read."""
        return self._place(begin)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._begins, at) - 1
        first, behind = self._begins[number : number + 2]
        begin, end = self._parts[number]
        if behind - first == end - begin:  # as it is
            return begin + at - first, begin + at - first + 1
        return begin, end


def _all(piece: str, text: str) -> Iterator[int]:
    """Yield where `text` holds `piece`, as often as it does one after the other."""
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + len(piece))


def _meant(found: re.Match[str]) -> str:
    """Return what something escaped stands for; of blanks and slashes nothing."""
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    match kind:
        case "skipped" | "unseen":
            return ""
        case "utf16":
            units = b"".join(bytes.fromhex(each[:4]) for each in text.split("u")[1:])
            meant = units.decode("utf-16-be", errors="surrogatepass")
        case "byte":
            meant = chr(int(text, 16))
            return "" if meant in _SKIPPED else meant
        case "number" | "hex" | "long":
            meant = chr(min(int(text, 10 if kind == "number" else 16), _LAST))
        case "named":
            meant = _NAMED[text]
        case _:
            meant = text
    return "" if meant in _SKIPPED else _bytes(meant).decode("latin-1")
