"""Workflows as GitHub runs them: the action in its container, and on the job's own machine."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import FORK, REPOSITORY, FakeGitHub, github, sha
from support.git_repositories import Repo
from workflows.running import IMAGE, PULL_REQUEST, ROOT, RUNNER, Job, Repository, repository

from ci_eval.cli.main import main

pytestmark = pytest.mark.skipif(not RUNNER, reason=".ci/run says where the workflow runner is")

FILES = Path(__file__).parent / "files"
EXAMPLES = ROOT / "examples" / "workflows"
CONTAINER, HOST = "./", "./host"
BOTH = pytest.mark.parametrize(
    "variant",
    [
        pytest.param(
            CONTAINER,
            id="container",
            marks=pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh builds an image"),
        ),
        pytest.param(
            HOST,
            id="host",
            marks=pytest.mark.skipif(not shutil.which("uv"), reason="it installs with uv"),
        ),
    ],
)


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.add_pull()
        yield found


@pytest.fixture
def repo(tmp_path: Path, fake: FakeGitHub) -> Repository:
    return repository(tmp_path / "repository", tmp_path / "machines", fake)


def using(variant: str, workflow: Path, folder: Path) -> Path:
    """Return a copy of a workflow that uses the action as `variant`."""
    text = workflow.read_text(encoding="utf-8")
    assert "uses: ./ #" in text
    copy = folder / workflow.name
    copy.write_text(text.replace("uses: ./ #", f"uses: {variant} #"), encoding="utf-8")
    return copy


def example(name: str, variant: str, folder: Path) -> Path:
    """Return a copy of an example that uses the action as `variant`, still by a name."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    named, count = re.subn(r"OWNER/ci-eval@", f"OWNER/ci-eval{variant[1:].rstrip('/')}@", text)
    assert count
    (folder / name).write_text(named, encoding="utf-8")
    return folder / name


def told(job: Job) -> str:
    """Return the failure, for the message of an assertion."""
    return "\n".join(f"{step.name}: {step.stdout}{step.stderr}" for step in job.steps)


def annotations(job: Job, step: str) -> list[tuple[str, str]]:
    """Return the annotations of a step: the level, and the message up to its first colon."""
    return [
        (each["command"], each["message"].partition(":")[0])
        for each in job.step(step).commands
        if each["command"] in ("error", "warning", "notice")
    ]


# --- The runner itself ------------------------------------------------------------------------


def test_the_runner_does_as_github_does(repo: Repository) -> None:
    text = "with ${{ github.token }} and $(exit 9)"
    first, *each, after, always = repo.run(FILES / "runner.yml", "push", {"text": text})
    assert first.result == "success", told(first)
    assert first.outputs == {"lines": "one\n\ntwo", "where": "step hello"}
    assert first.step("reads").outputs["said"] == "step later, job, found, step later"
    assert (first.step("fails").outcome, first.step("fails").exit_code) == ("failure", 7)
    assert first.step("goes-on").outcome == "success"
    assert first.step("left-out").outcome == "skipped"
    assert first.step("writes").summary == "# Summary\n"
    assert list(first.step("writes").commands) == [
        {
            "command": "error",
            "properties": {"file": "a.py", "line": "3", "title": "A: b"},
            "message": "one\ntwo",
        }
    ]
    assert [(job.matrix, job.result, job.step("all").outputs["said"]) for job in each] == [
        ({"number": 1}, "success", "1  2 kept 1"),
        ({"number": 2, "extra": "more"}, "failure", "2 more 2 kept 1"),
    ]
    assert (after.result, always.result) == ("skipped", "success")
    assert always.step("said").outputs == {"needed": "failure"}


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        (("steps:", "stepz:"), "stepz"),
        (("- uses: actions/checkout@v7", "- uses: nobody/knows@v1"), "nobody/knows"),
        (("repeats:", "repeets:"), "unexpected input repeets"),
        (("[pull_request]", "[push]"), "not started by pull_request"),
        (("repeats: ", "tag: ${{ nothing.known }}\n          repeats: "), "nothing"),
    ],
)
def test_the_runner_refuses_what_github_would(
    repo: Repository, tmp_path: Path, changed: tuple[str, str], refused: str
) -> None:
    workflow = using(HOST, FILES / "wrong.yml", tmp_path)
    text = workflow.read_text(encoding="utf-8")
    assert changed[0] in text
    workflow.write_text(text.replace(*changed, 1), encoding="utf-8")
    with pytest.raises(AssertionError, match=refused):
        repo.run(workflow)


# --- The action -------------------------------------------------------------------------------


