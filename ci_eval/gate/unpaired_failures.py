"""Cases that failed and have no result in the baseline to compare with."""

from collections.abc import Iterable, Iterator, Mapping

from ci_eval.gate.pairing import Group
from ci_eval.records.cases import Status
from ci_eval.records.comparisons import GroupKey


def unmatched(groups: Iterable[Group], arms: Mapping[GroupKey, Group]) -> Iterator[str]:
    """Yield the failed cases without results in the baseline.

    Left out are errors of the `arms` of the merge base: see `errors_of_base`.
    """
    for group in groups:
        if group.facts.judges:
            arm = arms.get(group.key)
            hidden = {case for case, is_error in _failures(arm) if is_error} if arm else set()
            for case, _ in _failures(group):
                if case not in hidden:
                    yield f"{group.key.agent}/{group.key.evalset}/{case}"


def errors_of_base(groups: Iterable[Group]) -> Iterator[str]:
    """Yield the failed cases that were errors with the merge base, which may well pass them."""
    found: dict[str, None] = {}
    for group in groups:
        if group.facts.judges and group.facts.tier == "block":
            for case, is_error in _failures(group):
                if is_error and case not in group.left_out:
                    where = f"{group.key.evalset} with {group.key.agent}"
                    found[f"{case!r} on {where} (an error with the merge base)"] = None
    yield from found


def _failures(group: Group) -> Iterator[tuple[str, bool]]:
    """Yield the failed cases without a counterpart, and whether that is because of an error."""
    for case, cell in group.unpaired():
        if cell.status(group.facts) is Status.FAILED:
            earlier = group.before.get(case)
            yield case, earlier is not None and earlier.status(group.facts) is Status.ERROR
