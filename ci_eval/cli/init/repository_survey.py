"""Survey of a repository's agents and evalsets: files are read, never imported or run."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ci_eval.cli.init.surveyed_agents import Sources, read_sources
from ci_eval.cli.init.surveyed_python import name_of
from ci_eval.config.eval_config import read_eval_config
from ci_eval.config.open_evalset import open_evalset, reader_of
from ci_eval.formats.sniff import ENDINGS, SURE_ENDINGS, read_head, syntax_of
from ci_eval.plugins import points
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.cases import Json
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.run_files.file_names import REPORT_FOLDER
from ci_eval.runtime.environments import own_python

MAX_FILES = 50_000
"""Maximum number of files examined."""
MAX_DEPTH = 12
"""Maximum depth of the search."""
MAX_SIZE = 64 * 1024 * 1024
"""Maximum size of files read, in bytes."""
MAX_LOOKED_INTO = 2_000
"""Maximum number of files examined as evalsets, and likewise as recordings."""
INTERPRETER = "bin/python"
"""The interpreter of an environment, relative to its folder."""
_SKIPPED = frozenset(
    {"node_modules", "__pycache__", "site-packages", "venv", "env", "dist", "build", "target"}
    | {"vendor", REPORT_FOLDER}
)
"""Folders with generated or downloaded files, including our own reports."""
_HIDDEN = frozenset({".adk"})
"""The hidden folders that are searched: ADK keeps its results there."""
_EVALS = re.compile(
    r"(?<![a-z])evals?(?![a-z])|evalset|evaluation|golden|(?<![a-z])cases\."
    r"|test.?(case|set)|questions|ground.?truth",
    re.IGNORECASE,
)
"""Names of folders and files that may contain evalsets."""
_RECORDED = re.compile(
    r"evalset_result|trace|record|session|span|transcript|conversation", re.IGNORECASE
)
_EVAL_CONFIG = re.compile(
    r"(test|eval)[\w-]*config[\w-]*\.json|eval[\w-]*config[\w-]*\.ya?ml", re.IGNORECASE
)


@dataclass(frozen=True)
class FoundEvalSet:
    """An evalset that can be read."""

    path: str
    """Relative to the surveyed folder, with slashes."""
    opened: OpenedEvalSet


@dataclass(frozen=True)
class Survey:
    """The agents, evalsets and other files found in a folder."""

    root: Path
    evalsets: tuple[FoundEvalSet, ...] = ()
    unreadable: tuple[Problem, ...] = ()
    """The first problem of each evalset or eval config that cannot be read."""
    recordings: tuple[str, ...] = ()
    """Files with recorded conversations, the newest first."""
    eval_configs: tuple[str, ...] = ()
    sources: Sources = field(default_factory=Sources)
    cut_off: bool = False
    """Whether a limit was reached."""


def survey(root: Path) -> Survey:
    """Return the findings in the folder `root` and below."""
    files, cut_off = _files(root)
    likely = [each for each in files if _may_be_evalset(each)]
    unreadable: list[Problem] = []
    evalsets = tuple(_evalsets(root, likely[:MAX_LOOKED_INTO], unreadable))
    configs = tuple(_eval_configs(root, files, unreadable))
    taken = {each.path for each in evalsets}
    recorded = [each for each in files if each not in taken and _may_be_recording(each)]
    large = (each for each in (*likely, *recorded) if _too_large(root / each))
    limit = f"is larger than {MAX_SIZE // 1024**2} MiB, so init does not read it"
    return Survey(
        root=root,
        evalsets=evalsets,
        unreadable=(*unreadable, *(Problem(limit, each) for each in dict.fromkeys(large))),
        recordings=tuple(_recordings(root, recorded)),
        eval_configs=configs,
        sources=read_sources(root, files),
        cut_off=cut_off or max(len(likely), len(recorded)) > MAX_LOOKED_INTO,
    )


def required_packages(root: Path, folder: str) -> str:
    """Return pip's arguments for the code in `folder`, from the nearest file there or above.

    Empty if there is no such file.
    """
    start = PurePosixPath(folder)
    for each in (start, *start.parents):
        requirements = each / "requirements.txt"
        if (root / requirements).is_file():
            return shlex.join(["-r", str(requirements)])
        if (root / each / "pyproject.toml").is_file():
            return shlex.join(["-e", f"./{each}" if each.parts else "."])
    return ""


def environment_of(root: Path, folder: str) -> str:
    """Return the virtual environment for the code in `folder`: the nearest one there or above.

    Empty if there is none.
    """
    python = own_python(root / folder, root)
    return python.parents[1].relative_to(root).as_posix() if python else ""


def is_for_evals(folder: PurePosixPath) -> bool:
    """Return True if the name of a folder suggests that it holds evalsets."""
    return bool(_EVALS.search(str(folder)))


def with_evalset(found: Survey, path: str) -> Survey:
    """Return `found` with the newly written evalset at `path`.

    Raises:
        EvalSetError: it is not an evalset.

    """
    added = FoundEvalSet(path, open_evalset(found.root / path, shown=path))
    return replace(found, evalsets=(*found.evalsets, added))


def _files(root: Path) -> tuple[list[str], bool]:
    """Return the files below `root`, as relative paths, and whether a limit was reached."""
    found: list[str] = []
    cut_off = False
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        folders[:] = sorted(each for each in folders if _is_searched(Path(folder) / each))
        if len(relative.parts) >= MAX_DEPTH and folders:
            folders.clear()
            cut_off = True
        for name in sorted(names):
            if len(found) >= MAX_FILES:
                return found, True
            if name.isprintable() and not (Path(folder) / name).is_symlink():
                found.append((relative / name).as_posix())
    return found, cut_off


def _is_searched(folder: Path) -> bool:
    name = folder.name
    hidden = name.startswith(".") and name not in _HIDDEN
    left_out = hidden or name in _SKIPPED or not name.isprintable() or folder.is_symlink()
    return not left_out and not os.path.lexists(folder / "pyvenv.cfg")


# --- Evalsets ---------------------------------------------------------------------------------


def _evalsets(
    root: Path, files: Sequence[str], unreadable: list[Problem]
) -> Iterator[FoundEvalSet]:
    """Yield the evalsets; add a problem of each that cannot be read to `unreadable`."""
    for file in files:
        if _too_large(root / file):
            continue
        try:
            if file.endswith(SURE_ENDINGS) or _begins_like(root / file, reader_of):
                opened = open_evalset(root / file, shown=file)
                if opened.facts.cases:
                    yield FoundEvalSet(file, opened)
        except UsageError as exc:
            unreadable.append(exc.problems[0])


def _may_be_evalset(file: str) -> bool:
    if ".json:" in file:
        return False  # a configuration would read what follows as the names of cases
    return file.endswith(SURE_ENDINGS) or (
        file.endswith(ENDINGS)
        and bool(_EVALS.search(file))
        and not _EVAL_CONFIG.fullmatch(name_of(file))
        and "/.adk/" not in f"/{file}"
    )


def _begins_like(path: Path, format_of: Callable[[Json, Syntax], object | None]) -> bool:
    try:
        return format_of(read_head(path, shown=""), syntax_of(path)) is not None
    except UsageError:
        return False


def _eval_configs(root: Path, files: Sequence[str], unreadable: list[Problem]) -> Iterator[str]:
    """Yield the eval configs of ADK or AgentFlow; add a problem of each that cannot be read."""
    for file in [each for each in files if _EVAL_CONFIG.fullmatch(name_of(each))][:MAX_LOOKED_INTO]:
        try:
            read = read_eval_config(root / file, shown=file, dialect="adk")
        except UsageError as exc:
            unreadable.append(exc.problems[0])
        else:
            if read.criteria or any(each.where.startswith("criteria.") for each in read.problems):
                yield file


# --- Recordings -------------------------------------------------------------------------------


def _may_be_recording(file: str) -> bool:
    is_json = file.endswith(".json") and bool(_RECORDED.search(file))
    return is_json or file.endswith((".jsonl", ".ndjson"))


def _recordings(root: Path, files: Sequence[str]) -> Iterator[str]:
    """Yield the files that hold conversations, the newest first."""
    aged = sorted(((_changed(root / each), each) for each in files), reverse=True)
    for _, file in aged[:MAX_LOOKED_INTO]:
        if not _too_large(root / file) and _begins_like(root / file, _recording_format):
            yield file


def _recording_format(head: Json, syntax: Syntax) -> object | None:
    """Return the format of a recording; ours if it begins with a line of `run --record`."""
    match head:
        case [{"eval_id": _, "invocations": _} | {"eval_id": _, "error": _}, *_]:
            return "ci-eval"
    return points.recording.of(head, syntax)


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _too_large(path: Path) -> bool:
    try:
        return path.stat().st_size > MAX_SIZE
    except OSError:
        return True
