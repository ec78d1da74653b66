"""How a change weakens its own gate, according to git.

`weakened_gate` compares with the baseline run.  That is not enough if the change itself brings this
run along, or keeps it from being found.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from ci_eval.config.config_schema import GateOptions, RunOptions
from ci_eval.config.validated_config import Config
from ci_eval.forge.lineage import current_branch, trace
from ci_eval.gate.weakened_gate import loosened
from ci_eval.records.errors import UsageError
from ci_eval.records.results import RunMeta
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError
from ci_eval.text.yaml_files import MAX_CONFIG, parse_yaml

_KEYS = {"agents", "evalsets"}
"""Keys that every configuration has, and hardly any other YAML file."""
_MOST_MOVED = 20
"""Maximum number of removed files that are searched for the configuration."""


def rewritten(
    config: Config, meta: RunMeta, context: RunContext, *, compared: bool
) -> Iterator[str]:
    """Yield, in words, how the checked-out change weakens its own gate.

    `compared`: the run is compared with a stored one, which has the earlier configuration.
    """
    store, clone = config.baseline, context.clone
    lineage = store.lineage(context) if store else trace(clone, base=None, search=1)
    start = next(iter(lineage.ancestors), None)
    if start is None or current_branch(clone) == lineage.base:
        return
    own = store.work_tree_file if store else ""
    if own and _differs(clone, start, own):
        yield f"baseline: {context.shown(own)} is part of this change"
    if compared:
        return
    place = clone.inside(config.path.name)
    before = _config_at(clone, start, place)
    if before is None and clone.is_partial and clone.view.holds(f"{start}:{place}"):
        yield f"configuration: the earlier {place} is missing from this partial clone"
    for old in _moved_from(clone, start, place) if before is None else ():
        found = _config_at(clone, start, old)
        if found is not None and found.keys() >= _KEYS:
            yield f"configuration: moved from {old} to {place}, which has its own baseline runs"
            before = found
            break
    if before is not None:
        yield from _of_config(config.document.value, before, meta)


def _moved_from(clone: Clone, start: str, place: str) -> Iterator[str]:
    """Yield the YAML files that the change removes, those of the same name first."""
    command = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=D", "--name-only")
    removed = clone.view.query(*command, start, "HEAD").split("\0")
    found = [path for path in removed if path.endswith((".yaml", ".yml"))]
    found.sort(key=lambda path: PurePosixPath(path).name != PurePosixPath(place).name)
    yield from found[:_MOST_MOVED]


def _differs(clone: Clone, start: str, path: str) -> bool:
    # The path is not a pattern; commits are compared, not the work tree.
    command = ("--literal-pathspecs", "diff-tree", "-r", "--name-only", start, "HEAD", "--")
    try:
        return bool(clone.view.run(*command, clone.inside(path)))
    except GitError:
        return False


def _config_at(clone: Clone, start: str, path: str) -> Mapping[str, Any] | None:
    """Return the configuration at `start`; `None` if there was none or it is unreadable."""
    blob = f"{start}:{path}"
    try:
        if int(clone.view.query("cat-file", "-s", blob) or MAX_CONFIG + 1) > MAX_CONFIG:
            return None
        text = clone.view.run("cat-file", "blob", blob).decode()
        found = parse_yaml(text, shown=path).value
    except (GitError, UnicodeDecodeError, UsageError):
        return None
    return found if isinstance(found, dict) else None


def _of_config(now: Mapping[str, Any], before: Mapping[str, Any], meta: RunMeta) -> Iterator[str]:
    named, was_named = now.get("name"), before.get("name")
    if named != was_named:
        yield f"name: {_shown(was_named)} → {_shown(named)}, which has its own baseline runs"
    kept, was_kept = now.get("baseline"), before.get("baseline")
    if was_kept is not None and kept != was_kept:
        yield f"baseline: {'removed' if kept is None else 'location changed'}"
    try:
        gate = GateOptions.model_validate(before.get("gate") or {})
        run = RunOptions.model_validate(before.get("run") or {})
    except ValidationError:
        return
    # Everything else about the old run is unknown and counts as unchanged.
    was = {
        "gate": gate.model_dump(mode="json", exclude_defaults=True),
        "repeats": run.repeats,
        "store": {} if was_kept is None else meta.store,
    }
    yield from loosened(meta, meta.model_copy(update=was))


def _shown(name: object) -> str:
    return "none" if name is None else repr(name)[:100]
