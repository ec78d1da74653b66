"""Environments of agents: the variables that they see, and the lookup of their programs."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext

_INHERITED = (
    # Programs, users, locales.
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "XDG_*_HOME"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "CI"),
    # Python from `setup-python` or conda needs these to find its libraries, and a repository to
    # find its modules; every other step of the job has them too, and none is a secret.
    *("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_*LIBRARY_PATH"),
    # Corporate proxies and certificates.
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    # Without these, nothing starts on Windows.
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "USERNAME"),
    *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"),
)
"""Variables that every agent gets; names are case-insensitive."""
_NEVER = (
    *("ACTIONS_*", "INPUT_*", "GITHUB_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH"),
    *("GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
)
"""The job's token and command files, which no agent gets, even if declared."""
_NEVER_BY_PATTERN = (*_NEVER, "GITHUB_*", "GH_*", "RUNNER_*")
"""Variables that no pattern matches; those not in `_NEVER` can be declared by name."""


_SEARCHED = "PYTHONPATH"
_GUARD = str(Path(__file__).parent / "workers" / "import_guard")
"""Folder that keeps code of the change from being imported into the base arm."""


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

A name without a value (in a list, or with nothing after the colon) passes on our own variable, if
set, and may be a pattern such as `LANGFUSE_*`.
"""


_OWN_PYTHON = ".venv/bin/python"
_LOOKED_UP = re.compile(r"KeyError: '(\w+)'")
_ALTERNATIVES = {"GOOGLE_API_KEY", "GEMINI_API_KEY"}
"""Variables of which one is enough."""
Variables = Mapping[str, str | None]
"""Variables with their values; `None` passes on our own."""


def agent_environment(context: RunContext, declared: Variables) -> dict[str, str]:
    """Return an agent's environment: our inherited variables, and those `declared`."""
    ours = context.env
    passed_on = [name for name, value in declared.items() if value is None]
    found = {
        **{name: value for name, value in ours.items() if _is_passed_on(name, passed_on)},
        **isolation.environment(ours, context.agent_account),
        **{name: value for name, value in declared.items() if value is not None},
    }
    if context.change:
        found[_SEARCHED] = os.pathsep.join(filter(None, (_GUARD, found.get(_SEARCHED))))
        found["CI_EVAL_FOREIGN"] = str(context.change.clone.top)
    return found


def moved(search_path: str, old: str, new: str) -> str:
    """Return a path like `PYTHONPATH` with its folders inside `old` moved to `new`."""
    return os.pathsep.join(_moved(each, old, new) for each in search_path.split(os.pathsep))


def _moved(path: str, old: str, new: str) -> str:
    is_inside = Path(os.path.normpath(path)).is_relative_to(old)
    return str(Path(new, os.path.relpath(path, old))) if is_inside else path


def find_program(name: str, *, root: Path, env: Mapping[str, str]) -> str | None:
    """Return the program `name`: a path relative to `root`, or a name on the PATH of `env`.

    `None` means that it does not exist or is not executable.
    """
    if os.path.dirname(name):  # noqa: PTH120  # `Path` drops a leading `./`
        return shutil.which(os.path.abspath(root / name))  # noqa: PTH100  # keeps symlinks
    return shutil.which(name, path=env.get("PATH", ""))


def own_python(folder: Path, top: Path) -> Path | None:
    """Return the Python of the nearest `.venv` in `folder` or above it, up to `top`."""
    folders = (folder, *(each for each in folder.parents if each.is_relative_to(top)))
    found = (each / _OWN_PYTHON for each in folders)
    return next(filter(is_program, found), None)


def is_program(path: Path) -> bool:
    """Return True if there is an executable file at `path`."""
    return path.is_file() and os.access(path, os.X_OK)


def find_agent_program(name: str, context: RunContext, declared: Variables) -> str | None:
    """Return the program `name` that an agent would start, as `find_program` does."""
    return find_program(name, root=context.root, env=agent_environment(context, declared))


def wrong_program(name: str, context: RunContext, declared: Variables) -> Iterator[str]:
    """Yield why an agent's program cannot be started; nothing if it can."""
    if find_agent_program(name, context, declared):
        return
    is_file = os.path.dirname(name) and (context.root / name).is_file()  # noqa: PTH120  # keeps `./`
    yield f"{name!r} is not executable" if is_file else f"there is no program {name!r}"


def refused(declared: Variables) -> Iterator[str]:
    """Yield the errors in the environment variables that a configuration declares."""
    for name in declared:
        if _matches(name, _NEVER):
            yield (
                f"{name!r} is never passed to an agent: an agent changed by a pull request "
                "could use it to act as the workflow"
            )
        elif not name or "=" in name or "\0" in name + (declared[name] or ""):
            yield f"the environment variable {name!r} has an invalid name or value"


def _checked_key_name(name: str) -> str:
    for message in refused({name: None}):
        raise ValueError(message)
    return name


KeyName = Annotated[str, Field(min_length=1), AfterValidator(_checked_key_name)]
"""The variable with a provider's key; never one that agents must not get."""


def unset(declared: Variables, ours: Mapping[str, str]) -> str:
    """Return the declared variables that are unset or empty, as text.

    A secret is empty in workflows that have no access to it.

    >>> unset({"KEY": None, "OTHER": None, "MODE": "fast", "LANGFUSE_*": None}, {"KEY": ""})
    'KEY and OTHER'
    >>> unset({"GOOGLE_API_KEY": None, "GEMINI_API_KEY": None}, {})
    'GOOGLE_API_KEY or GEMINI_API_KEY'
    """
    names = [name for name, value in declared.items() if value is None and "*" not in name]
    found = []
    for name in names:
        either = [name, *(each for each in names if {name, each} == _ALTERNATIVES)]
        if not any(ours.get(each) for each in either):
            found.append(" or ".join(sorted(set(either), key=names.index)))
    return " and ".join(dict.fromkeys(found))


def looked_up(message: str) -> str:
    """Return the variable that an agent's error says is missing; empty if it names none."""
    found = _LOOKED_UP.search(message)
    return found[1] if found else ""


def unseen_hint(message: str, declared: Variables, context: RunContext) -> str:
    """Return a hint to append to an agent's error, if a missing variable caused it."""
    name = looked_up(message)
    if not name or name in agent_environment(context, declared):
        return ""
    if name in declared:
        return f"\n  (the agent's `env:` lists {name}, which is not set)"
    if name not in context.env or _matches(name, _NEVER):
        return ""
    return (
        f"\n  (agents get only the variables that `env:` lists; add `env: [{name}]` to the agent)"
    )


def _is_passed_on(name: str, passed_on: Sequence[str]) -> bool:
    if _matches(name, _NEVER):
        return False
    if name in passed_on:
        return True
    return not _matches(name, _NEVER_BY_PATTERN) and _matches(name, (*_INHERITED, *passed_on))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    name = name.upper()
    wildcards = (each.upper() for each in patterns if "*" in each)
    return name in patterns or any(fnmatchcase(name, each) for each in wildcards)
