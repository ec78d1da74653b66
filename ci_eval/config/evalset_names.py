"""Names of evalsets that are specified by paths and patterns."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ci_eval.formats.sniff import ENDINGS, without_ending
from ci_eval.runtime.storage.gs_uri import is_place

_SUGGESTED = (".evalset.json", *ENDINGS)
_LONGEST_NAME = 80
_SUFFIXES = (".evalset.json", ".test.json", ".json")


def without_cases(path: str) -> tuple[str, list[str]]:
    """Split ADK's `file.json:case1,case2` into the path and the list of cases."""
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
    """Map names to the paths; a name has no suffix, unless two would then be equal."""
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


def unique_names(paths: Iterable[str], *, ending: str = "") -> dict[str, str]:
    """Return a name for each of `paths`: the file's name, with a number if it is taken.

    Only an `ending` is left out of the name, if one is given; otherwise, any is.
    """
    names: dict[str, str] = {}
    for path in paths:
        file = Path(path).name
        wanted = without_ending(file) if file.endswith(ending) else file
        names[path] = free_name(wanted, names.values())
    return names


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted` as a valid name in a configuration, with a number if it is in `taken`."""
    known = set(taken)
    name = base = wanted.strip(". ")[:_LONGEST_NAME] or "evals"
    number = 1
    while name in known:
        number += 1
        name = f"{base}-{number}"
    return name
