"""The wall clock, and how the ledger writes its times."""

from datetime import UTC, datetime

__all__ = ["now", "seconds_of"]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(at: str) -> float:
    """The wall clock at a time that ``now`` wrote."""
    return datetime.fromisoformat(at).timestamp()
