"""Imported once by the process that worker processes are forked from, to prepare what takes long."""

import pyarrow as pa

from gsh.histogram import quantiles

__all__: list[str] = []

quantiles.table()
pa.array([""])  # loads pandas if it is installed, for half a second
