"""The source of random bits. A release always uses the operating system's; tests use recorded bits."""

import os
from collections.abc import Callable

__all__ = ["Entropy", "operating_system"]

Entropy = Callable[[int], bytes]
"""Gives as many independent uniform random bytes as asked for."""

operating_system: Entropy = os.urandom
"""The kernel's generator. The process buffers nothing, so forks and threads cannot repeat each other's bits."""
