"""Console output of a calibration."""

from ci_eval.cli.console import out, out_table, out_text, spent
from ci_eval.cli.judge_check.agreement import Agreement, Share
from ci_eval.cli.judge_check.calibration import Calibration, Judges, Required, decide, doubts
from ci_eval.text.templates import counted, percent

MAX_RATIONALE = 300
"""Maximum number of characters shown of a rationale."""


def show(found: Calibration, required: Required) -> None:
    """Print a calibration, and whether it meets the requirements."""
    out(f"{_judges(found.judges)} on {counted(found.labelled, 'label')}")
    out()
    out_table(("", "judge: pass", "judge: fail", "agreed", "95% interval"), _rows(found.agreement))
    out()
    outcome, reasons = decide(found, required)
    out_text(
        "calibration.txt.j2",
        found=found,
        max_rationale=MAX_RATIONALE,
        outcome=outcome,
        unset=outcome == "passed" and required.says_nothing,
        reasons=[*reasons, *doubts(found.agreement, required)],
        judging=spent(found.judging) if found.judging.calls or found.judging.cached else "",
    )


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
