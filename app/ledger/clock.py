"""The wall clock, and how the ledger writes its times."""

from datetime import UTC, datetime, timedelta

__all__ = ["after", "now", "seconds_of", "written"]


def now() -> str:
    return written(datetime.now(UTC))


def written(time: datetime) -> str:
    """A time in UTC, to the second. Such texts have the order of their times."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def after(at: str, seconds: float) -> str:
    """The time ``seconds`` after another."""
    return written(datetime.fromisoformat(at) + timedelta(seconds=seconds))


def seconds_of(at: str) -> float:
    """The wall clock at a time that ``now`` wrote."""
    return datetime.fromisoformat(at).timestamp()
