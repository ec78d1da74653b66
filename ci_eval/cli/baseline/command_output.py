"""Output of `ci-eval baseline show`."""

from collections.abc import Sequence
from datetime import datetime

from ci_eval.cli.console import out, out_table
from ci_eval.forge.lineage import Lineage
from ci_eval.records.findings import GroupKey, Noted
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.run_summary import note
from ci_eval.text.templates import counted, difference, duration, plain

MAX_MEANS = 5
"""Maximum number of means in a trend."""
_RUNS = ("run", "age", "commit", "branch", "distance", "passed", "failed", "errors")
_MEANS = ("agent", "evalset", "criterion", "mean", "trend", "oldest to nearest")
_COMMIT = 10
"""Length of an abbreviated commit hash."""


class ShownRun(Noted):
    """A stored run, relative to the commit that is checked out."""

    suite: str
    distance: int | None = None
    """Number of commits before the one to compare with; `None` if it is no ancestor."""
    age_s: float | None = None
    """Seconds since it began; `None` if unknown."""


def shown_runs(before: Baseline, now: float) -> list[ShownRun]:
    """Return summaries of the stored runs, nearest first; `now` is the Unix time."""
    return [
        ShownRun(
            **note(past).model_dump(),
            suite=past.meta.suite,
            distance=before.lineage.distance(past.meta.commit),
            age_s=_age(past.meta.created, now),
        )
        for past in before.runs
    ]


def show_runs(runs: Sequence[ShownRun], lineage: Lineage, suite: str) -> None:
    """Print the runs, and the means of the criteria in them."""
    if not runs:
        out(f"no stored runs to compare {suite!r} with")
        out("store one with `ci-eval run --baseline-save`; in CI only on a tracked branch")
        return
    out_table(_RUNS, [_run(each) for each in runs])
    out()
    groups = dict.fromkeys(each.group for run in runs for each in run.groups)
    out_table(_MEANS, [_group(key, runs) for key in groups])
    out()
    where = f", looked for on {lineage.base!r}" if lineage.base else ""
    out(f"{counted(len(runs), 'run')} of {suite!r}{where}")
    if lineage.shallow:
        out("the clone is shallow, so older ancestors are unknown")


def _age(created: str, now: float) -> float | None:
    try:
        return max(now - datetime.fromisoformat(created).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return None


def _run(run: ShownRun) -> tuple[str, ...]:
    cases = run.cases
    return (
        run.run_id,
        "-" if run.age_s is None else duration(run.age_s),
        (run.commit or "-")[:_COMMIT],
        run.branch or "-",
        "-" if run.distance is None else counted(run.distance, "commit"),
        *map(str, (cases.passed, cases.failed, cases.errors)),
    )


def _group(key: GroupKey, runs: Sequence[ShownRun]) -> tuple[str, ...]:
    found = (each.value for run in runs for each in run.groups if each.group == key)
    means = [value for value in found if value is not None]
    names = (key.agent, key.evalset, key.criterion)
    if not means:
        return (*names, "-", "-", "-")
    oldest_first = [*map(plain, reversed(means[:MAX_MEANS]))]
    more = "… " if len(means) > MAX_MEANS else ""
    trend = difference(means[0] - means[-1]) if len(means) > 1 else "-"
    return (*names, plain(means[0]), trend, more + " ".join(oldest_first))
