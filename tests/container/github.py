"""A job as GitHub's runner runs it, as far as the action can tell; for workflows see ../workflows.

A step that `uses` the action gets the mounts, the working directory, the environment and the
files for outputs and summary that the runner gives to a container action, and no network.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECRET = "a-secret-of-the-runner"
"""What nothing may see that is started in a container; part of all that is secret in a job."""
ROOT = Path(__file__).parents[2]
RUNNER_UID = 1001
"""The user of GitHub's runners, to whom the workspace belongs; only root can give it away."""
_FILES = {
    "GITHUB_ENV": "set_env",
    "GITHUB_OUTPUT": "set_output",
    "GITHUB_PATH": "add_path",
    "GITHUB_STATE": "save_state",
    "GITHUB_STEP_SUMMARY": "step_summary",
}
_ENTRY = re.compile(r"(?P<name>[^\s=<]+)<<(?P<end>\S+)\n(?P<value>.*?)\n(?P=end)\n", re.DOTALL)


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file."""
    import yaml

    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # plain text only


@dataclass(frozen=True)
class Step:
    """What a step left behind."""

    exit_code: int
    outputs: Mapping[str, str]
    summary: str
    stdout: str
    stderr: str

    @property
    def outcome(self) -> str:
        """Return GitHub's word for it."""
        return "failure" if self.exit_code else "success"

    @property
    def annotations(self) -> list[str]:
        """Return the annotations, in order."""
        levels = ("::error ", "::warning ", "::notice ")
        return [line for line in self.stdout.splitlines() if line.startswith(levels)]


@dataclass
class Job:
    """A job on a machine of its own, below `folder`."""

    folder: Path
    image: str
    env: dict[str, str] = field(default_factory=dict)
    """The `env:` of the workflow, which reaches each step."""
    _count: int = 0

    def __post_init__(self) -> None:
        for name in ("workspace", "home", "workflow", "temp"):
            (self.folder / name).mkdir()
        (self.folder / "workflow" / "event.json").write_text("{}", encoding="utf-8")

    @property
    def workspace(self) -> Path:
        """Return the folder the repository is checked out in."""
        return self.folder / "workspace"

    def give(self, folder: Path) -> None:
        """Make all in `folder` the property of the runner's user, where we may."""
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, RUNNER_UID, RUNNER_UID, follow_symlinks=False)

    def owners(self) -> set[int]:
        """Return the users to whom files in the workspace belong."""
        return {path.lstat().st_uid for path in self.workspace.rglob("*")}

    def uses_action(
        self, inputs: Mapping[str, str], *, network: str = "none", name: str = ""
    ) -> Step:
        """Run the action with `inputs`, and the defaults of `action.yml`.

        Without a `network` nothing is posted, and what a workflow run would fill in is empty.  The
        container has a `name` where somebody is to stop it.
        """
        known = read_yaml(ROOT / "action.yml")["inputs"]
        defaults = {name: said.get("default", "") for name, said in known.items()}
        given = {name: "" if "${{" in said else said for name, said in defaults.items()}
        given |= {"comment": "off" if network == "none" else "update", **inputs}
        files = self._new_files()
        env = self._github_env("/github/workspace", "/github/file_commands")
        env["RUNNER_TEMP"] = "/github/runner_temp"
        env |= {f"INPUT_{name.replace(' ', '_').upper()}": given[name] for name in given}
        mounts = {
            self.folder / "temp": "/github/runner_temp",
            self.folder / "home": "/github/home",
            self.folder / "workflow": "/github/workflow",
            files: "/github/file_commands",
            self.workspace: "/github/workspace",
        }
        socket = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")  # docker's own
        mounts[Path(socket or "/var/run/docker.sock")] = "/var/run/docker.sock"
        command = ["docker", "run", "--rm", "--network", network, "--workdir", "/github/workspace"]
        command += ["--name", name] if name else []
        command += [word for each in env for word in ("-e", each)]
        command += ["-e", "HOME=/github/home"]
        command += [word for place in mounts.items() for word in ("-v", f"{place[0]}:{place[1]}")]
        return self._finish([*command, self.image], env, files)

    def commands(self) -> dict[str, str]:
        """Return the last step's requests to the runner, by file, without outputs and summary."""
        files = self.folder / f"file_commands_{self._count}"
        names = ("set_env", "add_path", "save_state")
        return {name: (files / name).read_text(encoding="utf-8") for name in names}

    def runs(self, script: str, env: Mapping[str, str] | None = None) -> Step:
        """Run `script` as a `run` step."""
        files = self._new_files()
        given = self._github_env(str(self.workspace), str(files)) | dict(env or {})
        return self._finish(["bash", "-eo", "pipefail", "-c", script], given, files)

    def _new_files(self) -> Path:
        self._count += 1
        files = self.folder / f"file_commands_{self._count}"
        files.mkdir()
        for name in _FILES.values():
            (files / name).touch()
        self.give(files)
        return files

    def _github_env(self, workspace: str, files: str) -> dict[str, str]:
        return (
            {
                # The runner gives these to all steps, with `id-token: write` the first two.
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": SECRET,
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"https://tokens.example.org/{SECRET}?api-version=2",
                "ACTIONS_RUNTIME_TOKEN": SECRET,
                "ACTIONS_RUNTIME_URL": f"https://pipelines.example.org/{SECRET}/",
                "ACTIONS_RESULTS_URL": f"https://results.example.org/{SECRET}/",
                "ACTIONS_CACHE_URL": f"https://cache.example.org/{SECRET}/",
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_EVENT_NAME": "pull_request",
                "GITHUB_EVENT_PATH": f"{Path(files).parent}/workflow/event.json",
                "GITHUB_REPOSITORY": "octocat/agents",
                "GITHUB_WORKSPACE": workspace,
                "RUNNER_OS": "Linux",
            }
            | self.env
            | {name: f"{files}/{file}" for name, file in _FILES.items()}
        )

    def _finish(self, command: list[str], env: Mapping[str, str], files: Path) -> Step:
        done = subprocess.run(
            command,
            cwd=self.workspace,
            env={**os.environ, **env},  # docker's own settings
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        written = (files / "set_output").read_text(encoding="utf-8")
        assert not _ENTRY.sub("", written), "the runner would refuse these outputs"
        return Step(
            exit_code=done.returncode,
            outputs={entry["name"]: entry["value"] for entry in _ENTRY.finditer(written)},
            summary=(files / "step_summary").read_text(encoding="utf-8"),
            stdout=done.stdout,
            stderr=done.stderr,
        )
