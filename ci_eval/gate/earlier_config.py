"""The configuration before a change, read from git.

Problems are ignored: the earlier configuration is only compared with the present one, and may name
files that the change removes.
"""

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from ci_eval.config.config_schema import GateOptions, MatrixRow, RunOptions
from ci_eval.config.criteria_section import Criteria, read_criteria
from ci_eval.config.criterion_facts import facts_of
from ci_eval.config.criterion_names import DIALECTS
from ci_eval.config.engine_section import without_engine
from ci_eval.config.eval_config import EvalConfigFile
from ci_eval.config.judge_section import read_judging, read_simulation
from ci_eval.llm.judge_settings import Judging, Simulation
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import Json
from ci_eval.records.errors import UnknownPluginError, UsageError
from ci_eval.records.results import CriterionFacts
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError
from ci_eval.text.yaml_files import MAX_CONFIG, Document, parse_yaml

_LINK = "120000 "
"""Start of a symlink's line in git's list of files."""
_MAX_FILES = 200
"""Maximum number of files that are read in addition to the configuration."""


@dataclass(frozen=True)
class EarlierConfig:
    """The configuration before a change."""

    value: Mapping[str, Any]
    gate: GateOptions
    run: RunOptions
    store: Mapping[str, Json]
    """The baseline store, as in `RunMeta.store`; empty without one."""
    matrix: tuple[MatrixRow, ...]
    criteria: Mapping[str, AnyCriterion] = field(default_factory=dict)
    """The enabled criteria."""
    facts: Mapping[str, CriterionFacts] = field(default_factory=dict)
    judging: Judging | None = None
    playing: Json = None
    """The settings that determine what simulated users say; `None` if unknown."""
    unread: str = ""
    """The eval config that `from` names, if it could not be read."""

    @property
    def asks(self) -> bool:
        """True if it may call a model, as a judge or to simulate users."""
        judged = any(each.judged for each in self.criteria.values())
        return judged or not {"judge", "simulator"}.isdisjoint(self.value)

    def section(self, name: str) -> Mapping[str, Any]:
        """Return the mapping under a key; empty if there is none."""
        return section(self.value, name)


def section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the mapping under a key of a configuration; empty if there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def document_at(clone: Clone, commit: str, path: str) -> Document | None:
    """Return the YAML document at `path` of a commit; `None` if it is not a readable mapping."""
    try:
        text = _blob(clone, f"{commit}:{linked(clone, commit, path)}").decode()
        found = parse_yaml(text, shown=path)
    except (GitError, UnicodeDecodeError, UsageError):
        return None
    return found if isinstance(found.value, dict) else None


def linked(clone: Clone, commit: str, path: str) -> str:
    """Return the target of the file at `path` of a commit if it is a symlink, else `path`.

    Raises:
        GitError: its target cannot be read.

    """
    if not clone.view.query("ls-tree", commit, "--", path).startswith(_LINK):
        return path
    target = _blob(clone, f"{commit}:{path}").decode(errors="surrogateescape")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def read_earlier(
    document: Document,
    commit: str,
    path: str,
    context: RunContext,
    built: EvalConfigFile | None = None,
) -> EarlierConfig | None:
    """Return the configuration in `document`, at `path` of `commit`.

    `None` if its `gate`, `run` or `matrix` is invalid: such a configuration gave no verdict.
    `built` is the eval config that its Python file builds now, because that file is not run here.
    """
    value = document.value
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        top = Path(folder).resolve()
        root = top / PurePosixPath(path).parent
        root.mkdir(parents=True, exist_ok=True)
        for named in _named_files(value):
            with suppress(GitError, OSError, UsageError):
                _extract(context.clone, commit, path, named, top)
        then = replace(context, root=root)
        criteria = _criteria(document, then, built)
        judging, _ = read_judging(document, value.get("judge"), then)
        simulation, _ = read_simulation(document, value, then, criteria.file)
        found = {name: each for name, each in criteria.found.items() if each.enabled}
        # Here, criteria and Python files use the present code; `changed_files` compares the files.
        facts = dict(_facts(found, judging, context))
        played = playing(judging, simulation)
    given = section(value, "criteria").get("from")
    try:
        options = {
            **(criteria.file.run if criteria.file else {}),
            **(without_engine(value.get("run")) or {}),
        }
        return EarlierConfig(
            value=value,
            gate=GateOptions.model_validate(value.get("gate") or {}),
            run=RunOptions.model_validate(options),
            store=_store(value),
            matrix=tuple(map(MatrixRow.model_validate, value.get("matrix") or ())),
            criteria=found,
            facts=facts,
            judging=judging,
            playing=played,
            unread=str(given) if given is not None and criteria.file is None else "",
        )
    except (ValidationError, TypeError):
        return None


