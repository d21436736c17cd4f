"""Faults of a request that only the HTTP layer can see, and where in the request each fault is.

None of these keeps any part of the body: an exception may end in a log, or travel between processes.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

from app.http.validation_errors import body_faults

__all__ = [
    "MOST_FAULTS",
    "ContentTooLarge",
    "Fault",
    "InvalidBody",
    "InvalidEncoding",
    "InvalidHeader",
    "InvalidMultipart",
    "InvalidQuery",
    "NoCertificate",
    "NotAdmitted",
    "RequestFault",
    "UnsupportedEncoding",
]

MOST_FAULTS = 50


class Fault(NamedTuple):
    """One fault: the kind of place, the place itself, and what it must be."""

    place: Literal["pointer", "header", "parameter"]
    name: str
    detail: str

    def __str__(self) -> str:
        nameless = {"pointer": "The body", "header": "The headers", "parameter": "The query"}
        prefix = {"pointer": "", "header": "The header ", "parameter": "The parameter "}[self.place]
        return f"{prefix}{self.name} {self.detail}" if self.name else f"{nameless[self.place]} {self.detail}"


class RequestFault(Exception):
    """An error that says where its faults are."""

    faults: Sequence[Fault]


class InvalidBody(RequestFault):
    """A body that does not match its schema."""

    def __init__(self, errors: tuple[tuple[str, str], ...], count: int, is_json: bool) -> None:
        super().__init__(errors, count, is_json)
        self.faults = [Fault("pointer", pointer, detail) for pointer, detail in errors]
        self.count = count
        self.is_json = is_json

    @classmethod
    def of(cls, found: Sequence[Any], *, has_groups: bool) -> Self:
        """From pydantic's errors; the first fifty are kept."""
        if any(each["type"] == "json_invalid" for each in found):
            return cls((), 0, is_json=False)
        errors = tuple(dict.fromkeys(body_faults(found, has_groups=has_groups)))
        return cls(errors[:MOST_FAULTS], len(errors), is_json=True)


class InvalidHeader(RequestFault):
    """A header that is missing, repeated or malformed."""

    def __init__(self, header: str, detail: str) -> None:
        super().__init__(header, detail)
        self.faults = [Fault("header", header, detail)]


class InvalidQuery(RequestFault):
    """Parameters of the URL that are unknown, missing or out of bounds: pairs of a name and a detail."""

    def __init__(self, *errors: tuple[str, str]) -> None:
        super().__init__(*errors)
        self.faults = [Fault("parameter", name, detail) for name, detail in errors]


class InvalidMultipart(Exception):
    """A body that claims to be a form but cannot be read as one, or not to its end."""


class InvalidEncoding(RequestFault):
    """A compressed body that is damaged, ends too early, or has something after its end."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = [
            Fault("pointer", "", "must be complete data of its Content-Encoding; zstd's window is at most 8 MiB")
        ]


class UnsupportedEncoding(RequestFault):
    """A body with a content coding that is not read, or with several."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = [Fault("header", "Content-Encoding", "must be gzip, zstd or identity, and only one of them")]


class ContentTooLarge(RequestFault):
    """A body with more bytes than its route accepts. ``advice`` names another way to send it."""

    def __init__(self, most: int, advice: str) -> None:
        super().__init__(most, advice)
        self.faults = [Fault("pointer", "", f"must have at most {most} bytes{advice}")]


class NoCertificate(Exception):
    """A release of version 0.1: its certificate is only inside its answer."""


class NotAdmitted(Exception):
    """A request without the access key that it needs. ``reason`` is for the metrics."""

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