@BOTH
def test_our_own_workflow(repo: Repository, fake: FakeGitHub, variant: str, tmp_path: Path) -> None:
    workflow = using(variant, ROOT / ".github" / "workflows" / "evaluate.yml", tmp_path)
    (job,) = repo.run(workflow, event=PULL_REQUEST)
    assert job.result == "success", told(job)
    weather, regression = job.step("weather"), job.step("regression")
    comment = {name: weather.outputs[name] for name in ("comment-status", "comment-url")}
    # A composite action has all its outputs, also those of other commands.
    assert {**weather.outputs, "matrix": ""} == comment | {
        "matrix": "",
        "verdict": "passed",
        "exit-code": "0",
        "report-dir": "ci-eval-report",
        "pass-rate": "1.0000",
        "regressions": "",
        "junit": "ci-eval-report/junit.xml",
        "comment": "ci-eval-report/comment.md",
    }
    assert comment["comment-status"] == "created"
    assert (weather.exit_code, regression.exit_code) == (0, 1)
    assert "weather" in weather.summary
    assert annotations(job, "weather") == []
    assert "error" in [level for level, _ in annotations(job, "regression")]
    assert [each.body.splitlines()[0] for each in fake.comments] == [
        "<!-- ci-eval:v1 id=weather -->"  # both steps evaluate the same suite
    ]
    assert sorted(path.name for path in (job.workspace / "ci-eval-report").iterdir()) == sorted(
        path.name for path in (job.workspace / "examples/regression/report").iterdir()
    )
    run = json.loads((job.workspace / "ci-eval-report/run.json").read_text(encoding="utf-8"))
    assert run["meta"]["commit"] == repo.github["sha"]


@BOTH
def test_jobs_of_a_matrix_share_one_comment(
    repo: Repository, fake: FakeGitHub, variant: str, tmp_path: Path
) -> None:
    *each, gate = repo.run(using(variant, FILES / "matrix.yml", tmp_path), event=PULL_REQUEST)
    assert [job.result for job in each] == ["success", "success"], told(each[0])
    assert [job.step("weather").outputs["comment-status"] for job in each] == ["created", "updated"]
    (comment,) = fake.comments
    assert "first" in comment.body
    assert "second" in comment.body
    assert gate.result == "success", told(gate)
    found = gate.step("files").outputs["found"]
    assert found == "report-first/junit.xml report-second/junit.xml "


@BOTH
def test_inputs_reach_no_shell_and_are_all_told(
    repo: Repository, variant: str, tmp_path: Path
) -> None:
    (job,) = repo.run(using(variant, FILES / "wrong.yml", tmp_path), event=PULL_REQUEST)
    step = job.step("evaluate")
    assert (job.result, step.exit_code) == ("failure", 4), told(job)
    assert step.outputs["verdict"] == "usage-error"
    assert annotations(job, "evaluate") == [
        ("error", "input 'repeats'"),
        ("error", "input 'resume'"),
    ]
    assert not list(job.workspace.rglob("injected"))
    assert step.files == {"env": "", "path": "", "state": ""}


# --- The workflows for forks ------------------------------------------------------------------

CONFIG = """\
version: 1
name: shop
agents:
  small: {recorded: examples/weather/traces/weather.jsonl}
  large: {recorded: examples/weather/traces/weather.jsonl}
evalsets:
  smoke: examples/weather/evals/smoke.evalset.json
criteria: {tool_trajectory_avg_score: 1.0}
"""


def use_examples(repo: Repository) -> None:
    """Commit a configuration, and let the examples' steps use this version of the action."""
    repo.actions = {"OWNER/ci-eval": str(ROOT), "OWNER/ci-eval/host": str(ROOT / "host")}
    (repo.folder / "ci-eval.yaml").write_text(CONFIG, encoding="utf-8")
    repo.github["sha"] = repo.commit()


