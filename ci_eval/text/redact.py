"""Keeps secrets out of all that leaves: what agents say and print may hold keys they were given.

Traces are scored as they are, so that a criterion can find a leak; it is what is written down of
them that is cleaned.  In the place of a secret stands the name of its variable, as `[API_KEY]`.
It is found however programs write it down (`encodings.py`), and where it is split over
values that follow each other, too.  Nobody can find what somebody hides on purpose, by turning it
round or enciphering it: this helps against accidents, and against those who do not know of it.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar, cast

from ci_eval.text.encodings import Spellings, literally, readings, squeezed
from ci_eval.text.record_strings import Leaves, gathered

if TYPE_CHECKING:
    from ci_eval.records.model import Record

M = TypeVar("M", bound="Record")

MIN_CHARS = 8
"""Shorter values are placeholders, and would be found in every other word."""
MIN_CUT = 100
"""A text that was cut is longer."""
MAX_PARTS = 2_000
"""Of how many parts of one value each is looked for."""
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR)|^GIT_CONFIG_VALUE_"
    r"|JWT|COOKIE|WEBHOOK|CONNECTION_?STRING|_(?:PASS|PWD|PAT|PEM|DSN)$",
    re.IGNORECASE,
)
"""What the name of an environment variable says whose value is secret."""
_PATH = re.compile(r"~?(?:/(?:[A-Za-z0-9]{0,24}|[\w.@ -]*[._@ -][\w.@ -]*))+")
_CUT = re.compile(r"(?:\[\W?\d{1,15} \w{1,15} left out\W?\]|\u2026)+")
"""Where something was left out, with blanks round it."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@]*")
"""An address without a login."""
_LOGIN = re.compile(r"://([^/@\s]+)@")
_ARMOUR = re.compile(r"-----[A-Z0-9 ]+-----")
"""What stands round a key of several lines."""
_SCHEME = re.compile(r"(?:[\w-]+:\s*)?(?:Basic|Bearer|Token)\s+(\S+)", re.IGNORECASE)
"""How a header says who asks."""


class Secrets:
    """Values that must not get out, by the names that stand in their place.

    They are those of the variables in `env` whose names say that they are secret, and the logins
    in all addresses there; `more` are others.  A path is none: it says where a secret is.
    """

    def __init__(self, env: Mapping[str, str], more: Iterable[tuple[str, str]] = ()) -> None:
        self.given = tuple(dict.fromkeys((*_of(env), *more)))
        """The names and the values, before they are taken apart."""
        self._named: dict[str, str] = {}
        self._anchors: dict[str, list[tuple[Spellings, str]]] = {}
        """The pieces that are looked for, and what each may be of."""
        for name, value in self.given:
            self._add(f"[{name}]", _parts(value), encoded=True)
            # Encoded, a key of several lines is found as a whole.
            self._add(f"[{name}]", _lines(value), encoded=False)

    def _add(self, name: str, values: Iterable[str], *, encoded: bool) -> None:
        """Look for `values` too, those that are not looked for yet."""
        for value in values:
            if len(value) >= MIN_CHARS and value not in self._named:
                self._named[value] = name
                found = Spellings(value, encoded=encoded)
                for anchor in found.anchors:
                    self._anchors.setdefault(anchor, []).append((found, name))

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return bool(self._anchors)

    def with_more(self, more: Iterable[tuple[str, str]]) -> "Secrets":
        """Return these and `more`, each a name and a value."""
        return Secrets({}, (*self.given, *more))

    def text(self, text: str) -> str:
        """Return `text` with names in the place of values."""
        spans = [*self._spans(text), *self._cut_off(text)]
        return _replaced(text, spans) if spans else text

    def cleaned(self, record: M) -> M:
        """Return `record` with names in the place of values, in keys too.

        Where there are none, it is the very same.
        """
        if not self or not self._may_be_in(record.model_dump(exclude_defaults=True)):
            return record
        leaves = Leaves()
        leaves.visit(record)
        if not self._clean(leaves):
            return record
        return cast("M", leaves.rebuilt(record))

    def _may_be_in(self, plain: Mapping[str, Any]) -> bool:
        """Say whether a closer look at what a record dumps is worth its time."""
        values: list[str] = []
        every: list[str] = []
        gathered(plain, values, every)
        text = squeezed("".join([*values, "\0", *every]))
        for anchor in self._anchors:
            if anchor in text:
                return True
        long = [each for each in every if len(each) >= MIN_CUT]
        return any(map(self._cut_off, long))

    def _clean(self, leaves: Leaves) -> bool:
        """Clean the texts in `leaves`, and say whether there was anything to clean."""
        every = range(len(leaves.texts))
        found = {at: span for at, span in self._within(leaves.texts, every, "\0") if span}
        # A value may be split over texts that follow each other, with keys between them or not.
        for kind in (leaves.values, every):
            for at, spans in self._within(leaves.texts, kind, ""):
                found[at] = [*found.get(at, []), *spans]
        for at, text in enumerate(leaves.texts):
            if cut := self._cut_off(text):
                found[at] = [*found.get(at, []), *cut]
        for at, spans in found.items():
            leaves.texts[at] = _replaced(leaves.texts[at], spans)
        return bool(found)

    def _within(
        self, texts: list[str], chosen: Iterable[int], between: str
    ) -> Iterator[tuple[int, list["Span"]]]:
        """Yield which of `texts` hold parts of what is found in the chosen ones, joined."""
        numbers = list(chosen)
        spans = self._spans(between.join(texts[number] for number in numbers))
        if not spans:
            return
        begin = 0
        for number in numbers:
            end = begin + len(texts[number])
            inside = [
                (max(first, begin) - begin, min(last, end) - begin, name if first >= begin else "")
                for first, last, name in spans
                if first < end and last > begin
            ]
            if inside:
                yield number, inside
            begin = end + len(between)

    def _spans(self, text: str) -> list["Span"]:
        dense = squeezed(text)
        held = [found for anchor, found in self._anchors.items() if anchor in dense]
        if not held:
            return []
        each_once = dict.fromkeys(one for found in held for one in found)
        return [
            (*span, name)
            for reading in readings(text)
            for found, name in each_once
            for span in found.found_in(reading)
        ]

    def _cut_off(self, text: str) -> list["Span"]:
        """Return where a long text that was cut ends with a part of a value, or begins with one."""
        if len(text) < MIN_CUT:
            return []
        cuts = [(0, 0), (len(text), len(text))]
        if "left out" in text or "\u2026" in text:
            cuts += (_with_blanks(text, *found.span()) for found in _CUT.finditer(text))
        before = (self._part(text, end, -1) for end, _ in cuts)
        after = (self._part(text, begin, 1) for _, begin in cuts)
        return [span for span in (*before, *after) if span]

    def _part(self, text: str, at: int, step: Literal[-1, 1]) -> "Span | None":
        """Return the part of a value that `text` holds from a place on, or up to it."""
        begin, end = sorted((at, at + MIN_CHARS * step))
        name = self._pieces.get(text[max(begin, 0) : end])
        if name is None:
            return None
        while text[max(begin + step, 0) : end + step] in self._pieces:
            begin, end = begin + step, end + step
        return (begin, at, name) if step < 0 else (at, end, name)

    @cached_property
    def _pieces(self) -> dict[str, str]:
        """Every piece of the usual ways to write a value, with its name."""
        return {
            form[place : place + MIN_CHARS]: name
            for value, name in self._named.items()
            for form in literally(value)
            for place in range(len(form) - MIN_CHARS + 1)
        }


