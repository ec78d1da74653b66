"""Evaluation files that others wrote are read as ADK reads them, or refused with one clear word.

They are looked for in the folder that the environment variable CI_EVAL_CORPUS names, where
`MANIFEST.tsv` says of each what ADK 2.13.0 makes of it.
"""

import csv
import os
from pathlib import Path

import pytest

from ci_eval.agents.recorded import Recorded
from ci_eval.opening import open_evalset
from ci_eval.validate import Checked, check
from ci_eval.world import World

CORPUS = Path(os.environ.get("CI_EVAL_CORPUS", "nowhere"))
NOT_YET = "a criterion of ADK's that this version does not have yet"


def files() -> list[dict[str, str]]:
    manifest = CORPUS / "MANIFEST.tsv"
    if not manifest.is_file():
        return []
    with manifest.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def checked(path: str) -> Checked:
    return check(
        str(CORPUS / path), lambda config: World(env={}, root=config.parent, now=lambda: 0.0)
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
        known = (NOT_YET, "metric of your own code", "names no criteria", "unknown criterion")
        assert all(any(each in problem.message for each in known) for problem in errors)


RESULTS = [pytest.param(row, id=row["path"]) for row in files() if "result" in row["kind"]]


@pytest.mark.parametrize("row", RESULTS)
def test_results_of_adk_are_replayed_and_those_of_others_refused(row):
    world = World(env={}, root=CORPUS, now=lambda: 0.0)
    problems = list(Recorded(recorded=row["path"]).check(world))

    if row["kind"] == "result-double-encoded":
        assert problems == []
    else:
        [(_, message)] = problems
        assert message.endswith("found results of trpc-agent-go or agents-cli")
