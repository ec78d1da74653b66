"""The workflow in the guide to the model gateway: maintainers record, forks replay."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import gemini
from servers.github import FORK, REPOSITORY, FakeGitHub, github, sha
from servers.loopback import Loopback, Reply, Request, as_json, serving
from support.markdown_pages import DOCS, sections
from workflows.running import ROOT, RUNNER, VARIANTS, Job, Repository, repository

pytestmark = pytest.mark.skipif(not RUNNER, reason=".ci/run says where the workflow runner is")

KEY = "AIzaSy-the-key-of-the-maintainers"
PROMPT = '"parts": [{"text": message}]'


class Gemini(Loopback):
    """Knows a capital, for those with the key."""

    def reply(self, request: Request) -> Reply:
        if request.headers.get("x-goog-api-key") != KEY:
            return as_json({}, 401)
        return as_json(gemini.answer("Paris"))


class Project:
    """The project of the guide, with its workflow, in a repository on GitHub."""

    def __init__(self, repo: Repository, provider: Gemini, folder: Path, action: str) -> None:
        self.repo, self.provider = repo, provider
        first, forks = (
            next(each for each in sections(DOCS / "model-gateway.md") if each.title == title)
            for title in ("A first cassette", "Forks")
        )
        for block in first.blocks:
            if block.file and block.language in ("python", "yaml"):
                self.write({"gateway.yaml": "ci-eval.yaml"}.get(block.file, block.file), block.text)
        text, count = re.subn(
            r"<owner of this repository>/ci-eval@<commit>", f"{action}@v1", forks.blocks[0].text
        )
        assert count == 1
        text = text.replace("actions/checkout@<commit>", "actions/checkout@v7")
        text = text.replace("      - uses: OWNER", "      - id: evaluate\n        uses: OWNER")
        env = f"env: {{GOOGLE_GEMINI_BASE_URL: '{provider.url}'}}\n"
        self.workflow = folder / "evaluate.yml"
        head = "name: evaluate\non: [push, pull_request]\n"
        self.workflow.write_text(head + env + text, encoding="utf-8")
        repo.actions = {"OWNER/ci-eval": str(ROOT), "OWNER/ci-eval/host": str(ROOT / "host")}

    def write(self, name: str, text: str) -> None:
        path = self.repo.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.repo.folder / name).read_text(encoding="utf-8")

    def changes_its_prompt(self) -> None:
        code = self.read("bot.py")
        assert PROMPT in code
        self.write(
            "bot.py", code.replace(PROMPT, PROMPT.replace("message", '"Please: " + message'))
        )

    def pushed(self) -> Job:
        """Run the workflow on main, with the secret."""
        self.repo.github |= {"sha": self.repo.commit(), "ref": "refs/heads/main"}
        self.repo.github |= {"ref_name": "main", "base_ref": "", "head_ref": ""}
        event = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}}
        (job,) = self.repo.run(self.workflow, "push", event, {"GOOGLE_API_KEY": KEY})
        return job

    def pull_request(self, *, fork: bool) -> Job:
        """Run the workflow on a pull request; one from a fork has no secrets."""
        self.repo.github |= {"sha": self.repo.commit(), "ref": "refs/pull/1/merge"}
        self.repo.github |= {"ref_name": "1/merge", "base_ref": "main", "head_ref": "change"}
        head = {"sha": sha(10), "ref": "change"}
        head |= {"repo": {"full_name": FORK if fork else REPOSITORY, "fork": fork}}
        event = {"repository": {"full_name": REPOSITORY}}
        event |= {"pull_request": {"number": 1, "head": head}}
        secrets = {} if fork else {"GOOGLE_API_KEY": KEY}
        (job,) = self.repo.run(self.workflow, "pull_request", event, secrets)
        return job


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.add_pull()
        found.permissions = frozenset({"contents: read"})
        yield found


@pytest.fixture
def provider() -> Iterator[Gemini]:
    found = Gemini()
    with serving(found):
        yield found


@pytest.fixture(params=VARIANTS)
def project(
    tmp_path: Path, fake: FakeGitHub, provider: Gemini, request: pytest.FixtureRequest
) -> Project:
    repo = repository(tmp_path / "repository", tmp_path / "machines", fake)
    return Project(repo, provider, tmp_path, request.param)


def verdict(job: Job) -> tuple[str, str, str]:
    outputs = job.step("evaluate").outputs
    return job.result, outputs["verdict"], outputs["exit-code"]


def test_maintainers_record_and_forks_replay(project: Project) -> None:
    on_main = project.pushed()
    assert verdict(on_main) == ("success", "passed", "0"), on_main.step("evaluate").stderr
    assert len(project.provider.requests) == 1
    cassette = (on_main.workspace / "evals/models.jsonl").read_text(encoding="utf-8")
    project.write("evals/models.jsonl", cassette)  # and commit it

    # A fork that changes neither a prompt nor a tool.
    project.write("evals/capital.yaml", "# One case.\n" + project.read("evals/capital.yaml"))
    of_fork = project.pull_request(fork=True)
    assert verdict(of_fork) == ("success", "passed", "0"), of_fork.step("evaluate").stderr
    run = json.loads((of_fork.workspace / "ci-eval-report/run.json").read_text(encoding="utf-8"))
    assert [each["status"] for each in run["results"]] == ["passed"]

    # A fork that changes the prompt.
    project.changes_its_prompt()
    changed = project.pull_request(fork=True)
    assert verdict(changed) == ("failure", "incomplete", "6")
    report = changed.workspace / "ci-eval-report"
    for text in (changed.step("evaluate").summary, (report / "comment.md").read_text()):
        assert "a maintainer needs to record the case again" in text
        assert "What is the capital of France?" in text
    assert len(project.provider.requests) == 1  # the provider was never called again

    # A maintainer reviews the change, and pushes it to a branch of the repository.
    of_maintainer = project.pull_request(fork=False)
    assert verdict(of_maintainer) == ("success", "passed", "0")
    assert len(project.provider.requests) == 2
