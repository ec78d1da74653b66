"""Cases whose content a change alters or removes, according to git."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from ci_eval.config.evalset_names import without_cases
from ci_eval.config.open_evalset import open_evalset
from ci_eval.gate.changed_files import changed_links, differs
from ci_eval.gate.earlier_config import EarlierConfig, linked
from ci_eval.records.errors import UsageError
from ci_eval.records.results import RunMeta
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.git import GitError
from ci_eval.runtime.storage.gs_uri import has_pattern
from ci_eval.text.fingerprint import of_case
from ci_eval.text.templates import counted

_MAX_BYTES = 64 * 1024 * 1024
"""The largest earlier evalset that is read."""


def changed_cases(meta: RunMeta, start: str, clone: Clone) -> Iterator[str]:
    """Yield, in words, the number of cases of each evalset changed or removed since `start`.

    New cases weaken nothing.
    """
    for name, evalset in meta.evalsets.items():
        path = (clone.top or clone.folder) / evalset.path
        # It is unknown what a Python file built earlier, so the file is compared as code.
        is_data = path.is_file() and path.suffix != ".py"
        if not (is_data and differs(clone, start, str(path))):
            continue
        try:
            earlier = _earlier(evalset.path, path, start, clone)
            count = _changed(path, *earlier) if earlier else 0
        except (GitError, UsageError, OSError):
            yield f"evalset {name}: the earlier {evalset.path} cannot be read"
            continue
        if count:
            yield f"evalset {name}: {counted(count, 'case')} changed or removed"


def _earlier(place: str, path: Path, start: str, clone: Clone) -> tuple[Clone, str] | None:
    """Return the earlier blob of the evalset at `place`, and where it is; `None` if it is new.

    Raises:
        GitError: it is behind a symlink or in a submodule, and what was there is unknown.

    """
    resolved = clone.inside(str(path.resolve()))
    for each in (linked(clone, start, place), resolved):
        if clone.view.holds(f"{start}:{each}"):
            return clone, f"{start}:{each}"
    for link in changed_links(clone, start, path):
        # The submodule itself; with `CI`, it would be the repository.
        module = Clone((clone.top or clone.folder) / link, {**clone.env, "CI": ""})
        blob = f"{clone.view.query('rev-parse', f'{start}:{link}')}:{module.inside(str(path))}"
        if module.view.holds(blob):
            return module, blob
        raise GitError(place)
    if resolved != place:
        raise GitError(place)
    return None


def _changed(path: Path, clone: Clone, blob: str) -> int:
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        earlier = Path(folder) / path.name
        clone.view.copy(blob, earlier, most=_MAX_BYTES)
        before, now = (_fingerprints(each) for each in (earlier, path))
    return sum(
        case not in now or now[case][0] != content or not tags <= now[case][1]
        for case, (content, tags) in before.items()
    )


def _fingerprints(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the content and the tags of each case; a case that loses a tag may not be selected."""
    opened = open_evalset(path, shown=path.name)
    return {case.eval_id: (of_case(case), frozenset(case.tags)) for case in opened.cases()}


def removed_files(
    before: EarlierConfig, folder: PurePosixPath, removed: Sequence[str]
) -> Iterator[str]:
    """Yield, in words, which of the `removed` files the patterns of evalsets matched.

    `folder` is that of the earlier configuration, from the top of the repository.
    """
    for name, spec in before.section("evalsets").items():
        given, _ = without_cases(str(spec.get("path") if isinstance(spec, Mapping) else spec))
        pattern = posixpath.normpath(folder / given).split("/")
        for path in removed if has_pattern(given) else ():
            if _fits(path.split("/"), pattern):
                yield f"evalset {name}: {path} is removed"


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if a glob pattern finds a path; `**` stands for any number of directories."""
    if not pattern or not path:
        return not path and all(each == "**" for each in pattern)
    if pattern[0] == "**":
        return _fits(path, pattern[1:]) or _fits(path[1:], pattern)
    return fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])
