"""The CI job: its name and workflow, which distinguish jobs of the same suite, and its page."""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

_MAX_CHARS = 100
_SELECTING = ("agent", "evalset", "case", "tag", "criterion", "judge_mode", "models")
"""The options of `run` that distinguish runs; not those of a second try, such as `failed`."""


def job_name(env: Mapping[str, str], given: str = "") -> str:
    """Return the name of the job; empty outside of CI.

    `given` is a name, or the values of a matrix as a JSON object (`${{ toJSON(matrix) }}`).  Matrix
    values are appended to CI's name of the job, as GitHub shows them.

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


def workflow_name(env: Mapping[str, str]) -> str:
    """Return the file of the GitHub workflow, else its name; empty outside of GitHub.

    The names of jobs are unique in a GitLab pipeline.

    >>> ref = "octo/shop/.github/workflows/nightly.yml@refs/heads/main"
    >>> workflow_name({"GITHUB_REPOSITORY": "octo/shop", "GITHUB_WORKFLOW_REF": ref})
    'nightly.yml'
    """
    path = env.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
    own = f"{env.get('GITHUB_REPOSITORY', '')}/.github/workflows/"
    return path.removeprefix(own) or env.get("GITHUB_WORKFLOW", "")


def selection(options: Mapping[str, Any]) -> str:
    """Return the options that distinguish runs of the same configuration, as on a command line.

    >>> selection({"agent": ("small",), "evalset": (), "models": "replay", "failed": True})
    '--agent small --models replay'
    """
    given = ((name, options.get(name) or ()) for name in _SELECTING)
    words = [
        f"--{name.replace('_', '-')} {value}"
        for name, values in given
        for value in ([values] if isinstance(values, str) else values)
    ]
    text = " ".join(words)
    if len(text) <= _MAX_CHARS:
        return text
    return f"{text[:_MAX_CHARS]}…{sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def run_link(env: Mapping[str, str]) -> str:
    """Return the address of the workflow run or pipeline; empty if unknown."""
    server, repository = env.get("GITHUB_SERVER_URL", ""), env.get("GITHUB_REPOSITORY", "")
    run = env.get("GITHUB_RUN_ID", "")
    if server and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return env.get("CI_PIPELINE_URL", "")


def artifact_link(env: Mapping[str, str], path: Path) -> str:
    """Return the address that a file of the job will have as its artifact; empty if unknown.

    Only GitLab's is known before the upload:
    https://docs.gitlab.com/ci/jobs/job_artifacts/#link-to-job-artifacts-in-the-merge-request-ui
    """
    job, project = env.get("CI_JOB_URL", ""), env.get("CI_PROJECT_DIR", "")
    if not job or not project or not path.absolute().is_relative_to(project):
        return ""
    return f"{job}/artifacts/file/{quote(path.absolute().relative_to(project).as_posix())}"


def shard_number(env: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return the number of this job among its parallel copies, from 1, and their count if known.

    GitLab (`parallel`) counts from 1, CircleCI (`parallelism`) and an indexed Job of Kubernetes
    from 0; Kubernetes does not pass the count to the job:

    - https://docs.gitlab.com/ci/variables/predefined_variables/
    - https://circleci.com/docs/reference/variables/
    - https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
    """
    for index, total, first in _NUMBERS:
        if (number := _whole(env.get(index))) is not None:
            return number - first + 1, _whole(env.get(total))
    return None


def shard_count(env: Mapping[str, str]) -> int | None:
    """Return the number of shards that `CI_EVAL_SHARDS` sets; `None` if it does not."""
    return _whole(env.get(_COUNT))


def _whole(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch(r"[0-9]{1,9}", value) else None


_COUNT = "CI_EVAL_SHARDS"
_NUMBERS = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("JOB_COMPLETION_INDEX", _COUNT, 0),
)
"""The variables with the number and the count, and the number of the first job."""


def attempt(env: Mapping[str, str]) -> int:
    """Return the number of the attempt at this workflow run, from 1; 1 if unknown."""
    return _whole(env.get("GITHUB_RUN_ATTEMPT")) or 1


def _values(found: Any) -> Iterator[str]:
    """Yield the values of a matrix, depth first."""
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _values(each)
    else:
        yield found if isinstance(found, str) else json.dumps(found)
