"""Console output of an explained verdict."""

from collections.abc import Iterator

from ci_eval.cli.console import say, say_list
from ci_eval.cli.gate.comparing import against, sections
from ci_eval.cli.gate.explaining import (
    ExplainedCriterion,
    ExplainedFloor,
    Explanation,
    Level,
)
from ci_eval.run_files import wording
from ci_eval.run_files.wording import named
from ci_eval.text.templates import counted, difference, p_value, percent, plain

_JUDGED_BY = {
    "threshold": "compared with the thresholds",
    "regression": "compared with the baseline",
    "both": "compared with the thresholds and the baseline",
}
_WEIGHT = {"blocks": "blocks", "incomplete": "no verdict", "warns": "warns", "info": "info"}


def show(found: Explanation) -> None:
    """Print the explanation of a verdict."""
    verdict = found.verdict
    say(f"{verdict.outcome.upper()} ({_JUDGED_BY[verdict.mode]})")
    for reason in verdict.reasons:
        say(f"- {_WEIGHT[reason.severity]}: {reason.message}")
    if not verdict.reasons:
        say("- no blocking findings")
    say()
    for line in _compared(found):
        say(line)
    for each in found.criteria:
        say()
        for line in _criterion(each):
            say(line)
    for title, lines in sections(found.comparison) if found.comparison else ():
        say_list(title, lines)
    say_list("floors", [_floor(each, found) for each in found.floors])
    say_list("what would have changed the verdict", found.turning)


def _compared(found: Explanation) -> Iterator[str]:
    comparison = found.comparison
    if comparison is None:
        yield "nothing was compared with a baseline"
        return
    yield f"compared with the baseline: {against(comparison)}"
    if comparison.shallow:
        yield "the clone is shallow, so a closer baseline run may be missing"
    yield f"{counted(found.repeats, 'repeat')} of each case per round"
    if drawn := wording.drawn(comparison):
        yield drawn
    if together := comparison.together:
        yield (
            f"the {together.criteria} blocking criteria changed by "
            f"{difference(together.effect)} together: {p_value(together.p_value)}; needs "
            f"≤ {_level(together.level)}: {together.outcome}"
        )


def _criterion(each: ExplainedCriterion) -> Iterator[str]:
    delta = each.delta
    said = f": {delta.reason}" if delta.reason else ""
    tier = "" if delta.tier == "block" else f" (tier {delta.tier}: it never blocks)"
    yield f"{named(delta.group)}{tier}: {delta.outcome.replace('_', ' ')}{said}"
    if delta.baseline is not None and delta.value is not None:
        interval = delta.interval
        between = (
            f", 95% interval {difference(interval[0])} to {difference(interval[1])}"
            if interval
            else ""
        )
        yield (
            f"- before {plain(delta.baseline)}, now {plain(delta.value)}: "
            f"{difference(delta.effect)}{between}, over {counted(delta.cases, 'case')} "
            f"in both"
        )
    if each.level and delta.level is not None:
        yield (f"- {p_value(delta.p_value)}; needs ≤ {_level(delta.level)} ({_why(each.level)})")
        yield f"- {_reach(each)}"
    else:
        yield "- not tested"
    if each.proven or each.suspected or each.excused:
        yield (
            f"- single cases: {each.proven} proven, {each.suspected} suspected, "
            f"{each.excused} exempt"
        )


def _why(level: Level) -> str:
    spent = f"error budget {percent(level.means)} of gate.false_block {percent(level.false_block)}"
    if level.left is not None and level.left < level.hypotheses:
        spent += f", over {level.left} of {level.hypotheses} tests"
    elif level.hypotheses > 1:
        spent += f", over {level.hypotheses} tests"
    if level.looks > 1:
        spent += f", look {level.look} of {level.looks}"
    return spent


def _reach(each: ExplainedCriterion) -> str:
    verb = "blocked" if each.delta.tier == "block" else "counted"
    if each.visible and each.blocks_from is None:
        return f"all cases changed alike, so it is unknown what drop would have {verb}"
    if each.blocks_from is None:
        return (
            f"no drop could have {verb}: {counted(each.delta.cases, 'case')} and "
            f"{counted(each.runs, 'run')} of the baseline are too few"
        )
    if each.delta.steady:
        return f"the baseline never varied: any drop of {each.least:.3g} would have {verb}"
    return f"a drop of about {each.blocks_from:.3g} would have {verb}, none below {each.least:.3g}"


def _floor(floor: ExplainedFloor, found: Explanation) -> str:
    where = f" on {floor.group.evalset} with {floor.group.agent}" if floor.group else ""
    value = "nothing measured" if floor.value is None else plain(floor.value)
    line = f"{floor.what}{where}: {value}, required {floor.required:g}"
    if floor.interval:
        line += f", plausible range {percent(floor.interval[0])} to {percent(floor.interval[1])}"
    if floor.open:
        return f"{line}: depends on what could not be measured"
    if not floor.missed:
        return f"{line}: reached"
    if floor.certain:
        judged = " as measured (gate.floors: point)" if found.gate.floors == "point" else ""
        return f"{line}: missed{judged}"
    return f"{line}: missed, but this may be noise"


def _level(value: float) -> str:
    return f"{value:.2g}"
