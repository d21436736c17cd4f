"""How the bytes of a stored answer are encrypted: part by part, with a random key that belongs to one draw.

    stored = AES-256-GCM(key, nonce = number of the part, associated data = id of the answer and number of the part)

A draw has its own key, and each part is encrypted once, so no nonce is used twice. A part is compressed first and then
padded, so the stored length of an answer that nobody may read says little about it.

Version 0.2 combined large answers with a stream of SHAKE-256. Version 0.1 did not encrypt. Both are still read.
"""

import hashlib
from functools import cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["KEY_BYTES", "opened", "opened_of_version_0_2", "sealed"]

KEY_BYTES = 32
_LENGTH = 4  # bytes of a length
_LEAST, _STEP = 1024, 64 * 1024


def sealed(content: bytes, key: bytes, answer: str, part: int) -> bytes:
    """The part, compressed, padded and encrypted. Call it once for each part of an answer."""
    compressed = bytes(_codec().compress(content))
    plain = b"".join(len(each).to_bytes(_LENGTH, "big") for each in (content, compressed)) + compressed
    return AESGCM(key).encrypt(_nonce(part), plain.ljust(_padded(len(plain)), b"\0"), _context(answer, part))


def opened(stored: bytes, key: bytes, answer: str, part: int) -> bytes:
    """The part as it was. ValueError if it was changed."""
    try:
        plain = AESGCM(key).decrypt(_nonce(part), stored, _context(answer, part))
    except InvalidTag:
        raise ValueError("a part of an answer was changed") from None
    size, compressed = (int.from_bytes(plain[at : at + _LENGTH], "big") for at in (0, _LENGTH))
    return bytes(_codec().decompress(plain[2 * _LENGTH : 2 * _LENGTH + compressed], size))


def opened_of_version_0_2(stored: bytes, key: bytes, part: int) -> bytes:
    """A part that was combined with a stream that the key and the number of the part determine."""
    stream = hashlib.shake_256(key + part.to_bytes(8, "big")).digest(len(stored))
    mixed = int.from_bytes(stored, "little") ^ int.from_bytes(stream, "little")
    plain = mixed.to_bytes(len(stored), "little")
    return bytes(_codec().decompress(plain[_LENGTH:], int.from_bytes(plain[:_LENGTH], "big")))


def _padded(size: int) -> int:
    """The next power of two; from 64 KiB on the next multiple of 64 KiB."""
    step = min(max(1 << (size - 1).bit_length(), _LEAST), _STEP)
    return -(-size // step) * step


def _nonce(part: int) -> bytes:
    return part.to_bytes(12, "big")


def _context(answer: str, part: int) -> bytes:
    return f"{answer} {part}".encode()


@cache
def _codec() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - half a second, which programs that read no answer do not need

    return pa.Codec("zstd", 1)
