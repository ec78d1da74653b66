"""Console output of a calibration."""

from collections.abc import Iterator

from ci_eval.cli.console import say, say_list, say_table, spent
from ci_eval.cli.judge_check.agreement import Agreement, Distance, Interval, Share
from ci_eval.cli.judge_check.calibration import (
    Calibration,
    Differing,
    Judges,
    Open,
    Required,
    decide,
    doubts,
)
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, difference, percent, plain

MAX_RATIONALE = 300
"""How much of a rationale is shown, in characters."""


def show(found: Calibration, required: Required) -> None:
    """Print what was found, and whether it is what is `required`."""
    say(f"{_judges(found.judges)} on {counted(found.labelled, 'label')}")
    say()
    say_table(("", "judge: pass", "judge: fail", "agreed", "95% interval"), _rows(found.agreement))
    say()
    for line in _findings(found):
        say(line)
    say_list(
        "the judge could not decide", [f"{_place(each)}: {each.reason}" for each in found.undecided]
    )
    say_list("people are divided on", [_place(each) for each in found.divided])
    say_list("people and the judge differ on", [_differing(each) for each in found.differing])
    say()
    outcome, reasons = decide(found, required)
    if outcome == "passed" and required.says_nothing:
        say("no minimum set; see --min-kappa and --min-agreement")
    else:
        say(outcome.upper())
    for reason in (*reasons, *doubts(found.agreement, required)):
        say(f"- {reason}")
    if found.judging.calls or found.judging.cached:
        say(f"judges: {spent(found.judging)}")


def _judges(judges: Judges) -> str:
    if not judges.models or judges.samples is None:
        return judges.criterion
    return f"{judges.criterion} ({', '.join(judges.models)}; {counted(judges.samples, 'sample')})"


def _rows(found: Agreement) -> list[tuple[str, ...]]:
    passed, failed = found.table.rows
    total = (passed[0] + failed[0], passed[1] + failed[1])
    return [
        ("people: pass", *map(str, passed), *_share(found.passed)),
        ("people: fail", *map(str, failed), *_share(found.failed)),
        ("all", *map(str, total), *_share(found.agreed)),
    ]


def _share(share: Share) -> tuple[str, str]:
    """Return a share and its interval."""
    found = share.interval
    if found is None:
        return "-", "-"
    return percent(found.value), f"{percent(found.low)} to {percent(found.high)}"


def _findings(found: Calibration) -> Iterator[str]:
    yield _kappa(found.agreement)
    for name, each in found.rubrics.items():
        yield f"rubric {name}: {each.agreed.count} of {each.agreed.of} agreed, {_kappa(each)}"
    if found.distance:
        yield from _distance(found.distance)
    if found.people:
        said = f"{found.people.count} of {found.people.of} ({_share(found.people)[0]})"
        yield f"people agree with each other in {said} pairs: no judge can be expected to do better"
    if found.others:
        yield f"{counted(found.others, 'label')} on other criteria ignored"


def _kappa(found: Agreement) -> str:
    if found.kappa is None:
        return f"kappa: not available, because {found.kappa_reason}"
    return f"kappa: {_between(found.kappa, plain(found.kappa.value))}"


def _distance(found: Distance) -> Iterator[str]:
    if found.error is None or found.bias is None:
        return
    scores = counted(found.count, "score")
    yield f"{scores}, apart by {_between(found.error, plain(found.error.value))}"
    yield f"the judge's are higher by {_between(found.bias, difference(found.bias.value))}"


def _between(interval: Interval, value: str) -> str:
    return f"{value} ({plain(interval.low)} to {plain(interval.high)})"


def _place(item: Open | Differing) -> str:
    name = item.id if item.id == f"line {item.line}" else f"{item.id} (line {item.line})"
    return f"{name}, rubric {item.rubric_id}" if item.rubric_id is not None else name


def _differing(item: Differing) -> str:
    people = _said(passes=item.people, score=item.people_score)
    judge = _said(passes=item.judge, score=item.judge_score)
    rationale = f": {one_line(item.rationale, MAX_RATIONALE)}" if item.rationale else ""
    return f"{_place(item)}: people say {people}, the judge says {judge}{rationale}"


def _said(*, passes: bool, score: float | None) -> str:
    """Return pass or fail, with the score where that says more."""
    word = "pass" if passes else "fail"
    return word if score in (None, 0.0, 1.0) else f"{word} ({plain(score)})"
