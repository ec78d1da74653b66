"""Cases whose content a change alters or removes, according to git."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ci_eval.config.open_evalset import open_evalset
from ci_eval.gate.changed_files import differs
from ci_eval.records.errors import UsageError
from ci_eval.records.results import RunMeta
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.git import GitError
from ci_eval.text.fingerprint import of_case
from ci_eval.text.templates import counted

_MAX_BYTES = 64 * 1024 * 1024
"""The largest earlier evalset that is read."""


def changed_cases(meta: RunMeta, start: str, clone: Clone) -> Iterator[str]:
    """Yield, in words, the number of cases of each evalset that changed or went since `start`.

    New cases weaken nothing.
    """
    for name, evalset in meta.evalsets.items():
        path = (clone.top or clone.folder) / evalset.path
        # What a Python file built earlier is unknown, so it is compared as code.
        is_data = path.is_file() and path.suffix != ".py"
        if not (is_data and differs(clone, start, str(path))):
            continue
        blob = f"{start}:{evalset.path}"
        try:
            count = _changed(path, blob, clone)
        except (GitError, UsageError, OSError):
            if clone.view.holds(blob):
                yield f"evalset {name}: the earlier {evalset.path} cannot be read"
            continue
        if count:
            yield f"evalset {name}: {counted(count, 'case')} changed or removed"


def _changed(path: Path, blob: str, clone: Clone) -> int:
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        earlier = Path(folder) / path.name
        clone.view.copy(blob, earlier, most=_MAX_BYTES)
        before, now = (_fingerprints(each) for each in (earlier, path))
    return sum(now.get(case) != content for case, content in before.items())


def _fingerprints(path: Path) -> dict[str, str]:
    opened = open_evalset(path, shown=path.name)
    return {case.eval_id: of_case(case) for case in opened.cases()}
