"""Recorded model calls of agents, one per line, for replay.

An answer is looked up by its trial, the digest of the request, and its number among equal requests
of the trial, so that repeats stay samples, and neither concurrency nor order matters.  While trials
are recorded, lines are appended; at the end, the file is sorted, and earlier recordings of these
trials are dropped.
"""

import hashlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.llm.gateway.answers import Answer, answer_in, restored
from ci_eval.llm.gateway.request_digest import digest_of
from ci_eval.llm.line_file import MAX_LINE_BYTES, LineFile, Position
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import TrialKey
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import counted

VERSION = 1
"""Version of the format; incremented when older readers would misread it."""
MAX_TEXT_CHARS = 4_000
"""How much of a text in a request is kept, for readers and comparisons."""
MERGE_HINT = "if they are left over from a merge, record the cases again"
"""What to do about lines that are not calls."""
_LINE = re.compile(rb'\{"call":"([0-9a-f]{16})-([0-9a-f]{32})-([0-9]{1,6})",')
_ANEW = re.compile(rb'\{"anew":"([0-9a-f]{16})"\}\n')
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
        """True if the request lost its digest, although no text was cut and no secret replaced."""
        is_same = digest_of(self.request) == self.place.request
        return not is_same and not _CUT.search(json.dumps(self.request, ensure_ascii=False))


class TooLongError(ValueError):
    """An answer is too long for a cassette."""


def digest_of_trial(key: TrialKey) -> str:
    """Return the digest of a trial."""
    return hashlib.sha256(json.dumps([*key.place, key.repeat]).encode()).hexdigest()[:16]


