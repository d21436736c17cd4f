"""Random bits from a seed: the same for the same groups, unrelated for others.

    key = HMAC-SHA-256(seed, label; digest of the plan; digest of a partition's content)
    block i of the stream = SHAKE-256(key, i)

An engine may compute a partition many times: a task is tried again, or runs twice. On the same groups it draws the
same noise again. On other groups it draws noise that shares nothing with the first, so that the difference of two
outputs is never exact. To a reader who does not have the seed the bits look uniform, as those of the operating system
do: the guarantee rests on the hash functions, as there it rests on the kernel's generator.
"""

import hashlib
import hmac

from gsh.histogram.entropy import Entropy

__all__ = ["SEED_BYTES", "stream_of"]

SEED_BYTES = 32
_LABEL = b"gsh partition stream 1"


def stream_of(seed: bytes, plan_digest: str, content: bytes) -> Entropy:
    """The stream of one partition. ``content`` is the digest of its groups (gsh/histogram/content.py)."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    parts = (_LABEL, plan_digest.encode(), content)
    said = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    key = hmac.digest(seed, said, "sha256")
    block = 0

    def next_bytes(size: int) -> bytes:
        nonlocal block
        block += 1
        return hashlib.shake_256(key + block.to_bytes(8, "little")).digest(size)

    return next_bytes
