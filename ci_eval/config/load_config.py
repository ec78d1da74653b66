"""Loading `ci-eval.yaml` into a `Config`; reports all errors of the file at once, with lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from glob import has_magic
from pathlib import Path
from typing import Any

from ci_eval.config.config_document import DocumentReader
from ci_eval.config.config_schema import (
    REPORTS,
    ConfigFile,
    EvalSetSpec,
    GateOptions,
    MatrixRow,
    RunOptions,
)
from ci_eval.config.criteria_section import Criteria, read_criteria
from ci_eval.config.criterion_names import DIALECTS, NAME, NO_NAME, Dialect
from ci_eval.config.default_suite import default_suite
from ci_eval.config.engine_section import read_engine, without_engine
from ci_eval.config.eval_config import EvalConfigFile
from ci_eval.config.judge_section import read_judging, read_simulation
from ci_eval.config.open_evalset import reader_of
from ci_eval.config.python_files import absent_file, host_of, not_run, python_file
from ci_eval.config.validated_config import Config
from ci_eval.formats import known_formats
from ci_eval.llm.gateway.gateway_clients import CallingModels
from ci_eval.llm.judge_settings import Judging, Simulation
from ci_eval.plugins import points
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.plugin import Plugin
from ci_eval.plugins.points import Agent, JudgedCriterion, Reporter
from ci_eval.records.errors import ConfigError, Problem, UnknownPluginError, UsageError
from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.storage.gcs import GcsOptions
from ci_eval.text.suggest import as_share, did_you_mean
from ci_eval.text.validation_messages import describe
from ci_eval.text.yaml_files import Document, Loc, read_yaml


def gcs_options(context: RunContext) -> GcsOptions:
    """Return the storage options for a command that takes no configuration.

    They come from `ci-eval.yaml`, if it exists.

    Raises:
        ConfigError: its options for storage are invalid.
        UsageError: it cannot be read.

    """
    path = context.root / CONFIG_FILE
    if not path.is_file():
        return GcsOptions()
    reader = DocumentReader(read_yaml(path, shown=context.shown(CONFIG_FILE)), context)
    options = reader.validated(GcsOptions, _dict(reader.document.value).get("gcs", {}), ("gcs",))
    if options is None:
        raise ConfigError(problems=reader.problems)
    return options


def load(path: Path, *, shown: str, context: RunContext) -> Config:
    """Read and validate the configuration at `path`.

    Raises:
        ConfigError: the configuration is invalid; lists every problem.
        UsageError: the file cannot be read, or is not YAML.

    """
    try:
        document = read_yaml(path, shown=shown)
    except UsageError as exc:
        if path.suffix in _ENDINGS or not exc.problems[0].line:
            raise
        raise ConfigError("is not a YAML configuration", file=shown) from exc
    return checked(document, path, context)


def checked(document: Document, path: Path, context: RunContext) -> Config:
    """Return the configuration in `document`; the file at `path` need not exist.

    Raises:
        ConfigError: the configuration is invalid; lists every problem.

    """
    return _Reader(document, context).config(path)


class _Reader(DocumentReader):
    """Reads a whole configuration."""

    _gcs = GcsOptions()

    def config(self, path: Path) -> Config:
        raw = self.document.value
        if reader_of(raw, "yaml"):
            self.problem("is an evalset, not a configuration; list it under `evalsets:` of one")
            raw = {}
        elif not isinstance(raw, dict) or not raw:
            found = "is empty" if raw in (None, {}) else f"expected keys, found {describe(raw)}"
            self.problem(found)
            raw = {}
        elif not ConfigFile.model_fields.keys() & raw.keys():
            self.problem(f"is not a configuration of ci-eval: {known_formats.described(raw)}")
            raw = {}
        file = self.validated(ConfigFile, self._placed(raw), ()) if raw else None
        engine = read_engine(self, raw.get("run"))
        self._gcs = file.gcs if file else self._gcs
        dialect = raw.get("dialect") if raw.get("dialect") in DIALECTS else None
        agents = self._each("agents", raw, self._agent)
        evalsets = self._each("evalsets", raw, self._evalset)
        read = self._criteria(raw, dialect, agents)
        criteria = {name: each for name, each in read.found.items() if each.enabled}
        judging = self._judging(raw, criteria)
        simulation = self._simulation(raw, read.file, judging)
        baseline = self._baseline(raw.get("baseline"))
        reports = self._reports(_list(raw.get("reports", [*REPORTS])))
        self._check_names(raw)
        self._check_references(raw, read)
        self._remark(agents, criteria, read)
        self._check_matrix(raw, file.matrix if file else ())
        missing = (*read.not_run, *self._not_run(evalsets))
        self.problems.sort(key=self._place)
        if file is None or any(problem.severity == "error" for problem in self.problems):
            raise ConfigError(problems=self.problems)
        run_defaults = read.file.run if read.file else {}
        run = RunOptions.model_validate({**run_defaults, **file.run.model_dump(exclude_unset=True)})
        return Config(
            path=path,
            suite=file.name or default_suite(path, self.context.clone),
            dialect=file.dialect,
            agents=agents,
            evalsets=evalsets,
            criteria=criteria,
            judging=judging.beside(run.concurrency),
            run=run,
            engine=engine,
            baseline=baseline,
            gcs=file.gcs,
            gate=file.gate,
            reports=reports,
            matrix=file.matrix,
            disabled=tuple(name for name in read.found if name not in criteria),
            mock=bool(read.file and read.file.mock),
            simulation=simulation if any(each.converses for each in agents.values()) else None,
            eval_config=read.file,
            not_run=missing,
            document=self.document,
            warnings=tuple(self.problems),
        )

    def _placed(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return the file without misplaced keys, and without the options of the engine."""
        kept = {**self.placed(ConfigFile, raw, ()), "run": without_engine(raw.get("run", {}))}
        kept["run"] = self.placed(RunOptions, kept["run"], ("run",))
        return {**kept, "gate": self.placed(GateOptions, raw.get("gate", {}), ("gate",))}

    def _remark(
        self, agents: Mapping[str, object], criteria: Mapping[str, AnyCriterion], read: Criteria
    ) -> None:
        for name, each in criteria.items():
            # Remarks on an eval config were already added, with lines in that file.
            for option, message in each.remarks() if each not in read.of_file else ():
                self.problem(message, ("criteria", name, *option), severity="warning")
        for name, agent in agents.items():
            for message in (
                agent.unmetered(self.context) if isinstance(agent, CallingModels) else ()
            ):
                self.problem(message, ("agents", name, "models"), severity="warning")

    def _place(self, problem: Problem) -> tuple[bool, str, int]:
        """Return the sort key of a problem; those in other files come last."""
        return problem.file != self.document.shown, problem.file, problem.line or 0

    def _each(self, key: str, raw: dict[str, Any], read: Callable[[Any, Loc], Any]) -> Any:
        found = {name: read(spec, (key, name)) for name, spec in _dict(raw.get(key)).items()}
        return {name: entry for name, entry in found.items() if entry is not None}

    def _agent(self, spec: Any, loc: Loc) -> Agent | None:
        """Return the agent; exactly one key of `spec` must be an agent type."""
        if not isinstance(spec, dict) or not spec:
            key = spec.partition(":")[0] if isinstance(spec, str) else ""
            known = f"; put a space after '{key}:'" if key in points.agent else ""
            self.problem(f"needs a type{known or did_you_mean('', points.agent)}", loc)
            return None
        types = [key for key in spec if key in points.agent]
        if len(types) != 1:
            if types:
                message = f"has several types: {', '.join(types)}"
            else:
                message = f"has no known agent type{did_you_mean(next(iter(spec)), points.agent)}"
            self.problem(message, loc)
            return None
        model = points.agent[types[0]]
        own = self.placed(model, self._with_gcs(model, spec), loc, sections=("run",))
        return self.validated(model, own, loc)

    def _evalset(self, spec: Any, loc: Loc) -> EvalSetSpec | None:
        given = {"path": spec} if isinstance(spec, str) else spec
        if not isinstance(given, dict):
            self.problem(f"expected a path, found {describe(spec)}", loc)
            return None
        return self.validated(EvalSetSpec, given, loc)

    def _not_run(self, evalsets: Mapping[str, EvalSetSpec]) -> Iterator[Problem]:
        """Yield the evalsets that are missing because they are built in Python."""
        for name, spec in evalsets.items() if not self.context.runs_python else ():
            if file := python_file(spec.path):
                if not has_magic(file.file) and (message := absent_file(file, self.context)):
                    self.problem(message, ("evalsets", name))
                yield self.document.problem(not_run(file), ("evalsets", name))

    def _criteria(
        self, raw: dict[str, Any], dialect: Dialect | None, agents: Mapping[str, Agent]
    ) -> Criteria:
        if not raw:
            return Criteria()
        # Custom metrics need ADK, which is installed for the agents.
        named = {getattr(each, "interpreter", None) for each in agents.values()} - {None}
        interpreter = named.pop() if len(named) == 1 else None
        read = read_criteria(
            self.document,
            dialect=dialect,
            context=self.context,
            interpreter=interpreter,
            python=host_of(agents) if self.context.runs_python else None,
        )
        self.problems += read.problems
        used = [each for each in read.found.values() if each.enabled]
        if read.not_run or any(problem.severity == "error" for problem in read.problems):
            return read
        if not used and isinstance(raw.get("criteria", {}), dict):
            if given := [key for key in ("criteria", "preset") if key in raw]:
                message = "nothing would be measured; add criteria or a `preset`"
                self.problem(message, (given[0],))
            elif not any(get_close_matches(key, ("criteria", "preset")) for key in raw):
                self.problem("'criteria' or 'preset' is missing")
        elif used and all(each.informational or each.tier == "warn" for each in used):
            message = "every criterion only informs or warns, so nothing could pass or fail"
            self.problem(message, ("criteria",))
        return read

    def _judging(self, raw: dict[str, Any], criteria: Mapping[str, AnyCriterion]) -> Judging:
        """Return the judges, checked for every criterion that needs one."""
        judging, problems = read_judging(self.document, raw.get("judge"), self.context)
        self.problems += problems
        for name, criterion in criteria.items() if not problems else ():
            if isinstance(criterion, JudgedCriterion):
                for message in judging.problems(criterion):
                    self.problem(message, ("criteria", name))
        return judging

    def _simulation(
        self, raw: dict[str, Any], file: EvalConfigFile | None, judging: Judging
    ) -> Simulation:
        """Return the simulated user, checked if the configuration mentions one."""
        found, problems = read_simulation(self.document, raw, self.context, file)
        self.problems += problems
        is_mentioned = "simulator" in raw or (file and file.simulator)
        for message in judging.unplayable(found) if is_mentioned and not problems else ():
            if "simulator" in raw:
                self.problem(message, ("simulator",))
            else:
                self.problem(f"user_simulator_config: {message}", ("criteria", "from"))
        return found

    def _reports(self, entries: Iterable[Any]) -> dict[str, Reporter]:
        found: dict[str, Reporter] = {}
        for index, entry in enumerate(entries):
            named = {entry: {}} if isinstance(entry, str) else _dict(entry)
            if not named:
                message = f"expected a name, or a name with options, found {describe(entry)}"
                self.problem(message, ("reports", index))
            for name, options in named.items():
                self._check_known(name, points.reporter, ("reports", index))
                if name in points.reporter:
                    loc = ("reports", index, name)
                    reporter = self.validated(points.reporter[name], options, loc)
                    try:
                        if reporter:
                            found[name] = reporter.prepared(self.context)
                    except UsageError as exc:
                        self.problems += self.document.placed(exc.problems, loc)
        return found

    def _baseline(self, raw: Any) -> BaselineStore | None:
        if not isinstance(raw, dict):
            return None
        try:
            model = points.baseline[str(raw.get("store", "file"))]
        except UnknownPluginError as exc:
            self.problem(str(exc), ("baseline", "store"))
            return None
        spec = {key: value for key, value in raw.items() if key != "store"}
        spec = self.placed(model, spec, ("baseline",))
        return self.validated(model, self._with_gcs(model, spec), ("baseline",))

    def _with_gcs(self, model: type[Plugin], spec: dict[str, Any]) -> dict[str, Any]:
        """Return `spec` with the storage options as default, if the plugin takes them."""
        return {"gcs": self._gcs, **spec} if "gcs" in model.model_fields else spec

    def _check_names(self, raw: dict[str, Any]) -> None:
        """Check the names of agents, evalsets and criteria."""
        for kind in _KINDS:
            for name in _dict(raw.get(kind)):
                plain = name.replace("/", "", 1) if kind == "criteria" else name
                if not NAME.fullmatch(plain):
                    self.problem(NO_NAME, (kind, name))

    def _check_references(self, raw: dict[str, Any], read: Criteria) -> None:
        """Check every name that refers to another part of the file."""
        criteria = read.found
        known: dict[str, list[str] | None] = {kind: [*_dict(raw.get(kind))] for kind in _KINDS}
        measured = {*_dict(raw.get("criteria")), *criteria} - {"from"}
        known["criteria"] = None if read.not_run else sorted(measured)
        for index, row in enumerate(_list(raw.get("matrix"))):
            for kind, names in known.items():
                for place, name in enumerate(_list(_dict(row).get(kind))):
                    self._check_known(name, names, ("matrix", index, kind, place))
        gate = _dict(raw.get("gate"))
        if gate.get("mode") in ("regression", "both") and raw.get("baseline") is None:
            message = "needs a `baseline` to compare with"
            self.problem(message, ("gate", "mode"), severity="warning")
        for name, least in _dict(gate.get("min_score")).items():
            loc = ("gate", "min_score", name)
            self._check_known(name, known["criteria"], loc)
            if name in criteria:
                self._check_within(least, criteria[name], loc)
                if not criteria[name].enabled:
                    self.problem("is disabled, so it has no mean", loc)

    def _check_matrix(self, raw: dict[str, Any], rows: Sequence[MatrixRow]) -> None:
        if raw.get("matrix") == []:
            self.problem("must not be empty", ("matrix",))
        is_wrong = any(problem.severity == "error" for problem in self.problems)
        for kind in ("agents", "evalsets"):
            for name in _dict(raw.get(kind)) if rows and not is_wrong else ():
                if not any(row.covers(**{kind: name}) for row in rows):
                    message = (
                        f"no row names the {kind[:-1]} {name!r}, so it is never run; add it to "
                        "one, or remove it"
                    )
                    self.problem(message, ("matrix",), severity="warning")

    def _check_known(self, name: Any, known: Iterable[str] | None, loc: Loc) -> None:
        if known is None:
            return
        names = list(known)
        if isinstance(name, str) and name not in names:
            self.problem(f"unknown name {name!r}{did_you_mean(name, names)}", loc)

    def _check_within(self, value: Any, criterion: AnyCriterion, loc: Loc) -> None:
        if criterion.bounds and isinstance(value, int | float):
            low, high = criterion.bounds
            if not low <= value <= high:
                share = as_share(value, high)
                self.problem(f"must lie between {low:g} and {high:g}{share}", loc)


_ENDINGS = ("", ".yaml", ".yml", ".json")
_KINDS = ("agents", "evalsets", "criteria")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
