"""Names and addresses of CI jobs."""

from pathlib import Path

from ci_eval.forge.ci_job import artifact_link, selection, workflow_name


def test_only_gitlab_knows_the_address_of_an_artifact_before_its_upload(tmp_path: Path) -> None:
    env = {"CI_JOB_URL": "https://gitlab.example/g/p/-/jobs/7", "CI_PROJECT_DIR": str(tmp_path)}
    page = tmp_path / "out" / "report.html"
    assert artifact_link(env, page) == f"{env['CI_JOB_URL']}/artifacts/file/out/report.html"
    assert artifact_link(env, tmp_path.parent / "elsewhere") == ""
    assert artifact_link({"GITHUB_RUN_ID": "1"}, page) == ""


def test_a_workflow_is_named_by_its_file_whatever_the_branch() -> None:
    env = {"GITHUB_REPOSITORY": "octo/shop", "GITHUB_WORKFLOW": "Nightly"}
    path = "/.github/workflows/nightly.yml@refs/heads/a@b"
    assert workflow_name(env | {"GITHUB_WORKFLOW_REF": f"octo/shop{path}"}) == "nightly.yml"
    elsewhere = workflow_name(env | {"GITHUB_WORKFLOW_REF": f"octo/rules{path}"})
    assert elsewhere == "octo/rules/.github/workflows/nightly.yml"
    assert workflow_name(env) == "Nightly"
    assert workflow_name({"GITLAB_CI": "true"}) == ""


def test_long_selections_are_told_apart() -> None:
    first, second = (selection({"case": ["a" * 90, "b" * 90, last]}) for last in "cd")
    assert first != second
    assert len(first) == len(second) < 120
