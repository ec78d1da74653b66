"""Runs as a baseline keeps them, in one document.

`{"schema_version", "runs": [meta, …], "results": [[run, result], …]}`, newest run first: the
values of each case with a line of its own, without the evidence.
"""

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ci_eval.records.errors import BaselineError, Problem, UsageError
from ci_eval.records.model import SCHEMA_VERSION
from ci_eval.records.results import Run, RunMeta, TrialResult
from ci_eval.run_files.run_file import check_version, checked, checked_result, result_line
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.text.json_stream import Element, JsonFile
from ci_eval.text.json_text import RESULT_DEPTH


def stored_runs(path: Path, shown: str) -> list[Past]:
    """Return every run of the document at `path`, newest first, having checked all of it.

    Raises:
        BaselineError: it is no such document.

    """
    return _Reader(path, shown).runs()


def with_run(
    run: Run, stored: Sequence[Past], path: Path, shown: str, *, window: int
) -> Iterator[str]:
    """Yield, in pieces, the document at `path`, which holds `stored`, with `run` put first.

    The oldest beyond the `window` are left out.  Where nothing is stored, `path` is not read.
    """
    metas = [run.meta, *(past.meta for past in stored)][:window]
    old = _Reader(path, shown).lines(len(metas) - 1) if stored else iter(())
    # What was drawn again because it failed tells of failures only.
    new = (f"[0,{result_line(_bare(each))}]" for each in run.results() if not each.confirms)
    return _document(metas, itertools.chain(new, old))


@contextmanager
def as_file(data: bytes) -> Iterator[Path]:
    """Give a document that came from elsewhere a file for as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as folder:
        path = Path(folder) / "baseline.json"
        path.write_bytes(data)
        yield path


def _document(metas: Sequence[RunMeta], lines: Iterator[str]) -> Iterator[str]:
    """Yield the file in pieces."""
    yield f'{{"schema_version":{SCHEMA_VERSION},\n"runs":[\n'
    yield ",\n".join(meta.model_dump_json(exclude_defaults=True) for meta in metas)
    yield '\n],\n"results":['
    separator = "\n"
    for line in lines:
        yield separator + line
        separator = ",\n"
    yield "\n]}\n"


def _bare(result: TrialResult) -> TrialResult:
    """Return `result` with what is compared, and nothing else."""
    scores = tuple(
        score.model_copy(update={"invocations": (), "reason": ""}) for score in result.scores
    )
    return result.model_copy(update={"scores": scores, "line": None})


class _Reader:
    def __init__(self, path: Path, shown: str) -> None:
        self._path = path
        self._shown = shown

    def runs(self) -> list[Past]:
        """Return every run with its values, having checked all of the file."""
        past: list[Past] = []
        seen: set[str] = set()
        for name, element in self._members():
            seen.add(name)
            if name == "schema_version":
                check_version(element, self._shown, BaselineError)
            elif name == "runs" and not element.is_begin:
                meta = checked(RunMeta, element, self._shown, BaselineError)
                past.append(Past(meta, Columns()))
            elif name == "results" and not element.is_begin:
                run, _ = self._entry(element, len(past))
                result = checked_result(past[run].meta, element, self._shown, BaselineError, at=[1])
                past[run].columns.add(result)
        if not {"schema_version", "runs", "results"} <= seen:
            raise self._error("is no baseline of ci-eval", 1)
        return past

    def lines(self, runs: int) -> Iterator[str]:
        """Yield the results of the newest `runs` runs, each run counted one older."""
        for name, element in self._members():
            if name == "results" and not element.is_begin:
                run, value = self._entry(element, sys.maxsize)
                if run < runs:
                    yield f"[{run + 1},{json.dumps(value, separators=(',', ':'))}]"

    def _entry(self, element: Element, runs: int) -> tuple[int, object]:
        match element.value:
            case [int(run), value] if 0 <= run < runs:
                return run, value
        raise self._error("expected the number of a run, and a result", element.line)

    def _error(self, message: str, line: int) -> BaselineError:
        return BaselineError(problems=[Problem(message, self._shown, line)])

    def _members(self) -> Iterator[tuple[str, Element]]:
        file = JsonFile(self._path, shown=self._shown, max_depth=RESULT_DEPTH)
        try:
            yield from file.walk(frozenset({"runs", "results"}))
        except UsageError as exc:
            raise BaselineError(problems=exc.problems) from exc
