"""Reader and writer of `run.json`, the results of a run; both stream.

`{"schema_version": 1, "meta": {…}, "results": [{…}, …]}`, one result per line.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from ci_eval.records.cases import SCHEMA_VERSION, Stored
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import Run, RunMeta, Score, TrialResult
from ci_eval.run_files.file_names import TRACES_FILE, make_report_folder
from ci_eval.text.json_stream import MAX_ELEMENT_CHARS, Element, JsonFile
from ci_eval.text.json_text import RESULT_DEPTH, NotJsonError, parse_json, refuse_many
from ci_eval.text.redact import Secrets
from ci_eval.text.validation_messages import describe, explain
from ci_eval.text.yaml_files import MAX_WALKED, Loc, dotted, reading

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial

M = TypeVar("M", bound=Stored)
T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Write a file atomically: it replaces the file at `path` once it is complete."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        draft.replace(path)
    except OSError as exc:
        if str(exc.filename) == str(draft):
            exc.filename = str(path)  # the name that users know
        raise
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for other processes that replace files in the same folder; not on Windows."""
    with ExitStack() as stack:
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):  # no such folder, or a file system without locks
                # Not the file itself, which is replaced.
                opened = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, opened)
                fcntl.flock(opened, fcntl.LOCK_EX)
        yield


@contextmanager
def writing_run(path: Path, meta: RunMeta) -> Iterator[Callable[[TrialResult], None]]:
    """Yield a function that writes a result; the file appears once the run is complete."""
    make_report_folder(path.parent)
    path.unlink(missing_ok=True)
    with replacing(path) as file:
        head = meta.model_dump_json(exclude_defaults=True)
        file.write(f'{{"schema_version":{SCHEMA_VERSION},"meta":{head},"results":[')
        separator = "\n"

        def write(result: TrialResult) -> None:
            nonlocal separator
            file.write(separator + result_line(result))
            separator = ",\n"

        yield write
        file.write("\n]}\n")


def result_line(result: TrialResult) -> str:
    """Return `result` as one line of JSON with all fields, including defaults."""
    return result.model_dump_json()


def read_run(path: Path, *, shown: str) -> Run:
    """Return the run in the file at `path`; its results are read lazily.

    Raises:
        UsageError: the file is not a valid run, or has another version.

    """
    reader = _RunReader(path, shown)
    return Run(reader.meta, reader.results, path.with_name(TRACES_FILE), reader.compared_trials)


def redacted(run: Run, secrets: Secrets) -> Run:
    """Return `run` without `secrets` in its metadata, results and conversations.

    An earlier run may not have known all secrets of this environment.
    """
    return run._replace(
        meta=secrets.cleaned(run.meta),
        results=lambda: map(secrets.cleaned, run.results()),
        quick=None,
        redact=secrets.cleaned,
    )


