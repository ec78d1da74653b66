"""Attacks on what runs after an agent, in the image, as a hostile pull request would try them.

Each is tried on a workspace of the runner's and on one of root's, with the configuration at the top
and in a folder.  None may get a token, a command file, a changed file outside of the folder of the
configuration, or a verdict that is not its own.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from container.attacker import settings
from container.github import RUNNER_UID, SECRET, Job
from support.copied_examples import copy_examples
from support.git_repositories import Repo

IMAGE = os.environ.get("CI_EVAL_IMAGE", "")  # how run.sh hands it over
ATTACKER = (Path(__file__).parent / "attacker.py").read_text(encoding="utf-8")
AGENT_UID = 58734
RECORDED = "{recorded: traces/weather.jsonl}"
ON_MAIN = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}

pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh runs it with an image"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace cannot be given to another user"),
]


class Target:
    """A job whose repository has the weather example in a folder, and secrets all around it."""

    def __init__(self, job: Job, folder: str, owner: int) -> None:
        self.job, self.owner = job, owner
        self.suite = job.workspace / folder
        copy_examples(self.suite, "weather")
        (job.folder / "home" / "key").write_text("a key", encoding="utf-8")
        (job.folder / "home" / "key").chmod(0o600)
        (job.folder / "temp" / "token").write_text(SECRET, encoding="utf-8")
        (job.workspace / "beside").mkdir()
        (job.workspace / "beside" / "file").write_text("x", encoding="utf-8")
        self.repo = Repo(job.workspace)
        self.repo.git("init", "--quiet", "--initial-branch=main")
        self.config = (self.suite / "ci-eval.yaml").relative_to(job.workspace)
        self.add("baseline: {store: branch}\n")

    def add(self, text: str) -> None:
        with (self.job.workspace / self.config).open("a", encoding="utf-8") as file:
            file.write(text)

    def answered_by(self, attack: str) -> None:
        path = self.job.workspace / self.config
        agent = f"{{command: [python3, attacker.py, {attack}]}}"
        text = path.read_text(encoding="utf-8")
        assert RECORDED in text
        path.write_text(text.replace(RECORDED, agent), encoding="utf-8")
        (self.suite / "attacker.py").write_text(ATTACKER, encoding="utf-8")

    def ready(self) -> None:
        """Commit what is there, leave the token as a checkout does, and give it to the owner."""
        self.repo.commit("A suite")
        self.head = self.repo.head
        self.repo.git("config", "http.https://github.com/.extraheader", f"basic {SECRET}")
        nested = self.job.workspace / "deps" / "lib" / ".git"
        nested.mkdir(parents=True)
        (nested / "config").write_text(SECRET, encoding="utf-8")
        for path in (self.job.folder, *self.job.folder.rglob("*")):
            os.chown(path, self.owner, self.owner, follow_symlinks=False)
        socket = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
        self.socket = Path(socket or "/var/run/docker.sock")
        self.before = self._outside()

    def _outside(self) -> dict[str, object]:
        """Return all that is not the agent's to change, in each detail."""
        found: dict[str, object] = {"socket": _status(self.socket)}
        ours = ("ci-eval-report", "second", "set_output", "step_summary")
        for folder in ("home", "temp", "workflow", "workspace"):
            for path in sorted((self.job.folder / folder).rglob("*")):
                shown = str(path.relative_to(self.job.folder))
                stored = shown.startswith("workspace/.git/")  # the branch is stored there
                if (
                    not stored
                    and path.lstat().st_uid != AGENT_UID
                    and not set(path.parts) & {*ours}
                ):
                    content = path.read_bytes() if path.is_file() else b""
                    found[shown] = *_status(path), content
        return found

    def stays_as_it_was(self, *, may_add: tuple[str, ...] = (".ci-eval",)) -> None:
        after = self._outside()
        added = {path for path in after.keys() - self.before.keys() if not path.endswith(may_add)}
        assert added == set()
        assert {path: after.get(path) for path in self.before} == self.before
        ran = self.suite / "ran"
        assert not ran.exists(), f"run by the users {ran.read_text(encoding='utf-8').split()}"
        assert self.job.commands() == {"set_env": "", "add_path": "", "save_state": ""}
        for path in self.job.workspace.rglob("*"):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
                assert SECRET.encode() not in path.read_bytes(), path


