"""Which events of CI may store a run in the baseline."""

import json
import subprocess

import pytest

from ci_eval.baselines.branch_store import BranchStore
from ci_eval.baselines.file_store import FileStore
from ci_eval.cli.baseline.baseline_saving import tracked, why_not, why_not_unasked
from ci_eval.runtime.context import RunContext

MERGED = {"merged": True, "base": {"ref": "main"}}
ON_MAIN = {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}
ON_TOPIC = {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "topic"}
OF_TAG = {"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1"}
OF_PULL = {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "7/merge", "GITHUB_HEAD_REF": "topic"}


@pytest.fixture
def context(tmp_path):
    """Return a function that makes a run context of variables and a GitHub event."""

    def make(env, payload=None):
        path = tmp_path / "event.json"
        path.write_text(json.dumps(payload or {}))
        return RunContext(
            env={**env, "GITHUB_EVENT_PATH": str(path)}, root=tmp_path, now=lambda: 0.0
        )

    return make


def github(name, **variables):
    return {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, **variables}


def gitlab(source, **variables):
    return {"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": source, **variables}


def pull(action, **more):
    repository = {"default_branch": "main"}
    return {"action": action, "pull_request": more, "repository": repository}


OF_REPOSITORY = {"repository": {"default_branch": "main"}}


@pytest.mark.parametrize(
    ("env", "payload"),
    [
        (github("push", **ON_MAIN), OF_REPOSITORY),
        (github("schedule", **ON_MAIN), OF_REPOSITORY),
        (github("workflow_dispatch", **ON_MAIN), OF_REPOSITORY),
        (github("repository_dispatch", **ON_MAIN), OF_REPOSITORY),
        (github("pull_request", **OF_PULL), pull("closed", **MERGED)),
        (github("pull_request_target", **OF_PULL), pull("closed", **MERGED)),
        (gitlab("push", CI_COMMIT_BRANCH="main", CI_DEFAULT_BRANCH="main"), None),
        (gitlab("schedule", CI_COMMIT_BRANCH="main", CI_DEFAULT_BRANCH="main"), None),
        (gitlab("web", CI_COMMIT_BRANCH="main", CI_DEFAULT_BRANCH="main"), None),
        ({"CI": "true"}, None),
        ({}, None),
    ],
)
def test_what_was_merged_is_stored_and_what_no_workflow_runs(context, env, payload):
    assert why_not(FileStore(), context(env, payload)) is None


@pytest.mark.parametrize(
    ("env", "payload", "why"),
    [
        (github("push", **ON_TOPIC), OF_REPOSITORY, "the branch 'topic' is not tracked, only 'ma"),
        (github("schedule", **ON_TOPIC), OF_REPOSITORY, "the branch 'topic' is not tracked"),
        (github("push", **OF_TAG), OF_REPOSITORY, "a tag was pushed"),
        (github("merge_group", **ON_MAIN), OF_REPOSITORY, "are not merged yet"),
        (github("pull_request", **OF_PULL), pull("opened"), "this is a pull request"),
        (github("pull_request", **OF_PULL), {}, "this is a pull request"),
        (
            github("pull_request", **OF_PULL),
            pull("closed", merged=False, base={"ref": "main"}),
            "this is a pull request",
        ),
        (
            github("pull_request", **OF_PULL),
            pull("labeled", merged=True, base={"ref": "main"}),
            "this is a pull request",
        ),
        (
            github("pull_request", **OF_PULL),
            pull("closed", merged="true", base={"ref": "main"}),
            "this is a pull request",
        ),
        (
            github("pull_request", **OF_PULL),
            pull("closed", merged=True, base={"ref": "topic"}),
            "the branch 'topic' is not tracked",
        ),
        (github("pull_request_target", **ON_MAIN), pull("opened"), "this is a pull request"),
        (github("issue_comment", **ON_MAIN), OF_REPOSITORY, "the event 'issue_comment' does not"),
        (github("workflow_run", **ON_MAIN), OF_REPOSITORY, "the event 'workflow_run' does not"),
        ({"GITHUB_ACTIONS": "true"}, None, "the event '' does not"),
        (gitlab("merge_request_event", CI_DEFAULT_BRANCH="main"), None, "this is a pull request"),
        (
            gitlab("parent_pipeline", CI_MERGE_REQUEST_IID="7", CI_COMMIT_BRANCH="main"),
            None,
            "this is a pull request",
        ),
        (gitlab("push", CI_COMMIT_TAG="v1", CI_DEFAULT_BRANCH="main"), None, "a tag was pushed"),
        (
            gitlab("push", CI_COMMIT_BRANCH="topic", CI_DEFAULT_BRANCH="main"),
            None,
            "the branch 'topic' is not tracked",
        ),
    ],
)
def test_what_is_not_merged_is_refused(context, env, payload, why):
    refusal = why_not(FileStore(), context(env, payload))

    assert refusal
    assert str(refusal).startswith("not stored: ")
    assert why in str(refusal)
    assert refusal.hint
    assert refusal.exit_code == 4


def test_what_nobody_asked_for_is_stored_only_of_merged_code(context):
    merged = context(github("push", **ON_MAIN), OF_REPOSITORY)

    assert why_not_unasked(BranchStore(), merged) is None
    for store, now, why in (
        (BranchStore(), context(github("pull_request", **OF_PULL), {}), "this is a pull request"),
        (BranchStore(), context({"CI": "true"}), "auto cannot tell whether code is merged"),
        (FileStore(), merged, "auto does not change the baseline file"),
    ):
        assert why in str(why_not_unasked(store, now))


def test_a_pull_request_is_stored_where_that_is_asked_for(context):
    env = github("pull_request", **OF_PULL)

    assert why_not(FileStore(), context(env, pull("opened")), from_pull_request=True) is None


def test_asking_for_pull_requests_lets_nothing_else_in(context):
    for env in (github("merge_group", **ON_MAIN), github("push", **ON_TOPIC)):
        assert why_not(FileStore(), context(env, OF_REPOSITORY), from_pull_request=True)


def test_the_store_names_the_branches_that_are_tracked(context):
    somewhere = context(github("push", **ON_TOPIC), OF_REPOSITORY)

    assert tracked(FileStore(), somewhere) == ("main",)
    assert tracked(FileStore(base="stable"), somewhere) == ("stable",)
    assert tracked(FileStore(base="stable", branches=("a", "b/*")), somewhere) == ("a", "b/*")
    assert why_not(FileStore(branches=("to*",)), somewhere) is None
    assert why_not(FileStore(base="topic"), somewhere) is None


def test_where_no_branch_is_known_to_be_tracked_nothing_is_stored(context):
    refusal = why_not(FileStore(), context(github("push", **ON_MAIN)))

    assert refusal
    assert "the tracked branch is unknown" in str(refusal)
    assert "branches: [main]" in refusal.hint


def test_the_clone_tells_the_default_branch_where_the_event_does_not(context, tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    commit = ("commit", "-q", "--allow-empty", "-m", "a")
    subprocess.run(["git", "-C", str(tmp_path), *identity, *commit], check=True)

    env = {**github("push", **ON_MAIN), "PATH": "/usr/bin:/bin"}
    assert why_not(FileStore(), context(env)) is None
