"""Finding a secret in a text, however programs encoded it.

An agent's output seldom repeats a secret verbatim: it appears in JSON within JSON, in a URL or in a
request header.  So a text is decoded before it is searched (`Reading`): escapes of JSON, Python, C,
HTML and URLs are resolved, however often they were applied, and whitespace, backslashes (which
programs add at line breaks and in quotes) and colours are removed.  The secret is decoded in the
same way and then searched for in three forms: as plain text; in hexadecimal, joined or with a
separator or `0x` between the bytes; and in base64, of the plain text or its JSON escape, in both
alphabets and as part of a longer text.

The search must be fast if nothing is found, which is nearly always the case.  Except for
whitespace, every encoding of the secret contains one of a few short pieces (anchors); a text is
only decoded if its `squeezed` form contains one of them.
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
"""Characters that no encoding escapes."""
_SAME_IN_BASE64 = re.compile(r"[A-Za-z0-9]+")
"""Characters that both base64 alphabets share."""
_ANCHOR = 16
"""Maximum length of an anchor."""
_LEAST = 4
"""Minimum length of an anchor; shorter ones would be found everywhere."""
_WORD = re.compile(r"[A-Za-z]{1,20}")
"""A possible word of a language."""
_IN_WORD = re.compile(r"[\w-]")
SEQUENCE = r"""
    (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]?                  # CSI: colours, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )                # OSC, DCS, SOS, PM, APC:
      [^\x07\x1b\x90-\x9f]* (?: \x07 | \x1b\\ | \x9c )        #   a terminated string
    | \x1b [ -/]* [0-~]?                                      # any other
