"""Addresses of objects in Google Cloud Storage: `gs://bucket/name`."""

import re
from fnmatch import fnmatchcase
from typing import NamedTuple, Self

from ci_eval.records.errors import UsageError

SCHEME = "gs://"
MAX_NAME = 1024
"""Cloud Storage's limit for the name of an object, in bytes."""
_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?")
_WILDCARD = re.compile(r"[*?\[]")
_UNSAFE = re.compile(r"[^\w.-]")


class Place(NamedTuple):
    """Address of an object, or of several with a common prefix."""

    bucket: str
    name: str
    """Without a leading slash; empty for the whole bucket."""

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a `gs://bucket/name`.

        Raises:
            UsageError: it is not a valid address.

        """
        bucket, _, name = text.removeprefix(SCHEME).partition("/")
        if not text.startswith(SCHEME) or not _BUCKET.fullmatch(bucket):
            message = "is not an address of Cloud Storage, such as 'gs://bucket/name'"
        elif len(name.encode(errors="replace")) > MAX_NAME or not name.isprintable():
            message = f"is not a valid object name, which has at most {MAX_NAME} printable bytes"
        else:
            return cls(bucket, name)
        raise UsageError(message, file=text)

    @property
    def file_name(self) -> str:
        """The last part of the name, safe as the name of a local file."""
        return _UNSAFE.sub("_", self.name.rpartition("/")[2]).lstrip(".")[-150:] or "object"


def is_place(text: str) -> bool:
    """Return True if `text` is an address in Cloud Storage, not a path."""
    return text.startswith(SCHEME)


def has_pattern(name: str) -> bool:
    """Return True if `name` has wildcards."""
    return bool(_WILDCARD.search(name))


def literal(pattern: str) -> str:
    """Return the literal prefix of `pattern`, before its first wildcard."""
    return _WILDCARD.split(pattern, maxsplit=1)[0]


def fits_object(name: str, pattern: str) -> bool:
    """Return True if an object's name matches: `*` stays within a folder, `**` spans folders.

    >>> fits_object("shop/evals/a.json", "shop/*/*.json")
    True
    >>> fits_object("shop/evals/a.json", "shop/*.json")
    False
    >>> fits_object("shop/evals/a.json", "**/a.json")
    True
    """
    steps = pattern.split("/")
    at = _skip_globstars({0}, steps)
    for part in name.split("/"):
        inner = {place for place in at if place < len(steps) and steps[place] == "**"}
        plain = (place for place in at - inner if place < len(steps))
        passed = {place + 1 for place in plain if fnmatchcase(part, steps[place])}
        at = _skip_globstars(inner | passed, steps)
    return len(steps) in at


def _skip_globstars(at: set[int], steps: list[str]) -> set[int]:
    """Return `at` with the positions after each `**` in it, which may match no folders."""
    found = set(at)
    for place in range(len(steps)):
        if place in found and steps[place] == "**":
            found.add(place + 1)
    return found
