"""Recorded model calls of agents, one per line, for replay.

An answer is looked up by its trial, the digest of the request, and its number among equal requests
of the trial, so that repeats stay samples, and neither concurrency nor order matters.  While trials
are recorded, lines are appended; at the end, the file is sorted, and earlier recordings of these
trials are dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ci_eval.llm.gateway.answers import Answer, answer_in, restored, texts_of
from ci_eval.llm.gateway.cassette_lines import (
    ANEW,
    CALL,
    Place,
    Recorded,
    anew_line,
    arranged,
    call_in,
    compact,
    digest_of_trial,
    head_in,
    place_in,
    shortened,
)
from ci_eval.llm.line_file import MAX_LINE_BYTES, LineFile, Position
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import TrialKey
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import counted

VERSION = 1
"""Version of the format; incremented when older readers would misread it."""
MERGE_HINT = "if they are left over from a merge, record the cases again"
"""What to do about lines that are not calls."""


class UnfitError(ValueError):
    """A cassette cannot hold an answer."""


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
        """The trials of which a run that is resumed has recorded only the beginning."""
        self._ended: set[str] = set()
        """The trials that ran to their end."""
        self._partial: set[str] = set()
        """The trials of which an earlier run recorded only the beginning."""
        self._stale: set[Place] = set()
        """The calls that partly recorded trials no longer make."""
        self._is_changed = False
        self.redacted = 0
        """The number of recorded answers in which the value of a secret was replaced."""
        self.in_requests: set[str] = set()
        """The variables whose values were in recorded requests before they were in an answer."""
        self._in_answers: set[str] = set()
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
                if found := CALL.match(line):
                    self._index(place_in(found), position, line)
                elif anew := ANEW.fullmatch(line):
                    trial = anew[1].decode()
                    replaced[trial] = self._found.pop(trial, {}) or replaced.get(trial, {})
                    if resumes:
                        self._begun.add(trial)
                else:
                    self.strange += 1
            self.strange += file.incomplete
        self._partial = {*replaced} & {*self._found}
        if not resumes:
            self._found = {**replaced, **self._found}

    def _index(self, place: Place, position: Position, line: bytes) -> None:
        known = self._found.setdefault(place.trial, {})
        earlier = known.get(place)
        if earlier and earlier.file is position.file and earlier.read().rstrip() != line.rstrip():
            self.doubled.add(place)
        known[place] = position

    @property
    def partial(self) -> set[str]:
        """The trials of which only a part is recorded, because a run or a call did not end."""
        return self._partial | {
            trial
            for trial, places in self._found.items()
            for place in places
            if place.number and place._replace(number=place.number - 1) not in places
        }

    def begin(self) -> None:
        """Create the file if it is missing, and check that it can be written.

        Raises:
            OSError: it cannot be written.
            UsageError: it is not a regular file.

        """
        self._written.begin()

    def drop_partial(self) -> None:
        """Remove the trials that an earlier recording left unfinished: a new one begins."""
        if self._partial and self._own is None:
            self._keep(lambda trial: trial not in self._partial)

    def forget_begun(self) -> None:
        """Note that all trials ran to their end, those of the interrupted run included."""
        self._ended |= self._begun
        self._begun.clear()

    @property
    def _written(self) -> LineFile:
        return self._own or self._file

    def get(self, place: Place) -> Recorded | None:
        """Return the call recorded at `place`, if there is one; forget it if it is damaged."""
        position = self._found.get(place.trial, {}).get(place)
        if position is None:
            return None
        found = call_in(position.read(), place)
        if found is None and self._file.is_replaced:
            begun = set(self._begun)
            self._found.clear()
            self.strange = 0
            self.load(resumes=bool(begun))
            self._begun = begun
            return self.get(place)
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
            found = CALL.match(line)
            if found is None:
                continue
            place = place_in(found)
            if self._found.get(place.trial, {}).get(place) != position:
                continue  # recorded again later
            head = line[found.end() : line.find(b',"request":')]
            if head not in known:
                known[head] = head_in(head)
            if pair := known[head]:
                yield pair

    def take_begun(self, trial: str) -> bool:
        """Return True, once only, if the run that this one resumes began to record a trial."""
        is_begun = trial in self._begun
        if is_begun:
            self._begun.discard(trial)
            self._ended.discard(trial)
        return is_begun

    def anew(self, trial: str) -> None:
        """Forget the calls of a trial, which is being recorded again."""
        self._found.pop(trial, None)
        self._ended.discard(trial)
        self._written.append(anew_line(trial))
        self._is_changed = True

    def add(self, key: TrialKey, place: Place, request: dict[str, Json], answer: Answer) -> None:
        """Record an answer.

        Raises:
            UnfitError: it is too long for a line, or streams a secret in pieces.

        """
        head = {"call": str(place), **key.model_dump(), "model": str(request["model"])}
        said = {"request": shortened(request), "answer": answer.kept()}
        text = compact(said)
        if (cleaned := self.cleaned(said)) is not said:
            self.redacted += cleaned["answer"] != said["answer"]
            said, text = cleaned, compact(cleaned)
        self.in_requests |= self._variables_in(said["request"]) - self._in_answers
        self._in_answers |= self._variables_in(said["answer"])
        if self._secrets and answer.is_stream:
            for whole in texts_of(restored(said["answer"])):
                if self._secrets.text(whole) != whole:
                    raise UnfitError("its events contain the value of a secret in pieces")
        line = f"{compact(head)[:-1]},{text[1:]}\n".encode("ascii")
        if len(line) > MAX_LINE_BYTES:
            raise UnfitError(f"its line would exceed {MAX_LINE_BYTES >> 20} MiB")
        self._found.setdefault(place.trial, {})[place] = self._written.append(line)
        self._is_changed = True

    def finish(self, trial: str, made: Mapping[str, int] | None) -> None:
        """Note that a trial ran to its end.

        If calls were recorded, `made` counts its calls by request, and `tidy` drops the others.
        """
        self._ended.add(trial)
        if made is not None:
            known = self._found.get(trial, ())
            self._stale |= {each for each in known if each.number >= made.get(each.request, 0)}

    def tidy(self) -> None:
        """If calls were recorded, sort the file and drop the recordings that they replace.

        Trials that did not run to their end, also those of other agents, keep the line that says
        so, for `--resume`.  A shard's own file stays as it is: it has to say which trials were
        recorded anew.
        """
        if self._is_changed and self._own is None:
            self._rewrite(partial(arranged, stale=self._stale, ended=self._ended))
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
                call = CALL.match(line)
                if call and (other := owners.setdefault(call[1].decode(), name)) != name:
                    found = call_in(line)
                    which = found.trial.shown if found else f"the trial {call[1].decode()}"
                    message = f"{name} cannot be merged: like {other}, it recorded calls of {which}"
                    raise UsageError(message, hint="pass the report of each shard once")
        self._file.begin()
        for file in files.values():
            for _, line in file.lines():
                if CALL.match(line) or ANEW.fullmatch(line):
                    self._file.append(line)
        self._rewrite(arranged)

    def keep(self, trials: Iterable[TrialKey]) -> int:
        """Remove the calls of all other trials; return the number of removed calls."""
        kept = {digest_of_trial(each) for each in trials}
        before = len(self)
        self._keep(kept.__contains__)
        return before - len(self)

    def _keep(self, is_kept: Callable[[str], bool]) -> None:
        """Sort the file, and keep only the calls of some trials."""
        self._rewrite(
            lambda lines: (
                line
                for line in arranged(lines)
                if (found := CALL.match(line)) and is_kept(found[1].decode())
            )
        )

    def _rewrite(self, arrange: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        self._file.rewrite(arrange)
        self._found.clear()
        self.load()

    def cleaned(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a request or an answer with the values of secrets replaced; itself if it has none.

        Agents send answers back, so requests are recorded and looked up in this form.
        """
        text = compact(value) if self._secrets else ""
        if self._secrets.text(text) == text:
            return value
        found: dict[str, Any] = self._clean(value)
        return found

    def _variables_in(self, cleaned: dict[str, Any]) -> set[str]:
        """Return the variables whose names replace their values in a request or an answer."""
        text = compact(cleaned) if self._secrets else ""
        names = (name for name, _ in self._secrets.given if f"[{name}]" in text)
        return {name.partition(":")[0] for name in names}

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._secrets.text(value)
        if isinstance(value, dict):
            return {self._clean(key): self._clean(each) for key, each in value.items()}
        return [self._clean(each) for each in value] if isinstance(value, list) else value


def _file(path: Path, shown: str) -> LineFile:
    return LineFile(path, shown=shown, of="ci-eval model cassette", version=VERSION)
