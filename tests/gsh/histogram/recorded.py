"""Random bits that are the same in every run, and words chosen to be awkward."""

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["Recorded", "awkward_words"]


class Recorded:
    """Entropy that gives the chosen words first and then a fixed stream. It records all bytes that it gave."""

    def __init__(self, seed: str, words: NDArray[np.int64] | None = None) -> None:
        self._chosen = b"" if words is None else words.tobytes()
        self._generator = np.random.Generator(np.random.PCG64(int(hashlib.sha256(seed.encode()).hexdigest(), 16)))
        self.given: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        chosen, self._chosen = self._chosen[:size], self._chosen[size:]
        self.given.append(chosen + self._generator.bytes(size - len(chosen)))
        return self.given[-1]


def awkward_words() -> NDArray[np.int64]:
    """q next to 0 and to ½, at every power of two and next to it, on segment edges, and of both signs."""
    magnitudes = {0, 1, 2, 3, 2**63 - 1, 2**63 - 2, 2**62, 2**62 - 1, 2**62 + 1}
    for exponent in range(63):
        magnitudes |= {2**exponent, max(2**exponent - 1, 0), 2**exponent + 1}
        if exponent >= 7:
            edges = (2**exponent + k * 2 ** (exponent - 6) for k in range(1, 64, 9))
            magnitudes |= {edge + near for edge in edges for near in (-1, 0, 1)}
    both = [sign | magnitude for magnitude in sorted(magnitudes) for sign in (0, 2**63)]
    return np.array(both, np.uint64).view(np.int64)
