"""Reader of `criteria:` and `preset:` in a configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ValidationError

from ci_eval.config import presets
from ci_eval.config.config_document import DocumentReader
from ci_eval.config.config_schema import ConfigFile
from ci_eval.config.criterion_names import Dialect, resolve, surprising
from ci_eval.config.eval_config import EvalConfigFile, read_eval_config
from ci_eval.config.python_files import PythonFile, absent_file, as_json, not_run, python_file
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.errors import Problem, TrialError, UnknownPluginError, UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.text.json_text import is_number
from ci_eval.text.suggest import as_number
from ci_eval.text.validation_messages import describe, explain
from ci_eval.text.yaml_files import Document, Loc


@dataclass
class Criteria:
    """The criteria of a configuration."""

    found: dict[str, AnyCriterion] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    file: EvalConfigFile | None = None
    """The eval config that `from` names."""
    not_run: tuple[Problem, ...] = ()
    """The Python file that `from` names, if it was not run."""

    @property
    def of_file(self) -> list[AnyCriterion]:
        """The criteria of the eval config that `from` names."""
        return list(self.file.criteria.values()) if self.file else []


def read_criteria(
    document: Document,
    *,
    dialect: Dialect | None,
    context: RunContext,
    interpreter: str | None = None,
    python: UnderPython | EvalConfigFile | None = None,
) -> Criteria:
    """Return the criteria in `document`, with their problems.

    They come from `preset`, then from the file that `from` names, then from `criteria` itself.
    Later ones replace earlier ones of the same name; a listed criterion also replaces the same
    measure in a preset.  `interpreter` is the Python that runs the custom metrics of that file.
    `python` is the agent under whose interpreter a Python file runs, or what the file has built;
    without it, the file is not run.
    """
    reader = _Reader(document, context, python)
    entries = document.value.get("criteria")
    if isinstance(entries, dict):
        for name, spec in entries.items():
            if name == "from":
                reader.read_file(spec, dialect, interpreter)
            else:
                reader.read_one(name, spec, dialect or "adk")
    if document.value.get("preset") is not None:
        reader.read_presets(document.value["preset"])
    found = {**reader.of_presets, **reader.of_file, **reader.written}
    return Criteria(found, reader.problems, reader.file, reader.not_run)


_MISPLACED = "is no criterion: move this key to the top level of the file"


class _Reader(DocumentReader):
    def __init__(
        self, document: Document, context: RunContext, python: UnderPython | EvalConfigFile | None
    ) -> None:
        super().__init__(document, context)
        self._python = python
        self.file: EvalConfigFile | None = None
        self.not_run: tuple[Problem, ...] = ()
        self.of_presets: dict[str, AnyCriterion] = {}
        self.written: dict[str, AnyCriterion] = {}

    @property
    def of_file(self) -> dict[str, AnyCriterion]:
        return self.file.criteria if self.file else {}

    def read_one(self, name: str, spec: Any, dialect: Dialect) -> None:
        """Read the criterion with the user's name `name`."""
        loc: Loc = ("criteria", name)
        given = as_options(spec)
        is_misplaced = name in ConfigFile.model_fields
        if given is None:
            message = f"expected a threshold or options, found {describe(spec)}{as_number(spec)}"
            self.problem(_MISPLACED if is_misplaced else message, loc)
            return
        named, named_at = name, loc
        if "use" in given:
            named, named_at = str(given.pop("use")), (*loc, "use")
        try:
            model = resolve(named, dialect)
        except UnknownPluginError as exc:
            self.problem(_MISPLACED if is_misplaced and named_at == loc else str(exc), named_at)
            return
        if remark := surprising(named, model, dialect):
            self.problem(remark, named_at, severity="warning")
        found = self.validated(model, given, loc)
        if found:
            self.written[name] = found
            worst = found.bounds[found.direction == "lower"] if found.bounds else None
            if found.judges and found.threshold == worst:
                message = f"every score meets the threshold {worst:g}, so no case can fail"
                self.problem(message, loc, severity="warning")
            is_limited = not found.informational or found.max_growth is not None
            if found.tier in ("block", "warn") and not is_limited:
                limit = "threshold" if found.bounds else "`max_growth` or threshold"
                message = f"has no {limit}, so its tier {found.tier!r} has no effect"
                self.problem(message, loc, severity="warning")

    def read_file(self, spec: Any, dialect: Dialect | None, interpreter: str | None) -> None:
        """Read the eval config that `from` names."""
        loc = ("criteria", "from")
        if not isinstance(spec, str):
            self.problem(f"expected a path, found {describe(spec)}", loc)
            return
        judge = self.document.value.get("judge")
        read = partial(
            read_eval_config,
            dialect=dialect,
            interpreter=interpreter,
            judge=judge if isinstance(judge, dict) else {},
        )
        try:
            if python := python_file(spec):
                self.file = self._built(python, read, loc)
            else:
                path = contained(self.context.root, spec)
                self.file = read(path, shown=self.context.shown(spec))
        except UsageError as exc:
            self.problem(f"{spec} cannot be read", loc)
            self.problems += exc.problems
            return
        except TrialError as exc:
            self.problem(str(exc), loc)
            return
        if self.file:
            self.problems += self.file.problems

    def _built(
        self, file: PythonFile, read: Callable[..., EvalConfigFile], loc: Loc
    ) -> EvalConfigFile | None:
        """Return the eval config that a Python file builds; `None` if the file is not run."""
        if isinstance(self._python, EvalConfigFile):
            return self._python
        if self._python is None:
            if message := absent_file(file, self.context):
                self.problem(message, loc)
            self.not_run = (self.document.problem(not_run(file), loc),)
            return None
        with as_json(file, "EvalConfig", self._python, self.context) as path:
            return read(path, shown=self.context.shown(file.file), dialect="agentflow")

    def read_presets(self, spec: Any) -> None:
        """Read the presets that `preset` names."""
        written = {type(each) for each in (*self.written.values(), *self.of_file.values())}
        for name, options, loc in self._presets(spec):
            try:
                specs = presets.expanded(name, options)
            except UnknownPluginError as exc:
                self.problem(str(exc), loc)
                continue
            except ValidationError as exc:
                for inner, message in explain(exc, presets.PRESETS[name]):
                    self.problem(message, (*loc, *inner))
                continue
            if not specs:
                self.problem(f"the preset {name!r} without a threshold measures nothing", loc)
            for qualified, given in specs.items():
                model = resolve(qualified, "adk")
                found = None if model in written else self.validated(model, given, loc)
                if found:
                    self.of_presets[qualified] = found

    def _presets(self, spec: Any) -> list[tuple[str, dict[str, Any], Loc]]:
        """Return each named preset with its options and its location."""
        listed = spec if isinstance(spec, list) else [spec]
        found: list[tuple[str, dict[str, Any], Loc]] = []
        for index, entry in enumerate(listed):
            loc: Loc = ("preset", index) if isinstance(spec, list) else ("preset",)
            if isinstance(entry, str):
                found.append((entry, {}, loc))
            elif isinstance(entry, dict):
                for name, options in entry.items():
                    if options is None or isinstance(options, dict):
                        found.append((name, options or {}, (*loc, name)))
                    else:
                        message = f"expected options, found {describe(options)}"
                        self.problem(message, (*loc, name))
            else:
                self.problem(f"expected the name of a preset, found {describe(entry)}", loc)
        return found


def as_options(spec: Any) -> dict[str, Any] | None:
    """Return the options in `spec`, which may be just a threshold; `None` if it is invalid."""
    if spec is None:
        return {}
    if is_number(spec):
        return {"threshold": spec}
    return dict(spec) if isinstance(spec, Mapping) else None
