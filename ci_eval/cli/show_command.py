"""`ci-eval show`: shows a case of a stored run."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.shared_options import json_option, out_option
from ci_eval.config.open_evalset import open_evalset
from ci_eval.config.selection import fits
from ci_eval.records.cases import Invocation, Status
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, TrialResult
from ci_eval.records.trials import Place, Trace, TrialKey
from ci_eval.reporters.case_lines import Line, Span, status_span, trial_lines
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import REPORT_FILE, TRACES_FILE
from ci_eval.run_files.journal import read_traces
from ci_eval.run_files.report_file import read_report
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.times import age_s
from ci_eval.runtime.path_checks import contained
from ci_eval.text.fingerprint import of_case
from ci_eval.text.redact import Secrets
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import counted, duration, plain, terminal

MAX_CASES = 20
"""Maximum number of cases shown; a pattern can select more."""
_MOST_NAMES = 1000


@click.command()
@click.argument("case")
@click.option("--agent", help="Only with this agent.")
@click.option("--evalset", help="Only in this evalset.")
@out_option
@json_option
def show(case: str, agent: str | None, evalset: str | None, out: str, *, as_json: bool) -> None:
    """Show one case of the last run: conversation, tool calls, scores and evidence.

    CASE is an id or a pattern, such as 'refund-*'.
    """
    path = command_inputs.run_file(out)
    folder, observed = path.parent, path.parent / TRACES_FILE
    run = read_run(path, shown=str(path))
    found = _selected(run, case, agent, evalset)
    shown = list(found) if as_json else list(found)[:MAX_CASES]
    traces = read_traces(observed, set(shown)) if observed.is_file() else {}
    secrets = command_inputs.secrets_of(run)
    if as_json:
        every = (each for place in shown for each in found[place])
        print_json([_as_json(each, traces.get(each.key), secrets) for each in every])
        return
    report_path = folder / REPORT_FILE
    report = read_report(report_path, shown=str(report_path)) if report_path.exists() else None
    for place in shown:
        for line in _case_lines(run, report, found[place], traces, secrets):
            console.out_spans(line)
    if len(found) > len(shown):
        console.out(f"… and {counted(len(found) - len(shown), 'more case')}")
    if not observed.is_file():
        console.out(f"conversations are not shown: there is no {terminal(str(observed))}")
    age = age_s(run.meta.created, time.time())
    ago = "" if age is None else f", {duration(age)} ago"
    console.out(f"from the run {run.meta.run_id} in {terminal(out)}{ago}")


def _selected(
    run: Run, case: str, agent: str | None, evalset: str | None
) -> dict[Place, list[TrialResult]]:
    """Return the results of the selected cases, repeats in order.

    Raises:
        UsageError: there are none.

    """
    found: dict[Place, list[TrialResult]] = {}
    names: dict[str, None] = {}
    for result in run.results():
        key = result.key
        if agent not in (None, key.agent) or evalset not in (None, key.evalset):
            continue
        if fits(key.case, case):
            found.setdefault(key.place, []).append(result)
        elif len(names) < _MOST_NAMES:
            names[key.case] = None
    if not found:
        chosen = (("agent", agent, run.meta.agents), ("evalset", evalset, run.meta.evalsets))
        for kind, given, known in chosen:
            if given is not None and given not in known:
                message = f"the run has no {kind} {given!r}{did_you_mean(given, known)}"
                raise UsageError(message)
        raise UsageError(f"the run has no case {case!r}{did_you_mean(case, names)}")
    return found


def _as_json(result: TrialResult, trace: Trace | None, secrets: Secrets) -> dict[str, object]:
    observed = (
        secrets.cleaned(trace).model_dump(mode="json", exclude_defaults=True) if trace else None
    )
    return {"result": secrets.cleaned(result).model_dump(mode="json"), "trace": observed}


def _case_lines(
    run: Run,
    report: Report | None,
    results: list[TrialResult],
    traces: dict[TrialKey, Trace],
    secrets: Secrets,
) -> Iterator[Line]:
    key = results[0].key
    status = Status.worst([each.status for each in results])
    evalset = run.meta.evalsets.get(key.evalset)
    source = f"{evalset.path}:{results[0].line or 1}" if evalset else ""
    named = Span(terminal(f"{key.case}: {key.agent} on {key.evalset}"), "strong")
    yield (status_span(status), named, Span(f"  {terminal(source)}", "faint"))
    expected = _expected(evalset.path if evalset else "", results[0])
    alike: dict[str, list[TrialResult]] = {}
    for result in results:
        alike.setdefault(_content(result, traces.get(result.key)), []).append(result)
    for result, *others in alike.values():
        if len(results) > 1:
            said = _named((result, *others), run.meta.repeats)
            yield ()
            yield (status_span(result.status), Span(f"{said} ({duration(result.duration_s)})"))
        trace = traces.get(result.key)
        observed = secrets.cleaned(trace) if trace else None
        cleaned = secrets.cleaned(result)
        yield from trial_lines(cleaned, observed, expected or (), width=console.width())
    if expected is None:
        yield (Span(f"expected values are unknown: {terminal(source)} has changed since", "faint"),)
    for text in _baseline(report, key) if report else ():
        yield (Span(terminal(text)),)
    yield ()


def _expected(path: str, result: TrialResult) -> Sequence[Invocation] | None:
    """Return the expected turns of the case; `None` if its evalset has changed since the run."""
    try:
        cases = open_evalset(contained(Path.cwd(), path), shown=path).cases()
        case = next((each for each in cases if each.eval_id == result.key.case), None)
    except (UsageError, OSError):
        return None
    if case is None or case.conversation is None:
        return () if case else None  # a simulated user decides the conversation
    return case.conversation if of_case(case) == result.case_fingerprint else None


def _named(alike: tuple[TrialResult, ...], repeats: int) -> str:
    """Name identical trials of a case: the planned repeats by number, later trials by count."""
    planned = [str(each.key.repeat + 1) for each in alike if each.key.repeat < repeats]
    later = len(alike) - len(planned)
    parts = [f"repeat{'s' * (len(planned) > 1)} {', '.join(planned)}"] if planned else []
    parts += [counted(later, "later trial")] if later else []
    return f"{' and '.join(parts)}{', which are alike' if len(alike) > 1 else ''}"


def _content(result: TrialResult, trace: Trace | None) -> str:
    """Return the displayed content of a trial; equal content is displayed once."""
    scores = [score.model_dump(mode="json", exclude={"judging"}) for score in result.scores]
    seen = trace.invocations if trace else ()
    turns = [(turn.user, turn.response, turn.tool_calls) for turn in seen]
    return repr((result.error, scores, turns, result.output, result.cut_off))


def _baseline(report: Report, key: TrialKey) -> Iterator[str]:
    """Yield how the case changed compared with the baseline."""
    for change in report.comparison.changes if report.comparison else ():
        if change.place != key.place or change.baseline is None:
            continue
        now = "not measured" if change.value is None else plain(change.value)
        trials = report_phrases.trials(change)
        text = f"baseline: {change.group.criterion} {plain(change.baseline)} before, {now} now"
        yield f"{text}: {trials}" if trials else text
