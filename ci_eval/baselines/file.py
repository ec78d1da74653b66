"""A baseline in a file of the repository: reviewed like code, there on every machine."""

import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from ci_eval.columns import Columns, Past
from ci_eval.documents import contained
from ci_eval.errors import BaselineError, Problem, UsageError
from ci_eval.json_text import RESULT_DEPTH
from ci_eval.json_walk import Element, JsonFile
from ci_eval.plugins import BaselineStore, baseline
from ci_eval.records import SCHEMA_VERSION
from ci_eval.results import Run, RunMeta, TrialResult
from ci_eval.run_file import check_version, checked, checked_result, replacing, result_line
from ci_eval.world import World


@baseline("file")
class FileStore(BaselineStore):
    """One file that holds the last runs, newest first.

    `{"schema_version", "runs": [meta, …], "results": [[run, result], …]}`: the values of
    each case with a line of its own, without the evidence.
    """

    path: str = Field(default=".ci-eval/baseline.json", min_length=1)
    """The file, from the folder of the configuration."""
    window: int = Field(default=5, ge=1, le=100)
    """How many runs are kept; together they show how much a case varies."""

    def load(self, world: World) -> Sequence[Past]:
        """Return the stored runs, newest first."""
        return self._stored(world)[: self.window]

    def save(self, run: Run, world: World) -> bool:
        """Put `run` first, and drop the oldest beyond the window."""
        path = self._path(world)
        stored = self._stored(world)
        if any(past.meta.run_id == run.meta.run_id for past in stored):
            return False
        metas = [run.meta, *(past.meta for past in stored)][: self.window]
        old = _Reader(path, world.shown(self.path)).lines(len(metas) - 1) if stored else iter(())
        new = (f"[0,{result_line(_bare(result))}]" for result in run.results())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.writelines(_document(metas, itertools.chain(new, old)))
        except OSError as exc:
            problem = Problem(f"cannot be written: {exc.strerror or exc}", world.shown(self.path))
            raise UsageError(problems=[problem]) from exc
        return True

    def _stored(self, world: World) -> list[Past]:
        path = self._path(world)
        return _Reader(path, world.shown(self.path)).runs() if path.exists() else []

    def _path(self, world: World) -> Path:
        try:
            return contained(world.root, self.path)
        except UsageError as exc:
            raise BaselineError(problems=exc.problems) from exc


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
