"""Layout of the data branch: the folder of a suite, and the index of its runs."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_eval.baselines._baseline_document import baseline_errors
from ci_eval.forge.lineage import is_commit
from ci_eval.records.cases import SCHEMA_VERSION, Stored
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.findings import Noted
from ci_eval.run_files.run_file import check_version
from ci_eval.text.json_stream import Element
from ci_eval.text.json_text import JsonText, read_json
from ci_eval.text.validation_messages import read_document

README = """\
# Runs of ci-eval

[ci-eval](https://pypi.org/project/ci-eval/) writes this branch. It holds the runs that pull
requests are compared with. Do not merge it into another branch.

`suites/NAME/index.json` lists the runs of a suite, `runs/COMMIT.json` holds their values, and
`badge.svg` and `badge.json` show the newest run of the default branch. `ci-eval baseline prune`
removes old runs.
"""
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


class Index(Stored):
    """The runs of one suite."""

    schema_version: int
    suite: str
    runs: tuple[Noted, ...]
    """Newest first."""


def folder_of(suite: str) -> str:
    """Return the folder of a suite, unique even in a case-insensitive file system.

    >>> folder_of("shop"), folder_of("The Shop")
    ('suites/shop', 'suites/the-shop+fc380ff3c174a1cb')
    """
    if _PLAIN.fullmatch(suite):
        return f"suites/{suite}"
    readable = re.sub(r"[^a-z0-9]+", "-", suite.lower()).strip("-")[:60]
    digest = hashlib.sha256(suite.encode(errors="surrogatepass")).hexdigest()
    return f"suites/{readable}+{digest[:16]}"


def index_text(suite: str, runs: Sequence[Noted]) -> str:
    """Return the index as text, one run per line, so that its git history is readable."""
    lines = ",\n".join(run.model_dump_json(exclude_defaults=True) for run in runs)
    name = Index(schema_version=SCHEMA_VERSION, suite=suite, runs=()).model_dump_json()
    return name.removesuffix("]}") + (f"\n{lines}\n" if lines else "") + "]}\n"


def read_index(path: Path, suite: str, *, shown: str) -> tuple[Noted, ...]:
    """Return the runs in the index at `path`, newest first.

    Raises:
        BaselineError: it is not an index, or the index of another suite.

    """
    with baseline_errors(REPAIR_HINT):
        text = read_json(path, shown=shown)
        if isinstance(text.value, dict) and "schema_version" in text.value:
            check_version(Element(text.value["schema_version"], 1, ""), shown)
        index = read_document(text, Index)
        if problems := [*_problems(index, text, suite)]:
            raise UsageError(problems=problems)
    return index.runs


def _problems(index: Index, text: JsonText, suite: str) -> Iterator[Problem]:
    if index.suite != suite:
        yield text.problem(f"is the index of another suite, {index.suite!r}", ["suite"])
        return
    for place, run in enumerate(index.runs):
        if not (run.commit and is_commit(run.commit)):
            yield text.problem("is not a commit hash", ["runs", place, "commit"])


REPAIR_HINT = (
    "restore the last good version of the file on the branch, or delete the suite's folder to "
    "start over"
)