def _status(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, found.st_mode


@pytest.fixture(params=["", "services/shop"], ids=["at the top", "in a folder"])
def folder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[RUNNER_UID, 0], ids=["of the runner", "of root"])
def target(tmp_path: Path, folder: str, request: pytest.FixtureRequest) -> Target:
    return Target(Job(tmp_path, IMAGE), folder, request.param)


@pytest.mark.parametrize(
    "attack",
    [
        *("git_folder", "git_file", "git_link", "git_pipe", "bare", "submodule", "worktree"),
        *("links", "odd_files", "race", "outputs", "bombs", "traced"),
    ],
)
def test_what_an_agent_leaves_changes_nothing(target: Target, folder: str, attack: str) -> None:
    if attack.startswith("git") and not folder:
        target.suite = target.job.workspace  # there is one already: it cannot make another
    if attack == "submodule":
        target.repo.commit("first")
        entry = f"160000,{target.repo.head},{target.config.parent / 'lib'}"
        target.repo.git("update-index", "--add", "--cacheinfo", entry)
        (target.suite / "lib").mkdir()
    target.answered_by(attack)
    target.ready()
    target.job.env |= ON_MAIN
    config = str(target.config)
    step = target.job.uses_action({"config": config, "baseline-save": "auto"})

    # The answers are wrong, which is what it is to say.
    assert (step.exit_code, step.outputs["verdict"]) == (1, "failed"), step.stderr
    run = json.loads((target.job.workspace / "ci-eval-report/run.json").read_text(encoding="utf-8"))
    assert (run["meta"]["commit"], run["meta"]["branch"]) == (target.head, "main")
    assert "stored" in step.stderr, step.stderr
    stored = Repo(target.job.workspace).git(
        "-c", "safe.directory=*", "ls-tree", "-r", "--name-only", "ci-eval-data"
    )
    assert f"runs/{target.head}.json" in stored
    assert attack != "traced" or list(target.suite.glob("traced-*"))
    target.stays_as_it_was()


def test_agents_that_kill_all_they_can_are_ended_before_anything_is_opened(target: Target) -> None:
    target.answered_by("killer")
    target.ready()
    target.job.env |= ON_MAIN
    step = target.job.uses_action({"config": str(target.config), "baseline-save": "auto"})

    # They kill each other, too: none answers.
    assert (step.exit_code, step.outputs["verdict"]) == (6, "incomplete"), step.stderr
    assert list(target.suite.glob("killer-*"))
    assert not (target.suite / "stolen").exists()
    target.stays_as_it_was()


def test_a_second_step_finds_the_same_repository(target: Target) -> None:
    """What the agent of one step left is there when the next one looks for the repository."""
    target.answered_by("git_folder" if target.suite != target.job.workspace else "bare")
    target.ready()
    for _ in range(2):
        step = target.job.uses_action({"config": str(target.config)})
        report = target.job.workspace / "ci-eval-report/run.json"
        run = json.loads(report.read_text(encoding="utf-8"))
        assert run["meta"]["commit"] == target.head
        assert step.exit_code == 1, step.stderr
        target.stays_as_it_was()


# --- What a pull request commits, without any agent -------------------------------------------


