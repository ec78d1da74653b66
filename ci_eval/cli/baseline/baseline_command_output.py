"""Output of `ci-eval baseline show`."""

from collections.abc import Sequence

from ci_eval.cli.console import out, out_table
from ci_eval.forge.lineage import Lineage
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Noted
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.file_names import command_line
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.times import age_s
from ci_eval.text.templates import counted, difference, duration, plain

MAX_MEANS = 5
"""Maximum number of means in a trend."""
MAX_UNUSED = 20
"""Maximum number of runs shown that would not be compared."""
_RUNS = ("run", "age", "commit", "branch", "distance", "passed", "failed", "errors", "compared")
_MEANS = ("agent", "evalset", "criterion", "mean", "trend", "oldest to nearest")
_COMMIT = 10
"""Length of an abbreviated commit hash."""


class ShownRun(Noted):
    """A stored run, relative to the change that is checked out, or that begins there."""

    suite: str
    distance: int | None = None
    """Number of commits before the one to compare with; `None` if it is not an ancestor."""
    age_s: float | None = None
    """Seconds since it began; `None` if unknown."""
    unused: str = ""
    """Why a run would not be compared with it; empty if it would."""


def shown_runs(before: Baseline, suite: str, now: float) -> list[ShownRun]:
    """Return summaries of the stored runs: those to compare with, nearest first, then the others.

    `now` is the Unix time.
    """
    ids = {past.meta.run_id for past in before.runs}
    others = [each for each in before.history if each.run_id not in ids]
    return [
        ShownRun(
            **each.model_dump(),
            suite=suite,
            distance=before.lineage.distance(each.commit),
            age_s=age_s(each.created, now),
            unused="" if each.run_id in ids else before.lineage.why_not(each.commit),
        )
        for each in (*map(note, before.runs), *others)
    ]


def show_runs(runs: Sequence[ShownRun], lineage: Lineage, suite: str, config: str = "") -> None:
    """Print the runs, and the means of the criteria in them; if there are none, how to store one.

    `config` is the configuration as the user named it.
    """
    if not runs:
        out(f"no stored runs to compare {suite!r} with")
        how = command_line(config, "run", "--baseline-save")
        out(f"store one with `{how}`; in CI only on a tracked branch")
        return
    compared = [each for each in runs if not each.unused]
    shown = runs[: len(compared) + MAX_UNUSED]
    out_table(_RUNS, [_run(each) for each in shown])
    if len(runs) > len(shown):
        out(f"… and {len(runs) - len(shown)} more; --json has all")
    out()
    groups = dict.fromkeys(each.group for run in compared for each in run.groups)
    if groups:
        out_table(_MEANS, [_group(key, compared) for key in groups])
        out()
    where = f" with base branch {lineage.base!r}" if lineage.base else ""
    stored = counted(len(runs), "stored run")
    out(f"a change{where} would be compared with {len(compared)} of {stored} of {suite!r}")
    if lineage.shallow:
        deepen = "set 'fetch-depth: 0' for actions/checkout, or run `git fetch --unshallow`"
        out(f"the clone is shallow, so older ancestors are unknown: {deepen}")


def _run(run: ShownRun) -> tuple[str, ...]:
    cases = run.cases
    return (
        run.run_id,
        "-" if run.age_s is None else duration(run.age_s),
        (run.commit or "-")[:_COMMIT],
        run.branch or "-",
        "-" if run.distance is None else counted(run.distance, "commit"),
        *map(str, (cases.passed, cases.failed, cases.errors)),
        f"no: {run.unused}" if run.unused else "yes",
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
