"""Random suites in random numbers of shards: merged in any order, they are one run."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.project import content

from ci_eval.config.load_config import load
from ci_eval.run import shards
from ci_eval.run.collect import Outputs
from ci_eval.run.merged_shards import gathered
from ci_eval.run.pipeline import run, run_shard
from ci_eval.run.plan import Plan, plan
from ci_eval.run_files.file_names import SHARD_FILE
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.shard_files import Shard, ShardReport
from ci_eval.run_files.stored_document import write_record
from ci_eval.runtime.context import RunContext

CONFIG = """\
agents: {one: {recorded: one.jsonl}, two: {recorded: two.jsonl}}
evalsets: {smoke: smoke.csv, deep: deep.csv}
criteria: {response_match_score: 0.5, ci/latency_s: {}}
baseline: {store: file}
run: {concurrency: 3, repeats: %d}
"""
ANSWERS = ("yes", "no", "yes and no", None)
"""What a recorded agent said; `None` for an error."""


class Project:
    """A suite of recorded agents, whose recordings may lack trials."""

    def __init__(self, folder: Path, seed: int, cases: dict[str, int], repeats: int) -> None:
        self.folder = folder
        (folder / "ci-eval.yaml").write_text(CONFIG % repeats)
        for name, count in cases.items():
            rows = [f"c{number},question {number},yes" for number in range(count)]
            (folder / f"{name}.csv").write_text("\n".join(["id,prompt,expected", *rows]) + "\n")
        self.record(seed, cases, repeats)

    def record(self, seed: int, cases: dict[str, int], repeats: int) -> None:
        """Write what the agents did."""
        rng = random.Random(seed)
        for agent in ("one", "two"):
            lines = [
                line(rng, evalset, f"c{number}", repeat)
                for evalset, count in cases.items()
                for number in range(count)
                for repeat in range(repeats)
            ]
            kept = [each for each in lines if rng.random() < 0.97] or lines
            (self.folder / f"{agent}.jsonl").write_text("\n".join(kept) + "\n")

    def plan(self) -> tuple[Plan, RunContext]:
        """Read the suite."""
        context = RunContext({}, self.folder, lambda: 0.0)
        config = load(self.folder / "ci-eval.yaml", shown="ci-eval.yaml", context=context)
        return plan(config, context), context

    def essence(self, folder: str) -> dict[str, Any]:
        """Return the documents of a run, without ids; a recording's times are always the same."""
        path = self.folder / folder
        found = {
            name: json.loads((path / name).read_text()) for name in ("run.json", "report.json")
        }
        for each in found.values():
            each["meta"]["run_id"] = ""
        comment = (path / "comment.md").read_text().splitlines()
        return found | {"comment": [each for each in comment if not each.startswith("- Run `")]}


def line(rng: random.Random, evalset: str, case: str, repeat: int) -> str:
    """Return a recorded trial."""
    answer = rng.choice(ANSWERS)
    row: dict[str, Any] = {"evalset": evalset, "eval_id": case, "repeat": repeat}
    if answer is None:
        return json.dumps(row | {"error": "no answer"})
    turn = {
        "user_content": content(f"question {case[1:]}", "user"),
        "final_response": content(answer, "model"),
        "duration": round(rng.random(), 3),
    }
    return json.dumps(row | {"invocations": [turn]})


def merged(project: Project, total: int, *, planned: bool, seed: int) -> dict[str, Any]:
    """Run each shard, merge them in a random order, and return the documents."""
    whole, context = project.plan()
    manifest = shards.manifest_of(whole, context)
    division = shards.divided(whole, total, manifest, ()) if planned else None
    folders = []
    for number in range(1, total + 1):
        shard, folder = Shard(number, total), project.folder / f"s{number}"
        done = run_shard(shards.part(whole, shard, division), shard, context, Outputs(folder))
        report = ShardReport(
            manifest=manifest,
            run_id=done.collected.run.meta.run_id,
            index=number,
            total=total,
            trials=done.collected.tally.trials,
        )
        write_record(report, folder / SHARD_FILE)
        folders.append(folder)
    random.Random(seed).shuffle(folders)
    run(whole, context, Outputs(project.folder / "merged"), gathered(folders, manifest))
    return project.essence("merged")


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cases=st.fixed_dictionaries({"smoke": st.integers(1, 24), "deep": st.integers(1, 12)}),
    repeats=st.integers(1, 3),
    total=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    planned=st.booleans(),
)
def test_merged_shards_are_one_run(
    cases: dict[str, int], repeats: int, total: int, seed: int, planned: bool
) -> None:
    with TemporaryDirectory() as folder:
        project = Project(Path(folder), seed, cases, repeats)
        whole, context = project.plan()
        run(whole, context, Outputs(project.folder / "before"))
        store = whole.config.baseline
        assert store
        store.save(read_run(project.folder / "before/run.json", shown="run.json"), context)
        project.record(seed + 1, cases, repeats)
        whole, context = project.plan()
        assert run(whole, context, Outputs(project.folder / "whole")).comparison
        count = min(total, 2 * sum(cases.values()))

        assert merged(project, count, planned=planned, seed=seed) == project.essence("whole")
