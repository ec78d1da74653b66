"""The ready-made workflows fit the action, and give nobody more than they need."""

import re
from pathlib import Path
from typing import Any

import pytest

from ci_eval.text.yaml_files import parse_yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/workflows"
WRITES = {
    ("evaluate.yml", "evaluate"): {"pull-requests"},
    ("evaluate.yml", "baseline"): {"contents"},
    ("publish.yml", "publish"): {"pull-requests"},
    ("shards.yml", "plan"): set(),
    ("shards.yml", "shard"): set(),
    ("shards.yml", "merge"): {"pull-requests"},
    ("shards.yml", "baseline"): {"contents"},
}
"""What each job may write."""


def workflow(name: str) -> Any:
    return parse_yaml((FOLDER / name).read_text(encoding="utf-8"), shown=name).value


def steps_of_ours(job: Any) -> list[Any]:
    return [each for each in job["steps"] if each.get("uses", "").startswith("OWNER/ci-eval@")]


def test_every_job_is_known() -> None:
    found = {(path.name, job) for path in FOLDER.iterdir() for job in workflow(path.name)["jobs"]}
    assert found == set(WRITES)


@pytest.mark.parametrize(("name", "job"), WRITES)
def test_a_job_fits_the_action_and_writes_only_what_it_says(name: str, job: str) -> None:
    found = workflow(name)
    assert found["permissions"] == {}
    permissions = found["jobs"][job]["permissions"]
    assert {each for each, may in permissions.items() if may == "write"} == WRITES[name, job]
    action = parse_yaml((ROOT / "action.yml").read_text(encoding="utf-8"), shown="action.yml")
    steps = steps_of_ours(found["jobs"][job])
    assert steps
    for step in steps:
        assert step.get("with", {}).keys() <= action.value["inputs"].keys()
    for step in found["jobs"][job]["steps"]:
        assert "run" in step or re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", step["uses"])


def test_what_posts_for_strangers_has_nothing_of_theirs() -> None:
    (job,) = workflow("publish.yml")["jobs"].values()
    assert [each["uses"] for each in job["steps"]] == [steps_of_ours(job)[0]["uses"]]
    assert "secrets." not in (FOLDER / "publish.yml").read_text(encoding="utf-8")


def test_the_second_workflow_follows_the_first() -> None:
    assert workflow("publish.yml")["on"]["workflow_run"]["workflows"] == [
        workflow("evaluate.yml")["name"]
    ]


def test_what_is_uploaded_is_what_is_looked_for() -> None:
    steps = workflow("evaluate.yml")["jobs"]["evaluate"]["steps"]
    upload, page = [each for each in steps if "upload-artifact@" in each.get("uses", "")]
    assert page["with"]["path"] == "report-${{ matrix.model }}.html"
    assert page["with"]["archive"] is False
    assert upload["with"]["name"].startswith("ci-eval-report-")
    assert upload["with"]["path"].endswith("/report.json")
    assert "always()" in upload["if"]
