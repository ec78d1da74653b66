"""The lines of a cassette: calls, and marks of trials that are recorded anew."""

import hashlib
import json
import re
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from ci_eval.llm.gateway.answers import Answer, restored
from ci_eval.llm.gateway.request_digest import digest_of
from ci_eval.records.cases import Json
from ci_eval.records.trials import TrialKey
from ci_eval.text.json_text import NotJsonError, parse_json, with_leaves

MAX_TEXT_CHARS = 4_000
"""How much of a text in a request is kept, for readers and comparisons."""
CALL = re.compile(rb'\{"call":"([0-9a-f]{16})-([0-9a-f]{32})-([0-9]{1,6})",')
"""The beginning of a line with a call: its trial, its request and its number."""
ANEW = re.compile(rb'\{"anew":"([0-9a-f]{16})"\}\n')
"""A line before which the calls of a trial no longer count."""
_CUT = re.compile(r'… \([0-9]+ characters, [0-9a-f]{8}\)|\[[A-Za-z_][^][\n"{}]{0,199}\]')
"""The end of a text that was cut, and what replaces a secret."""


class Place(NamedTuple):
    """The place of a call."""

    trial: str
    """Digest of the key of the trial."""
    request: str
    """Digest of the normalised request."""
    number: int
    """Index among the equal requests of the trial, from 0."""

    def __str__(self) -> str:
        return f"{self.trial}-{self.request}-{self.number}"


class Recorded(NamedTuple):
    """A recorded call."""

    trial: TrialKey
    place: Place
    model: str
    request: dict[str, Json]
    """The normalised request, with long texts cut."""
    answer: Answer
    bytes: int
    """The length of its line."""

    @property
    def is_edited(self) -> bool:
        """True if the trial or the request no longer has the digest in the line.

        Requests in which a text was cut or a secret replaced cannot be checked.
        """
        if digest_of_trial(self.trial) != self.place.trial:
            return True
        is_same = digest_of(self.request) == self.place.request
        return not is_same and not _CUT.search(json.dumps(self.request, ensure_ascii=False))


def digest_of_trial(key: TrialKey) -> str:
    """Return the digest of a trial."""
    return hashlib.sha256(json.dumps([*key.place, key.repeat]).encode()).hexdigest()[:16]


def compact(row: dict[str, Json]) -> str:
    """Return a row as JSON without blanks."""
    return json.dumps(row, separators=(",", ":"))


def place_in(found: re.Match[bytes]) -> Place:
    """Return the place in a match of `CALL`."""
    return Place(found[1].decode(), found[2].decode(), int(found[3]))


def head_in(text: bytes) -> tuple[TrialKey, str] | None:
    """Return the trial and the model in the part of a line before the request."""
    try:
        row = parse_json(b"{" + text + b"}")
        return _key_in(row), str(row["model"])
    except (NotJsonError, LookupError, TypeError, ValueError):
        return None  # edited by hand


def _key_in(row: dict[str, Any]) -> TrialKey:
    return TrialKey.model_validate({name: row[name] for name in TrialKey.model_fields})


def call_in(line: bytes, place: Place | None = None) -> Recorded | None:
    """Return the call in a line; `None` if it holds no call, or not the one at `place`."""
    found = CALL.match(line)
    if found is None or place not in (None, place_in(found)):
        return None  # another process has replaced the file
    try:
        row = parse_json(line)
        answer = restored(row["answer"])
        request = dict(row["request"])
        return Recorded(
            _key_in(row), place_in(found), str(row["model"]), request, answer, len(line)
        )
    except (NotJsonError, LookupError, TypeError, ValueError):
        return None  # edited by hand


def arranged(
    lines: Iterator[bytes], stale: Container[Place] = (), ended: Container[str] | None = None
) -> Iterator[bytes]:
    """Yield the last line of each call, ordered by trial, then by the length of the request.

    Requests grow during a conversation, so this is nearly the order in which they were made.
    `stale` calls are left out; so are earlier calls of a trial that was recorded anew, unless the
    new recording has no calls.  If it has some, but its trial has not `ended`, a line before them
    says so; by default, all have.
    """
    trials: dict[str, dict[Place, bytes]] = {}
    replaced: dict[str, dict[Place, bytes]] = {}
    for line in lines:
        if anew := ANEW.fullmatch(line):
            trial = anew[1].decode()
            replaced[trial] = trials.pop(trial, {}) or replaced.get(trial, {})
        elif found := CALL.match(line):
            place = place_in(found)
            if place not in stale:
                trials.setdefault(place.trial, {})[place] = line
    known = {**replaced, **trials}
    kept = {place: line for each in known.values() for place, line in each.items()}
    order = {place: _order(place, line) for place, line in kept.items()}
    marked = (
        set() if ended is None else {each for each in {*replaced} & {*trials} if each not in ended}
    )
    for place in sorted(kept, key=lambda place: order[place]):
        if place.trial in marked:
            marked.discard(place.trial)
            yield anew_line(place.trial)
        yield kept[place]


def anew_line(trial: str) -> bytes:
    """Return the line before the calls of a trial that is recorded anew."""
    return f'{{"anew":"{trial}"}}\n'.encode()


def _order(place: Place, line: bytes) -> tuple[Any, ...]:
    found = call_in(line)
    if found is None:
        return ("", "", "", 0, 0, *place)
    length = len(json.dumps(found.request))
    return (*found.trial.place, found.trial.repeat, length, place.request, place.number)


def shortened(value: Any) -> Any:
    """Return a request with long texts cut; a digest distinguishes them."""
    return with_leaves(value, _shortened)


def _shortened(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= MAX_TEXT_CHARS:
        return value
    digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:8]
    return f"{value[:MAX_TEXT_CHARS]}… ({len(value)} characters, {digest})"
