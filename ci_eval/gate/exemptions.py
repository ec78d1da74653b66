"""Exemptions from the gate: accepted drops, quarantined cases and cases that need no judgement."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache

from pydantic import ValidationError

from ci_eval.config.config_schema import Acceptance, Excuse, GateOptions, Quarantine, Unjudged
from ci_eval.config.selection import PlannedEvalSet, fits
from ci_eval.config.validated_config import Config
from ci_eval.gate.floors import reason
from ci_eval.records.cases import Status
from ci_eval.records.comparisons import CaseChange, Comparison, Excused, GroupKey
from ci_eval.records.errors import BaselineError, Problem
from ci_eval.records.findings import Reason
from ci_eval.records.results import RunMeta
from ci_eval.run_files.report_phrases import MAX_NAMED
from ci_eval.run_files.report_phrases import excuse as exemption
from ci_eval.run_files.report_phrases import listed as names
from ci_eval.run_files.score_column import RANKED
from ci_eval.run_files.score_table import Columns
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import counted
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted

GroupName = tuple[str, str, str]
"""Agent, evalset and criterion."""
Excuses = Mapping[GroupName, Mapping[str, Excuse]]
"""For each group, the exempted cases and their exemption."""


def covers(excuse: Excuse, group: GroupName, case: str) -> bool:
    """Return True if `excuse` covers a case of a group."""
    return concerns(excuse, group) and fits(case, excuse.case)


def concerns(excuse: Excuse, group: GroupName) -> bool:
    """Return True if `excuse` covers any case of a group."""
    return _all_fit(group, (excuse.agent, excuse.evalset, excuse.criterion))


def allows_unjudged(gate: GateOptions, agent: str, evalset: str, case: str) -> bool:
    """Return True if a case may stay unjudged; `*` stands for an evalset without cases."""
    return any(names_case(each, agent, evalset, case) for each in gate.allow_unjudged)


def names_case(allowed: Unjudged, agent: str, evalset: str, case: str) -> bool:
    """Return True if `allowed` names a case."""
    return _all_fit((agent, evalset, case), (allowed.agent, allowed.evalset, allowed.case))


def _all_fit(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return all(map(fits, names, patterns))


def in_force(meta: RunMeta) -> list[Excuse]:
    """Return the accepted drops that had not expired when a run began."""
    return [each for each in gate_of(meta).accept if each.until >= day_of(meta)]


def gate_of(meta: RunMeta) -> GateOptions:
    """Return the gate options that a run was stored with.

    Raises:
        BaselineError: the stored options are invalid.

    """
    try:
        return GateOptions.model_validate(dict(meta.gate))
    except ValidationError as exc:
        loc, message = next(explain(exc, GateOptions))
        raise BaselineError(
            f"the stored run {meta.run_id} cannot be read: gate.{dotted(loc)}: {message}"
        ) from exc


def day_of(meta: RunMeta) -> date:
    """Return the day on which a run began.

    Raises:
        BaselineError: the stored date is invalid.

    """
    try:
        return date.fromisoformat(meta.created[:10])
    except ValueError as exc:
        found = f"created: {meta.created[:40]!r} is not a date"
        raise BaselineError(f"the stored run {meta.run_id} cannot be read: {found}") from exc


def excused(meta: RunMeta, gate: GateOptions, columns: Columns) -> Excuses:
    """Return the exempted cases of each group and their exemption.

    A drop is accepted, not an error: whoever accepts a lower score does not accept a crash.
    """
    given = [each for each in (*gate.quarantine, *gate.accept) if each.until >= day_of(meta)]
    found: dict[GroupName, dict[str, Excuse]] = {}
    for name, column in columns.groups.items() if given else ():
        errors = column.ranks(meta.criteria[name[2]]) == RANKED.index(Status.ERROR)
        crashed = {*column.named(errors)}
        for case in column:
            excuse = next((each for each in given if covers(each, name, case)), None)
            if excuse and not (isinstance(excuse, Acceptance) and case in crashed):
                found.setdefault(name, {})[case] = excuse
    return found


def listed(meta: RunMeta, gate: GateOptions, found: Excuses) -> Iterator[Excused]:
    """Yield every exemption of the configuration, its cases and whether it expired."""
    for excuse in (*gate.accept, *gate.quarantine):
        covered = (
            f"{evalset}/{case}"
            for (_, evalset, _), cases in found.items()
            for case, by in cases.items()
            if by is excuse
        )
        yield Excused(
            kind=excuse.kind,
            named=excuse.named,
            reason=excuse.reason,
            owner=excuse.owner if isinstance(excuse, Quarantine) else "",
            until=excuse.until.isoformat(),
            expired=excuse.until < day_of(meta),
            cases=tuple(dict.fromkeys(covered)),
        )


def covering_nothing(
    config: Config,
    evalsets: Mapping[str, PlannedEvalSet],
    pairs: Mapping[tuple[str, str], Iterable[str]],
) -> Iterator[Problem]:
    """Yield a warning for each exemption that covers no case of the suite.

    `pairs` maps each agent and evalset to the names of the criteria they are run with.
    """
    gate = config.gate

    @cache
    def ids(evalset: str) -> list[str]:
        return [case.eval_id for case in evalsets[evalset].cases()]

    groups = [(*pair, name) for pair, criteria in pairs.items() for name in criteria]
    for key, excuses in (("accept", gate.accept), ("quarantine", gate.quarantine)):
        for number, excuse in enumerate(excuses):
            where = {group[1] for group in groups if concerns(excuse, group)}
            known = [case for name in evalsets if name in where for case in ids(name)]
            if not any(fits(each, excuse.case) for each in known):
                names = known[:1000] if where else {group[2] for group in groups}
                meant = did_you_mean(excuse.case if where else excuse.criterion, names)
                yield _unused(config, key, number, meant)
    for number, allowed in enumerate(gate.allow_unjudged):
        if allowed.case != "*" and not any(
            names_case(allowed, agent, name, case) for agent, name in pairs for case in ids(name)
        ):
            yield _unused(config, "allow_unjudged", number)


def _unused(config: Config, key: str, number: int, meant: str = "") -> Problem:
    loc = ("gate", key, number)
    return config.document.problem(f"covers no case{meant}", loc, severity="warning")


def reasons_of(
    found: Excuses,
    meta: RunMeta,
    gate: GateOptions,
    columns: Columns,
    comparison: Comparison | None,
) -> Iterator[Reason]:
    """Yield the exemptions that expired, those in force, and the first that cover worse cases.

    A comparison lists those in force.
    """
    worse = _of_worse_cases(found, meta, columns, comparison.changes if comparison else ())
    hiding = []
    for each, bad in zip(listed(meta, gate, found), listed(meta, gate, worse), strict=True):
        if each.expired:
            kind = "quarantine" if each.kind == "quarantined" else "acceptance"
            message = f"gate: {kind} of {each.named} expired on {each.until}"
            yield reason("expired_exemption", "warns", message)
        elif bad.cases:
            hiding.append(bad)
        elif each.cases and not comparison:
            owner = f" ({each.owner})" if each.owner else ""
            message = f"{each.kind} until {each.until}{owner}: {names([*each.cases])}"
            yield reason("exempt", "info", message)
    for each in hiding[:MAX_NAMED]:
        message = f"{names(each.cases)} did not pass or got worse; {exemption(each)}"
        yield reason("exempt_worse", "info", message)
    if more := hiding[MAX_NAMED:]:
        message = f"cases of {counted(len(more), 'more exemption')} did not pass or got worse"
        yield reason("exempt_worse", "info", message)


def _of_worse_cases(
    found: Excuses, meta: RunMeta, columns: Columns, changes: Iterable[CaseChange]
) -> Excuses:
    """Return the exemptions of the cases that did not pass, or got worse by the `changes`."""
    worse = {(each.group, each.case) for each in changes if each.change != "fixed"}
    kept: dict[GroupName, dict[str, Excuse]] = {}
    for name, cases in found.items():
        facts, column = meta.criteria[name[2]], columns.groups[name]
        group = GroupKey(agent=name[0], evalset=name[1], criterion=name[2])
        bad = column.ranks(facts) > RANKED.index(Status.PASSED)
        failed = {*column.named(bad)} if facts.judges else ()
        kept[name] = {
            case: by for case, by in cases.items() if case in failed or (group, case) in worse
        }
    return kept
