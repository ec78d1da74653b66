"""The CI job: its name, which distinguishes jobs of the same suite, and the page of its run."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_CHARS = 100


def job_name(env: Mapping[str, str], given: str = "") -> str:
    """Return the name of the job; empty outside of CI.

    `given` is a name, or the values of a matrix as a JSON object (`${{ toJSON(matrix) }}`), which
    are appended to CI's name of the job, as GitHub shows them.

    >>> job_name({"GITHUB_JOB": "evaluate"}, '{"model": "small", "python": 3.12}')
    'evaluate (small, 3.12)'
    """
    job = env.get("GITHUB_JOB") or env.get("CI_JOB_NAME") or ""
    try:
        matrix = json.loads(given) if given else None
    except (ValueError, RecursionError):
        return given[:_MAX_CHARS]
    if not isinstance(matrix, dict):
        return (job if matrix is None else given)[:_MAX_CHARS]
    return f"{job} ({', '.join(_values(matrix))})".strip()[:_MAX_CHARS] if matrix else job


def run_link(env: Mapping[str, str]) -> str:
    """Return the address of the workflow run or pipeline; empty if unknown."""
    server, repository = env.get("GITHUB_SERVER_URL", ""), env.get("GITHUB_REPOSITORY", "")
    run = env.get("GITHUB_RUN_ID", "")
    if server and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return env.get("CI_PIPELINE_URL", "")


def _values(found: Any) -> Iterator[str]:
    """Yield the values of a matrix, depth first."""
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _values(each)
    else:
        yield found if isinstance(found, str) else json.dumps(found)
