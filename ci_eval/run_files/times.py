"""Times in records."""

from datetime import UTC, datetime


def moment(text: str) -> datetime | None:
    """Parse an ISO 8601 time, as UTC; return `None` if `text` is not a time."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def age_s(text: str, now: float) -> float | None:
    """Return the seconds from an ISO 8601 time to the Unix time `now`, at least 0."""
    found = moment(text)
    return max(now - found.timestamp(), 0.0) if found else None
