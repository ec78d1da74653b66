"""Names of evalsets that a configuration gives by paths and patterns."""

from collections import Counter
from collections.abc import Iterable

from ci_eval.storage.gs_uri import is_place

_LISTING = (".json", ".jsonl", ".yaml", ".yml", ".csv")
"""What a file may end in that is followed by a list of cases."""
_SUFFIXES = (".evalset.json", ".test.json", ".json")


def without_cases(path: str) -> tuple[str, list[str]]:
    """Return `path` without ADK's list of cases behind it, `file.json:case1,case2`, and these."""
    head, colon, tail = path.rpartition(":")
    if not (colon and "/" not in tail and (head.endswith(_LISTING) or is_place(head))):
        return path, []
    return head, [case.strip() for case in tail.split(",") if case.strip()]


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
