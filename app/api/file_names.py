"""Names for the files that people download: from the name of the release, with characters that no file system minds."""

from typing import Literal

__all__ = ["content_disposition"]

_MOST_CHARACTERS = 200  # file systems allow 255 bytes with the ending
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def content_disposition(
    key: str | None, ending: str, how: Literal["attachment", "inline"] = "attachment"
) -> dict[str, str]:
    """The header that names a file. ``key`` is the idempotency key; a release without one is «private»."""
    plain = "".join(each if each in _PLAIN else "_" for each in (key or "private")[:_MOST_CHARACTERS])
    return {"Content-Disposition": f'{how}; filename="{plain}.{ending}"'}