class ModelCassette:
    """The recorded calls in the file at `path`, named `shown` in messages.

    A shard writes new calls to a file of its `own`, which `absorb` merges later.
    """

    def __init__(
        self, path: Path, *, shown: str, secrets: Secrets, own: Path | None = None
    ) -> None:
        self._file = _file(path, shown)
        self._own = _file(own, shown) if own else None
        self._secrets = secrets
        self.shown = shown
        """Path of the file in messages."""
        self._found: dict[str, dict[Place, Position]] = {}
        """By trial, the last line of each call."""
        self._begun: set[str] = set()
        """The trials whose recording a resumed run continues: those that the interrupted run
        recorded, or all if that run finished and sorted the file."""
        self._stale: set[Place] = set()
        """The calls that partly recorded trials no longer make."""
        self._is_changed = False
        self.strange = 0
        """The number of lines found so far that are not calls, such as those of a conflict."""
        self.doubled: set[Place] = set()
        """The calls that are recorded more than once, with different answers."""

    def __len__(self) -> int:
        """Return the number of recorded calls."""
        return sum(map(len, self._found.values()))

    @property
    def damage(self) -> str:
        """Message about lines that are not calls; empty if there are none."""
        which = counted(self.strange, "line without a call", "lines without a call")
        return f"has {which}" if self.strange else ""

    @property
    def exists(self) -> bool:
        """True if there is a file."""
        return self._file.exists

    def load(self, *, resumes: bool = False) -> None:
        """Index the file; if a recording `resumes`, without the calls that it replaces.

        Raises:
            UsageError: it is not a regular file, not a cassette of this version, or too large.

        """
        replaced: dict[str, dict[Place, Position]] = {}
        for file in filter(None, (self._file, self._own)):
            for position, line in file.lines():
                if found := _LINE.match(line):
                    self._index(_place(found), position, line)
                elif anew := _ANEW.fullmatch(line):
                    trial = anew[1].decode()
                    replaced[trial] = self._found.pop(trial, {}) or replaced.get(trial, {})
                    self._begun.add(trial)
                else:
                    self.strange += 1
            self.strange += file.incomplete
        if not resumes:
            self._found = {**replaced, **self._found}
        if not self._own and not self._begun:
            self._begun = {*self._found}

    def _index(self, place: Place, position: Position, line: bytes) -> None:
        known = self._found.setdefault(place.trial, {})
        earlier = known.get(place)
        if earlier and earlier.file is position.file and earlier.read().rstrip() != line.rstrip():
            self.doubled.add(place)
        known[place] = position

    def begin(self) -> None:
        """Create the file if it is missing, and check that it can be written.

        Raises:
            OSError: it cannot be written.
            UsageError: it is not a regular file.

        """
        self._written.begin()

    @property
    def _written(self) -> LineFile:
        return self._own or self._file

    def get(self, place: Place) -> Recorded | None:
        """Return the call recorded at `place`, if there is one; forget it if it is damaged."""
        position = self._found.get(place.trial, {}).get(place)
        if position is None:
            return None
        found = _read(position.read(), place)
        if found is None:
            del self._found[place.trial][place]
            self.strange += 1
        return found

    def answer(self, place: Place) -> Answer | None:
        """Return the answer recorded at `place`, without building the request."""
        position = self._found.get(place.trial, {}).get(place)
        line = position.read() if position else b""
        with suppress(LookupError, RecursionError, TypeError, ValueError):
            if line.startswith(f'{{"call":"{place}",'.encode()):
                return answer_in(line)
        found = self.get(place)
        return found.answer if found else None

    def numbers(self, trial: str, request: str) -> set[int]:
        """Return the numbers under which a request of a trial is recorded."""
        return {each.number for each in self._found.get(trial, ()) if each.request == request}

    def calls(self, trial: str | None = None) -> Iterator[Recorded]:
        """Yield the recorded calls, or those of one trial."""
        trials = [trial] if trial else [*self._found]
        for place in [place for each in trials for place in self._found.get(each, ())]:
            if found := self.get(place):
                yield found

    def trials_and_models(self) -> Iterator[tuple[TrialKey, str]]:
        """Yield the trial and the model of each recorded call, without parsing the call."""
        known: dict[bytes, tuple[TrialKey, str] | None] = {}
        for position, line in self._file.lines():
            found = _LINE.match(line)
            if found is None:
                continue
            place = _place(found)
            if self._found.get(place.trial, {}).get(place) != position:
                continue  # recorded again later
            head = line[found.end() : line.find(b',"request":')]
            if head not in known:
                known[head] = _head(head)
            if pair := known[head]:
                yield pair

    def take_begun(self, trial: str) -> bool:
        """Return True, once only, if the run that this one resumes recorded calls of a trial."""
        is_begun = trial in self._begun
        self._begun.discard(trial)
        return is_begun

    def anew(self, trial: str) -> None:
        """Forget the calls of a trial, which is being recorded again."""
        self._found.pop(trial, None)
        self._written.append(f'{{"anew":"{trial}"}}\n'.encode())
        self._is_changed = True

    def add(self, key: TrialKey, place: Place, request: dict[str, Json], answer: Answer) -> None:
        """Record an answer.

        Raises:
            TooLongError: it is too long for a line.

        """
        head = {"call": str(place), **key.model_dump(), "model": str(request["model"])}
        said = {"request": shortened(request), "answer": answer.kept()}
        text = _compact(said)
        if self._secrets and self._secrets.text(text) != text:
            text = _compact(self._clean(said))
        line = f"{_compact(head)[:-1]},{text[1:]}\n".encode("ascii")
        if len(line) > MAX_LINE_BYTES:
            raise TooLongError(f"its line would exceed {MAX_LINE_BYTES >> 20} MiB")
        self._found.setdefault(place.trial, {})[place] = self._written.append(line)
        self._is_changed = True

    def drop_stale(self, trial: str, made: Mapping[str, int]) -> None:
        """Let `tidy` drop calls that a trial did not make; `made` counts its calls by request."""
        self._stale |= {
            each for each in self._found.get(trial, ()) if each.number >= made.get(each.request, 0)
        }

    def tidy(self) -> None:
        """If calls were recorded, sort the file and drop the recordings that they replace.

        A shard's own file stays as it is: it has to say which trials were recorded anew.
        """
        if self._is_changed and self._own is None:
            self._file.rewrite(partial(_arranged, stale=self._stale))
            self._found.clear()
            self.load()
            self._is_changed = False

    def absorb(self, parts: Mapping[str, Path]) -> None:
        """Add the calls that shards recorded (`parts`, by shard name), and sort the file.

        Raises:
            UsageError: a part is not a cassette, or two have calls of the same trial.
            OSError: the file cannot be written.

        """
        owners: dict[str, str] = {}
        files = {name: _file(path, str(path)) for name, path in parts.items()}
        for name, file in files.items():
            for _, line in file.lines():
                trial = _trial_of(line)
                if trial and (other := owners.setdefault(trial, name)) != name:
                    found = _read(line)
                    which = found.trial.shown if found else f"the trial {trial}"
                    message = f"{name} cannot be merged: like {other}, it recorded calls of {which}"
                    raise UsageError(message, hint="pass the report of each shard once")
        self._file.begin()
        for file in files.values():
            for _, line in file.lines():
                if _trial_of(line):
                    self._file.append(line)
        self._file.rewrite(_arranged)
        self._found.clear()
        self.load()

    def keep(self, trials: Iterable[TrialKey]) -> int:
        """Remove the calls of all other trials; return the number of removed calls."""
        kept = {digest_of_trial(each) for each in trials}
        before = len(self)
        self._file.rewrite(
            lambda lines: (
                line
                for line in _arranged(lines)
                if (found := _LINE.match(line)) and found[1].decode() in kept
            )
        )
        self._found.clear()
        self.load()
        return before - len(self)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._secrets.text(value)
        if isinstance(value, dict):
            return {self._clean(key): self._clean(each) for key, each in value.items()}
        return [self._clean(each) for each in value] if isinstance(value, list) else value


