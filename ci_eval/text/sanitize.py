"""Sanitizing of untrusted text: removes dangerous characters or makes them visible."""

import re

from ci_eval.text.encodings import SEQUENCE

_ANSI = re.compile(SEQUENCE, re.VERBOSE)

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u3164\ufeff\uffa0"
    "\u2028-\u202e\u2060-\u206f\ufff0-\ufffb\ufffe\uffff"  # directions, separators, fillers
    "\ud800-\udfff"  # unpaired surrogates, which cannot be encoded
    "\u180b-\u180f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format controls of some scripts
    "\U000e0000-\U000e0fff]"  # tags: text that only machines read
)
"""Characters that reorder, hide or break text; joiners stay, because some scripts need them."""

_MARKS = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
_STACK = re.compile(f"({_MARKS}{{4}}){_MARKS}+")
"""More combining marks on a letter than any language uses, which cover other lines or hide text."""

REPLACEMENT = "\ufffd"
"""Replaces characters that cannot be shown."""


def without_sequences(text: str) -> str:
    """Return `text` without terminal control sequences."""
    return text if _is_plain(text) else _ANSI.sub("", text)


def _is_plain(text: str) -> bool:
    """Return True for most texts: all characters are visible and ASCII."""
    return str.isascii(text) and str.isprintable(text)  # a TypeError for anything but text


def clean(text: str) -> str:
    """Return `text` without terminal sequences, with U+FFFD for invisible characters.

    The fifth and later combining marks on a letter become U+FFFD, too.  Lines end with a line
    feed.  `##[`, which GitHub runners interpret anywhere in a line, is broken up.
    """
    if not _is_plain(text):
        text = without_sequences(text).replace("\r\n", "\n").replace("\r", "\n")
        text = _STACK.sub(rf"\1{REPLACEMENT}", _UNSEEN.sub(REPLACEMENT, text))
    return text.replace("##[", "## [")


def one_line(text: str, limit: int) -> str:
    """Return `text` cleaned, on one line; a longer one cut to `limit`, with its length."""
    # Bounds the work for long texts; leaves room for removed characters.
    head = text[: 8 * limit + 1000]
    line = " ".join(clean(head).split())
    if len(line) <= limit and len(head) == len(text):
        return line
    return f"{line[:limit]}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters in all)"
