"""Compressed bodies (Content-Encoding: gzip or zstd), decompressed slice by slice.

A small body may decompress to a very large one. So each slice has a bounded size, and the caller counts it before it
asks for the next. The bound on zstd's window is the one that HTTP allows (RFC 9659).
"""

import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

from app.http.problems.errors import InvalidEncoding, UnsupportedEncoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # The standard library's own module, for earlier versions. Unlike other bindings it bounds the output of each call.
    from backports import zstd

__all__ = ["Decoder", "decoder_of"]

_SLICE = 256 * 1024
# The input of one call.
_PIECE = 64 * 1024
_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
# To begin a member takes time and memory, and a member may be empty. These are more than compressors make.
_FREE_MEMBERS = 1024
_BYTES_PER_MEMBER = 256
_MEMBERS_AT_ONCE = 64


class _Member(Protocol):
    """One compressed stream: a member of gzip, or a frame of zstd."""

    @property
    def needs_input(self) -> bool: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipMember:
    """zlib's object, with the interface of zstd's."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        content = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        # Some content may be left in zlib's state. It comes out when more arrives: a checksum is always last.
        self.needs_input = not self._inflate.unconsumed_tail
        return content


class Decoder:
    """The content of one compressed body. It may have several members, one after another, and nothing else."""

    def __init__(self, begin: Callable[[], _Member]) -> None:
        self._begin = begin
        self._member: _Member | None = None
        self._input, self._place = b"", 0
        self._received = self._members = 0

    def feed(self, received: bytes) -> None:
        """Take what has arrived, if it needs input."""
        self._input, self._place = received, 0
        self._received += len(received)

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing to decompress before more has arrived."""
        return self._place == len(self._input) and (self._member is None or self._member.needs_input)

    def slice(self) -> bytes:
        """The next bytes of the content, at most 256 KiB. Empty if it needs input, or after many empty members."""
        for _ in range(_MEMBERS_AT_ONCE):
            if self.needs_input:
                break
            content = self._step()
            if content:
                return content
        return b""

    def end(self) -> None:
        """The body has ended: an error if its last member has not."""
        if self._member is not None or self._members == 0:
            raise InvalidEncoding

    def _step(self) -> bytes:
        if self._member is None:
            self._members += 1
            if self._members > _FREE_MEMBERS + self._received // _BYTES_PER_MEMBER:
                raise InvalidEncoding
            self._member = self._begin()
        piece = self._input[self._place : self._place + _PIECE] if self._member.needs_input else b""
        self._place += len(piece)
        content = _decompressed(self._member, piece)
        if self._member.eof:
            self._place -= len(self._member.unused_data)
            self._member = None
        return content


def _decompressed(member: _Member, piece: bytes) -> bytes:
    try:
        return member.decompress(piece, _SLICE)
    except (zlib.error, zstd.ZstdError):
        pass
    raise InvalidEncoding  # outside of the handler: there it would keep a frame with the body


def _zstd_frame() -> _Member:
    return zstd.ZstdDecompressor(options=_WINDOW)


_CODINGS: dict[bytes, Callable[[], _Member]] = {b"gzip": _GzipMember, b"x-gzip": _GzipMember, b"zstd": _zstd_frame}


def decoder_of(fields: Sequence[bytes]) -> Decoder | None:
    """The decoder for the values of Content-Encoding; None for identity. Two codings are refused."""
    codings = [coding.strip(b" \t").lower() for field in fields for coding in field.split(b",")]
    match [coding for coding in codings if coding]:
        case [] | [b"identity"]:
            return None
        case [coding] if coding in _CODINGS:
            return Decoder(_CODINGS[coding])
    raise UnsupportedEncoding
