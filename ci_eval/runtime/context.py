"""Run context: what a command was started with, read once and passed down."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_eval.run_files.file_names import command_line
from ci_eval.runtime.clone import NO_CLONE, Clone
from ci_eval.runtime.isolation import Account, account
from ci_eval.text.redact import Secrets

_NO_SECRETS = Secrets({})


def in_actions(env: Mapping[str, str]) -> bool:
    """Return True if a GitHub workflow runs a process with the environment `env`."""
    return env.get("GITHUB_ACTIONS") == "true"


def in_gitlab(env: Mapping[str, str]) -> bool:
    """Return True if a GitLab pipeline runs a process with the environment `env`."""
    return env.get("GITLAB_CI") == "true"


@dataclass(frozen=True)
class RunContext:
    """Environment, root, clock and clone of a command, and the secrets that it knows."""

    env: Mapping[str, str]
    """The environment variables of this process."""
    root: Path
    """The folder of the configuration; relative paths in it begin here."""
    now: Callable[[], float]
    """Seconds since the epoch."""
    folder: str = ""
    """The same folder as the user wrote it; empty for the working directory."""
    config: str = ""
    """The configuration as the user named it; empty for the default one."""
    job: str = ""
    """The name of the CI job; empty outside CI."""
    step: str = ""
    """The workflow, the configuration and the selection; distinguish jobs and steps of one name."""
    page_url: str = ""
    """The address that `report.html` will have, if the user named it."""
    say: Callable[[str], None] = lambda _: None
    """Shows the user one line."""
    clone: Clone = NO_CLONE
    """The clone that contains `root`; searched for on first use by default."""
    secrets: Secrets = _NO_SECRETS
    """The values that no output may contain; by default those in `env`."""
    change: "RunContext | None" = None
    """In the base arm, the context of the change; else `None`."""
    cassettes: Path | None = None
    """In a shard, the folder of its recordings, which a merge later adds to the cassettes; else
    `None`."""
    models_mode: str = ""
    """How to handle agents' model calls, if the user specifies it for this run."""
    resumes: bool = False
    """Whether this run continues an interrupted one."""
    runs_agents: bool = True
    """Whether the command may run agents, so that their keys have to be set."""
    runs_python: bool = False
    """Whether the command runs code of the repository, such as agents and Python files that build
    evalsets."""

    def __post_init__(self) -> None:
        """Derive the remaining fields from the others."""
        if self.clone is NO_CLONE:
            object.__setattr__(self, "clone", Clone(self.root, self.env))
        if self.secrets is _NO_SECRETS:
            object.__setattr__(self, "secrets", Secrets(self.env))

    @property
    def agent_account(self) -> Account | None:
        """The user that agents run as; `None` if it is our own."""
        return account(of_base=self.change is not None)

    @property
    def in_actions(self) -> bool:
        """True if a GitHub workflow runs this."""
        return in_actions(self.env)

    def command(self, *words: str) -> str:
        """Return the command line `ci-eval WORDS…` for the same configuration."""
        return command_line(self.config, *words)

    def shown(self, given: str) -> str:
        """Return a path of the configuration as it is shown to the user."""
        return os.path.normpath(Path(self.folder) / given)
