"""How 10xscale-agentflow 0.10.1 reads what a judge answers, in all its leniency.

An answer that is no JSON scores 0.5, a score that is missing 0, and nothing keeps a score between
0 and 1.  An answer that is JSON but no object, or whose score is no number, does not count.  The
lists beside the score are united as sets, which some lists cannot be; then there is no score.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ci_eval.criteria._means import Sample
from ci_eval.criteria._scores import rationale_in, texts_in
from ci_eval.records.model import Json

UNREADABLE = Sample(0.5, "the answer is no JSON, which the package scores 0.5")


def as_observed(*, united: str = "", categories: Sequence[str] = ()) -> Callable[[str], Sample]:
    """Return what reads an answer as the package does.

    `united` is the list beside the score.  Where one of the `categories` of an answer has no
    number, the package leaves its list out.
    """
    return partial(_read, united=united, categories=categories)


def _read(text: str, *, united: str, categories: Sequence[str]) -> Sample:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return UNREADABLE
    if not isinstance(found, dict):
        return Sample(None, "the answer is no object")
    score = _float(found.get("score", 0.0))
    if score is None:
        return Sample(None, "its score is no number")
    details = {united: texts_in(found, united)} if united else {}
    is_left_out = not united or not _have_numbers(found, categories)
    fatal = "" if is_left_out else _not_united(found, united)
    return Sample(score, rationale_in(found), details, fatal)


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _have_numbers(found: Mapping[str, Json], categories: Sequence[str]) -> bool:
    given = found.get("categories", {})
    if not isinstance(given, dict):
        return not categories
    return all(_float(given.get(name, 1.0)) is not None for name in categories)


def _not_united(found: Mapping[str, Json], key: str) -> str:
    """Say why the list under `key` cannot become a set; nothing where it can."""
    value = found.get(key, [])
    if isinstance(value, str | dict):
        return ""
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ""
    return f"{key!r} cannot be united with those of other answers, which the package does"
