"""In a worker process: a bound on its memory, so that no request takes more than the service has.

The bound is on memory that can be written to (RLIMIT_DATA), in whatever library: an allocation beyond it fails before
the memory exists. It counts neither mapped files nor address space that is only reserved. It does count the stacks of
threads.
"""

import ctypes
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["bound_memory", "give_memory_back", "less_memory", "resident"]

_THREAD_STACK = 8 * 1024**2
_OTHER_THREADS = 3


def bound_memory(memory: int) -> None:
    """Let this process take this much more memory."""
    bound = _bound(memory)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))


@contextmanager
def less_memory(memory: int) -> Iterator[None]:
    """Let this process take only this much more memory inside the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _bound(memory)
    if soft == resource.RLIM_INFINITY or wanted < soft:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def give_memory_back() -> None:
    """Memory that is free but not yet returned to the operating system."""
    ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """The bytes of memory that this process has now, without mapped files."""
    _, pages, of_files, *_ = _pages()
    return (pages - of_files) * resource.getpagesize()


def _bound(memory: int) -> int:
    """What the process has now, this much more, and the stacks of threads that a library may start."""
    threads = (os.cpu_count() or 1) + _OTHER_THREADS
    return _taken() + memory + threads * _THREAD_STACK


def _taken() -> int:
    """The bytes that the bound counts."""
    return _pages()[5] * resource.getpagesize()


def _pages() -> list[int]:
    return list(map(int, Path("/proc/self/statm").read_text().split()))
