"""The id of the request that is being answered, for its answer, its problem document and every log line about it.

A client may choose the id, and may send the place of the request in a trace (W3C Trace Context). Neither is a secret.
"""

import os
import random
import re
from contextvars import ContextVar

__all__ = ["begin_request", "log_fields", "request_id"]

_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_TRACE_PARENT = re.compile(
    rb"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})-[0-9a-f]{2}"
    rb"(?P<more>-.*)?"
)

_current: ContextVar[tuple[bytes, bytes, bytes]] = ContextVar("request", default=(b"", b"", b""))
"""The id, the id of the trace and the id of the span; each may be empty."""
# Ids must differ, but need not be unpredictable: so this takes a third of the time of the operating system's bits.
_random = random.Random()  # noqa: S311
_bits = _random.getrandbits
os.register_at_fork(after_in_child=_random.seed)  # else processes of one service would draw the same ids


def begin_request(asked: bytes | None = None, trace_parent: bytes | None = None) -> bytes:
    """The id of a request that begins now: the one that it asks for, if it is well-formed, else a new one."""
    name = asked if asked is not None and _ID.fullmatch(asked) else b"%032x" % _bits(128)
    _current.set((name, b"", b"") if trace_parent is None else (name, *_trace(trace_parent)))
    return name


def request_id() -> str:
    """The id of the present request; empty outside of requests."""
    return _current.get()[0].decode()


def log_fields() -> dict[str, str]:
    """What a log line says of the present request."""
    fields = zip(("request_id", "trace_id", "span_id"), _current.get(), strict=True)
    return {name: value.decode() for name, value in fields if value}


def _trace(trace_parent: bytes) -> tuple[bytes, bytes]:
    """Empty if the header is malformed. Only versions after 00 may have more fields."""
    found = _TRACE_PARENT.fullmatch(trace_parent)
    if found is None or (found["version"] == b"00" and found["more"]):
        return b"", b""
    return found["trace"], found["span"]