def _compact(row: dict[str, Json]) -> str:
    return json.dumps(row, separators=(",", ":"))


def _file(path: Path, shown: str) -> LineFile:
    return LineFile(path, shown=shown, of="ci-eval model cassette", version=VERSION)


def _trial_of(line: bytes) -> str:
    """Return the digest of the trial of a line; empty if the line is not valid."""
    found = _LINE.match(line) or _ANEW.fullmatch(line)
    return found[1].decode() if found else ""


def _place(found: re.Match[bytes]) -> Place:
    return Place(found[1].decode(), found[2].decode(), int(found[3]))


def _head(text: bytes) -> tuple[TrialKey, str] | None:
    """Return the trial and the model in the part of a line before the request."""
    try:
        row = parse_json(b"{" + text + b"}")
        return _key_in(row), str(row["model"])
    except (NotJsonError, LookupError, TypeError, ValueError):
        return None  # edited by hand


def _key_in(row: dict[str, Any]) -> TrialKey:
    return TrialKey.model_validate({name: row[name] for name in TrialKey.model_fields})


def _read(line: bytes, place: Place | None = None) -> Recorded | None:
    """Return the call in a line; `None` if it holds no call, or not the one at `place`."""
    found = _LINE.match(line)
    if found is None or place not in (None, _place(found)):
        return None  # another process has replaced the file
    try:
        row = parse_json(line)
        answer = restored(row["answer"])
        request = dict(row["request"])
        return Recorded(_key_in(row), _place(found), str(row["model"]), request, answer, len(line))
    except (NotJsonError, LookupError, TypeError, ValueError):
        return None  # edited by hand


def _arranged(lines: Iterator[bytes], stale: Container[Place] = ()) -> Iterable[bytes]:
    """Return the last line of each call, ordered by trial, then by the length of the request.

    Requests grow during a conversation, so this is nearly the order in which they were made.
    `stale` calls are left out; so are earlier calls of a trial that was recorded anew, unless the
    new recording has no calls.
    """
    trials: dict[str, dict[Place, bytes]] = {}
    replaced: dict[str, dict[Place, bytes]] = {}
    for line in lines:
        if anew := _ANEW.fullmatch(line):
            trial = anew[1].decode()
            replaced[trial] = trials.pop(trial, {}) or replaced.get(trial, {})
        elif found := _LINE.match(line):
            place = _place(found)
            if place not in stale:
                trials.setdefault(place.trial, {})[place] = line
    known = {**replaced, **trials}
    kept = {place: line for each in known.values() for place, line in each.items()}
    order = {place: _order(place, line) for place, line in kept.items()}
    return (kept[place] for place in sorted(kept, key=lambda place: order[place]))


def _order(place: Place, line: bytes) -> tuple[Any, ...]:
    found = _read(line)
    if found is None:
        return ("", "", "", 0, 0, *place)
    length = len(json.dumps(found.request))
    return (*found.trial.place, found.trial.repeat, length, place.request, place.number)


def shortened(value: Any) -> Any:
    """Return a request with long texts cut; a digest distinguishes them."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value]
    if not isinstance(value, str) or len(value) <= MAX_TEXT_CHARS:
        return value
    digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:8]
    return f"{value[:MAX_TEXT_CHARS]}… ({len(value)} characters, {digest})"
