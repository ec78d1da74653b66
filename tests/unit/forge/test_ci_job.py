"""Names and addresses of CI jobs."""

from pathlib import Path

from ci_eval.forge.ci_job import artifact_link


def test_only_gitlab_knows_the_address_of_an_artifact_before_its_upload(tmp_path: Path) -> None:
    env = {"CI_JOB_URL": "https://gitlab.example/g/p/-/jobs/7", "CI_PROJECT_DIR": str(tmp_path)}
    page = tmp_path / "out" / "report.html"
    assert artifact_link(env, page) == f"{env['CI_JOB_URL']}/artifacts/file/out/report.html"
    assert artifact_link(env, tmp_path.parent / "elsewhere") == ""
    assert artifact_link({"GITHUB_RUN_ID": "1"}, page) == ""