Span = tuple[int, int, str]
"""From where to where, and what comes in its place."""


def _with_blanks(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return a part of `text` with the blanks before and behind it."""
    while begin and text[begin - 1].isspace():
        begin -= 1
    while end < len(text) and text[end].isspace():
        end += 1
    return begin, end


def _replaced(text: str, spans: Iterable[Span]) -> str:
    """Return `text` with the name of each span in its place; of several that overlap, one name."""
    pieces, at = [], 0
    for begin, end, name in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if begin >= at:
            pieces += [text[at:begin], name]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


# --- What is secret ---------------------------------------------------------------------------


def _of(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of what is secret in an environment."""
    for name, value in env.items():
        if _SECRET.search(name):
            if not _PATH.fullmatch(value.strip()):
                yield name, value
        else:
            yield from ((name, login) for login in logins(value))


def passed_on(env: Mapping[str, str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of variables that a configuration hands to an agent.

    It may hand on any: what is a path, or an address without a login, is no secret.
    """
    for name in names:
        value = env.get(name, "").strip()
        if value and not _PATH.fullmatch(value) and not _URL.fullmatch(value):
            yield name, value


def logins(text: str) -> Iterator[str]:
    """Yield the logins in the addresses that `text` holds, and their passwords."""
    for found in _LOGIN.finditer(text):
        yield found[1]
        password = found[1].partition(":")[2]
        yield password
        if "%" in password:
            from urllib.parse import unquote

            yield unquote(password)


def _parts(value: str) -> Iterator[str]:
    """Yield a value, and the parts of it that would do: logins, and the secrets in JSON."""
    value = value.strip()
    yield value
    yield from logins(value)
    if header := _SCHEME.fullmatch(value):
        yield header[1]
    if value.startswith("{"):
        yield from _in_json(value)


def _lines(value: str) -> Iterator[str]:
    """Yield the lines of a key, of keys in JSON too, but for those that all keys have."""
    values = [value, *(_in_json(value) if value.lstrip().startswith("{") else [])]
    lines = (line.strip() for each in values for line in each.splitlines()[:MAX_PARTS])
    return (line for line in lines if not _ARMOUR.fullmatch(line))


def _in_json(value: str) -> Iterator[str]:
    """Yield what is secret in a JSON object, as the key of a service account has it."""
    import json

    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        return
    for name, each in loaded.items():
        if isinstance(each, str) and _SECRET.search(name):
            yield each.strip()


# --- What is printed --------------------------------------------------------------------------


@contextmanager
def printing(env: Mapping[str, str]) -> Iterator[None]:
    """Keep the secrets of an environment out of what is printed, whoever prints it."""
    secrets = Secrets(env)
    before = sys.stdout, sys.stderr
    streams = [_Stream(each, secrets) for each in before]
    sys.stdout, sys.stderr = cast("list[TextIO]", streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        with suppress(OSError):  # nobody reads it any more
            for each in streams:
                each.write_held()


def print_none_of(secrets: Secrets) -> None:
    """Keep more secrets out of what is printed from now on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Stream):
            stream.secrets = stream.secrets.with_more(secrets.given)


class _Stream:
    """A stream that writes no secrets.

    A line is held until its end, or until it is to be seen: it may be written piece by piece.
    """

    def __init__(self, stream: Any, secrets: Secrets) -> None:
        self.secrets = secrets
        self._stream = stream
        self._held: list[str] = []

    def write(self, text: str) -> int:
        lines, end, rest = text.rpartition("\n")
        if end:
            self._held.append(lines + end)
            self.write_held()
        self._held.append(rest)
        return len(text)

    def write_held(self) -> None:
        text = "".join(self._held)
        self._held.clear()
        if text:
            self._stream.write(self.secrets.text(text))

    def flush(self) -> None:
        self.write_held()
        self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
