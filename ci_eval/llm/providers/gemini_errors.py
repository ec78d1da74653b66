"""Error bodies of Google's APIs, see https://cloud.google.com/apis/design/errors."""

from collections.abc import Iterator
from typing import Any

from ci_eval.records.model import Json
from ci_eval.runtime.retry import seconds


def is_key_wrong(body: Json) -> bool:
    """Check whether the key is invalid; the HTTP code alone does not tell."""
    return any(each.get("reason") == "API_KEY_INVALID" for each in _details(body))


def is_spent(body: Json) -> bool:
    """Check whether the quota resets tomorrow at the earliest.

    That is a daily quota, or a quota of 0, as the free tier has for paid models.
    """
    violations = [each for detail in _details(body) for each in _dicts(detail.get("violations"))]
    return any(
        "PerDay" in str(each.get("quotaId")) or str(each.get("quotaValue")) == "0"
        for each in violations
    )


def retry_delay(body: Json) -> float | None:
    """Return the seconds until the next attempt that a `RetryInfo` asks for."""
    found = (seconds(each.get("retryDelay")) for each in _details(body))
    return next((delay for delay in found if delay is not None), None)


def _details(body: Json) -> Iterator[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    return _dicts(error.get("details") if isinstance(error, dict) else None)


def _dicts(value: Json) -> Iterator[dict[str, Any]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()
