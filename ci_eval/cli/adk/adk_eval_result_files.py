"""ADK's result files, as `adk eval` writes and `adk web` reads them.

A file is `<app>/.adk/eval_history/<app>_<evalset>_<time>.evalset_result.json`, or in a bucket
`<app>/evals/eval_history/…`.  It is written case by case: neither the results of a run nor its
traces are held in memory all at once.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ci_eval.cli.adk.adk_eval_result_schema import CaseResult, case_result
from ci_eval.cli.run.console_progress import run_watched
from ci_eval.records.findings import Report
from ci_eval.records.trials import Recording
from ci_eval.run.collect import Outputs
from ci_eval.run.plan import Plan
from ci_eval.run_files.file_names import RUN_FILE, TRACES_FILE
from ci_eval.run_files.run_file import read_run
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.storage.adk_storage import BucketHistory, FolderHistory, History
from ci_eval.runtime.storage.gcs import Storage
from ci_eval.runtime.storage.gs_uri import Place, is_place
from ci_eval.text.json_text import TRACE_DEPTH, parse_json
from ci_eval.text.redact import Secrets

_NOT_IN_NAMES = re.compile(r"[/\\\x00-\x1f\x7f]")
_LONGEST_NAME = 150


class Case(NamedTuple):
    """A case and its result."""

    agent: str
    evalset: str
    """The name of the evalset in the configuration."""
    result: CaseResult


@dataclass(frozen=True)
class Results:
    """The results of a finished run, in ADK's format."""

    plan: Plan
    run: Path
    """Its `run.json`."""
    record: Path
    """Its traces in the order of the cases, as `run --record` writes them."""
    secrets: Secrets
    """Secrets, which the cases may contain; the run and its traces are already redacted."""

    def cases(self) -> Iterator[Case]:
        """Yield the result of each case, in the order of the files."""
        results = read_run(self.run, shown=str(self.run)).results()
        with self.record.open("rb") as traces:
            for trial, result, line in zip(self.plan.trials(), results, traces, strict=True):
                agent, evalset = trial.key.agent, trial.key.evalset
                seen = Recording.model_validate(parse_json(line, max_depth=TRACE_DEPTH))
                found = case_result(
                    result,
                    seen,
                    trial.case,
                    self.plan.pairs[agent, evalset],
                    eval_set_id=self.plan.evalsets[evalset].opened.header.eval_set_id,
                )
                yield Case(agent, evalset, self.secrets.cleaned(found))


def run_and_write(
    plan: Plan,
    context: RunContext,
    outputs: Outputs,
    agents: str,
    publish: Callable[[Report, Results, Sequence[str]], None],
) -> Report | None:
    """Run, and write ADK's results below `agents`, a folder or bucket, before publishing.

    `publish` gets the locations of the results, too.  Returns `None` if the run was interrupted.

    Raises:
        UsageError: the folder or bucket is not writable; then nothing is run.  Or a result cannot
            be written.

    """
    kept = _history(agents, Storage(plan.config.gcs, context.env), context)
    for agent in plan.config.agents:
        kept.check(agent)
    with tempfile.TemporaryDirectory() as scratch:
        record = outputs.record or Path(scratch, TRACES_FILE)
        results = Results(plan, outputs.folder / RUN_FILE, record, context.secrets)

        def write_and_publish(report: Report) -> None:
            by_file = groupby(results.cases(), key=lambda each: (each.agent, each.evalset))
            written = [
                _write(kept, agent, (each.result for each in cases), context.now())
                for (agent, _), cases in by_file
            ]
            publish(report, results, written)

        return run_watched(plan, context, replace(outputs, record=record), write_and_publish)


def _history(agents: str, storage: Storage, context: RunContext) -> History:
    """Return the store of results below `agents`: the folder of all agents, or `gs://bucket`.

    As in ADK, a path in the address is ignored.

    Raises:
        UsageError: the address is invalid, or the bucket is not accessible.

    """
    if is_place(agents):
        return BucketHistory(storage.bucket(Place.parse(agents).bucket))
    return FolderHistory(Path(agents), context.root)


def _write(kept: History, app: str, cases: Iterator[CaseResult], now: float) -> str:
    first = next(cases)
    identity = f"{app}_{first.eval_set_id}"
    name = f"{_NOT_IN_NAMES.sub('_', identity)[:_LONGEST_NAME]}_{now}"
    head = {
        "eval_set_result_id": kept.result_id(f"{identity}_{now}", name),
        "eval_set_result_name": name,
        "eval_set_id": first.eval_set_id,
        "creation_timestamp": now,
    }
    with kept.writing(app, name) as file:
        file.write(json.dumps(head)[:-1] + ', "eval_case_results": [\n')
        file.write(first.as_json())
        for case in cases:
            file.write(f",\n{case.as_json()}")
        file.write("\n]}\n")
    return kept.shown(app, name)
