"""What agents may see of our environment, and the programs that they are."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ci_eval.runtime import isolation

_PASSED_ON = (
    # Where programs, people and places are.
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "XDG_*_HOME"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "CI"),
    # A Python of `setup-python` or conda finds its libraries, and a repository its modules, by
    # these; every other step of the job has them too, and none is a secret.
    *("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_*LIBRARY_PATH"),
    # The way out of a company's network.
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    # Without these nothing starts on Windows.
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "USERNAME"),
    *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"),
)
"""What every agent gets; the names are compared without regard to case."""
_NEVER = (
    *("ACTIONS_*", "INPUT_*", "GITHUB_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH"),
    *("GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
)
"""The job's token, and the ways to make the job do something: for no agent, even on demand."""
_NEVER_BY_PATTERN = (*_NEVER, "GITHUB_*", "GH_*", "RUNNER_*")
"""What a pattern never takes along; the rest of these must be asked for by name."""


def _declared(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    if not all(isinstance(name, str) for name in value):
        raise ValueError("expected the names of environment variables")
    return dict.fromkeys(value)


Declared = Annotated[
    dict[str, str | None],
    BeforeValidator(_declared, json_schema_input_type=dict[str, str | None] | list[str]),
]
"""The environment variables that a configuration adds: names, or names with values.

A name without a value (in a list, or with nothing behind the colon) passes our own variable on,
if there is one, and may be a pattern such as `LANGFUSE_*`.
"""


def agent_environment(
    ours: Mapping[str, str], declared: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the environment for an agent: what all may have of `ours`, and what is `declared`."""
    taken = [name for name, value in declared.items() if value is None]
    return {
        **{name: value for name, value in ours.items() if _may_have(name, taken)},
        **isolation.environment(ours),
        **{name: value for name, value in declared.items() if value is not None},
    }


def find_program(name: str, *, root: Path, env: Mapping[str, str]) -> str | None:
    """Return the program `name`, a path from `root` or a mere name on the PATH of `env`.

    `None` means that there is no such program, or that it may not be run.
    """
    if os.path.dirname(name):  # noqa: PTH120  # `Path` takes no notice of a leading `./`
        return shutil.which(os.path.abspath(root / name))  # noqa: PTH100  # keeps symlinks
    return shutil.which(name, path=env.get("PATH", ""))


def refused(declared: Mapping[str, str | None]) -> Iterator[str]:
    """Yield what is wrong with the environment variables that a configuration declares."""
    for name in declared:
        if _matches(name, _NEVER):
            yield (
                f"{name!r} is never given to an agent: with it, whatever a pull request "
                "makes of the agent could act as the workflow"
            )
        elif not name or "=" in name or "\0" in name + (declared[name] or ""):
            yield f"{name!r} cannot be the name or hold the value of an environment variable"


def _sendable(name: str) -> str:
    for message in refused({name: None}):
        raise ValueError(message)
    return name


KeyName = Annotated[str, Field(min_length=1), AfterValidator(_sendable)]
"""The name of the variable that holds a provider's key: none of those that no agent gets."""


def unset(declared: Mapping[str, str | None], ours: Mapping[str, str]) -> str:
    """Say which of our variables are to be passed on and are not set, or empty.

    Empty is what a secret is where a workflow gets none.

    >>> unset({"KEY": None, "OTHER": None, "MODE": "fast", "LANGFUSE_*": None}, {"KEY": ""})
    'KEY and OTHER'
    """
    names = (name for name, value in declared.items() if value is None and "*" not in name)
    return " and ".join(name for name in names if not ours.get(name))


def _may_have(name: str, taken: Sequence[str]) -> bool:
    if _matches(name, _NEVER):
        return False
    if name in taken:
        return True
    return not _matches(name, _NEVER_BY_PATTERN) and _matches(name, (*_PASSED_ON, *taken))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    name = name.upper()
    return name in patterns or any(
        "*" in pattern and fnmatchcase(name, pattern.upper()) for pattern in patterns
    )
