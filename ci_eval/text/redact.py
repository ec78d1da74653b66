"""Redaction of secrets in all output: agents may say or print their credentials.

Traces are scored unredacted, so that a criterion can detect a leak; they are redacted when they are
written.  A secret is replaced by the name of its variable, as `[API_KEY]`.  Secrets are found in
any usual encoding (`encodings.py`), even split over consecutive values.  Deliberate hiding, such as
reversing or encrypting, cannot be detected: redaction helps against accidents and naive attempts.
"""

import hashlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar, cast

from ci_eval.text.encodings import Spellings, literally, readings, squeezed
from ci_eval.text.record_strings import Leaves, gathered

if TYPE_CHECKING:
    from ci_eval.records.cases import Record

M = TypeVar("M", bound="Record")

MIN_CHARS = 8
"""Shorter values are ignored: they are placeholders, and would match ordinary words."""
MIN_CUT = 100
"""Shorter texts are never truncated."""
MAX_PARTS = 2_000
"""Maximum number of lines of one value to search for."""
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!IZATION))|^GIT_CONFIG_VALUE_"
    r"|JWT|COOKIE|WEBHOOK|CONNECTION_?STRING|_(?:PASS|PWD|PAT|PEM|DSN)$",
    re.IGNORECASE,
)
"""Names of environment variables, and of headers, with secret values."""
_PATH = re.compile(r"~?(?:/(?:[A-Za-z0-9]{0,24}|[\w.@ -]*[._@ -][\w.@ -]*))+")
_CUT = re.compile(r"(?:\[\W?\d{1,15} \w{1,15} left out\W?\]|\u2026)+")
"""A mark where text was left out."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@]*")
"""A URL without a login."""
_LOGIN = re.compile(r"://([^/@\s]+)@")
_ARMOUR = re.compile(r"-----[A-Z0-9 ]+-----")
"""The first or last line of a PEM key."""
_SCHEME = re.compile(r"(?:[\w-]+:\s*)?(?:Basic|Bearer|Token)\s+(\S+)", re.IGNORECASE)
"""An authorization header."""


class Secrets:
    """Secret values, and the names that replace them.

    These are the values of variables in `env` with secret-looking names, the logins in all URLs in
    `env`, and `more`.  Paths are not secret: they only say where a secret is.
    """

    def __init__(self, env: Mapping[str, str], more: Iterable[tuple[str, str]] = ()) -> None:
        self.given = tuple(dict.fromkeys((*_of(env), *more)))
        """The names and the full values."""
        self._named: dict[str, str] = {}
        self._anchors: dict[str, list[tuple[Spellings, str]]] = {}
        """The anchors to search for, each with the values to which it may belong."""
        for name, value in self.given:
            self._add(f"[{name}]", _parts(value), encoded=True)
            # An encoded multi-line key is found as a whole.
            self._add(f"[{name}]", _lines(value), encoded=False)

    def _add(self, name: str, values: Iterable[str], *, encoded: bool) -> None:
        """Add `values` to search for."""
        for value in values:
            if len(value) >= MIN_CHARS and value not in self._named:
                self._named[value] = name
                found = Spellings(value, encoded=encoded)
                for anchor in found.anchors:
                    self._anchors.setdefault(anchor, []).append((found, name))

    def __bool__(self) -> bool:
        """Return True if there are any secrets."""
        return bool(self._anchors)

    def with_more(self, more: Iterable[tuple[str, str]]) -> "Secrets":
        """Return these secrets and `more`, pairs of name and value."""
        return Secrets({}, (*self.given, *more))

    def with_digests(self, env: Mapping[str, str]) -> "Secrets":
        """Return these secrets; the names of variables in `env` that may not be secret get digests.

        16 bits tell their values apart, and are too few to help guess one.
        """

        def named(name: str, value: str) -> str:
            if names_secret(name) or env.get(name, "").strip() != value:
                return name
            return f"{name}:{hashlib.sha256(value.encode(errors='replace')).hexdigest()[:4]}"

        return Secrets({}, [(named(name, value), value) for name, value in self.given])

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by its name."""
        spans = [*self._spans(text), *self._cut_off(text)]
        return _replaced(text, spans) if spans else text

    def cleaned(self, record: M) -> M:
        """Return `record` with each secret replaced by its name, in keys, too.

        Returns the same object if it contains none.
        """
        if not self.may_be_in(record.model_dump(exclude_defaults=True)):
            return record
        leaves = Leaves(record)
        return cast("M", leaves.rebuilt(record)) if self._clean(leaves) else record

    def may_be_in(self, plain: Mapping[str, Any]) -> bool:
        """Return True if a dumped record may contain a secret; a fast check."""
        if not self:
            return False
        values: list[str] = []
        every: list[str] = []
        gathered(plain, values, every)
        text = squeezed("".join([*values, "\0", *every]))
        return any(anchor in text for anchor in self._anchors) or any(map(self._cut_off, every))

    def _clean(self, leaves: Leaves) -> bool:
        """Redact the texts in `leaves`; return True if anything changed."""
        found: defaultdict[int, list[Span]] = defaultdict(list)
        every = range(len(leaves.texts))
        # A secret may be split over consecutive texts, with or without keys between them.
        for chosen, between in ((every, "\0"), (leaves.values, ""), (every, "")):
            for at, spans in self._within(leaves.texts, chosen, between):
                found[at] += spans
        for at, text in enumerate(leaves.texts):
            if cut := self._cut_off(text):
                found[at] += cut
        for at, spans in found.items():
            leaves.texts[at] = _replaced(leaves.texts[at], spans)
        return bool(found)

    def _within(
        self, texts: list[str], chosen: Iterable[int], between: str
    ) -> Iterator[tuple[int, list["Span"]]]:
        """Search the joined `chosen` texts; yield the index and the spans of each with matches."""
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
        """Return the spans of partial secrets at the ends and at the gaps of a truncated text."""
        if len(text) < MIN_CUT:
            return []
        cuts = [(0, 0), (len(text), len(text))]
        if "left out" in text or "\u2026" in text:
            cuts += (_with_blanks(text, *found.span()) for found in _CUT.finditer(text))
        before = (self._part(text, end, -1) for end, _ in cuts)
        after = (self._part(text, begin, 1) for _, begin in cuts)
        return [span for span in (*before, *after) if span]

    def _part(self, text: str, at: int, step: Literal[-1, 1]) -> "Span | None":
        """Return the span of a partial secret that begins (`step` 1) or ends (-1) at `at`."""
        begin, end = sorted((at, at + MIN_CHARS * step))
        name = self._pieces.get(text[max(begin, 0) : end])
        if name is None:
            return None
        while text[max(begin + step, 0) : end + step] in self._pieces:
            begin, end = begin + step, end + step
        return (begin, at, name) if step < 0 else (at, end, name)

    @cached_property
    def _pieces(self) -> dict[str, str]:
        """Every piece of the usual encodings of a secret, with its name."""
        return {
            form[place : place + MIN_CHARS]: name
            for value, name in self._named.items()
            for form in literally(value)
            for place in range(len(form) - MIN_CHARS + 1)
        }