class _RunReader:
    def __init__(self, path: Path, shown: str) -> None:
        self._path = path
        self._shown = shown

    @cached_property
    def meta(self) -> RunMeta:
        meta: RunMeta | None = None
        has_version = False
        for name, element in self._members():
            if name == "schema_version":
                check_version(element, self._shown)
                has_version = True
            elif name == "meta":
                meta = checked(RunMeta, element, self._shown)
            elif name == "results" and meta and has_version:
                return meta
        raise UsageError("is not a run of ci-eval", file=self._shown, line=1)

    def results(self) -> Iterator[TrialResult]:
        return self._parsed(self._result)

    def compared_trials(self) -> "Iterator[AnyTrial]":
        from ci_eval.records.compared_trials import compared_trial, intervals

        within = intervals(self.meta)
        return self._parsed(
            lambda text, line: compared_trial(text, within) or self._result(text, line)
        )

    def _parsed(self, parse: Callable[[str, int], T]) -> Iterator[T | TrialResult]:
        """Yield each result as `parse` returns it, given the text and the number of its line."""
        read = 0
        with suppress(NotJsonError):
            for line, text in self._lines():
                if not text:
                    return
                yield parse(text, line)
                read += 1
        # From here on, the file has another layout, or is not JSON.
        elements = (each for name, each in self._members() if name == "results")
        for element in islice((each for each in elements if not each.is_begin), read, None):
            yield checked_result(self.meta, element, self._shown)

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield `result_lines`, or nothing if the head differs from the layout of `writing_run`."""
        with reading(self._path, shown=self._shown, most=MAX_WALKED, newline="\n") as file:
            head = file.readline(MAX_ELEMENT_CHARS)
            if [*parse_json(f"{head}]}}")] != ["schema_version", "meta", "results"]:
                return
            yield from result_lines(file, 2)

    def _result(self, text: str, line: int) -> TrialResult:
        """Return the result in a line.

        Raises:
            NotJsonError: it is not JSON.

        """
        if _is_simple(text):
            with suppress(ValidationError):
                result = TrialResult.model_validate_json(text)
                if not any(
                    error for score in result.scores for error in _score_errors(score, self.meta)
                ):
                    return result
        value = parse_json(text, max_depth=RESULT_DEPTH)
        return checked_result(self.meta, Element(value, line, text), self._shown)

    def _members(self) -> Iterator[tuple[str, Element]]:
        file = JsonFile(self._path, shown=self._shown, max_depth=RESULT_DEPTH)
        return file.walk(frozenset({"results"}))


def _is_simple(text: str) -> bool:
    """Return True if pydantic's fast parser reads a result like our own parser.

    Pydantic's parser accepts values in evidence that could not be written back, such as 1e999.
    """
    return "\\u" not in text and text.count('"evidence"') == text.count('"evidence":null')


def result_lines(file: IO[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line with a result, and an empty text at the end.

    Stops without the empty text if the layout differs: a value in each line, then `]}`.

    Raises:
        NotJsonError: a line has too many values to hold in memory.

    """
    more = True
    for number in count(first):
        line = file.readline(MAX_ELEMENT_CHARS)
        if line == "]}\n" and (number == first or not more) and not file.read(1):
            yield number, ""
        if not more or line[:1] not in {"{", "["} or line[-1:] != "\n":
            return
        more = line[-2] == ","
        refuse_many(line, 0, len(line))
        yield number, line[: -2 if more else -1]


def check_version(element: Element, shown: str) -> None:
    """Refuse a file with an unknown schema version."""
    if element.value != SCHEMA_VERSION:
        message = (
            f"has schema version {describe(element.value)}; "
            f"this version of ci-eval reads {SCHEMA_VERSION}"
        )
        raise UsageError(message, file=shown, line=element.line)


def checked(model: type[M], element: Element, shown: str, *, at: Loc = ()) -> M:
    """Return the validated record in `element`, or at `at` inside it.

    Raises:
        UsageError: it is not valid.

    """
    value = element.value
    for step in at:
        value = value[step]
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        problems = [
            Problem(message, shown, element.line_of((*at, *loc)), dotted(loc))
            for loc, message in explain(exc, model)
        ]
        raise UsageError(problems=problems) from exc


def checked_result(meta: RunMeta, element: Element, shown: str, *, at: Loc = ()) -> TrialResult:
    """Return the validated result in `element`, with its scores checked against `meta`."""
    result = checked(TrialResult, element, shown, at=at)
    problems = [
        Problem(message, shown, element.line_of((*at, "scores", index)), f"scores[{index}]")
        for index, score in enumerate(result.scores)
        for message in _score_errors(score, meta)
    ]
    if problems:
        raise UsageError(problems=problems)
    return result


def _score_errors(score: Score, meta: RunMeta) -> Iterator[str]:
    facts = meta.criteria.get(score.name)
    if facts is None:
        yield f"the run has no criterion {score.name!r}"
    elif facts.interval and score.value is not None:
        low, high = facts.interval
        if not low <= score.value <= high:
            yield f"the value must lie between {low:g} and {high:g}, found {score.value:g}"