"""
"""A terminal control sequence, as a pattern for `re.VERBOSE`."""


class Spellings:
    """The possible encodings of a text, to be found in another text."""

    def __init__(self, text: str, *, encoded: bool = True) -> None:
        self._text = text
        written = dict.fromkeys((text, json.dumps(text)[1:-1])) if encoded else ()
        cores = [core for each in written for core in _cores(each)]
        self._cores = [core.translate(_STANDARD) for core in cores]
        self._digits = _bytes(text).hex()
        first = self._digits[:_ANCHOR]
        pieces = (piece for core in cores for piece in _pieces(core))
        self.anchors = {_anchor(text), first, first.upper(), *pieces}
        """Every encoding of the text, once `squeezed`, contains one of these pieces."""

    def found_in(self, reading: "Reading") -> Iterator[tuple[int, int]]:
        """Yield the spans of the original text that hold it.

        A text that is a single word is found only as a whole word.
        """
        for form in self._plain:
            yield from reading.places(form, as_word=bool(_WORD.fullmatch(self._text)))
        for core in self._cores:
            yield from reading.places_in_base64(core)
        yield from reading.places_in_hex(self._digits)

    @cached_property
    def _plain(self) -> set[str]:
        """The decoded forms of the text, also of its URL-quoted and shell-quoted spellings.

        They differ only if the text contains a space, a quote or a Latin-1 letter, or looks
        escaped itself.  Forms shorter than `_LEAST` are not searched for.
        """
        text, data = self._text, _bytes(self._text)
        written = [text, quote(data), quote_plus(data), ascii(text)[1:-1]]
        written += [text.replace(each, each * 2) for each in "'\"" if each in text]
        if "'" in text:
            written.append(shlex.quote(text)[1:-1])
        read = (Reading(each).plain for each in written)
        return {each for each in read if len(each) >= _LEAST}


def literally(text: str) -> set[str]:
    """Return the usual encodings of `text`, without the parts that depend on its surroundings."""
    as_json = json.dumps(text)[1:-1]
    found = {text, as_json, quote(_bytes(text), safe=""), _bytes(text).hex()}
    for core in (*_cores(text), *_cores(as_json)):
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return found


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _anchor(text: str) -> str:
    """Return a piece of `text` that no encoding escapes; empty if there is none."""
    runs = [run[0] for run in _SAME.finditer(text)]
    long = (run for run in runs if len(run) >= 2 * _LEAST)
    return (next(long, None) or max(runs, key=len, default=""))[:_ANCHOR]


# --- Base64 -----------------------------------------------------------------------------------

_STANDARD = str.maketrans("-_", "+/")
"""From the URL-safe alphabet to the standard one."""
_LOWER = str.maketrans("ABCDEF", "abcdef")
"""Hexadecimal digits in lower case; `str.lower` may change the length of a text."""
_BEHIND = re.compile(r"[A-Za-z0-9+/]?={0,2}")
"""The character that also holds bits of the following text, and the padding."""


def _cores(text: str) -> list[str]:
    """Return the base64 characters of `text` that do not depend on its surroundings.

    There are three variants: the number of preceding bytes modulo 3 is 0, 1 or 2.
    """
    data = _bytes(text)
    cores = []
    for shift in range(3):
        whole = b64encode(b"\0" * shift + data).decode().rstrip("=")
        cores.append(whole[shift + 1 if shift else 0 : -1 if (shift + len(data)) % 3 else None])
    return cores


def _pieces(core: str) -> Iterator[str]:
    """Yield pieces of a base64 text; a single line break cannot split all of them."""
    count = 1 if len(core) < 4 * _LEAST else 2 if len(core) < 100 else 5
    size = len(core) // count
    for number in range(count):
        runs = _SAME_IN_BASE64.findall(core, number * size, (number + 1) * size)
        best = max(runs, key=len, default="")
        if best:
            inner = max(0, (len(best) - _ANCHOR) // 2)
            yield best[inner : inner + _ANCHOR]


# --- Decoding ---------------------------------------------------------------------------------

_HIDDEN = re.compile(SEQUENCE + r"| [\xad\u200b-\u200d\u2060\ufeff]", re.VERBOSE)
"""Invisible characters between two letters."""
_WHOLLY = [
    re.compile(rf"{one}(?:{before}{one}){{{_LEAST - 1}}}")
    for before, one in (
        ("", r"%[\da-fA-F]{2}"),
        ("", r"&\#[xX]?[\da-fA-F]{1,7};"),
        (r"\\{0,8}", r"\\x[\da-fA-F]{2}"),
        (r"\\{0,8}", r"\\u[\da-fA-F]{4}"),
    )
]
"""Runs of escapes, in which even plain letters may be escaped.  Each pattern begins with a fixed
text, which Python finds fast."""
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
"""A separator between two hexadecimal bytes: `aa:bb`, `aa-bb`, `0xaa, 0xbb`."""
_JOINT = rf"{_BETWEEN} (?=[0-9a-fA-F]{{2}})"
_JOINTS = re.compile(_JOINT, re.VERBOSE)
_APART = re.compile(rf"(?: [0-9a-fA-F]{{2}} {_JOINT} (?:[0-9a-fA-F]{{2}})*? ){{3}}", re.VERBOSE)
"""Several separated hexadecimal bytes."""
_SHAPES = bytes.maketrans(b"0123456789abcdefABCDEF:,;._|-X", b"0" * 22 + b":" * 7 + b"x")
_SHAPES_APART = (b"00:00", b"00:0x00", b"000x00")
"""Shapes of two separated bytes: searching a text's shape is much faster than `_APART`."""
_PREFIX = r"\\x (?=(?:[0-9a-fA-F]{2}){4})"
"""PostgreSQL's prefix of hexadecimal digits; elsewhere it escapes a single byte."""
_IN_HEX_SEEN = re.compile(rf"{_PREFIX} | {_JOINT}", re.VERBOSE)
_IN_HEX = re.compile(rf"(?P<unseen> \\*{_PREFIX} | {_JOINT} ) | {_PATTERN}", re.VERBOSE)
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LAST = 0x10FFFF
_SKIPPED = frozenset("\\ \t\r\n")