Span = tuple[int, int, str]
"""Start, end, and the replacement."""


def _with_blanks(text: str, begin: int, end: int) -> tuple[int, int]:
    """Extend a span of `text` by the whitespace around it."""
    while begin and text[begin - 1].isspace():
        begin -= 1
    while end < len(text) and text[end].isspace():
        end += 1
    return begin, end


def _replaced(text: str, spans: Iterable[Span]) -> str:
    """Return `text` with each span replaced by its name; overlapping spans get one name."""
    pieces, at = [], 0
    for begin, end, name in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if begin >= at:
            pieces += [text[at:begin], name]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


# --- Secret values ----------------------------------------------------------------------------


def names_secret(variable: str) -> bool:
    """Return True if a variable of this name holds a secret."""
    return _SECRET.search(variable) is not None


def _of(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the secrets in an environment."""
    for name, value in env.items():
        if names_secret(name):
            if not _PATH.fullmatch(value.strip()):
                yield name, value
        else:
            yield from ((name, login) for login in logins(value))


def passed_on(env: Mapping[str, str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of variables that a configuration passes to an agent.

    Any of them may be secret, except paths and URLs without a login.
    """
    for name in names:
        value = env.get(name, "").strip()
        if value and not _PATH.fullmatch(value) and not _URL.fullmatch(value):
            yield name, value


def logins(text: str) -> Iterator[str]:
    """Yield the logins in the URLs in `text`, and their passwords."""
    for found in _LOGIN.finditer(text):
        yield found[1]
        password = found[1].partition(":")[2]
        yield password
        if "%" in password:
            from urllib.parse import unquote

            yield unquote(password)


def _parts(value: str) -> Iterator[str]:
    """Yield a value, and the parts of it that are secret by themselves: logins, secrets in JSON."""
    value = value.strip()
    yield value
    yield from logins(value)
    if header := _SCHEME.fullmatch(value):
        yield header[1]
    if value.startswith("{"):
        yield from _in_json(value)


def _lines(value: str) -> Iterator[str]:
    """Yield the lines of a multi-line key, also of keys in JSON, without the PEM armour."""
    values = [value, *(_in_json(value) if value.lstrip().startswith("{") else [])]
    lines = (line.strip() for each in values for line in each.splitlines()[:MAX_PARTS])
    return (line for line in lines if not _ARMOUR.fullmatch(line))


def _in_json(value: str) -> Iterator[str]:
    """Yield the secrets in a JSON object such as the key file of a service account."""
    import json

    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        return
    for name, each in loaded.items():
        if isinstance(each, str) and names_secret(name):
            yield each.strip()


# --- Printed output ---------------------------------------------------------------------------


@contextmanager
def printing(env: Mapping[str, str]) -> Iterator[None]:
    """Redact the secrets of an environment in stdout and stderr."""
    secrets = Secrets(env)
    before = sys.stdout, sys.stderr
    for each in before:
        # The encoding may lack characters, such as a check mark.
        if isinstance(each, TextIOWrapper):
            each.reconfigure(errors="backslashreplace")
    # A stream that the shell closed (`2>&-`) is `None`, and no file may take its number: agents
    # would write to it.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        out, err = (each or nowhere for each in before)
        streams = [_Stream(out, secrets), _Stream(err, secrets, is_result=False)]
        sys.stdout, sys.stderr = cast("list[TextIO]", streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            with suppress(OSError):  # the reader has closed the stream
                for each in streams:
                    each.write_held()


def print_none_of(secrets: Secrets) -> None:
    """Redact more secrets in stdout and stderr from now on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Stream):
            stream.secrets = stream.secrets.with_more(secrets.given)


def before_splitting(text: str) -> str:
    """Redact the secrets in a text for stderr that is to be cut or split into lines.

    The stream redacts each line alone, but a secret may continue on the next one.
    """
    return sys.stderr.secrets.text(text) if isinstance(sys.stderr, _Stream) else text


class _Stream:
    """A stream that redacts secrets.

    Buffers each line until its end or a flush, because it may be written in pieces.
    """

    def __init__(self, stream: Any, secrets: Secrets, *, is_result: bool = True) -> None:
        self.secrets = secrets
        self._stream = stream
        self._is_result = is_result
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
            with self._reader_may_leave():
                self._stream.write(self.secrets.text(text))

    def flush(self) -> None:
        self.write_held()
        with self._reader_may_leave():
            self._stream.flush()

    @contextmanager
    def _reader_may_leave(self) -> Iterator[None]:
        """Discard output once the reader is gone; the exit code still tells the outcome.

        Progress and errors on stderr may also be lost for other reasons, such as a full disk.  On
        stdout, these are errors, but only once: the message about them may be for stdout, too.
        """
        try:
            yield
        except OSError as exc:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())  # so that Python's final flush succeeds
            os.close(nowhere)
            if self._is_result and not isinstance(exc, BrokenPipeError):
                raise

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
