"""Files that a change contains and that affect its own verdict."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_eval.config.python_files import python_file
from ci_eval.config.validated_config import Config
from ci_eval.gate.earlier_config import EarlierConfig, section
from ci_eval.llm.gateway.gateway_options import DEFAULT_CASSETTE
from ci_eval.plugins import points
from ci_eval.plugins.points import JudgedCriterion, WorkerCriterion
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError
from ci_eval.runtime.workers.imported_modules import sources

_SOURCES = "src"
"""Folder of the repository that has modules, besides its top and the configuration's folder."""
_MAX_SHOWN = 3
"""Maximum number of code files that a message names."""


def changed_files(
    config: Config, before: EarlierConfig, start: str, context: RunContext
) -> Iterator[str]:
    """Yield, in words, the recordings, cassettes and code of criteria that changed since `start`.

    Files of new agents and criteria weaken nothing.
    """
    clone = context.clone
    for name, spec in section(config.document.value, "agents").items():
        files = {"recording": recording_of(spec), "model cassette": cassette_of(spec)}
        for what, file in files.items() if name in before.section("agents") else ():
            if file and differs(clone, start, file):
                yield f"agent {name}: its {what} {context.shown(file)} is part of this change"
    if before.asks:
        yield from _of_judges(config, start, context)
    for name, criterion in config.criteria.items():
        if not (isinstance(criterion, WorkerCriterion) and name in before.criteria):
            continue
        if shown := _changed_sources(criterion.module, start, context):
            yield f"criterion {name}: its code {shown} is part of this change"


def changed_python(
    config: Config, before: EarlierConfig, start: str, context: RunContext
) -> Iterator[str]:
    """Yield, in words, the changed Python files that build criteria or evalsets."""
    criteria = python_file(section(before.value, "criteria").get("from"))
    if criteria and (shown := _changed_sources(criteria.module, start, context)):
        yield f"criteria: their code {shown} is part of this change"
    for name, spec in config.evalsets.items():
        file = python_file(spec.path) if name in before.section("evalsets") else None
        if file and (shown := _changed_sources(file.module, start, context)):
            yield f"evalset {name}: its code {shown} is part of this change"


def recording_of(spec: Any) -> str:
    """Return the recording of an agent in the configuration; empty for other agents."""
    given = spec if isinstance(spec, Mapping) else {}
    kinds = [name for name in given if name in points.agent]
    return next((str(given[name]) for name in kinds if not points.agent[name].converses), "")


def models_of(spec: Any) -> Mapping[str, Any]:
    """Return the options of an agent's `models`; empty without it."""
    given = spec.get("models") if isinstance(spec, Mapping) else None
    if isinstance(given, str):
        given = {"mode": given}
    if not isinstance(given, Mapping):
        return {}
    return {"mode": "auto", "cassette": DEFAULT_CASSETTE, **given}


def cassette_of(spec: Any) -> str:
    """Return the cassette with an agent's calls of models; empty without one."""
    return str(models_of(spec).get("cassette", ""))


def differs(clone: Clone, start: str, path: str) -> bool:
    """Return True if the commit at HEAD has another version of a file than `start`.

    `path` is relative to the folder of the configuration; a file outside of the repository never
    differs.
    """
    return bool(_changed(clone, start, [clone.folder / path]))


def changed_links(clone: Clone, start: str, path: Path) -> list[str]:
    """Return git's paths of the links on the way to a file that differ from those at `start`."""
    return _differing(clone, start, [clone.inside(str(each)) for each in _links(clone, path)])


def _links(clone: Clone, path: Path) -> list[Path]:
    """Return the folders on the way to a file that are symlinks or submodules."""
    inside = [each for each in path.parents if clone.top in each.parents]
    return [each for each in inside if each.is_symlink() or (each / ".git").exists()]


def _of_judges(config: Config, start: str, context: RunContext) -> Iterator[str]:
    options = config.judging.options
    calls = any(isinstance(each, JudgedCriterion) for each in config.criteria.values())
    if not (calls or config.simulation):
        return
    cassette = options.cassette if options.mode in ("auto", "replay") else ""
    for what, file in (("cassette ", cassette), ("", options.env_file)):
        if file and differs(context.clone, start, file):
            yield f"judge: its {what}{context.shown(file)} is part of this change"


def _changed_sources(module: str, start: str, context: RunContext) -> str:
    """Return the changed files of a module and of what it imports from the repository, as text."""
    clone = context.clone
    if clone.top is None:
        return ""
    searched = filter(None, context.env.get("PYTHONPATH", "").split(os.pathsep))
    own = (folder for at in (clone.folder, clone.top) for folder in (at, at / _SOURCES))
    folders = dict.fromkeys((*(clone.folder / each for each in searched), *own))
    inside = [each for each in folders if each.resolve().is_relative_to(clone.top.resolve())]
    return listed(_changed(clone, start, sources(module, inside)), _MAX_SHOWN)


def _changed(clone: Clone, start: str, paths: Sequence[Path]) -> list[str]:
    """Return git's paths of the files and of the links to them that differ."""
    places: dict[str, None] = {}
    for path in paths:
        for each in (path, path.resolve(), *_links(clone, path)):
            try:
                places[clone.inside(str(each))] = None
            except (GitError, OSError):
                continue
    return _differing(clone, start, places)


def _differing(clone: Clone, start: str, places: Collection[str]) -> list[str]:
    if not places:
        return []
    # Paths are taken literally; commits are compared, not the work tree.
    command = ("--literal-pathspecs", "diff-tree", "-r", "-z", "--name-only", start, "HEAD", "--")
    try:
        found = clone.view.run(*command, *places).decode(errors="replace")
    except GitError:
        return []
    return [each for each in found.split("\0") if each]
