"""The source of random bits: the operating system, or the stream of a seed; tests use recorded bits."""

import hashlib
import hmac
import os
from collections.abc import Callable

__all__ = ["Entropy", "operating_system", "stream"]

Entropy = Callable[[int], bytes]
"""Gives as many independent uniform random bytes as asked for."""

operating_system: Entropy = os.urandom
"""The kernel's generator. The process buffers nothing, so forks and threads cannot repeat each other's bits."""


def stream(seed: bytes, *parts: bytes) -> Entropy:
    """Random bits that are the same for the same seed and parts, and unrelated for others.

    key = HMAC-SHA-256(seed, the parts, each after its length in 8 bytes)
    block i of the stream = SHAKE-256(key, i)
    """
    message = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    key = hmac.digest(seed, message, "sha256")
    block = 0

    def next_bytes(size: int) -> bytes:
        nonlocal block
        block += 1
        return hashlib.shake_256(key + block.to_bytes(8, "little")).digest(size)

    return next_bytes
