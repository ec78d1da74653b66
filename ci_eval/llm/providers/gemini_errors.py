"""What the errors of Google's APIs say, as https://cloud.google.com/apis/design/errors has it."""

from collections.abc import Iterator
from typing import Any

from ci_eval.records.model import Json
from ci_eval.runtime.retry import seconds


def is_key_wrong(body: Json) -> bool:
    """Say whether an error is about the key: its code is that of any other mistake."""
    return any(each.get("reason") == "API_KEY_INVALID" for each in _details(body))


def is_spent(body: Json) -> bool:
    """Say whether an error is about a quota that is there again tomorrow at the earliest.

    That is one a day, or one that is 0, as the free tier has it of models that cost.
    """
    violations = [each for detail in _details(body) for each in _dicts(detail.get("violations"))]
    return any(
        "PerDay" in str(each.get("quotaId")) or str(each.get("quotaValue")) == "0"
        for each in violations
    )


def retry_delay(body: Json) -> float | None:
    """Return after how many seconds to ask again, as a `RetryInfo` says."""
    found = (seconds(each.get("retryDelay")) for each in _details(body))
    return next((delay for delay in found if delay is not None), None)


def _details(body: Json) -> Iterator[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    return _dicts(error.get("details") if isinstance(error, dict) else None)


def _dicts(value: Json) -> Iterator[dict[str, Any]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()
