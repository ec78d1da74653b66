"""How objects of Google Cloud Storage are named: `gs://bucket/name`."""

import re
from fnmatch import fnmatchcase
from typing import NamedTuple, Self

from ci_eval.records.errors import Problem, UsageError

SCHEME = "gs://"
MAX_NAME = 1024
"""The longest name of an object, in bytes, as Cloud Storage has it."""
_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?")
_MAGIC = re.compile(r"[*?\[]")
_UNSAFE = re.compile(r"[^\w.-]")


class Place(NamedTuple):
    """Where an object is, or several whose names begin alike."""

    bucket: str
    name: str
    """Without a slash at its beginning; empty for the bucket as a whole."""

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place that `text` names.

        Raises:
            UsageError: it is no `gs://bucket/name`.

        """
        bucket, _, name = text.removeprefix(SCHEME).partition("/")
        if not text.startswith(SCHEME) or not _BUCKET.fullmatch(bucket):
            message = "is no address of Cloud Storage, such as 'gs://bucket/name'"
        elif len(name.encode(errors="replace")) > MAX_NAME or not name.isprintable():
            message = f"no object has such a name: it has {MAX_NAME} printable bytes at most"
        else:
            return cls(bucket, name)
        raise UsageError(problems=[Problem(message, text)])

    @property
    def file_name(self) -> str:
        """The last part of the name, as a file here may be called."""
        return _UNSAFE.sub("_", self.name.rpartition("/")[2]).lstrip(".")[-150:] or "object"


def is_place(text: str) -> bool:
    """Say whether `text` means an object in Cloud Storage, not a file."""
    return text.startswith(SCHEME)


def has_pattern(name: str) -> bool:
    """Say whether `name` is a pattern for several objects."""
    return bool(_MAGIC.search(name))


def literal(pattern: str) -> str:
    """Return what every name that fits `pattern` begins with."""
    return _MAGIC.split(pattern, maxsplit=1)[0]


def fits_object(name: str, pattern: str) -> bool:
    """Say whether the name of an object fits: `*` stays within a folder, `**` is any folders.

    >>> fits_object("shop/evals/a.json", "shop/*/*.json")
    True
    >>> fits_object("shop/evals/a.json", "shop/*.json")
    False
    >>> fits_object("shop/evals/a.json", "**/a.json")
    True
    """
    steps = pattern.split("/")
    at = _reached({0}, steps)
    for part in name.split("/"):
        inner = {place for place in at if place < len(steps) and steps[place] == "**"}
        passed = {
            place + 1
            for place in at - inner
            if place < len(steps) and fnmatchcase(part, steps[place])
        }
        at = _reached(inner | passed, steps)
    return len(steps) in at


def _reached(at: set[int], steps: list[str]) -> set[int]:
    """Return `at`, and the places behind each `**` that stands there, for it may be nothing."""
    found = set(at)
    for place in range(len(steps)):
        if place in found and steps[place] == "**":
            found.add(place + 1)
    return found
