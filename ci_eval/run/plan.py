"""Planning: the trials that a configuration defines."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple

from ci_eval.config.config_schema import EvalSetSpec
from ci_eval.config.evalset_names import distinct_names, suggested_pattern, without_cases
from ci_eval.config.open_evalset import open_evalset, open_stored
from ci_eval.config.python_files import host_of, open_built, python_file
from ci_eval.config.selection import Meant, PlannedEvalSet, Selection, fits
from ci_eval.config.validated_config import Config
from ci_eval.gate.exemptions import covering_nothing
from ci_eval.llm.judge_settings import Simulation
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import EvalCase, Json, ToolMocks
from ci_eval.records.errors import (
    ConfigError,
    NothingSelectedError,
    Problem,
    TrialError,
    UsageError,
)
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run import requirements
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained, path_error, similar_path
from ci_eval.runtime.storage.adk_storage import evalset_place
from ci_eval.runtime.storage.gcs import Storage
from ci_eval.runtime.storage.gs_uri import Place, fits_object, has_pattern, is_place, literal
from ci_eval.text.fingerprint import fingerprint, of_case
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import Loc

_NAMED_FILES = 3
"""Maximum number of evalsets without cases that a message names."""


@dataclass(frozen=True)
class Plan:
    """The trials of a run."""

    config: Config
    evalsets: Mapping[str, PlannedEvalSet]
    pairs: Mapping[tuple[str, str], Mapping[str, AnyCriterion]]
    """The criteria for each agent and evalset that run together."""
    repeats: int
    filtered: bool
    warnings: tuple[Problem, ...]
    places: frozenset[tuple[str, str, str]] | None = None
    """The only agents, evalsets and cases that have trials; `None` if all have."""

    @property
    def count(self) -> int:
        """The number of trials."""
        if self.places is not None:
            return sum(1 for _ in self.trials())
        return sum(self.evalsets[evalset].count for _, evalset in self.pairs) * self.repeats

    @property
    def most(self) -> int:
        """The maximum number of trials of both arms, if the verdict is in doubt."""
        gate = self.config.gate
        confirms = self.config.baseline is not None and not gate.never_confirms
        return gate.budget(self.count) if confirms else self.count

    def trials(self) -> Iterator[Trial]:
        """Yield every trial, the repeats of a case one after the other."""
        for agent, evalset in self.pairs:
            cases = self.evalsets[evalset].cases()
            chosen = (each for each in cases if self.holds((agent, evalset, each.eval_id)))
            # Reading some at a time is faster than reading one after each trial.
            while some := [(each, self._fingerprint(each)) for each in islice(chosen, 20)]:
                for (case, content), repeat in product(some, range(self.repeats)):
                    key = TrialKey(agent=agent, evalset=evalset, case=case.eval_id, repeat=repeat)
                    yield Trial(key, case, content)

    def _fingerprint(self, case: EvalCase) -> str:
        """Return the fingerprint of `case`, which includes its simulated user."""
        if case.conversation_scenario is None or self._played_by is None:
            return of_case(case)
        return fingerprint([of_case(case), self._played_by])

    @cached_property
    def _played_by(self) -> Json:
        return self.config.judging.playing(self.simulation) if self.simulation else None

    @cached_property
    def criteria(self) -> Mapping[str, AnyCriterion]:
        """All criteria in use, by name."""
        return {name: each for chosen in self.pairs.values() for name, each in chosen.items()}

    @cached_property
    def judged(self) -> Mapping[str, JudgedCriterion]:
        """The criteria in use that call a model, by name."""
        return {
            name: each for name, each in self.criteria.items() if isinstance(each, JudgedCriterion)
        }

    @cached_property
    def simulation(self) -> Simulation | None:
        """The settings of simulated users; `None` if no case needs one."""
        return self.config.simulation if any(map(self.scenarios, self.pairs)) else None

    def cases_of(self, pair: tuple[str, str]) -> int:
        """Return how many cases an agent is tried on in an evalset."""
        if self.places is None:
            return self.evalsets[pair[1]].count
        return sum(place[:2] == pair for place in self.places)

    def holds(self, place: tuple[str, str, str]) -> bool:
        """Return True if there are trials of an agent on a case of an evalset."""
        return place[:2] in self.pairs and (self.places is None or place in self.places)

    def scenarios(self, pair: tuple[str, str]) -> int:
        """Return how many cases of an evalset need a simulated user for an agent."""
        agent, evalset = self.config.agents[pair[0]], self.evalsets[pair[1]]
        if not (agent.converses and evalset.opened.facts.scenarios):
            return 0
        return sum(case.conversation_scenario is not None for case in evalset.cases())


def plan(
    config: Config,
    context: RunContext,
    *,
    selection: Selection | None = None,
    repeats: int | None = None,
    as_adk: bool = False,
) -> Plan:
    """Read every evalset, check that criteria and cases fit, and return the plan.

    With `as_adk`, cases that nothing can judge are tried anyway, with a warning.

    Raises:
        ConfigError: a Python file was not run, so criteria or evalsets are missing.
        UsageError: with every problem of all evalsets.
        NothingSelectedError: no trial is left.

    """
    if config.not_run:
        raise ConfigError(problems=config.not_run)
    planner = _Planner(config, context, selection or Selection(), as_adk=as_adk)
    return planner.plan(repeats or config.run.repeats)


@dataclass
class _Planner:
    config: Config
    context: RunContext
    selection: Selection
    as_adk: bool
    problems: list[Problem] = field(default_factory=list)

    def plan(self, repeats: int) -> Plan:
        agents = self._chosen("agent", self.config.agents, self.selection.agents)
        criteria = self._chosen("criterion", self.config.criteria, self.selection.criteria)
        opened = self._open_all()
        self._raise()
        evalsets = self._select(opened)
        pairs = {}
        for agent, name in product(agents, evalsets):
            fitting = self.config.criteria_for(agent, opened[name].entry)
            chosen = {key: each for key, each in fitting.items() if key in criteria}
            if chosen and self._has_place(agent, name):
                pairs[agent, name] = chosen
        self.problems += requirements.problems(
            self.config, evalsets, pairs, self.selection, as_adk=self.as_adk
        )
        self._raise()
        if not self.selection:
            self.problems += covering_nothing(self.config, evalsets, pairs)
        found = Plan(
            self.config,
            evalsets,
            pairs,
            repeats,
            bool(self.selection),
            tuple(dict.fromkeys((*self.config.warnings, *_worth_telling(self.problems, pairs)))),
            self.selection.places,
        )
        if not found.count:
            raise NothingSelectedError(f"nothing to run: {self._why_nothing(opened, evalsets)}")
        return found

    def _has_place(self, agent: str, evalset: str) -> bool:
        places = self.selection.places
        return places is None or any((agent, evalset) == place[:2] for place in places)

    def _unselected(self, opened: Mapping[str, "_Opened"], tags: Sequence[str]) -> str:
        """Return why no case is selected; names one of `tags` that no case has, if any."""
        cases = (case for each in opened.values() for case in each.evalset.cases())
        known = {tag for case in cases for tag in case.tags}
        for wrong in (each for each in tags if each not in known):
            return f"no case has the tag {wrong!r}{did_you_mean(wrong, known)}"
        return "no case is selected"

    def _why_nothing(self, opened: Mapping[str, "_Opened"], evalsets: Mapping[str, object]) -> str:
        if opened and not evalsets:
            tags = [tag for each in opened.values() for tag in each.spec.tags]
            if self.selection.cases or self.selection.tags or tags:
                return self._unselected(opened, [*self.selection.tags, *tags])
            files = list(dict.fromkeys(self._shown(each.spec.path) for each in opened.values()))
            return f"the evalsets contain no cases ({', '.join(files[:_NAMED_FILES])})"
        if self.selection.places is not None:
            return requirements.none_left(self.selection.places)
        return "no agent, evalset and criterion match each other"

    def _raise(self) -> None:
        if any(problem.severity == "error" for problem in self.problems):
            # Warnings that matter to some criteria only wait until those in use are known.
            relevant = (
                each for each in self.problems if each.severity == "error" or not each.concerns
            )
            raise UsageError(problems=relevant)

    def _chosen(self, kind: str, known: Mapping[str, object], wanted: Sequence[str]) -> list[str]:
        self._check_wanted(kind, known, wanted)
        return [name for name in known if not wanted or name in wanted]

    def _check_wanted(self, kind: str, known: Iterable[str], wanted: Sequence[str]) -> None:
        names = list(known)
        for name in (each for each in wanted if each not in names):
            message = f"unknown {kind} {name!r}{did_you_mean(name, names)}"
            self.problems.append(Problem(message, self.config.shown))

    def _open_all(self) -> dict[str, "_Opened"]:
        """Open the requested evalsets, whether named by configuration entry or individually."""
        wanted = self.selection.evalsets
        found: dict[str, _Opened] = {}
        names = set(self.config.evalsets)
        for entry, spec in self.config.evalsets.items():
            for name, single in self._files(entry, spec).items():
                if name in names - {entry}:
                    self._problem(f"two evalsets are called {name!r}", ("evalsets", entry))
                    continue
                names.add(name)
                opened = (
                    self._open(entry, single) if not wanted or {entry, name} & {*wanted} else None
                )
                if opened:
                    found[name] = _Opened(entry, single, opened)
        self._check_wanted("evalset", names, wanted)
        return found

    def _files(self, entry: str, spec: EvalSetSpec) -> dict[str, EvalSetSpec]:
        """Return the file that `spec` names, or each that matches its pattern, by name."""
        path, cases = without_cases(spec.path)
        single = spec.model_copy(update={"path": path, "cases": (*spec.cases, *cases)})
        if is_place(path):
            return self._objects(entry, single)
        fault = path_error(path)
        if not fault and (self.context.root / path).is_dir():
            fault = (
                f"{path!r} is a directory; name a file{suggested_pattern(self.context.root, path)}"
            )
        if fault:
            self._problem(fault, ("evalsets", entry))
            return {}
        if not glob.has_magic(path) or (self.context.root / path).exists():
            return {entry: single}
        found = glob.glob(path, root_dir=self.context.root, recursive=True)  # noqa: PTH207  # knows `..`
        # A link that leads nowhere stays, so that it is an error, not an evalset fewer.
        paths = sorted(each for each in found if not (self.context.root / each).is_dir())
        if not paths:
            self._problem(f"{path!r} matches no file", ("evalsets", entry))
        names = distinct_names(path.replace(os.sep, "/") for path in paths)
        return {
            f"{entry}:{name}": single.model_copy(update={"path": path})
            for name, path in names.items()
        }

    def _objects(self, entry: str, spec: EvalSetSpec) -> dict[str, EvalSetSpec]:
        """Return the object that `spec` names, or each that matches its pattern, by name."""
        if not has_pattern(spec.path):
            return {entry: spec}
        try:
            pattern = evalset_place(spec.path)
            found = self._storage.bucket(pattern.bucket).listed(literal(pattern.name))
        except UsageError as exc:
            self.problems += self.config.document.placed(exc.problems, ("evalsets", entry))
            return {}
        names = [each.place.name for each in found if fits_object(each.place.name, pattern.name)]
        if not names:
            self._problem(f"{spec.path!r} matches no object", ("evalsets", entry))
        return {
            f"{entry}:{name}": spec.model_copy(update={"path": str(Place(pattern.bucket, path))})
            for name, path in distinct_names(names).items()
        }

    @property
    def _storage(self) -> Storage:
        return Storage(self.config.gcs, self.context.env)

    def _shown(self, path: str) -> str:
        return path if is_place(path) else self.context.shown(path)

    def _open(self, entry: str, spec: EvalSetSpec) -> OpenedEvalSet | None:
        try:
            if is_place(spec.path):
                opened = open_stored(spec.path, self._storage)
                self.problems += opened.warnings
                return opened
            file = python_file(spec.path)
            path = contained(self.context.root, file.file if file else spec.path)
            if not path.exists():
                similar = similar_path(self.context.root, spec.path)
                self._problem(f"there is no file {spec.path!r}{similar}", ("evalsets", entry))
                return None
            if file:
                opened = open_built(file, host_of(self.config.agents), self.context)
            else:
                opened = open_evalset(path, shown=self.context.shown(spec.path))
        except UsageError as exc:
            self.problems += self.config.document.placed(exc.problems, ("evalsets", entry))
            return None
        except TrialError as exc:
            self._problem(str(exc), ("evalsets", entry))
            return None
        self.problems += opened.warnings
        repository = top_of(self.context.root)
        if repository and path.is_relative_to(repository):
            within = path.relative_to(repository).as_posix()
            opened = replace(opened, header=opened.header.model_copy(update={"path": within}))
        return opened

    def _select(self, opened: Mapping[str, "_Opened"]) -> dict[str, PlannedEvalSet]:
        unused = set(self.selection.cases)
        found: dict[str, PlannedEvalSet] = {}
        empty: dict[str, str] = {}
        known_ids: dict[str, None] = {}
        for name, (entry, spec, read) in opened.items():
            known = len(self.problems)
            evalset = _mocked(read, spec.tool_mocks) if spec.tool_mocks else read
            suite = Meant(tuple(filter(None, (spec.cases,))), frozenset(spec.tags))
            chosen = tuple(filter(None, (self.selection.cases,)))
            meant = Meant(suite.patterns + chosen, suite.tags.union(self.selection.tags))
            count = evalset.facts.cases
            if meant.patterns or meant.tags:
                ids = [case.eval_id for case in evalset.cases()]
                self._check_ids(entry, spec, ids)
                known_ids |= dict.fromkeys(ids[:1000])
                unused -= {want for want in unused if any(fits(each, want) for each in ids)}
                count = sum(map(meant, evalset.cases()))
            if count:
                found[name] = PlannedEvalSet(evalset, self._shown(spec.path), meant, suite, count)
            elif not (self.selection.cases or self.selection.tags or self.problems[known:]):
                empty[name] = self._shown(spec.path)
        if not (self.as_adk or self.config.mock):
            self.problems += requirements.empty(self.config, empty, beside=bool(found))
        for missing in sorted(unused):
            message = f"no evalset has a case {missing!r}{did_you_mean(missing, known_ids)}"
            self.problems.append(Problem(message, self.config.shown))
        return found

    def _check_ids(self, entry: str, spec: EvalSetSpec, ids: Sequence[str]) -> None:
        for case in spec.cases:
            if not any(fits(each, case) for each in ids):
                message = f"{spec.path} has no case {case!r}{did_you_mean(case, ids[:1000])}"
                self._problem(message, ("evalsets", entry))

    def _problem(self, message: str, loc: Loc) -> None:
        self.problems.append(self.config.document.problem(message, loc))


class _Opened(NamedTuple):
    """A selected evalset."""

    entry: str
    """Its entry in the configuration, possibly a pattern that matched it."""
    spec: EvalSetSpec
    evalset: OpenedEvalSet


def _mocked(opened: OpenedEvalSet, mocks: ToolMocks) -> OpenedEvalSet:
    """Return an evalset whose cases have `mocks` behind their own."""

    def with_mocks(case: EvalCase) -> EvalCase:
        found = case.tool_mocks.before(mocks) if case.tool_mocks else mocks
        return case.model_copy(update={"tool_mocks": found})

    return replace(opened, cases=lambda: map(with_mocks, opened.cases()))


def _worth_telling(problems: Iterable[Problem], pairs: requirements.Pairs) -> Iterator[Problem]:
    """Yield the problems that are general, or relevant to a criterion in use."""
    relevant = {
        topic
        for chosen in pairs.values()
        for each in chosen.values()
        for topic in each.relevant_warnings
    }
    return (each for each in problems if not each.concerns or each.concerns in relevant)
