"""Parser of judges' answers with the leniency of 10xscale-agentflow 0.10.1.

An answer that is not JSON scores 0.5, a missing score is 0, and scores outside of [0, 1] are
accepted.  JSON that is not an object, or whose score is not a number, does not count.  The lists
beside the score are merged as sets; if a list cannot be a set, there is no score.
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
    """Return a function that parses an answer as the package does.

    `united` names the list beside the score.  If one of the `categories` of an answer has no
    number, the package ignores its list.
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
    """Return why the list under `key` cannot become a set; empty if it can."""
    value = found.get(key, [])
    if isinstance(value, str | dict):
        return ""
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ""
    return f"{key!r} cannot be merged with those of other answers, as the package does"
