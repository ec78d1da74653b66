"""The troubleshooting page has every message of ci-eval, and no other.

In the page, `…` stands for anything; what `messages.py` finds in the source has it, too.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from support.markdown_pages import DOCS
from support.messages import collect

from ci_eval.cli.error_codes import entries

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^  (?P<ticks>`+) ?(.+?) ?(?P=ticks)<br>$", re.MULTILINE)

NOT_TOLD = {
    "… …, which is not JSON: …": "how `the agent …` goes on",
    "returned … MiB of JSON; the limit is 16 MiB": "how `the agent …` goes on",
    "a scenario needs a simulated user, or a recording to score": "a guard; runs "
    "have simulated users",
    "nobody was asked": "only counts what judges would be asked",
    "no criterion can score it": "a guard; every criterion is scored by one of two ways",
    "a score has a value exactly when it passed or failed": "only in a `run.json` made by hand",
    "…: the name in `…` must be a string on the same line": "seen by who writes a plugin of ours",
    "two … plugins are named …: … and …": "seen by who writes a plugin, at the import of it",
}
"""Messages that are not on the page, and why."""


ENTRIES = [found[2] for found in ENTRY.finditer(PAGE)]
"""The messages that the page explains."""


def explains(entry: str, text: str) -> bool:
    """Return True if an entry explains a message; a short one only if it is the same."""
    return entry == text or bool(_pattern(entry).fullmatch(text))


@cache
def _pattern(entry: str) -> re.Pattern[str]:
    """Return the pattern of an entry, compiled once: each is compared with every message."""
    few = len(re.sub(r"\W", "", entry)) < LETTERS
    parts = [entry] if few else entry.split("…")
    return re.compile(".*".join(map(re.escape, parts)), re.DOTALL)


LETTERS = 12
"""With fewer letters than this an entry would explain anything."""


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """All messages, each with a place where it is made."""
    return {each.text: each.place for each in collect()}


@pytest.mark.slow
def test_every_message_is_explained(messages: dict[str, str]) -> None:
    unexplained = {
        text: place
        for text, place in messages.items()
        if text not in NOT_TOLD and not any(explains(entry, text) for entry in ENTRIES)
    }
    assert unexplained == {}


@pytest.mark.slow
def test_what_the_page_explains_are_messages(messages: dict[str, str]) -> None:
    said = [entry for entry in ENTRIES if not any(explains(entry, text) for text in messages)]
    assert said == []


def test_each_entry_has_a_code_of_its_own() -> None:
    """By section and place, so that a new one takes the next number of its section."""
    codes = re.findall(r'^- <a id="ce(\d{4})"></a>\*\*CE(\d{4})\*\*<br>$', PAGE, re.MULTILINE)
    assert all(anchor == code for anchor, code in codes)
    assert len(dict(codes)) == len(codes) == len(re.findall("^- ", PAGE, re.MULTILINE))
    assert [entry.code for entry in entries()] == [f"CE{code}" for code, _ in codes]
    assert [message for entry in entries() for message in entry.messages] == ENTRIES
    assert all(entry.text for entry in entries())


def test_no_message_is_explained_twice() -> None:
    assert len(ENTRIES) == len(set(ENTRIES))


@pytest.mark.slow
def test_each_exception_is_still_needed(messages: dict[str, str]) -> None:
    assert NOT_TOLD.keys() <= messages.keys()


def test_messages_are_found_wherever_they_are_handed_on(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(SOURCE)
    (tmp_path / "other.py").write_text("_ENDED = 'of another module'")

    assert {each.text for each in collect(tmp_path)} == {
        "no such …",
        "is empty",
        "is a list, not text",
        "is a number, not text",
        "came late, by …",
        "the answer was empty",
        "the answer was cut off",
        "… has no value",
        "is too much",
    }


SOURCE = """
LATE = "came late"
_ENDED = {"none": "was empty", "length": "was cut off"}

def _refuse(message: str, line: int) -> None:
    raise UsageError(message)

class Notes:
    def note(self, said: str) -> None:
        _refuse(said, 1)

def check(name, notes):
    notes.note(f"no such {name!r}")
    found = "a list" if name else "a number"
    message = f"is {found}, not text"
    notes.note(message)
    _refuse("is empty", 1)
    print("not a message")
    raise TrialError("late", f"{LATE}, by {name}")

def read(answer, keys):
    if answer.ended in _ENDED:
        raise JudgeError(f"the answer {_ENDED[answer.ended]}")
    problems = [f"{key!r} has no value" for key in keys]
    problems += _more(answer)
    raise ValueError("; ".join(sorted(problems)))

def _more(answer):
    yield "is too much"
"""