def a_bare_repository(target: Target) -> None:
    for name in ("objects", "refs/heads", "hooks"):
        (target.suite / name).mkdir(parents=True)
        (target.suite / name / "kept").touch()
    (target.suite / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    here = Path("/github/workspace", target.config.parent)
    (target.suite / "config").write_text(settings(here), encoding="utf-8")
    for name in ("payload", "git"):
        payload = target.suite / name
        payload.write_text("#!/bin/sh\nid -u >>$(dirname $0)/ran\n", encoding="utf-8")
        payload.chmod(0o755)


def attributes_with_filters(target: Target) -> None:
    text = "* filter=x diff=x merge=x\n"
    (target.suite / ".gitattributes").write_text(text, encoding="utf-8")
    modules = '[submodule "x"]\n\tpath = lib\n\turl = ../x\n\tupdate = !touch ran\n'
    (target.job.workspace / ".gitmodules").write_text(modules, encoding="utf-8")


@pytest.mark.parametrize("commit", [a_bare_repository, attributes_with_filters])
def test_what_is_committed_beside_the_configuration_runs_nothing(
    target: Target, commit: Callable[[Target], None]
) -> None:
    commit(target)
    target.ready()
    target.job.env |= ON_MAIN
    step = target.job.uses_action({"config": str(target.config)})
    assert (step.exit_code, step.outputs["verdict"]) == (0, "passed"), step.stderr
    run = json.loads((target.job.workspace / "ci-eval-report/run.json").read_text(encoding="utf-8"))
    assert run["meta"]["commit"] == target.head
    target.stays_as_it_was()


@pytest.mark.parametrize("link", ["ci-eval-report", ".ci-eval", "record"])
def test_links_that_are_committed_are_not_written_through(target: Target, link: str) -> None:
    at = target.job.workspace if link != ".ci-eval" else target.suite
    (at / link).symlink_to("/github/home")
    target.ready()
    given = {"config": str(target.config), "record": "record/new.jsonl" if link == "record" else ""}
    step = target.job.uses_action(given)
    assert (step.exit_code, step.outputs["verdict"]) == (4, "usage-error"), step.stderr
    assert "is a symlink out of the repository" in step.stderr
    target.stays_as_it_was()


MODEL = "agents: {weather: {openai_chat: m, base_url: 'http://127.0.0.1:9', results: {}, %s}}\n"
JUDGE = "judge: {provider: openai, model: m, base_url: 'http://127.0.0.1:9', api_key_env: %s}\n"
PATHS = {
    "template": "reports: [{markdown: {template: %s}}, {summary: {template: %s}}]\n",
    "cassette": "judge: {provider: openai, model: m, base_url: 'http://[::1]:9', cassette: %s}\n",
    "baseline": "baseline: {store: file, path: %s}\n",
    "evalset": "evalsets: {smoke: %s}\n",
    "criteria": "criteria: {from: %s}\n",
    "env_file": "judge: {env_file: %s}\n",
    "recording": "agents: {weather: {recorded: %s}}\n",
    "instruction": MODEL % "instruction: {file: %s}",
}
CLOSED = (
    *(".git/config", "deps/lib/.git/config", "link", "/github/runner_temp/token"),
    *("/proc/self/environ", "/github/file_commands/add_path", "/github/home/key"),
)


@pytest.mark.parametrize("kind", PATHS)
def test_no_path_of_the_configuration_reads_or_writes_what_is_closed(
    target: Target, kind: str
) -> None:
    path = target.job.workspace / target.config
    key = PATHS[kind].partition(":")[0]
    text = path.read_text(encoding="utf-8")
    kept = "".join(
        part for part in re.split(r"(?m)^(?=\w)", text) if not part.startswith(f"{key}:")
    )
    if "judge" in PATHS[kind]:
        kept = kept.replace("criteria:\n", "criteria:\n  final_response_match_v2: 0.5\n")
    (target.suite / "link").symlink_to(os.path.relpath(target.job.workspace / ".git", target.suite))
    target.ready()
    up = os.path.relpath(target.job.workspace, target.suite)
    for number, closed in enumerate(CLOSED):
        place = closed if closed.startswith("/") or closed == "link" else f"{up}/{closed}"
        given = PATHS[kind].replace("%s", f"{place}/config" if closed == "link" else place)
        other = target.suite / f"ci-eval-{number}.yaml"
        other.write_text(kept + given, encoding="utf-8")
    target.job.give(target.suite)
    target.before = target._outside()
    for number, closed in enumerate(CLOSED):
        config = target.config.with_name(f"ci-eval-{number}.yaml")
        step = target.job.uses_action({"config": str(config)})
        assert step.exit_code == (6 if kind == "baseline" else 4), (closed, step.stderr)
        assert "in a .git folder" in step.stderr or "outside of the repository" in step.stderr
        assert SECRET not in step.stderr + step.stdout + step.summary
        target.stays_as_it_was()


@pytest.mark.parametrize("name", ["INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_TOKEN"])
def test_no_token_of_the_job_is_a_key_of_a_judge(target: Target, name: str) -> None:
    config = target.job.workspace / target.config
    text = config.read_text(encoding="utf-8")
    text = text.replace("criteria:\n", "criteria:\n  final_response_match_v2: 0.5\n")
    config.write_text(text + JUDGE % name, encoding="utf-8")
    target.ready()
    step = target.job.uses_action({"config": str(target.config), "github-token": SECRET})
    assert (step.exit_code, step.outputs["verdict"]) == (4, "usage-error"), step.stderr
    assert f"{name!r} is never passed to an agent" in step.stderr
    assert SECRET not in step.stderr + step.stdout


@pytest.mark.parametrize("leads_to", ["/proc/self/environ", "/github/runner_temp/token"])
def test_a_file_of_credentials_that_a_pull_request_replaced_is_not_handed_over(
    target: Target, leads_to: str
) -> None:
    target.answered_by("links")
    config = target.job.workspace / target.config
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("links]", "links], env: [CREDENTIALS]"), encoding="utf-8")
    (target.job.workspace / "creds.json").symlink_to(leads_to)
    target.ready()
    target.job.env["CREDENTIALS"] = "/github/workspace/creds.json"
    step = target.job.uses_action({"config": str(target.config)})
    assert (step.exit_code, step.outputs["verdict"]) == (4, "usage-error"), step.stderr
    assert "which is a symlink" in step.stderr
    target.stays_as_it_was()


