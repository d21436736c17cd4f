"""A connection of DuckDB for one release, and a private folder for whatever it spills. Both go whatever happens."""

import functools
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import duckdb

from gsh.accounting.errors import InvalidParameter
from gsh.events.errors import EventsError
from gsh.library.arguments import integer

__all__ = ["FRACTION", "INTERRUPTED", "Workspace", "literal", "reading", "workspace"]

P = ParamSpec("P")
T = TypeVar("T")

INTERRUPTED = "Query interrupted"
"""What DuckDB makes of Ctrl-C."""
FRACTION = "not a whole number in the column "
"""What a query says if a column of integers has a fraction, before the name of the column."""
_GLANCE = 0.2
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Spilled data is raw data: the folder has mode 0700, and nothing in it survives the block."""

    connection: duckdb.DuckDBPyConnection
    folder: Path

    @property
    def memory(self) -> int:
        """The memory limit in bytes."""
        ((limit,),) = self.connection.execute("SELECT current_setting('memory_limit')").fetchall()
        number, unit = str(limit).split()
        return int(float(number) * _UNITS[unit])

    @contextmanager
    def watched(self, tell: Callable[[float], None]) -> Iterator[None]:
        """Tell the share of the query in this block that is done, a few times a second and from another thread."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_GLANCE):
                tell(max(self.connection.query_progress(), 0.0) / 100)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@contextmanager
def workspace(
    memory_limit: str | None = None, threads: int | None = None, folder: str | os.PathLike[str] | None = None
) -> Iterator[Workspace]:
    """``folder`` is where the private folder is made: where TMPDIR says, if it is None."""
    if memory_limit is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", memory_limit):
        raise InvalidParameter("memory_limit", "must be a number with a unit, such as 4GB")
    if threads is not None and integer("threads", threads) < 1:
        raise InvalidParameter("threads", "must be at least 1")
    if folder is not None and not os.path.isdir(folder):
        raise InvalidParameter("temporary", "must be a folder that exists")
    private = Path(tempfile.mkdtemp(prefix="gsh-publish-", dir=folder))  # mode 0700
    try:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(private / "spilled"),
            "preserve_insertion_order": False,
        }
        settings |= {} if memory_limit is None else {"memory_limit": memory_limit}
        settings |= {} if threads is None else {"threads": threads}
        with duckdb.connect(":memory:", config=settings) as connection:
            # With a progress bar that is not printed, a query knows how far it is.
            for setting in ("TimeZone = 'UTC'", "enable_progress_bar = true", "enable_progress_bar_print = false"):
                connection.execute(f"SET {setting}")
            yield Workspace(connection, private)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def reading(function: Callable[P, T]) -> Callable[P, T]:
    """Messages of DuckDB quote cells, so that only their kind is said. The exception does not stay as a context."""

    @functools.wraps(function)
    def guarded(*arguments: P.args, **options: P.kwargs) -> T:
        fault: BaseException
        try:
            return function(*arguments, **options)
        except RuntimeError as error:
            if str(error) != INTERRUPTED:
                raise
            fault = KeyboardInterrupt()
        except duckdb.InterruptException:
            fault = KeyboardInterrupt()
        except duckdb.OutOfMemoryException:
            fault = EventsError("memory_limit", "is too small for these events: give more, or fewer threads")
        except duckdb.IOException:
            fault = EventsError("events", "must be files that can be read, with room to spill on the disk")
        except duckdb.Error as error:
            _, is_fraction, name = str(error).partition(FRACTION)
            detail = f"must be readable to their end: DuckDB raised {type(error).__name__}"
            if is_fraction:
                detail = f"must have whole numbers in {name}: a number with a fraction needs another type, or a unit"
            fault = EventsError("events", detail)
        raise fault

    return guarded


def literal(text: str | Path) -> str:
    """A string in DuckDB's SQL."""
    return "'" + str(text).replace("'", "''") + "'"
