"""Labels in the answers of judges, also in the text formats of ADK's."""

import re

from ci_eval.records.questions import UnreadableError


def one(labels: list[str], *, expected: str) -> str:
    """Return the label that all of `labels` have in common.

    Raises:
        UnreadableError: there is no label, or several different ones.

    """
    different = list(dict.fromkeys(labels))
    if not different:
        raise UnreadableError(f"it holds no verdict; expected {expected}")
    if len(different) > 1:
        shown = ", ".join(repr(each[:40]) for each in different[:3])
        raise UnreadableError(f"it holds several verdicts: {shown}")
    return different[0]


def labels_in(text: str, key: str, label: str) -> list[str]:
    """Find the labels under `key` in text that is nearly JSON, as ADK does.

    `label` is the pattern of a label.  Takes linear time: the quantifiers around the label are
    possessive and never backtrack.
    """
    end = r"(?:[^\S\n]*+\n|\s*+\]*+\s*+[,}]|\s*+\]++[^\S\n]*+\n)"
    found = re.findall(rf'"{key}":\s*+\[*+\s*+"*+({label})"*+{end}', text)
    return [each for each in found if each]
