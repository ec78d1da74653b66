"""Output files, which may replace a file of their own kind, but no other file of the user."""

from pathlib import Path

from ci_eval.records.errors import Problem, UsageError
from ci_eval.run_files.journal import is_recording
from ci_eval.run_files.shard_files import read_plan
from ci_eval.runtime.path_checks import refuse_links_out


def refuse_recording(given: str | None) -> None:
    """Reject an output path for traces that is redirected, or holds something else.

    Raises:
        UsageError: it leads out of the repository, or the file there is no recording.

    """
    refuse_links_out(given)
    if given and _has_content(given) and not is_recording(Path(given)):
        raise _refusal(given, "recording")


def refuse_plan(given: str | None) -> None:
    """Reject an output path for a plan that is redirected, or holds something else.

    Raises:
        UsageError: it leads out of the repository, or the file there is no plan.

    """
    refuse_links_out(given)
    if given and _has_content(given):
        try:
            read_plan(Path(given), shown=given)
        except UsageError as exc:
            raise _refusal(given, "plan of shards") from exc


def _has_content(given: str) -> bool:
    path = Path(given)
    return path.is_file() and path.stat().st_size > 0


def _refusal(given: str, kind: str) -> UsageError:
    problem = Problem(f"exists, but is not a {kind}, so it is not overwritten", given)
    return UsageError(problems=[problem], hint="name another file, or remove this one")
