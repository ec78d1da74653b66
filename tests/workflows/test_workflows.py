"""Workflows as GitHub runs them: the action in its container, and on the job's own machine."""

import os
import shutil
from pathlib import Path

import pytest
from workflows.running import IMAGE, OWNER, ROOT, RUNNER, Repository, repository

pytestmark = pytest.mark.skipif(not RUNNER, reason=".ci/run says where the workflow runner is")

needs_image = pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh runs it with an image")
needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="it installs with uv")
BOTH = pytest.mark.parametrize(
    "variant",
    [pytest.param("./", marks=needs_image, id="container"), pytest.param("./host", marks=needs_uv)],
)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return repository(tmp_path / "repository", tmp_path / "machines")


def using(variant: str, workflow: Path, folder: Path) -> Path:
    """Return a copy of a workflow that uses the action as `variant`."""
    text = workflow.read_text(encoding="utf-8").replace("uses: ./ #", f"uses: {variant} #")
    copy = folder / f"as-{workflow.name}"
    copy.write_text(text, encoding="utf-8")
    return copy


@BOTH
def test_our_own_workflow(repo: Repository, variant: str, tmp_path: Path) -> None:
    workflow = using(variant, ROOT / ".github" / "workflows" / "evaluate.yml", tmp_path)
    (job,) = repo.run(workflow)
    weather = job.step("weather")
    assert job.result == "success", [(step.name, step.stderr) for step in job.steps if print(step.stdout, step.stderr) or 1]
    assert weather.exit_code == 0
    assert dict(weather.outputs) == {}
    assert (job.step("weather").outcome, job.step("regression").outcome) == ("success", "failure")
