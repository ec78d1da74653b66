"""Short names for contents: equal only where the contents are."""

import hashlib
import json

from ci_eval.records.model import EvalCase, Json


def fingerprint(value: Json) -> str:
    """Return 16 hexadecimal digits that stand for a JSON value; key order does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def of_question(case: EvalCase) -> str:
    """Return the fingerprint of a case, whatever a human answers in it."""
    return of_case(case.model_copy(update={"human_answers": {}}))


def of_case(case: EvalCase) -> str:
    """Return the fingerprint of what a case asks and expects; what names it does not."""
    asked = case.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={
            **dict.fromkeys(_BESIDE, True),
            "conversation": {"__all__": _INCIDENTAL},
        },
    )
    return fingerprint(asked)


_BESIDE = ("creation_timestamp", "tags", "name", "description", "rerun_on_resume")
"""What tells nothing of a conversation that is held from its beginning to its end."""
_INCIDENTAL = {"invocation_id", "creation_timestamp"}
