"""The wall clock, and how the ledger writes its times."""

from datetime import UTC, datetime, timedelta

__all__ = ["after", "expiry_of", "now", "seconds_of", "written"]


def now() -> str:
    return written(datetime.now(UTC))


def written(time: datetime) -> str:
    """A time in UTC, to the second. Such texts have the order of their times."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def expiry_of(text: str) -> str:
    """A time at which something ends: a date is its first second, and a time without an offset is in UTC."""
    try:
        given = datetime.fromisoformat(text)
        time = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date or a time in ISO 8601, such as 2027-01-31") from None
    if not datetime.now(UTC) < time < datetime(3000, 1, 1, tzinfo=UTC):
        raise ValueError("must be in the future, and before the year 3000")
    return written(time)


def after(at: str, seconds: float) -> str:
    """The time ``seconds`` after another."""
    return written(datetime.fromisoformat(at) + timedelta(seconds=seconds))


def seconds_of(at: str) -> float:
    """The wall clock at a time that ``now`` wrote."""
    return datetime.fromisoformat(at).timestamp()
