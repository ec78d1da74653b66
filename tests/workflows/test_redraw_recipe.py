"""The jobs in the guide to shards that settle a doubt in a second fan-out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import FakeGitHub, github
from support.git_repositories import Repo
from support.markdown_pages import DOCS, sections
from workflows.running import PULL_REQUEST, ROOT, RUNNER, VARIANTS, Job, Repository, repository

pytestmark = pytest.mark.skipif(not RUNNER, reason=".ci/run says where the workflow runner is")

CONFIG = """\
agents: {bot: {python: "bot:answer"}}
evalsets: {smoke: smoke.csv}
criteria: {response_match_score: 0.3}
baseline: {store: merge_base}
"""
BOT = """\
def answer(text):
    return "yes%s" if int(text.split()[-1]) %% 3 == 0 else "yes"
"""


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.add_pull()
        yield found


@pytest.fixture
def repo(tmp_path: Path, fake: FakeGitHub) -> Repository:
    """A repository whose main branch has an agent."""
    found = repository(tmp_path / "repository", tmp_path / "machines", fake)
    found.actions = {"OWNER/ci-eval": str(ROOT), "OWNER/ci-eval/host": str(ROOT / "host")}
    rows = "".join(f"c{number},question {number},yes\n" for number in range(12))
    (found.folder / "smoke.csv").write_text(f"id,prompt,expected\n{rows}")
    (found.folder / "ci-eval.yaml").write_text(CONFIG)
    (found.folder / "bot.py").write_text(BOT % "")
    found.commit()
    Repo(found.folder).on("better-answers")
    return found


def workflow(action: str, folder: Path) -> Path:
    """Return the example with the jobs of the guide."""
    (guide,) = (
        each for each in sections(DOCS / "shards.md") if each.title == "Doubt in a second fan-out"
    )
    (block,) = (each for each in guide.blocks if each.language == "yaml")
    jobs = block.text.removeprefix("jobs:\n")
    jobs, count = re.subn(r"<owner of this repository>/ci-eval@<commit>", f"{action}@v1", jobs)
    assert count == 2
    jobs = jobs.replace("@<commit>", "@v7")
    text = (ROOT / "examples/workflows/shards.yml").read_text(encoding="utf-8")
    text = text.replace("OWNER/ci-eval@", f"{action}@").replace('shards: "4"', 'shards: "2"')
    merge = "  merge:\n    name: Merge and decide\n    needs: [plan, shard]\n"
    assert merge in text
    found = folder / "shards.yml"
    needing = merge.replace("shard]", "shard, redraw]")
    found.write_text(text.replace(merge, f"{jobs}\n{needing}"), encoding="utf-8")
    return found


def told(job: Job) -> str:
    return "\n".join(f"{step.name}: {step.stdout}{step.stderr}" for step in job.steps)


@pytest.mark.parametrize("action", VARIANTS)
def test_shards_settle_the_doubt_and_the_last_merge_decides(
    repo: Repository, fake: FakeGitHub, action: str, tmp_path: Path
) -> None:
    (repo.folder / "bot.py").write_text(BOT % " maybe")
    repo.github["sha"] = repo.commit()

    jobs = repo.run(workflow(action, tmp_path), event=PULL_REQUEST)

    (doubt,) = (job for job in jobs if job.id == "doubt")
    assert (doubt.result, doubt.step("merge").outcome) == ("success", "failure"), told(doubt)
    assert doubt.step("merge").outputs["verdict"] == "incomplete"
    shards = [job for job in jobs if job.id == "redraw"]
    assert [job.matrix for job in shards] == [{"shard": "1/2"}, {"shard": "2/2"}]
    assert {job.result for job in shards} == {"success"}, told(shards[0])
    (merge,) = (job for job in jobs if job.id == "merge")
    assert merge.step("merge").outputs["verdict"] == "failed", told(merge)
    assert "merging 2 of 2 shards of redraw 1" in merge.step("merge").stderr
    (body,) = fake.bodies()
    assert "worse than the merge base in the same job" in body


@pytest.mark.parametrize("action", VARIANTS)
def test_without_a_doubt_no_shard_is_started(
    repo: Repository, fake: FakeGitHub, action: str, tmp_path: Path
) -> None:
    repo.github["sha"] = repo.commit()

    jobs = repo.run(workflow(action, tmp_path), event=PULL_REQUEST)

    results = {job.id: job.result for job in jobs}
    assert results["doubt"] == "success"
    assert results["redraw"] == "skipped"
    assert results["merge"] == "success"
    assert len(fake.bodies()) == 1
