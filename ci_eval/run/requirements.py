"""Checks that criteria and cases fit, before anything runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ci_eval.config.selection import PlannedEvalSet, Selection
from ci_eval.config.validated_config import Config
from ci_eval.gate.exemptions import allows_unjudged
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import Problem, Severity
from ci_eval.records.evalset_facts import CaseFacts
from ci_eval.records.stated_expectations import Expectation, expects
from ci_eval.records.trials import Place
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.text.templates import counted

MAX_LINES = 20
"""Maximum number of unjudged cases named per evalset, and of cases that are gone."""
_MAX_REASONS = 3
"""Maximum number of criteria that such a problem names."""


@dataclass(frozen=True)
class UnjudgedCase(Problem):
    """A case that no blocking criterion can judge."""

    case: str = ""
    """The id of the case."""


EvalSets = Mapping[str, PlannedEvalSet]
Pairs = Mapping[tuple[str, str], Mapping[str, AnyCriterion]]
"""The criteria for each agent and evalset that run together."""


def problems(
    config: Config, evalsets: EvalSets, pairs: Pairs, selection: Selection, *, as_adk: bool = False
) -> Iterator[Problem]:
    """Yield problems that keep a criterion or case from being measured, and unread assertions.

    With a `selection` of evalsets, a criterion may apply only to others.  With `as_adk`, cases that
    ADK would try anyway cause warnings instead of errors.
    """
    partly = bool(selection.criteria)
    refused: Severity = "warning" if as_adk else "error"
    used: dict[str, set[str]] = {}
    for (_, evalset), criteria in pairs.items():
        for name in criteria:
            used.setdefault(name, set()).add(evalset)
    useless = False
    for name, sets in used.items():
        criterion = config.criteria[name]
        chosen = [evalsets[each] for each in sorted(sets)]
        may_apply = selection.evalsets and name not in config.gate.min_score
        message = "" if config.mock or may_apply else _skip_reason(criterion, chosen)
        if message:
            useless = True
            yield config.document.problem(message, ("criteria", name), severity=refused)
        for each in chosen:
            yield from wrong_cases(criterion, each.opened.facts, each.cases(), each.shown)
    talked_to = {evalset for agent, evalset in pairs if config.agents[agent].converses}
    yield from _unplayable(config, [evalsets[each] for each in sorted(talked_to)])
    yield from _untaken_states(config, evalsets, pairs)
    if not (partly or useless or config.mock):
        for problem in _unjudged(config, evalsets, pairs):
            yield replace(problem, severity=refused)
    if not partly:
        yield from _unread_assertions(config, evalsets)
    if selection.places:
        yield from _gone(config, evalsets, pairs, selection)


def absent(config: Config, pairs: Pairs, context: RunContext) -> Iterator[Problem]:
    """Yield the Python modules and names of agents and criteria that do not exist."""
    agents = dict.fromkeys(agent for agent, _ in pairs)
    criteria = {name: each for chosen in pairs.values() for name, each in chosen.items()}
    for kind, used in (
        ("agents", {name: config.agents[name] for name in agents}),
        ("criteria", criteria),
    ):
        for name, each in used.items():
            found: object = each
            for field, message in found.absent(context) if isinstance(found, UnderPython) else ():
                yield config.document.problem(message, (kind, name, field))


def none_left(places: Iterable[Place]) -> str:
    """Return why none of the cases to rerun is run."""
    return f"the failed cases are no longer in the suite, or not selected: {_listed(places)}"


def _gone(
    config: Config, evalsets: EvalSets, pairs: Pairs, selection: Selection
) -> Iterator[Problem]:
    """Warn of cases to rerun that are no longer in the suite, such as renamed ones."""
    known = {name: {case.eval_id for case in each.suite()} for name, each in evalsets.items()}
    is_narrower = bool(replace(selection, places=None))
    gone = [
        place
        for place in selection.places or ()
        if place.agent not in config.agents
        or place.case not in known.get(place.evalset, {place.case})
        or not (is_narrower or place[:2] in pairs)
    ]
    if gone:
        message = f"failed before and not rerun, because no longer in the suite: {_listed(gone)}"
        yield Problem(message, config.shown, severity="warning")


def _listed(places: Iterable[Place]) -> str:
    names = [f"{each.evalset}/{each.case} with {each.agent}" for each in sorted(places)]
    return listed(names, MAX_LINES)


def _unplayable(config: Config, chosen: Sequence[PlannedEvalSet]) -> Iterator[Problem]:
    """Yield the reasons why the users of scenarios cannot be simulated."""
    simulation = config.simulation
    scenarios = [each for each in chosen if each.opened.facts.scenarios]
    if simulation is None or not scenarios:
        return
    for message in config.judging.unplayable(simulation):
        yield config.document.problem(f"cases need a simulated user: {message}")
    for each in scenarios:
        for case in each.cases():
            for message in simulation.simulator.faults(case):
                yield Problem(message, each.shown, case.line, f"case {case.eval_id!r}")


def _untaken_states(config: Config, evalsets: EvalSets, pairs: Pairs) -> Iterator[Problem]:
    """Yield the cases that begin with a state that an agent cannot accept."""
    for agent, name in pairs:
        kind = config.agents[agent]
        for line in () if kind.takes_state else evalsets[name].opened.facts.with_state:
            message = (
                f"the `session_input.state` of the case is not used: agent {agent!r} is of type "
                f"{kind.type_name!r}, which has no state"
            )
            yield Problem(message, evalsets[name].shown, line, severity="warning")


def _skip_reason(criterion: AnyCriterion, evalsets: Sequence[PlannedEvalSet]) -> str:
    """Return why `criterion` can score no case of the suite; empty if it can."""
    message = ""
    for case in (case for each in evalsets for case in each.suite()):
        skip_reason = criterion.skip_reason(case)
        if not skip_reason:
            return ""
        message = (
            f"cannot score any case: case {case.eval_id!r} {skip_reason}; "
            "change the cases, or remove the criterion"
        )
    return message


def _unjudged(config: Config, evalsets: EvalSets, pairs: Pairs) -> Iterator[Problem]:
    """Yield the cases that no blocking criterion can judge and that are not allowed."""
    for name, evalset in evalsets.items():
        judging = {
            agent: {key: each for key, each in criteria.items() if each.judges}
            for (agent, other), criteria in pairs.items()
            if other == name
            and not any(
                each.judges and each.scores_all(evalset.opened.facts) for each in criteria.values()
            )
        }
        found: list[UnjudgedCase] = []
        count = 0
        for case in evalset.cases() if judging else ():
            reasons = (
                _why_unjudged(case, criteria)
                for agent, criteria in judging.items()
                if all(each.skip_reason(case) for each in criteria.values())
                and not allows_unjudged(config.gate, agent, name, case.eval_id)
            )
            why = next(reasons, "")
            count += bool(why)
            if why and len(found) < MAX_LINES:
                where = f"case {case.eval_id!r}"
                message = f"no blocking criterion can judge it{why}"
                named = UnjudgedCase(message, evalset.shown, case.line, where, case=case.eval_id)
                found.append(named)
        if count > len(found):
            more = f"{found[-1].message} (and {count - len(found)} more cases)"
            found[-1] = replace(found[-1], message=more)
        yield from found


def _why_unjudged(case: EvalCase, criteria: Mapping[str, AnyCriterion]) -> str:
    """Return why nothing can judge `case`, and how to fix it, as the end of a sentence."""
    reasons = [f"{name}: {each.skip_reason(case)}" for name, each in criteria.items()]
    said = f" ({'; '.join(reasons[:_MAX_REASONS])})" if reasons else ""
    return f"{said}; add a criterion that can, or add the case to gate.allow_unjudged"


def empty(config: Config, emptied: Mapping[str, str], *, beside: bool) -> Iterator[Problem]:
    """Yield a problem for each of the `emptied` evalsets (name and file), if `beside` others."""
    for name, shown in emptied.items() if beside else ():
        if allows_unjudged(config.gate, "*", name, "*"):
            message = "no case selected (allowed by gate.allow_unjudged)"
            yield Problem(message, shown, 1, severity="warning")
        else:
            message = (
                f"no case of evalset {name!r} is selected; add cases, "
                "remove it, or add it to gate.allow_unjudged"
            )
            yield Problem(message, shown, 1)


def wrong_cases(
    criterion: AnyCriterion, facts: CaseFacts, cases: Iterator[EvalCase], shown: str
) -> Iterator[Problem]:
    """Yield the assertions and rubrics of a file's cases that `criterion` cannot use."""
    asserted = criterion.reads_assertions and facts.with_assertions
    judged = criterion.needs_rubrics and facts.with_rubrics
    for case in cases if asserted or judged else ():
        for message in criterion.faults(case):
            yield Problem(message, shown, case.line, f"case {case.eval_id!r}")


