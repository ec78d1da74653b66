"""The times that records carry as text."""

from datetime import UTC, datetime


def moment(text: str) -> datetime | None:
    """Return the time that `text` gives in ISO 8601, in UTC; `None` where it gives none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
