"""The image where no runner of GitHub starts it: in a job of GitLab, and by `docker run`.

What runs is what `examples/ci` shows, with this image in place of a release.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from container.github import ROOT, read_yaml
from servers.gitlab import FakeGitLab, gitlab
from support.copied_examples import copy_examples
from support.git_repositories import Repo

IMAGE = os.environ.get("CI_EVAL_IMAGE", "")  # how run.sh hands it over
CALLER = 1234
"""A user of a CI machine, to whom its clone belongs."""
AGENT_UID = 58734
"""Of the account `ci-eval-agent`."""
AS_ROOT = os.geteuid() == 0

Done = subprocess.CompletedProcess[str]

pytestmark = pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh runs it with an image")
ONLY_AS_ROOT = pytest.mark.skipif(not AS_ROOT, reason="a clone cannot be given to another user")

WHO = """
import json, os
def answer(message):
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    found = {name: may(name) for name in ("ci-eval.yaml", ".git/config", "evals")}
    return json.dumps({"user": os.getuid(), "token": "GITLAB_TOKEN" in os.environ, **found})
def may(name):
    return "written" if os.access(name, os.W_OK) else "not"
"""


def clone(folder: Path) -> Path:
    """Return a repository with the weather example at its top, in one commit."""
    copy_examples(folder, "weather")
    repo = Repo(folder)
    repo.git("init", "--quiet")
    repo.commit("Weather")
    return folder


def asks_who(repository: Path) -> None:
    """Let the example be answered by code that tells whom it runs as."""
    (repository / "who.py").write_text(WHO, encoding="utf-8")
    config = repository / "ci-eval.yaml"
    text = config.read_text(encoding="utf-8")
    recorded = "{recorded: traces/weather.jsonl}"
    assert recorded in text
    config.write_text(text.replace(recorded, "{python: 'who:answer'}"), encoding="utf-8")


def told(repository: Path) -> dict[str, object]:
    """Return the output of that code."""
    line = (repository / "ci-eval-report/traces.jsonl").read_text(encoding="utf-8").splitlines()[0]
    said = json.loads(line)["invocations"][0]["final_response"]["parts"][0]["text"]
    found: dict[str, object] = json.loads(said)
    return found


def run(
    command: list[str], env: Mapping[str, str], cwd: Path | None = None, typed: str | None = None
) -> Done:
    return subprocess.run(
        command,
        input=typed,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=cwd,
    )


# --- `docker run` -----------------------------------------------------------------------------


def in_any_ci(repository: Path, **env: str) -> Done:
    """Run the script as whoever owns the clone, or as root with Docker."""
    script = str(ROOT / "examples/ci/docker-run.sh")
    return run(["sh", script], {"CI_EVAL_IMAGE": IMAGE, **env}, cwd=repository)


def give(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


@ONLY_AS_ROOT
def test_reports_belong_to_the_owner_of_the_clone_and_the_agent_is_somebody_else(
    tmp_path: Path,
) -> None:
    repository = clone(tmp_path / "shop")
    asks_who(repository)
    give(repository, CALLER)
    done = in_any_ci(repository)
    assert done.returncode in (0, 1), done.stderr
    reports = list((repository / "ci-eval-report").rglob("*"))
    assert {path.stat().st_uid for path in reports} == {CALLER}
    assert told(repository) == {
        "user": AGENT_UID,
        "token": False,
        "ci-eval.yaml": "not",
        ".git/config": "not",
        "evals": "not",
    }


def test_the_exit_code_and_the_commit_come_through(tmp_path: Path) -> None:
    repository = clone(tmp_path / "shop")
    done = in_any_ci(repository)
    assert done.returncode == 0, done.stderr
    commit = Repo(repository).git("-c", "safe.directory=*", "rev-parse", "HEAD")
    document = (repository / "ci-eval-report/run.json").read_text(encoding="utf-8")
    assert json.loads(document)["meta"]["commit"] == commit
    assert "dubious" not in done.stdout + done.stderr
    ET.parse(repository / "ci-eval-report/junit.xml")  # ours
    assert in_any_ci(repository, CI_EVAL_CONFIG="none.yaml").returncode == 4


def test_a_script_without_an_image_says_so(tmp_path: Path) -> None:
    done = in_any_ci(tmp_path, CI_EVAL_IMAGE="")
    assert done.returncode != 0
    assert "the image of a release, by its digest" in done.stderr


# --- GitLab -----------------------------------------------------------------------------------


@pytest.fixture
def fake() -> Iterator[FakeGitLab]:
    with gitlab() as found:
        yield found


class Builds:
    """A machine of GitLab's runner with the Docker executor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = clone(folder / "octo/shop")

    def leave_as_the_runner_does(self) -> None:
        """Open everything: the runner clones as root and takes no bit away from anybody.

        https://docs.gitlab.com/runner/executors/docker/#docker-executor-umask
        """
        for path in (self.folder, *self.folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)

    def job(self, env: Mapping[str, str]) -> Done:
        """Run the job of the template in a shell of the image, as GitLab's runner does."""
        template = read_yaml(ROOT / "examples/ci/gitlab-ci.yml")
        job = template["ci-eval"]
        assert job["image"] == {"name": "$CI_EVAL_IMAGE", "entrypoint": [""]}
        given = {
            **template["variables"],
            **job["variables"],
            "CI_PROJECT_DIR": "/builds/octo/shop",
            **env,
        }
        lines = ["set -eo pipefail", "cd $CI_PROJECT_DIR", *job["before_script"], *job["script"]]
        command = ["docker", "run", "--rm", "--interactive", "--network", "host"]
        command += ["--entrypoint", "", "--volume", f"{self.folder}:/builds"]
        command += [word for name in given for word in ("--env", name)]
        return run([*command, IMAGE, "bash"], given, typed="\n".join(lines))


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path / "builds")