def _unread_assertions(config: Config, evalsets: EvalSets) -> Iterator[Problem]:
    """Yield the evalsets whose cases have assertions that nothing checks, whichever agent runs."""
    for name, evalset in evalsets.items():
        if not evalset.opened.facts.with_assertions:
            continue
        entries = (
            [name]
            if name in config.evalsets  # otherwise, it is a file that the pattern of one matches
            else [each for each in config.evalsets if name.startswith(f"{each}:")]
        )
        reading = (
            criterion.reads_assertions
            for agent, entry in product(config.agents, entries)
            for criterion in config.criteria_for(agent, entry).values()
        )
        if not any(reading):
            message = "nothing checks these assertions; add `ci/assertions: 1` to the criteria"
            case = next(each for each in evalset.opened.cases() if each.assertions)
            yield Problem(message, evalset.shown, case.line, f"case {case.eval_id!r}")


_EXPECTED: Mapping[Expectation, tuple[str, str]] = {
    "tool_calls": ("tool calls", "tool_trajectory_avg_score"),
    "response": ("a response", "response_match_score"),
    "nodes": ("nodes", "node_order_match_score"),
}
"""Each kind of expectation in words, and a criterion that reads it."""


def unread_expectations(config: Config, evalsets: EvalSets, pairs: Pairs) -> Iterator[Problem]:
    """Yield, for each evalset that is run, the expectations that no criterion compares with."""
    for name in dict.fromkeys(evalset for _, evalset in pairs):
        evalset = evalsets[name]
        used = {key for (_, other), chosen in pairs.items() if other == name for key in chosen}
        for what, (said, suggested) in _EXPECTED.items():
            expected = evalset.opened.facts.expecting[what]
            if not expected or any(_reads(config.criteria[key], what) for key in used):
                continue
            lines = [
                case.line
                for case in evalset.cases()
                if any(expects(turn, what) for turn in case.conversation or ())
            ]
            if not lines:
                continue
            verb = "expects" if len(lines) == 1 else "expect"
            message = (
                f"{counted(len(lines), 'case')} {verb} {said}, which no criterion reads; add "
                f"`{suggested}` to the criteria"
            )
            yield Problem(message, evalset.shown, lines[0], severity="warning")


def _reads(criterion: AnyCriterion, what: Expectation) -> bool:
    """Return True if a criterion may compare with that expectation; custom ones always may."""
    found: object = criterion
    is_ours = type(criterion).__module__.startswith("ci_eval.")
    return not is_ours or isinstance(found, UnderPython) or criterion.may_compare(what)
