"""The published source that this installation came from, and links to its pages."""

import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import NamedTuple

_ON_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
_ACTION = re.compile(r"[\w.-]+/ci-eval", re.ASCII)
_REF = re.compile(r"[\w./-]+", re.ASCII)


class Source(NamedTuple):
    """A version of ci-eval on GitHub."""

    repository: str
    """Owner and name."""
    ref: str
    """A commit, or the tag or branch by which a workflow names the action."""


def installed_from() -> Source | None:
    """Return the repository and commit that ci-eval was installed from, if they are known.

    pip and uv record both for an installation from git: https://peps.python.org/pep-0610/.
    """
    try:
        found = json.loads(distribution("ci-eval").read_text("direct_url.json") or "{}")
        named = _ON_GITHUB.fullmatch(found["url"])
        commit = found["vcs_info"]["commit_id"]
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    return Source(named[1], commit) if named and _COMMIT.fullmatch(commit) else None


def page_url(page: str, env: Mapping[str, str]) -> str:
    """Return the address of a page such as `docs/gate.md`; empty if it is unknown.

    It is a page of the action that a workflow runs, if the environment `env` names one, else of
    the repository that ci-eval was installed from.
    """
    named = (env.get("GITHUB_ACTION_REPOSITORY", ""), env.get("GITHUB_ACTION_REF", ""))
    is_action = _ACTION.fullmatch(named[0]) and _REF.fullmatch(named[1])
    source = Source(*named) if is_action else installed_from()
    return f"https://github.com/{source.repository}/blob/{source.ref}/{page}" if source else ""
