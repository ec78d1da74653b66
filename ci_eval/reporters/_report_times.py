"""Times in records."""

from datetime import UTC, datetime


def moment(text: str) -> datetime | None:
    """Parse an ISO 8601 time, as UTC; return `None` if `text` is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