def test_a_merge_request_gets_a_note_and_a_report_of_tests(
    builds: Builds, fake: FakeGitLab
) -> None:
    builds.leave_as_the_runner_does()
    done = builds.job({**fake.env, "CI_JOB_NAME": "ci-eval", "CI_PIPELINE_ID": "1"})
    assert done.returncode == 0, done.stderr
    (body,) = fake.bodies
    assert body.startswith("<!-- ci-eval:v1 id=weather -->\n")
    assert "6 of 6 cases passed" in body
    again = builds.job({**fake.env, "CI_JOB_NAME": "ci-eval", "CI_PIPELINE_ID": "2"})
    assert again.returncode == 0, again.stderr
    assert len(fake.bodies) == 1
    job = read_yaml(ROOT / "examples/ci/gitlab-ci.yml")["ci-eval"]
    junit = builds.repository / job["artifacts"]["reports"]["junit"]
    names = [case.get("name") for case in ET.parse(junit).iter("testcase")]  # ours
    assert len(names) == len(set(names))  # GitLab keeps the first of a name alone
    for path in job["artifacts"]["paths"]:
        assert (builds.repository / path).is_dir()


@ONLY_AS_ROOT
def test_the_agent_of_a_job_sees_no_token_and_changes_nothing_of_the_clone(
    builds: Builds, fake: FakeGitLab
) -> None:
    asks_who(builds.repository)
    builds.leave_as_the_runner_does()
    done = builds.job(fake.env)
    assert done.returncode in (0, 1), done.stderr
    assert told(builds.repository) == {
        "user": AGENT_UID,
        "token": False,
        "ci-eval.yaml": "not",
        ".git/config": "not",
        "evals": "not",
    }


def test_the_job_of_a_fork_has_no_token_and_its_verdict_stands(
    builds: Builds, fake: FakeGitLab
) -> None:
    builds.leave_as_the_runner_does()
    fork = {"CI_PROJECT_ID": "9", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "9", "GITLAB_TOKEN": ""}
    done = builds.job({**fake.env, **fork})
    assert done.returncode == 0, done.stderr
    assert "no GitLab token is set" in done.stderr
    assert fake.requests == []
