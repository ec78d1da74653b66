"""Fingerprints: short hashes of JSON values and cases, equal only for equal content."""

import hashlib
import json
from typing import Any

from ci_eval.records.cases import EvalCase, Json

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def fingerprint(value: Json) -> str:
    """Return a hash of a JSON value, 16 hexadecimal digits; key order does not matter."""
    return hashlib.blake2b(_encode(value).encode(), digest_size=8).hexdigest()


def of_question(case: EvalCase) -> str:
    """Return the fingerprint of a case without its `human_answers`."""
    return of_case(case.model_copy(update={"human_answers": {}}))


def of_case(case: EvalCase) -> str:
    """Return the fingerprint of a case's messages and expectations, without its metadata."""
    beside: dict[str, Any] = dict.fromkeys(_BESIDE, True)
    beside["conversation"] = {"__all__": _INCIDENTAL}
    return fingerprint(case.model_dump(mode="json", exclude_defaults=True, exclude=beside))


_BESIDE = ("creation_timestamp", "tags", "name", "description", "rerun_on_resume")
"""Fields of a case that do not affect a conversation."""
_INCIDENTAL = {"invocation_id", "creation_timestamp"}
