"""`ci-eval evalset results`: lists and shows the results that ADK's tools store."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ci_eval.cli.command_help import Group
from ci_eval.cli.console import out, say_problems
from ci_eval.cli.evalset.command_files import File, LocalFile, StoredFile, bucket_at
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.shared_options import json_option
from ci_eval.records.cases import AdkRecord
from ci_eval.records.errors import ExitCode, Problem, UsageError
from ci_eval.runtime.storage.adk_storage import HISTORY, RESULT_SUFFIX, result_folder
from ci_eval.runtime.storage.gs_uri import Place, is_place
from ci_eval.text.json_text import RESULT_DEPTH, parse_strict
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import duration, exact, score, terminal
from ci_eval.text.validation_messages import read_document
from ci_eval.text.yaml_files import read_text

_STATUSES = {1: "PASSED", 2: "FAILED", 3: "NOT_EVALUATED", 4: "INFORMATIONAL"}


class _Metric(AdkRecord, extra="ignore"):
    metric_name: str
    score: float | None = None
    threshold: float | None = None
    eval_status: int = 3


class _Case(AdkRecord, extra="ignore"):
    eval_id: str
    final_eval_status: int = 3
    overall_eval_metric_results: tuple[_Metric, ...] = ()


class _Result(AdkRecord, extra="ignore"):
    """The part of ADK's `EvalSetResult` that is shown."""

    eval_set_id: str
    creation_timestamp: float = 0.0
    eval_case_results: tuple[_Case, ...] = ()


_place = click.argument("place", metavar="AGENT_DIR")


@click.group(name="results", cls=Group)
def results() -> None:
    """List and show the results that `adk eval` and ci-eval stored.

    AGENT_DIR is the directory of an agent or, in a bucket, gs://BUCKET/APP.
    """


@results.command(name="list")
@_place
@json_option
def list_results(place: str, *, as_json: bool) -> int:
    """List the results of an agent, newest first."""
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for name, file in _files(place).items():
        try:
            found = _read(file)
        except UsageError as exc:
            problems += exc.problems
            continue
        passed = sum(each.final_eval_status == 1 for each in found.eval_case_results)
        rows.append(
            {
                "id": name,
                "evalset": found.eval_set_id,
                "created": found.creation_timestamp,
                "passed": passed,
                "failed": len(found.eval_case_results) - passed,
            }
        )
    rows.sort(key=lambda row: -row["created"])
    if as_json:
        print_json(rows)
    for row in rows if not as_json else ():
        age = duration(max(time.time() - row["created"], 0))
        counts = f"{row['passed']} passed, {row['failed']} failed"
        out(f"{row['id']} · {row['evalset']} · {age} ago · {counts}")
    if not rows and not problems and not as_json:
        out(f"{place}: no results are stored")
    say_problems(problems)
    return ExitCode.USAGE_ERROR if problems else ExitCode.PASSED


@results.command(name="show")
@_place
@click.argument("result", metavar="ID")
@json_option
def show_result(place: str, result: str, *, as_json: bool) -> None:
    """Show the cases and metrics of a result."""
    files = _files(place)
    if result not in files:
        message = f"the agent has no result {result!r}{did_you_mean(result, files)}"
        raise UsageError(message, file=place)
    found = _read(files[result])
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for case in found.eval_case_results:
        out(f"{_status(case.final_eval_status)} {case.eval_id}")
        for metric in case.overall_eval_metric_results:
            click.echo(f"  {terminal(_metric_line(metric))}")


def _metric_line(metric: _Metric) -> str:
    shown = "no score" if metric.score is None else score(metric.score, metric.threshold)
    needs = "" if metric.threshold is None else f" (threshold {exact(metric.threshold)})"
    return f"{_status(metric.eval_status)} {metric.metric_name} {shown}{needs}"


def _status(number: int) -> str:
    return _STATUSES.get(number, str(number))


def _files(place: str) -> dict[str, File]:
    """Return the results of an agent, by name.

    Raises:
        UsageError: the folder or bucket does not exist.

    """
    return {
        Path(file.shown).name.removesuffix(RESULT_SUFFIX): file
        for file in (_objects(place) if is_place(place) else _local(Path(place)))
    }


def _local(agent: Path) -> Iterator[File]:
    if not agent.is_dir():
        raise UsageError(f"{agent} is not a directory")
    yield from map(LocalFile, sorted((agent / HISTORY).glob(f"*{RESULT_SUFFIX}")))


def _objects(given: str) -> Iterator[File]:
    place = Place.parse(given)
    bucket = bucket_at(place)
    for entry in bucket.listed(result_folder(place.name.strip("/"))):
        if entry.place.name.endswith(RESULT_SUFFIX):
            yield StoredFile(bucket, entry.place, entry)


def _read(file: File) -> _Result:
    """Read a result; older versions of ADK wrote JSON inside a JSON string.

    Raises:
        UsageError: it is not a result.

    """
    text = read_text(file.path, shown=file.shown)
    document = parse_strict(text, shown=file.shown, max_depth=RESULT_DEPTH)
    if isinstance(document.value, str):
        document = parse_strict(document.value, shown=file.shown, max_depth=RESULT_DEPTH)
    return read_document(document, _Result)
