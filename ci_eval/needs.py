"""What criteria need and what cases have: told before anything is run."""

from collections.abc import Iterator, Mapping, Sequence

from ci_eval.config import Config
from ci_eval.errors import Problem
from ci_eval.evalset_facts import CaseFacts
from ci_eval.measures import AnyCriterion
from ci_eval.records import EvalCase
from ci_eval.selecting import PlannedEvalSet

Pairs = Mapping[tuple[str, str], Mapping[str, AnyCriterion]]
"""For each agent and evalset that meet, the criteria."""


def problems(
    config: Config, evalsets: Mapping[str, PlannedEvalSet], pairs: Pairs, *, partly: bool
) -> Iterator[Problem]:
    """Yield what keeps a criterion from measuring anything, and what no criterion reads.

    `partly` says that only some of the criteria were asked for.
    """
    used: dict[str, set[str]] = {}
    for (_, evalset), criteria in pairs.items():
        for name in criteria:
            used.setdefault(name, set()).add(evalset)
    for name, sets in used.items():
        criterion = config.criteria[name]
        chosen = [evalsets[each] for each in sorted(sets)]
        message = "" if config.mock else _hindrance(criterion, chosen)
        if message:
            yield config.document.problem(message, ("criteria", name))
        if criterion.needs_response:
            yield from _missing_responses(name, chosen)
        for each in chosen:
            yield from wrong_cases(criterion, each.opened.facts, each.cases(), each.shown)
    talked_to = {evalset for agent, evalset in pairs if config.agents[agent].converses}
    yield from _unplayable(config, [evalsets[each] for each in sorted(talked_to)])
    yield from _untaken_states(config, evalsets, pairs)
    if not partly:
        yield from _unread_assertions(config, evalsets, pairs)


def _unplayable(config: Config, chosen: Sequence[PlannedEvalSet]) -> Iterator[Problem]:
    """Yield why the users of scenarios cannot be simulated."""
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


def _untaken_states(
    config: Config, evalsets: Mapping[str, PlannedEvalSet], pairs: Pairs
) -> Iterator[Problem]:
    """Yield which cases begin with a state that an agent cannot be given."""
    for agent, name in pairs:
        kind = config.agents[agent]
        for line in () if kind.takes_state else evalsets[name].opened.facts.with_state:
            message = (
                f"the `session_input.state` of the case is not used: agent {agent!r} is of type "
                f"{kind.type_name!r}, which takes none"
            )
            yield Problem(message, evalsets[name].shown, line, severity="warning")


def _hindrance(criterion: AnyCriterion, evalsets: Sequence[PlannedEvalSet]) -> str:
    """Say why `criterion` can score no case of the suite at all; nothing where it can."""
    hindrance = ""
    for case in (case for each in evalsets for case in each.suite()):
        hindrance = criterion.hindrance(case)
        if not hindrance:
            return ""
    return f"no case can be scored by it: {hindrance}" if hindrance else ""


def _missing_responses(name: str, evalsets: Sequence[PlannedEvalSet]) -> Iterator[Problem]:
    for evalset in evalsets:
        for line in evalset.opened.facts.without_response:
            message = f"the case expects no response somewhere, which scores 0 in {name!r}"
            yield Problem(message, evalset.shown, line, severity="warning")


def wrong_cases(
    criterion: AnyCriterion, facts: CaseFacts, cases: Iterator[EvalCase], shown: str
) -> Iterator[Problem]:
    """Yield what `criterion` could not make of the assertions and rubrics of a file's cases."""
    asserted = criterion.reads_assertions and facts.with_assertions
    judged = criterion.needs_rubrics and facts.with_rubrics
    for case in cases if asserted or judged else ():
        for message in criterion.faults(case):
            yield Problem(message, shown, case.line, f"case {case.eval_id!r}")


def _unread_assertions(
    config: Config, evalsets: Mapping[str, PlannedEvalSet], pairs: Pairs
) -> Iterator[Problem]:
    """Yield the evalsets whose cases assert what nothing checks."""
    reading = {
        evalset
        for (_, evalset), criteria in pairs.items()
        if any(config.criteria[name].reads_assertions for name in criteria)
    }
    for name, evalset in evalsets.items():
        if evalset.opened.facts.with_assertions and name not in reading:
            message = "cases assert what nothing checks; add `ci/assertions: 1` to the criteria"
            yield Problem(message, evalset.shown, 1)