def _named_files(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files and folders that are read with the configuration."""
    for named in (section(value, "criteria").get("from"), section(value, "judge").get("prompts")):
        if isinstance(named, str):
            yield named


def _extract(clone: Clone, commit: str, config: str, named: str, top: Path) -> None:
    """Write a file, or the files of a folder, as they were at `commit` below `top`."""
    # `named` is relative to the folder of the configuration, which may have moved.
    folder = PurePosixPath(config).parent
    place = clone.inside(str(Path(clone.top or top) / folder / named))
    if (leads := linked(clone, commit, place)) != place:
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        (top / place).write_bytes(_blob(clone, f"{commit}:{leads}"))
        return
    command = ("--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "--full-tree")
    listed = clone.view.run(*command, commit, "--", place).decode(errors="surrogateescape")
    for path in listed.split("\0")[:_MAX_FILES]:
        target = top / path
        if path and target.resolve().is_relative_to(top):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_blob(clone, f"{commit}:{path}"))


def _blob(clone: Clone, name: str) -> bytes:
    """Return the content of a file in a commit.

    Raises:
        GitError: it does not exist, or is too large for a configuration.

    """
    if int(clone.view.query("cat-file", "-s", name) or MAX_CONFIG + 1) > MAX_CONFIG:
        raise GitError(f"{name} cannot be read")
    return clone.view.run("cat-file", "blob", name)


def _criteria(document: Document, context: RunContext, built: EvalConfigFile | None) -> Criteria:
    dialect = document.value.get("dialect")
    agents = section(document.value, "agents").values()
    given = [each.get("interpreter") for each in agents if isinstance(each, Mapping)]
    named = {each for each in given if isinstance(each, str)}
    return read_criteria(
        document,
        dialect=dialect if dialect in DIALECTS else None,
        context=context,
        interpreter=named.pop() if len(named) == 1 else None,
        python=built,
    )


def _facts(
    criteria: Mapping[str, AnyCriterion], judging: Judging, context: RunContext
) -> Iterator[tuple[str, CriterionFacts]]:
    for name, each in criteria.items():
        with suppress(ValueError, UsageError, OSError):
            yield name, facts_of(each, judging, context)


def playing(judging: Judging, simulation: Simulation) -> Json:
    """Return the settings that determine what simulated users say; `None` if there are none."""
    try:
        return judging.playing(simulation)
    except (ValueError, UsageError, OSError):
        return None


def _store(value: Mapping[str, Any]) -> Mapping[str, Json]:
    given = value.get("baseline")
    if not isinstance(given, Mapping):
        return {}
    options = {"gcs": value.get("gcs") or {}, **given}
    name = str(options.pop("store", "file"))
    try:
        model = points.baseline[name]
        if "gcs" not in model.model_fields:
            options.pop("gcs")
        store = model.model_validate(options)
    except (ValidationError, UnknownPluginError):
        return {"store": name}
    return {"store": name, **store.model_dump(mode="json", exclude_defaults=True)}
