"""Evaluation files that others wrote are read as ADK reads them, or refused with one clear word.

They are looked for in the folder that the environment variable CI_EVAL_CORPUS names, where
`MANIFEST.tsv` says of each what ADK 2.13.0 makes of it.
"""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.cli.validate_command import Checked, check
from ci_eval.config.open_evalset import open_evalset
from ci_eval.runtime.context import RunContext

CORPUS = Path(os.environ.get("CI_EVAL_CORPUS", "nowhere"))


def files() -> list[dict[str, str]]:
    manifest = CORPUS / "MANIFEST.tsv"
    if not manifest.is_file():
        return []
    with manifest.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def checked(path: str) -> Checked:
    return check(
        str(CORPUS / path), lambda config: RunContext(env={}, root=config.parent, now=lambda: 0.0)
    )


def adk_reads(row: dict[str, str]) -> bool:
    loaders = (row["adk2.13_loader"], row["adk2.13_agentevaluator"])
    return row["kind"] in ("evalset", "legacy-list") and "ok" in loaders


READ = [pytest.param(row, id=row["path"]) for row in files() if adk_reads(row)]
OTHERS = [pytest.param(row, id=row["path"]) for row in files() if not adk_reads(row)]


@pytest.mark.parametrize("row", READ)
def test_what_adk_reads_is_read_with_the_same_cases(row):
    found = checked(row["path"])
    opened = open_evalset(CORPUS / row["path"], shown=row["path"])
    cases = list(opened.cases())

    assert found.kind == "evalset"
    assert [problem for problem in found.problems if problem.severity == "error"] == []
    assert found.cases == len(cases) == int(row["n_cases"])
    assert sum(len(case.conversation or ()) for case in cases) == int(row["n_invocations"])


@pytest.mark.parametrize("row", OTHERS)
def test_everything_else_is_read_or_refused_with_its_place(row):
    path = str(CORPUS / row["path"])
    found = checked(row["path"])
    errors = [problem for problem in found.problems if problem.severity == "error"]

    assert all(problem.message and problem.line for problem in errors)
    assert all(problem.file == path for problem in errors)
    if found.kind == "unknown":
        assert len(errors) == 1
    if row["kind"] == "test_config" and row["adk2.13_loader"] == "ok":
        assert found.kind == "eval_config"
        known = ("metric of your own code", "unknown criterion")
        assert all(any(each in problem.message for each in known) for problem in errors)


def of_kinds(*kinds: str) -> list[Any]:
    return [pytest.param(row, id=row["path"]) for row in files() if row["kind"] in kinds]


def problems_of_recording(row: dict[str, str]) -> list[str]:
    context = RunContext(env={}, root=CORPUS, now=lambda: 0.0)
    return [message for _, message in Recorded(recorded=row["path"]).check(context)]


@pytest.mark.parametrize("row", of_kinds("trpc-evalset", "agents-cli-dataset"))
def test_evalsets_of_others_are_read_with_the_same_cases(row):
    found = checked(row["path"])

    assert found.kind == "evalset"
    if "userTurns" in (CORPUS / row["path"]).read_text(encoding="utf-8"):
        messages = {problem.message for problem in found.problems}
        assert messages == {"needs either 'conversation' or 'conversationScenario'"}
        return
    assert [problem for problem in found.problems if problem.severity == "error"] == []
    assert found.cases == int(row["n_cases"])


@pytest.mark.parametrize("row", of_kinds("agents-cli-trace"))
def test_a_trace_of_agents_cli_is_replayed_and_a_dataset_is_an_evalset(row):
    value = json.loads((CORPUS / row["path"]).read_text(encoding="utf-8"))
    [message] = [problem.message for problem in checked(row["path"]).problems][:1] or [""]

    if any(case.get("responses") for case in value["eval_cases"]):
        assert problems_of_recording(row) == []
        assert "found a recording (agents_cli)" in message
    else:
        [wrong] = problems_of_recording(row)
        assert wrong.endswith("found an evalset (agents_cli)")
        assert checked(row["path"]).cases == int(row["n_cases"])


@pytest.mark.parametrize("row", of_kinds("result-double-encoded"))
def test_results_of_adk_are_replayed(row):
    assert problems_of_recording(row) == []


OTHERS_ARE = {
    "result": "results of trpc-agent-go, which are not read; ",
    "agents-cli-grade-result": "grades of agents-cli; ",
    "trpc-metrics": "metrics of trpc-agent-go; ",
    "scenarios": "ADK's conversation scenarios; ",
}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        pytest.param(row, what, id=row["path"])
        for row in files()
        for kind, what in OTHERS_ARE.items()
        if row["kind"] == kind
    ],
)
def test_what_is_neither_is_named_with_the_way_out(row, what):
    [problem] = checked(row["path"]).problems
    [message] = problems_of_recording(row)

    assert f"found {what}" in problem.message
    assert f"found {what}" in message