@BOTH
def test_what_a_fork_measured_is_posted_by_the_second_workflow(
    repo: Repository, fake: FakeGitHub, variant: str, tmp_path: Path
) -> None:
    use_examples(repo)
    fake.add_fork(1, sha(10))
    fake.permissions = frozenset({"contents: read", "pull-requests: read"})
    head = {"sha": sha(10), "ref": "change", "repo": {"full_name": FORK, "fork": True}}
    event = PULL_REQUEST | {"pull_request": {"number": 1, "head": head}}
    *each, baseline = repo.run(example("evaluate.yml", variant, tmp_path), event=event)
    assert [job.result for job in each] == ["success", "success"], told(each[0])
    assert [job.step("evaluate").outputs["comment-status"] for job in each] == ["deferred"] * 2
    assert (baseline.result, fake.comments) == ("skipped", [])

    fake.permissions = frozenset({"actions: read", "pull-requests: write"})
    fake.add_run(4242, sha(10), event="pull_request", branch="change", repository=FORK)
    for kept in sorted((repo.scratch / "artifacts").iterdir()):
        members = {path.name: path.read_bytes() for path in kept.iterdir()}
        fake.add_artifact(members, sha(10), name=kept.name, run=4242)
    run = {"id": 4242, "event": "pull_request", "head_sha": sha(10), "head_branch": "change"}
    run |= {"head_repository": {"full_name": FORK}, "path": ".github/workflows/evaluate.yml"}
    event = {"repository": {"full_name": REPOSITORY}, "workflow_run": run}
    (job,) = repo.run(example("publish.yml", variant, tmp_path), "workflow_run", event)
    assert job.result == "success", told(job)
    (body,) = fake.bodies()
    assert "small" in body
    assert "large" in body
    assert not list(job.workspace.iterdir())  # nothing was checked out


# --- Suites in shards -------------------------------------------------------------------------


@BOTH
def test_shards_are_planned_run_and_merged(
    repo: Repository, fake: FakeGitHub, variant: str, tmp_path: Path
) -> None:
    use_examples(repo)
    workflow = example("shards.yml", variant, tmp_path)

    plan, *shards, merge, _ = repo.run(workflow, event=PULL_REQUEST)

    assert json.loads(plan.outputs["matrix"]) == {"shard": ["1/4", "2/4", "3/4", "4/4"]}
    assert [job.matrix for job in shards] == [{"shard": f"{n}/4"} for n in (1, 2, 3, 4)]
    assert [job.result for job in shards] == ["success"] * 4, told(shards[0])
    assert merge.result == "success", told(merge)
    assert merge.step("merge").outputs["verdict"] == "passed"
    (body,) = fake.bodies()
    assert "12 of 12 cases passed" in body


@BOTH
def test_a_shard_that_fails_leaves_the_suite_without_a_verdict(
    repo: Repository, fake: FakeGitHub, variant: str, tmp_path: Path
) -> None:
    use_examples(repo)
    workflow = example("shards.yml", variant, tmp_path)
    text = workflow.read_text(encoding="utf-8")
    assert "      # It ends with an error" in text
    crash = (
        "      - if: strategy.job-index == 2\n        run: exit 1\n      # It ends with an error"
    )
    workflow.write_text(text.replace("      # It ends with an error", crash), encoding="utf-8")

    _, *shards, merge, _ = repo.run(workflow, event=PULL_REQUEST)

    assert [job.result for job in shards] == ["success", "success", "failure", "success"]
    assert merge.step("merge").outputs["verdict"] == "incomplete"
    (body,) = fake.bodies()
    assert "no report of shard 3/4" in body


# --- What `ci-eval init` writes ---------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("uv"), reason="the host variant installs with uv")
def test_the_workflow_that_init_writes_comments_and_stores_what_was_merged(
    repo: Repository, fake: FakeGitHub
) -> None:
    repo.actions = {"OWNER/ci-eval/host": str(ROOT / "host")}
    shop = repo.folder / "shop"
    (shop / "evals").mkdir(parents=True)
    (shop / "bot.py").write_text("def reply(message):\n    return f'You said {message}.'\n")
    (shop / "evals/small.csv").write_text("prompt,expected\nHello,You said Hello.\n")
    (shop / "requirements.txt").write_text("# nothing\n")
    assert main(["init", str(shop), "--yes"]) == 0
    repo.github["sha"] = repo.commit()
    workflow = repo.folder / ".github/workflows/ci-eval-shop.yml"

    evaluate, baseline = repo.run(workflow, event=PULL_REQUEST)
    assert (evaluate.result, baseline.result) == ("success", "skipped"), told(evaluate)
    assert len(fake.comments) == 1
    kept, page = sorted((repo.scratch / "artifacts").iterdir())
    assert [path.name for path in kept.iterdir()] == ["report.json"]
    assert page.name == "report.html"
    assert "[Report](https://github.com/" in fake.bodies()[0]

    repo.github |= {"ref": "refs/heads/main", "ref_name": "main", "base_ref": "", "head_ref": ""}
    evaluate, baseline = repo.run(workflow, "push", {"repository": {"default_branch": "main"}})
    assert (evaluate.result, baseline.result) == ("skipped", "success"), told(baseline)
    everybodys = ("-c", "safe.directory=*")  # the workspace is the runner's
    stored = Repo(baseline.workspace).git(
        *everybodys, "ls-tree", "-r", "--name-only", "ci-eval-data"
    )
    assert f"suites/shop/runs/{repo.github['sha']}.json" in stored.splitlines()