def test_a_repository_in_a_folder_that_an_agent_made_is_none(target: Target) -> None:
    """The second step runs in a folder that the agent of the first one made."""
    target.answered_by("suite_of_its_own")
    target.ready()
    target.job.uses_action({"config": str(target.config)})
    target.job.env |= ON_MAIN
    made = str(target.config.parent / "made/shop/ci-eval.yaml")
    step = target.job.uses_action({"config": made, "baseline-save": "auto", "out": "second"})
    run = json.loads((target.job.workspace / "second/run.json").read_text(encoding="utf-8"))
    assert run["meta"]["commit"] == target.head, step.stderr
    target.stays_as_it_was()


@pytest.mark.parametrize(
    "env",
    [
        {"GIT_DIR": "{evil}", "GIT_WORK_TREE": "{evil}"},
        {"GIT_CONFIG_SYSTEM": "{evil}/config", "GIT_CONFIG_NOSYSTEM": "0"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor={evil}/payload'"},
        {"GIT_EXEC_PATH": "{evil}", "GIT_TEMPLATE_DIR": "{evil}"},
        {"PATH": ".:services/shop:/usr/local/bin:/usr/bin:/bin"},
    ],
    ids=lambda env: next(iter(env)),
)
def test_variables_of_the_job_lead_git_nowhere(target: Target, env: dict[str, str]) -> None:
    a_bare_repository(target)
    target.ready()
    evil = Path("/github/workspace", target.config.parent)
    target.job.env |= {name: value.format(evil=evil) for name, value in env.items()}
    step = target.job.uses_action({"config": str(target.config)})
    assert step.exit_code == 0, step.stderr
    run = json.loads((target.job.workspace / "ci-eval-report/run.json").read_text(encoding="utf-8"))
    assert run["meta"]["commit"] == target.head
    target.stays_as_it_was()
