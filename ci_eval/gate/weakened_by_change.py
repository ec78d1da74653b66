"""How a change weakens its own gate, according to git.

`weakened_gate` compares with the baseline run.  That is not enough: the change may contain that run
itself, or keep it from being found; the run may be older than the setting that the change reverts;
and it holds neither the whole configuration nor the files that the configuration names.  So the
configuration before the change is compared, too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ci_eval.config.validated_config import Config
from ci_eval.forge.lineage import began, current_branch, is_tag
from ci_eval.forge.missing_commit import why_missing
from ci_eval.gate.changed_cases import changed_cases, removed_files
from ci_eval.gate.changed_files import changed_files, changed_links, changed_python, differs
from ci_eval.gate.earlier_config import EarlierConfig, document_at, read_earlier, section
from ci_eval.gate.weakened_gate import loosened
from ci_eval.gate.weakened_settings import unstored, weaker_suite
from ci_eval.records.results import RunMeta
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError

_KEYS = {"agents", "evalsets"}
"""Keys that every configuration has, and hardly any other YAML file."""
_MOST_MOVED = 20
"""Maximum number of removed files that are searched for the configuration."""


def rewritten(
    config: Config, meta: RunMeta, context: RunContext, *, compared: bool
) -> Iterator[str]:
    """Yield, in words, how the checked-out change weakens its own gate.

    `compared`: the run is compared with a stored one, which holds the earlier configuration.
    """
    store, clone = config.baseline, context.clone
    lineage = began(clone, *(store.base, store.branches) if store else (None, ()))
    start = next(iter(lineage.ancestors), None)
    is_base = lineage.base is not None and current_branch(clone) == lineage.base
    if is_base or not lineage.changes or is_tag(clone.env):
        return
    why = "no base branch in the clone shares a commit with it; fetch or name it (`baseline.base`)"
    if lineage.shallow:
        why = "the clone is too shallow to find where it began; check out with `fetch-depth: 0`"
    if start is not None and not (why := why_missing(context, start)):
        yield from _since(start, config, meta, context, compared=compared)
    elif clone.head:
        yield f"perhaps, but what it changes is unknown: {why}"


def _since(
    start: str, config: Config, meta: RunMeta, context: RunContext, *, compared: bool
) -> Iterator[str]:
    store, clone = config.baseline, context.clone
    own = store.work_tree_file if store else ""
    if own and differs(clone, start, own):
        yield f"baseline: {context.shown(own)} is part of this change"
    place = clone.inside(config.path.name)
    document, found = document_at(clone, start, place), place
    behind = _behind_links(clone, config.path)
    if document is None and behind != place:  # its folder is a symlink
        document, found = document_at(clone, start, behind), behind
        if document is None or changed_links(clone, start, config.path.absolute()):
            yield f"configuration: {place} leads to another file than before"
    for old in _moved_from(clone, start, place) if document is None else ():
        moved = document_at(clone, start, old)
        if moved is not None and moved.value.keys() >= _KEYS:
            if not compared:
                yield f"configuration: moved from {old} to {place}, which has its own baseline runs"
            document, found = moved, old
            break
    before = None
    if document:
        given = section(config.document.value, "criteria").get("from")
        is_same = given == section(document.value, "criteria").get("from")
        built = config.eval_config if is_same else None
        before = read_earlier(document, start, found, context, built)
    if document is None or before is None:
        return
    yield from weaker(config, before, meta)
    yield from changed_files(config, before, start, context)
    yield from changed_python(config, before, start, context)
    yield from removed_files(before, PurePosixPath(found).parent, _removed(clone, start))
    yield from changed_cases(meta, start, clone)


def _behind_links(clone: Clone, path: Path) -> str:
    """Return git's path of the file that a path leads to; empty if it is outside."""
    try:
        return clone.inside(str(path.resolve()))
    except GitError:
        return ""


def _removed(clone: Clone, start: str) -> list[str]:
    """Return the files that the change removes or renames."""
    command = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=D", "--name-only")
    return clone.view.query(*command, start, "HEAD").split("\0")


def _moved_from(clone: Clone, start: str, place: str) -> Iterator[str]:
    """Yield the YAML files that the change removes, those of the same name first."""
    found = [path for path in _removed(clone, start) if path.endswith((".yaml", ".yml"))]
    found.sort(key=lambda path: PurePosixPath(path).name != PurePosixPath(place).name)
    yield from found[:_MOST_MOVED]


def weaker(config: Config, before: EarlierConfig, meta: RunMeta) -> Iterator[str]:
    """Yield, in words, what `config` lets through but the earlier configuration `before` did not.

    `meta` describes the run.
    """
    now: Mapping[str, Any] = config.document.value
    named, was_named = now.get("name"), before.value.get("name")
    if named != was_named:
        yield f"name: {_shown(was_named)} → {_shown(named)}, which has its own baseline runs"
    yield from unstored(config, before)
    # Even with a stored run, which may be older than the setting that the change reverts.
    was = {
        "gate": before.gate.model_dump(mode="json", exclude_defaults=True)
        | {"mode": before.gate.mode or ("regression" if before.store else "threshold")},
        "configured_repeats": before.run.repeats,
        "store": before.store,
        "criteria": before.facts,
    }
    told = (*loosened(meta, meta.model_copy(update=was)), *weaker_suite(config, before))
    yield from dict.fromkeys(told)


def _shown(name: object) -> str:
    return "none" if name is None else repr(name)[:100]
