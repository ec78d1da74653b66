"""The baseline document: the file format that baselines keep runs in.

`{"schema_version", "runs": [meta, …], "results": [[run, result], …]}`, newest run first: one line
for the values of each case, without the evidence.
"""

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from ci_eval.records.cases import SCHEMA_VERSION
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.results import Run, RunMeta, TrialResult
from ci_eval.run_files.run_file import (
    check_version,
    checked,
    checked_result,
    replacing,
    result_lines,
)
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.text.json_stream import MAX_ELEMENT_CHARS, Element, JsonFile
from ci_eval.text.json_text import RESULT_DEPTH, NotJsonError, parse_json
from ci_eval.text.yaml_files import MAX_WALKED, reading


def stored_runs(path: Path, shown: str) -> list[Past]:
    """Read and validate the document at `path`; return its runs, newest first.

    Raises:
        BaselineError: it is not a valid baseline document.

    """
    return _Reader(path, shown).runs()


def with_run(
    run: Run, stored: Sequence[Past], path: Path, shown: str, *, window: int
) -> Iterator[str]:
    """Yield, in pieces, the document at `path`, which holds `stored`, with `run` added in front.

    Only the newest `window` runs are kept.  If nothing is stored, `path` is not read.
    """
    metas = [run.meta, *(past.meta for past in stored)][:window]
    old = _Reader(path, shown).lines(len(metas) - 1) if stored else iter(())
    # Trials that were repeated because they failed would bias the baseline towards failures.
    new = (f"[0,{_bare(each)}]" for each in run.results() if not each.confirms)
    return _document(metas, itertools.chain(new, old))


def written(run: Run, stored: Sequence[Past], path: Path, shown: str, *, window: int) -> None:
    """Write `with_run` to `path`, which may hold `stored`.

    Raises:
        UsageError: it cannot be written.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.writelines(with_run(run, stored, path, shown, window=window))
    except OSError as exc:
        raise UsageError(f"cannot be written: {exc.strerror or exc}", file=shown) from exc


_HEAD, _END, _RESULTS = (
    f'{{"schema_version":{SCHEMA_VERSION},\n"runs":[\n',
    "\n],\n",
    '"results":[\n',
)
"""What comes before the runs, between runs and results, and before the results."""
_WAY_OUT = (
    "this is read as the stored baseline: if it is something else, correct the configuration; "
    "otherwise restore it, or remove it and store a run of the base branch with "
    "`ci-eval baseline save`"
)


def fault(message: str, shown: str, *, line: int | None = None, hint: str = "") -> BaselineError:
    """Return an error about the stored file `shown`."""
    return BaselineError(message, file=shown, line=line, hint=hint or _WAY_OUT)


@contextmanager
def baseline_errors(hint: str | None = None) -> Iterator[None]:
    """Turn errors into `BaselineError`s, with another `hint` if one is given."""
    try:
        yield
    except (UsageError, BaselineError) as exc:
        if hint is None:
            hint = exc.hint or (_WAY_OUT if exc.problems[0].file else "")
        raise BaselineError(str(exc), hint=hint, problems=exc.problems) from exc


@contextmanager
def as_file(data: bytes) -> Iterator[Path]:
    """Write a downloaded document to a temporary file, and yield its path."""
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as folder:
        path = Path(folder) / "baseline.json"
        path.write_bytes(data)
        yield path


def _document(metas: Sequence[RunMeta], lines: Iterator[str]) -> Iterator[str]:
    """Yield the document in pieces."""
    yield _HEAD
    yield ",\n".join(meta.model_dump_json(exclude_defaults=True) for meta in metas)
    yield _END + _RESULTS.rstrip("\n")
    separator = "\n"
    for line in lines:
        yield separator + line
        separator = ",\n"
    yield "\n]}\n"


def _bare(result: TrialResult) -> str:
    """Return the compared fields of `result` as JSON, without default values."""
    scores = tuple(
        score.model_copy(update={"invocations": (), "reason": ""}) for score in result.scores
    )
    bare = result.model_copy(update={"scores": scores, "line": None})
    return bare.model_dump_json(exclude_defaults=True)


@dataclass(frozen=True)
class _Reader:
    path: Path
    shown: str

    def runs(self) -> list[Past]:
        """Return the runs with their values."""
        with suppress(UsageError, NotJsonError, ValidationError):
            if past := self._quick_runs():
                return past
        return self._validated_runs()

    def _quick_runs(self) -> list[Past]:
        """Return the runs, read by line; none if the layout differs or something may be wrong."""
        from ci_eval.records.compared_trials import compared_entry, intervals

        with reading(self.path, shown=self.shown, most=MAX_WALKED, newline="\n") as file:
            head = ""
            for line in iter(partial(file.readline, MAX_ELEMENT_CHARS), _RESULTS):
                head += line
                if not line or len(head) > MAX_ELEMENT_CHARS:
                    return []
            if not (head.startswith(_HEAD) and head.endswith(_END)):
                return []
            metas = parse_json(f"[{head[len(_HEAD) : -len(_END)]}]", max_depth=RESULT_DEPTH)
            past = [Past(RunMeta.model_validate(each), Columns()) for each in metas]
            within = [intervals(each.meta) for each in past]
            for _, text in result_lines(file, 0):
                entry = compared_entry(text, within) if text else None
                if entry is None:
                    return [] if text else past
                past[entry[0]].columns.add(entry[1])
        return []

    @baseline_errors()
    def _validated_runs(self) -> list[Past]:
        """Validate the whole file, and return its runs with their values."""
        past: list[Past] = []
        seen: set[str] = set()
        for name, element in self._members():
            seen.add(name)
            if name == "schema_version":
                check_version(element, self.shown)
            elif name == "runs" and not element.is_begin:
                meta = checked(RunMeta, element, self.shown)
                past.append(Past(meta, Columns()))
            elif name == "results" and not element.is_begin:
                run, _ = self._entry(element, len(past))
                result = checked_result(past[run].meta, element, self.shown, at=[1])
                past[run].columns.add(result)
        if not {"schema_version", "runs", "results"} <= seen:
            raise fault("is not a baseline of ci-eval", self.shown, line=1)
        return past

    def lines(self, runs: int) -> Iterator[str]:
        """Yield the results of the newest `runs` runs, with run indexes incremented by one."""
        for name, element in self._members():
            if name == "results" and not element.is_begin:
                run, value = self._entry(element, sys.maxsize)
                if run < runs:
                    yield f"[{run + 1},{json.dumps(value, separators=(',', ':'))}]"

    def _entry(self, element: Element, runs: int) -> tuple[int, object]:
        match element.value:
            case [int(run), value] if 0 <= run < runs:
                return run, value
        raise fault("expected a run index and a result", self.shown, line=element.line)

    def _members(self) -> Iterator[tuple[str, Element]]:
        file = JsonFile(self.path, shown=self.shown, max_depth=RESULT_DEPTH)
        with baseline_errors():
            yield from file.walk(frozenset({"runs", "results"}))