def squeezed(text: str) -> str:
    """Return `text` without anything that may separate the letters of a secret.

    Variants that may have lost a part of the secret follow after the full text.
    """
    dense = "".join(text.replace("\\n", "").replace(" ", "").split())
    found = [text, dense] if "\\n" in text else [dense]
    if not dense.isprintable():
        found.append(_HIDDEN.sub("", dense))
    if any(each.search(dense) for each in _WHOLLY):
        found.append(Reading(dense).plain)
    shape = dense.encode("ascii", "replace").translate(_SHAPES)
    if any(each in shape for each in _SHAPES_APART) and _APART.search(dense):
        found.append(_JOINTS.sub("", dense))
    return "\0".join(found)


def readings(text: str) -> list["Reading"]:
    """Return the decodings of `text`: in full, and without invisible characters or separators."""
    seen = [Reading(text)]
    if _HIDDEN.search(text):
        seen.append(Reading(text, _SHOWN))
    if _IN_HEX_SEEN.search(text):
        seen.append(Reading(text, _IN_HEX))
    return seen


class Reading:
    """A text with all its escapes resolved.

    Non-ASCII characters become their UTF-8 bytes, because URLs escape these.
    """

    def __init__(self, text: str, escaped: re.Pattern[str] = _ESCAPED) -> None:
        self._text = text
        self._escaped = escaped
        self._begins: list[int] = []
        """Start of each part in the decoded text."""
        self._parts: list[tuple[int, int]] = []
        """Span of each part in the original text."""
        self.plain = "".join(self._decode())

    def _decode(self) -> Iterator[str]:
        at = size = 0
        for found in self._escaped.finditer(self._text):
            begin, end = found.span()
            verbatim = self._text[at:begin]
            for part, span in ((verbatim, (at, begin)), (_decoded(found), (begin, end))):
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
        """Yield the spans of the original text that decode to `plain`."""
        for at in _all(plain, self.plain):
            begin, end = self._span(at, at + len(plain))
            if not as_word or self._is_word(begin, end):
                yield begin, end

    def _is_word(self, begin: int, end: int) -> bool:
        """Return True if a span of the original text is a whole word."""
        neighbours = self._text[max(0, begin - 1) : begin], self._text[end : end + 1]
        is_split = len(self._text[begin:end].split()) > 1
        return not is_split and not any(map(_IN_WORD.match, neighbours))

    def places_in_hex(self, digits: str) -> Iterator[tuple[int, int]]:
        """Yield the spans that hold the hexadecimal `digits`, in either case."""
        for at in _all(digits, self._lower):
            yield self._span(at, at + len(digits))

    def places_in_base64(self, core: str) -> Iterator[tuple[int, int]]:
        """Yield the spans that hold the base64 text `core`, including its last character."""
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
        """Return the span of the original text for a span of the decoded text."""
        return self._place(begin)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._begins, at) - 1
        first, behind = self._begins[number : number + 2]
        begin, end = self._parts[number]
        if behind - first == end - begin:  # copied verbatim
            return begin + at - first, begin + at - first + 1
        return begin, end


def _all(piece: str, text: str) -> Iterator[int]:
    """Yield every position of `piece` in `text`, without overlaps."""
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + len(piece))


def _decoded(found: re.Match[str]) -> str:
    """Return the text that an escape stands for; empty for whitespace and backslashes."""
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    match kind:
        case "skipped" | "unseen":
            return ""
        case "utf16":
            units = b"".join(bytes.fromhex(each[:4]) for each in text.split("u")[1:])
            plain = units.decode("utf-16-be", errors="surrogatepass")
        case "byte":
            plain = chr(int(text, 16))
            return "" if plain in _SKIPPED else plain
        case "number" | "hex" | "long":
            plain = chr(min(int(text, 10 if kind == "number" else 16), _LAST))
        case "named":
            plain = _NAMED[text]
        case _:
            plain = text
    return "" if plain in _SKIPPED else _bytes(plain).decode("latin-1")
