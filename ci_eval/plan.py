"""A configuration to the trials it asks for: names and cases, nothing run yet."""

import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ci_eval.config import Config, EvalSetSpec
from ci_eval.documents import Loc, contained, repository_of
from ci_eval.errors import NothingSelectedError, Problem, UsageError
from ci_eval.evalset_facts import OpenedEvalSet
from ci_eval.fingerprint import of_case
from ci_eval.opening import open_evalset
from ci_eval.plugins import AnyCriterion
from ci_eval.records import EvalCase, Trial, TrialKey
from ci_eval.registry import did_you_mean
from ci_eval.world import World

SUFFIXES = (".evalset.json", ".test.json", ".json")


@dataclass(frozen=True)
class Selection:
    """The part of a suite that is asked for; an empty tuple means all."""

    agents: tuple[str, ...] = ()
    evalsets: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    """Ids or patterns such as `refund_*`."""
    criteria: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.agents or self.evalsets or self.cases or self.criteria)


@dataclass(frozen=True)
class Plan:
    """What will be tried."""

    config: Config
    evalsets: Mapping[str, "PlannedEvalSet"]
    pairs: Mapping[tuple[str, str], Mapping[str, AnyCriterion]]
    """For each agent and evalset that meet, the criteria."""
    repeats: int
    filtered: bool
    warnings: tuple[Problem, ...]

    @property
    def count(self) -> int:
        """How many trials there are."""
        return sum(self.evalsets[evalset].count for _, evalset in self.pairs) * self.repeats

    def trials(self) -> Iterator[Trial]:
        """Yield every trial, the repeats of a case one after the other."""
        for agent, evalset in self.pairs:
            for case in self.evalsets[evalset].cases():
                fingerprint = of_case(case)
                for repeat in range(self.repeats):
                    key = TrialKey(agent=agent, evalset=evalset, case=case.eval_id, repeat=repeat)
                    yield Trial(key, case, fingerprint)


@dataclass(frozen=True)
class PlannedEvalSet:
    """An evalset with the cases of it that are meant."""

    opened: OpenedEvalSet
    shown: str
    """What the user calls the file."""
    patterns: tuple[tuple[str, ...], ...]
    """Each a list of ids or patterns of which one must fit."""
    count: int

    def cases(self) -> Iterator[EvalCase]:
        """Yield the cases that are meant, in the order of the file."""
        return (case for case in self.opened.cases() if _fits(case.eval_id, self.patterns))


def _fits(case: str, patterns: Sequence[Sequence[str]]) -> bool:
    return all(
        any(case == pattern or fnmatch.fnmatchcase(case, pattern) for pattern in group)
        for group in patterns
    )


def plan(
    config: Config, world: World, *, selection: Selection | None = None, repeats: int | None = None
) -> Plan:
    """Read every evalset, check that criteria and cases fit, and return what will be tried.

    Raises:
        UsageError: with every problem of all evalsets.
        NothingSelectedError: no trial is left.

    """
    return _Planner(config, world, selection or Selection()).plan(repeats or config.run.repeats)


