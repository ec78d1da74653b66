"""How a change weakens its own gate, compared with the baseline run."""

import re
from collections.abc import Iterator
from datetime import date

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.exemptions import day_of, gate_of
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.records.cases import Json
from ci_eval.records.results import CriterionFacts, RunMeta
from ci_eval.run_files.score_table import Columns
from ci_eval.text.templates import counted

_STRICTNESS = {
    "on_missing": ("pass", "warn", "threshold", "fail"),
    "on_inconclusive": ("pass", "warn", "rerun", "fail"),
    "on_vanished": ("pass", "warn", "fail"),
    "on_loosened": ("warn", "fail"),
    "confirm": ("off", "candidate", "both"),
    "floors": ("interval", "point"),
}
"""From the loosest to the strictest value."""
_LOOSER = {"max_drop": 1, "max_errors": 1, "false_block": -1, "rerun_budget": -1}
"""Options for which a greater (1) or smaller (-1) number is looser."""
_NO_PLACE = ("branches", "search", "squash", "window")
"""Options of a store that do not affect its location."""
_CHOICE = ("window", "search")
"""Options of a store that select the stored runs to compare with: fewer runs detect less, and older
ones may be worse."""
UNBLOCKED = "gate.on_loosened: fail → warn"
"""The message about a change that keeps itself from failing."""
_BY_THRESHOLD = frozenset({"threshold", "both"})
"""Modes in which every case must pass, unless `min_pass_rate` is set."""
_TIERS = ("inform", "warn", "block")
_PATTERN = re.compile(r"[*?\[]")
_MOST_SINGLE = 2
"""Maximum number of new entries for single cases that are named; more could hide the rest."""


def loosened(now: RunMeta, before: RunMeta) -> Iterator[str]:
    """Yield, in words, what `now` lets through but `before` did not.

    What affects most comes first, as reports show the beginning.
    """
    gate, was = _with_mode(now), _with_mode(before)
    yield from _of_store(now, before)
    yield from _of_gate(gate, was)
    yield from _of_floors(now, gate, was)
    for name, facts in now.criteria.items():
        if name in before.criteria:
            yield from _of_criterion(name, facts, before.criteria[name])
    for name in now.disabled:
        if name in before.criteria:
            yield f"criterion {name} is disabled"
    configured, was_configured = (each.configured_repeats or each.repeats for each in (now, before))
    if configured < was_configured:
        yield f"run.repeats: {was_configured} → {configured}"
    # More repeats than configured, as a maintainer draws once, are no promise.
    elif now.repeats < (promised := min(before.repeats, was_configured)):
        yield f"--repeats: {promised} → {now.repeats}"
    entries = [*_of_excuses(gate, was, day_of(now)), *_of_unjudged(gate, was)]
    single = [said for case, said in entries if not _PATTERN.search(case)]
    yield from (said for case, said in entries if _PATTERN.search(case))
    yield from single[:_MOST_SINGLE]
    if len(single) > _MOST_SINGLE:
        more = counted(len(single) - _MOST_SINGLE, "more case", "more cases")
        yield f"gate: {more} in accept, quarantine or allow_unjudged"


def changed_content(now: Columns, before: Columns) -> Iterator[str]:
    """Yield, for each evalset, the number of cases whose content changed."""
    for evalset, cases in now.evalsets.items():
        count = cases.changed_in(before.evalsets[evalset]) if evalset in before.evalsets else 0
        if count:
            shown = "1 case" if count == 1 else f"{count} cases"
            yield f"evalset {evalset}: {shown} changed and cannot be compared"


def _with_mode(meta: RunMeta) -> GateOptions:
    """Return the gate of a run, with the mode it defaults to."""
    gate = gate_of(meta)
    return gate.model_copy(update={"mode": "regression"}) if meta.store and not gate.mode else gate


