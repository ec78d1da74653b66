"""Short names for contents: equal only where the contents are."""

import hashlib
import json

from ci_eval.records import EvalCase, Json


def fingerprint(value: Json) -> str:
    """Return 16 hexadecimal digits that stand for a JSON value; key order does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def of_case(case: EvalCase) -> str:
    """Return the fingerprint of what a case asks and expects; what names it does not."""
    asked = case.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={
            **dict.fromkeys(_FOR_READERS, True),
            "conversation": {"__all__": _INCIDENTAL},
        },
    )
    return fingerprint(asked)


_FOR_READERS = ("creation_timestamp", "tags", "name", "description")
_INCIDENTAL = {"invocation_id", "creation_timestamp"}