@dataclass
class _Planner:
    config: Config
    world: World
    selection: Selection
    problems: list[Problem] = field(default_factory=list)

    def plan(self, repeats: int) -> Plan:
        agents = self._chosen("agent", self.config.agents, self.selection.agents)
        criteria = self._chosen("criterion", self.config.criteria, self.selection.criteria)
        opened = self._open_all()
        self._raise()
        evalsets = self._select(opened)
        pairs = {
            (agent, name): {
                key: criterion
                for key, criterion in self.config.criteria_for(agent, opened[name].entry).items()
                if key in criteria
            }
            for agent in agents
            for name in evalsets
        }
        pairs = {pair: chosen for pair, chosen in pairs.items() if chosen}
        self._check_needs(evalsets, pairs)
        self._raise()
        found = Plan(
            self.config,
            evalsets,
            pairs,
            repeats,
            bool(self.selection),
            tuple(dict.fromkeys((*self.config.warnings, *self.problems))),
        )
        if not found.count:
            raise NothingSelectedError(f"nothing to run: {self._why_nothing(opened, evalsets)}")
        return found

    def _why_nothing(self, opened: Mapping[str, object], evalsets: Mapping[str, object]) -> str:
        if opened and not evalsets:
            return "no case is left" if self.selection.cases else "the evalsets hold no case"
        return "no agent, evalset and criterion meet"

    def _raise(self) -> None:
        if any(problem.severity == "error" for problem in self.problems):
            raise UsageError(problems=self.problems)

    def _chosen(self, kind: str, known: Mapping[str, object], wanted: Sequence[str]) -> list[str]:
        self._check_wanted(kind, known, wanted)
        return [name for name in known if not wanted or name in wanted]

    def _check_wanted(self, kind: str, known: Iterable[str], wanted: Sequence[str]) -> None:
        names = list(known)
        for name in wanted:
            if name not in names:
                message = f"unknown {kind} {name!r}{did_you_mean(name, names)}"
                self.problems.append(Problem(message, self.config.shown))

    def _open_all(self) -> dict[str, "_Opened"]:
        """Open the evalsets that are asked for, by entry of the configuration or one by one."""
        wanted = self.selection.evalsets
        found: dict[str, _Opened] = {}
        names = set(self.config.evalsets)
        for entry, spec in self.config.evalsets.items():
            for name, single in self._files(entry, spec).items():
                if name in names - {entry}:
                    self._problem(f"two evalsets are called {name!r}", ("evalsets", entry))
                    continue
                names.add(name)
                opened = self._open(single) if not wanted or {entry, name} & {*wanted} else None
                if opened:
                    found[name] = _Opened(entry, single, opened)
        self._check_wanted("evalset", names, wanted)
        return found

    def _files(self, entry: str, spec: EvalSetSpec) -> dict[str, EvalSetSpec]:
        """Return the file that `spec` names, or each that its pattern fits, by name."""
        path, cases = _split(spec.path)
        single = spec.model_copy(update={"path": path, "cases": (*spec.cases, *cases)})
        if (self.world.root / path).is_dir():
            message = "is a folder; a pattern such as 'evals/*.evalset.json' names files in it"
            self._problem(message, ("evalsets", entry))
            return {}
        if not glob.has_magic(path) or (self.world.root / path).exists():
            return {entry: single}
        found = glob.glob(path, root_dir=self.world.root, recursive=True)  # noqa: PTH207  # knows `..`
        paths = sorted(each for each in found if (self.world.root / each).is_file())
        if not paths:
            self._problem("matches no file", ("evalsets", entry))
        names = _named(path.replace(os.sep, "/") for path in paths)
        return {
            f"{entry}:{name}": single.model_copy(update={"path": path})
            for name, path in names.items()
        }

    def _open(self, spec: EvalSetSpec) -> OpenedEvalSet | None:
        try:
            path = contained(self.world.root, spec.path)
            opened = open_evalset(path, shown=self.world.shown(spec.path))
        except UsageError as exc:
            self.problems += exc.problems
            return None
        self.problems += opened.warnings
        repository = repository_of(self.world.root)
        if repository and path.is_relative_to(repository):
            within = path.relative_to(repository).as_posix()
            opened = replace(opened, header=opened.header.model_copy(update={"path": within}))
        return opened

    def _select(self, opened: Mapping[str, "_Opened"]) -> dict[str, PlannedEvalSet]:
        unused = set(self.selection.cases)
        found: dict[str, PlannedEvalSet] = {}
        for name, (entry, spec, evalset) in opened.items():
            groups = tuple(filter(None, (spec.cases, self.selection.cases)))
            count = evalset.facts.cases
            if groups:
                ids = [case.eval_id for case in evalset.cases()]
                self._check_ids(entry, spec, ids)
                unused -= {want for want in unused if any(_fits(each, [[want]]) for each in ids)}
                count = sum(_fits(each, groups) for each in ids)
            if count:
                found[name] = PlannedEvalSet(evalset, self.world.shown(spec.path), groups, count)
        for missing in sorted(unused):
            self.problems.append(Problem(f"no evalset has a case {missing!r}", self.config.shown))
        return found

    def _check_ids(self, entry: str, spec: EvalSetSpec, ids: Sequence[str]) -> None:
        for case in spec.cases:
            if not any(_fits(each, [[case]]) for each in ids):
                message = f"{spec.path} has no case {case!r}{did_you_mean(case, ids[:1000])}"
                self._problem(message, ("evalsets", entry))

    def _check_needs(
        self,
        evalsets: Mapping[str, PlannedEvalSet],
        pairs: Mapping[tuple[str, str], Mapping[str, AnyCriterion]],
    ) -> None:
        """Refuse a criterion that no case can be scored by; warn where some score 0 for it."""
        used: dict[str, set[str]] = {}
        for (_, evalset), criteria in pairs.items():
            for name in criteria:
                used.setdefault(name, set()).add(evalset)
        for name, sets in used.items():
            criterion = self.config.criteria[name]
            facts = [evalsets[each].opened.facts for each in sorted(sets)]
            if not criterion.supports_scenario and all(f.cases == f.scenarios for f in facts):
                message = "no case can be scored by it: it compares with a written conversation"
                self._problem(message, ("criteria", name))
            if criterion.needs_response:
                self._warn_of_missing_responses(name, [evalsets[each] for each in sorted(sets)])

    def _warn_of_missing_responses(self, name: str, evalsets: Sequence[PlannedEvalSet]) -> None:
        for evalset in evalsets:
            for line in evalset.opened.facts.without_response:
                message = f"the case expects no response somewhere, which scores 0 in {name!r}"
                problem = Problem(message, evalset.shown, line, severity="warning")
                self.problems.append(problem)

    def _problem(self, message: str, loc: Loc) -> None:
        self.problems.append(self.config.document.problem(message, loc))


class _Opened(NamedTuple):
    """An evalset that is asked for."""

    entry: str
    """What the configuration calls it, or the pattern that found it."""
    spec: EvalSetSpec
    evalset: OpenedEvalSet


def _split(path: str) -> tuple[str, list[str]]:
    """Return `path` without ADK's list of cases behind it, `file.json:case1,case2`, and these."""
    head, colon, tail = path.rpartition(":")
    if not (colon and head.endswith(".json") and "/" not in tail):
        return path, []
    return head, [case.strip() for case in tail.split(",") if case.strip()]


def _named(paths: Iterable[str]) -> dict[str, str]:
    """Return the paths by names without suffixes, where that does not make two the same."""
    stems = {
        path: next((path.removesuffix(end) for end in SUFFIXES if path.endswith(end)), path)
        for path in paths
    }
    often = Counter(stems.values())
    names: dict[str, str] = {}
    for path, stem in stems.items():
        name = (stem if often[stem] == 1 else path).replace("/", ".").lstrip(".")
        while name in names:
            name += "+"
        names[name] = path
    return names
