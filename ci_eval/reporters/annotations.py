"""`annotations.txt`: workflow commands that a GitHub runner turns into annotations.

A runner shows at most ten errors and ten warnings per step, and 4,096 characters of each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from ci_eval.plugins.points import Reporter, reporter
from ci_eval.records.findings import Report
from ci_eval.records.results import Run
from ci_eval.records.trials import Place
from ci_eval.reporters._case_changes import named
from ci_eval.reporters._trial_outcomes import MAX_PATH, Outcome, Outcomes
from ci_eval.run_files import report_phrases
from ci_eval.runtime.storage.gs_uri import is_place
from ci_eval.text.templates import counted, terminal, workflow_command

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial

MAX_OF_LEVEL = 10
"""Maximum number of errors, and of warnings."""

_MAX_TITLE = 150
_MAX_MESSAGE = 1_000
"""Maximum number of characters before escaping, which may triple them."""

Level = Literal["error", "warning"]


class Note(NamedTuple):
    """One annotation; not yet escaped."""

    level: Level
    title: str
    message: str
    file: str = ""
    """An evalset, relative to the top of the repository; empty if it belongs to no file."""
    line: int | None = None

    def command(self) -> str:
        """Return the workflow command."""
        title, message = terminal(self.title, _MAX_TITLE), terminal(self.message, _MAX_MESSAGE)
        return workflow_command(self.level, message, title=title, file=self.file, line=self.line)


@reporter("annotations")
class Annotations(Reporter):
    """Annotations in the evalsets: errors for what blocks, warnings for possible regressions."""

    file = "annotations.txt"

    def render(self, report: Report, results: "Callable[[], Iterator[AnyTrial]]") -> Iterator[str]:
        """Yield the workflow commands, one per line."""
        kept: dict[Level, list[Note]] = {"error": [], "warning": []}
        totals = Counter[Level]()
        for note in notes(report, results()):
            totals[note.level] += 1
            if len(kept[note.level]) < MAX_OF_LEVEL:
                kept[note.level].append(note)
        for level, found in kept.items():
            for note in _at_most_ten(found, totals[level]):
                yield f"{note.command()}\n"

    def of_run(self, report: Report, run: Run, before: Run | None = None) -> Iterator[str]:
        """Yield the workflow commands of a run; they show no evidence, so none is read."""
        del before
        return self.render(report, run.compared_trials)


def notes(report: Report, results: "Iterable[AnyTrial]") -> Iterator[Note]:
    """Yield the annotations of the verdict, then those of cases."""
    return chain(_of_verdict(report), _of_cases(report, results))


def _at_most_ten(notes: list[Note], total: int) -> Iterator[Note]:
    if total <= MAX_OF_LEVEL:
        yield from notes
        return
    shown = notes[: MAX_OF_LEVEL - 1]
    yield from shown
    rest = f"{counted(total - len(shown), notes[-1].level)} more, see junit.xml"
    yield Note(notes[-1].level, "ci-eval", rest)


def _of_verdict(report: Report) -> Iterator[Note]:
    """Yield the reasons of the verdict as one error, and its warnings as one warning."""
    title = f"{report.meta.suite} {report_phrases.decided(report)}"
    severities: dict[Level, tuple[str, ...]] = {
        "error": ("blocks", "incomplete"),
        "warning": ("warns",),
    }
    for level, wanted in severities.items():
        messages = [each.message for each in report.verdict.reasons if each.severity in wanted]
        if messages:
            yield Note(level, title, "; ".join(messages))


def _of_cases(report: Report, results: "Iterable[AnyTrial]") -> Iterator[Note]:
    """Yield a note for each case that blocks, may have regressed or could not be measured.

    An error that affects all trials of an agent gets one note, with the number of cases.
    """
    outcomes = Outcomes(report)
    failing_blocks = outcomes.failing_blocks and report.verdict.outcome == "failed"
    seen: set[Place] = set()
    shared: dict[tuple[str, ...], tuple[AnyTrial, Outcome, int]] = {}
    for result in results:
        outcome, place = outcomes.of(result), result.key.place
        if not outcome or place in seen:
            continue
        level, what = _judged(outcome, failing_blocks=failing_blocks)
        if not level:
            continue
        seen.add(place)
        cause = result.error.cause if result.error else None
        if cause:
            key = (place.agent, *cause)
            first, its_outcome, more = shared.get(key, (result, outcome, -1))
            shared[key] = first, its_outcome, more + 1
        else:
            yield _note(report, result, outcome, what, level)
    for result, outcome, more in shared.values():
        others = f" (and {counted(more, 'other case')})" if more else ""
        yield _note(report, result, outcome, f"not measured{others}", "warning")


def _note(report: Report, result: "AnyTrial", outcome: Outcome, what: str, level: Level) -> Note:
    place = result.key.place
    evalset = report.meta.evalsets.get(place.evalset)
    # GitHub cannot show a line of an object in a bucket.
    path = evalset.path if evalset else ""
    if is_place(path) or len(path) > MAX_PATH:
        path = ""
    title = f"{named(place, report.meta)}: {what}"
    return Note(level, title, outcome.message, path, result.line if path else None)


def _judged(outcome: Outcome, *, failing_blocks: bool) -> tuple[Level | None, str]:
    """Return the level of an annotation and what happened to the case; no level for none."""
    if outcome.kind == "error":
        return "warning", "not measured"
    if outcome.type == "ci_eval.Regression":
        return "error" if outcome.blocks else "warning", "regressed"
    if failing_blocks and outcome.kind == "failure":
        return "error", "failed"
    # If it is not suspected, it failed before, too.
    return "warning" if outcome.suspected else None, "possible regression, may be noise"
