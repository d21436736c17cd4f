"""Where random bits come from. The service always passes the operating system's; tests pass recorded ones."""

import os
from collections.abc import Callable

__all__ = ["Entropy", "operating_system"]

Entropy = Callable[[int], bytes]
"""As many independent uniform random bytes as asked for."""

operating_system: Entropy = os.urandom
"""The kernel's generator: nothing is buffered in the process, so forks and threads cannot repeat each other."""
