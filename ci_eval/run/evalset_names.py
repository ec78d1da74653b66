"""Names of evalsets that a configuration gives by paths and patterns."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ci_eval.formats.sniff import ENDINGS
from ci_eval.runtime.storage.gs_uri import is_place

_SUGGESTED = (".evalset.json", *ENDINGS)
_SUFFIXES = (".evalset.json", ".test.json", ".json")


def without_cases(path: str) -> tuple[str, list[str]]:
    """Return `path` without ADK's list of cases behind it, `file.json:case1,case2`, and these."""
    head, colon, tail = path.rpartition(":")
    if not (colon and "/" not in tail and (head.endswith(ENDINGS) or is_place(head))):
        return path, []
    return head, [case.strip() for case in tail.split(",") if case.strip()]


def suggested_pattern(root: Path, folder: str) -> str:
    """Return the end of a message: a pattern for the evalsets in `folder`, if it has any."""
    names = [each.name for each in (root / folder).iterdir()]
    endings = Counter(end for name in names for end in _SUGGESTED if name.endswith(end))
    shown = [str(Path(folder, f"*{end}")) for end, _ in endings.most_common(1)]
    return f", or use a pattern such as {shown[0]!r}" if shown else ""


def distinct_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the paths by names without suffixes, where that does not make two the same."""
    stems = {
        path: next((path.removesuffix(end) for end in _SUFFIXES if path.endswith(end)), path)
        for path in paths
    }
    often = Counter(stems.values())
    names: dict[str, str] = {}
    for path, stem in stems.items():
        name = (stem if often[stem] == 1 else path).replace("/", ".").lstrip(".")
        while name in names:
            name += "+"
        names[name] = path
    return names