def _place(meta: RunMeta) -> dict[str, Json]:
    """Return the options that say where the baseline is stored."""
    place = {name: value for name, value in meta.store.items() if name not in _NO_PLACE}
    match place.get("gcs"):
        case dict() as reached:
            place["gcs"] = {name: reached[name] for name in reached if name != "timeout_s"}
    return place


def _of_store(now: RunMeta, before: RunMeta) -> Iterator[str]:
    if not before.store:
        return
    if not now.store:
        yield "baseline: removed"
        return
    if _place(now) != _place(before):
        yield "baseline: location changed"
    for name in _CHOICE:
        default = BaselineStore.model_fields[name].default
        new, old = now.store.get(name, default), before.store.get(name, default)
        if new != old:
            yield f"baseline.{name}: {old} → {new}"


def _of_gate(now: GateOptions, before: GateOptions) -> Iterator[str]:
    for name, order in _STRICTNESS.items():
        new, old = getattr(now, name, None), getattr(before, name, None)
        if {new, old} <= {*order} and order.index(new) < order.index(old):
            yield f"gate.{name}: {old} → {new}"
    # `threshold` and `regression` each require something that the other lets through.  The default
    # mode of a run without a baseline is unknown.
    if now.mode and before.mode and now.mode not in (before.mode, "both"):
        yield f"gate.mode: {before.mode} → {now.mode}"
    for name, sign in _LOOSER.items():
        new, old = getattr(now, name), getattr(before, name)
        if sign * (new - old) > 0:
            yield f"gate.{name}: {old:g} → {new:g}"


def _of_excuses(now: GateOptions, before: GateOptions, today: date) -> Iterator[tuple[str, str]]:
    """Yield the cases of each new entry, by id or pattern, and what it lets through."""
    for excuse in (*now.quarantine, *now.accept):
        if excuse.until >= today and excuse not in (*before.accept, *before.quarantine):
            said = f"gate: {excuse.named} is {excuse.kind} until {excuse.until.isoformat()}"
            yield excuse.case, said


def _of_unjudged(now: GateOptions, before: GateOptions) -> Iterator[tuple[str, str]]:
    known = {(each.agent, each.evalset, each.case) for each in before.allow_unjudged}
    for allowed in now.allow_unjudged:
        if (allowed.agent, allowed.evalset, allowed.case) not in known:
            yield allowed.case, f"gate.allow_unjudged: {allowed.named} is added"


def _of_floors(run: RunMeta, now: GateOptions, before: GateOptions) -> Iterator[str]:
    rate, was = now.min_pass_rate, before.min_pass_rate
    if _BY_THRESHOLD.issuperset((now.mode, before.mode)):
        rate, was = 1.0 if rate is None else rate, 1.0 if was is None else was
    if was is not None and (rate is None or rate < was):
        yield f"gate.min_pass_rate: {was:g} → {_shown(rate)}"
    for name, least in before.min_score.items():
        floor, facts = now.min_score.get(name), run.criteria.get(name)
        # If lower is better, the floor is an upper limit.
        sign = -1 if facts and facts.better == "lower" else 1
        if floor is None or sign * (floor - least) < 0:
            yield f"gate.min_score.{name}: {least:g} → {_shown(floor)}"


def _of_criterion(name: str, now: CriterionFacts, before: CriterionFacts) -> Iterator[str]:
    if before.threshold is not None and now.threshold != before.threshold:
        sign = 1 if now.better == "higher" else -1
        if now.threshold is None or sign * (now.threshold - before.threshold) < 0:
            yield f"threshold of {name}: {before.threshold:g} → {_shown(now.threshold)}"
    if _TIERS.index(now.tier) < _TIERS.index(before.tier):
        yield f"tier of {name}: {before.tier} → {now.tier}"
    if before.max_growth is not None and (
        now.max_growth is None or now.max_growth > before.max_growth
    ):
        yield f"max_growth of {name}: {before.max_growth:g} → {_shown(now.max_growth)}"
    if now.fingerprint != before.fingerprint:
        yield f"criterion {name} changed its definition"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
