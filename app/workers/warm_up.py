"""Imported once by the fork server: prepares what takes long, before it forks worker processes."""

import pyarrow as pa

from gsh.histogram import quantiles

__all__: list[str] = []

# Its memory goes back to the operating system when it is free, and it reserves none: the bound of a worker counts what
# is reserved. Reading from memory needs no more threads, and each has a stack.
pa.set_memory_pool(pa.system_memory_pool())
pa.set_io_thread_count(1)
quantiles.polynomials()
pa.array([""])  # loads pandas if it is installed, for half a second
