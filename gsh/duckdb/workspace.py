"""A connection of DuckDB for one release, and a private folder for what it spills. Both are removed on exit."""

import functools
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import duckdb

from gsh.arguments import integer, path, text
from gsh.errors import EventsError, InvalidParameter
from gsh.library.whole_files import ended_by_signals

__all__ = ["CHANGED", "INTERRUPTED", "Workspace", "digits_in", "literal", "literal_path", "reading", "workspace"]

P = ParamSpec("P")
T = TypeVar("T")

INTERRUPTED = "Query interrupted"
"""What DuckDB makes of Ctrl-C."""
CHANGED = "gsh: events changed"
"""What a query raises if events are others when they are read again. ``reading`` knows it by its exact words."""
_FRACTION = re.compile(r"Invalid Input Error: gsh: more than ([0-9]+) digits in ([0-9a-f]+)")
_EXTENSION = re.compile(r"required extension '(\w+)")
_OTHERWISE = "or give a pyarrow.dataset (docs/publish.md, Object stores)"
_INTERVAL = 0.2
_MEMORY = re.compile(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B")
_MOST_THREADS = 4096
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

    def number(self, query: str) -> int:
        """The number that a query gives; 0 for none."""
        ((number,),) = self.connection.execute(query).fetchall()
        return int(number or 0)

    def described(self, source: str) -> list[tuple[str, str]]:
        """The columns of a table or scan, with their types as DuckDB writes them."""
        rows = self.connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
        return [(str(row[0]), str(row[1])) for row in rows]

    @contextmanager
    def watched(self, report: Callable[[float], None]) -> Iterator[None]:
        """Report how much of the query in this block is done, a few times a second, from another thread."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_INTERVAL):
                report(max(self.connection.query_progress(), 0.0) / 100)

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
    if memory_limit is not None and not _MEMORY.fullmatch(text("memory_limit", memory_limit)):
        raise InvalidParameter("memory_limit", "must be a number with a unit, such as 4GB")
    if threads is not None and not 1 <= integer("threads", threads) <= _MOST_THREADS:
        raise InvalidParameter("threads", f"must be from 1 to {_MOST_THREADS}")
    if folder is not None and not os.path.isdir(path("temporary", folder)):
        raise InvalidParameter("temporary", "must be a folder that exists")
    with ended_by_signals(), _private_folder(folder) as private:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(private / "spilled"),
            "preserve_insertion_order": False,
        }
        settings |= {} if memory_limit is None else {"memory_limit": memory_limit}
        settings |= {} if threads is None else {"threads": threads}
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # With a progress bar that is not printed, a query knows how far it is. In a notebook without ipywidgets
            # DuckDB refuses these settings, and nobody is told how far it is.
            with suppress(duckdb.InvalidInputException):
                connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            yield Workspace(connection, private)


@contextmanager
def _private_folder(parent: str | os.PathLike[str] | None) -> Iterator[Path]:
    private = Path(tempfile.mkdtemp(prefix="gsh-publish-", dir=parent))  # mode 0700
    try:
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)


def reading(function: Callable[P, T]) -> Callable[P, T]:
    """Messages of DuckDB quote cells, so errors say only their kind, and do not keep the exception."""

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
        except duckdb.HTTPException as error:
            answer = getattr(error, "status_code", "nothing")
            detail = f"must be files that can be read: the store answered {answer}; make a persistent secret"
            fault = EventsError("events", f"{detail} with the credentials, {_OTHERWISE}")
        except duckdb.IOException:
            fault = EventsError("events", "must be files that can be read, with room to spill on the disk")
        except duckdb.Error as error:
            detail = f"must be readable to their end: DuckDB raised {type(error).__name__}"
            if isinstance(error, duckdb.ConversionException):
                detail += "; in CSV only an empty cell is a missing value: NA and NULL are not"
            found = _EXTENSION.search(str(error))
            if found is not None:
                detail = f"must be files that can be read here: they need DuckDB's extension {found[1]}"
                detail += f"; INSTALL it once where there is a network, {_OTHERWISE}"
            found = _FRACTION.fullmatch(str(error))
            if found is not None:
                detail = _too_many_digits(int(found[1]), bytes.fromhex(found[2]).decode())
            if CHANGED in str(error):
                detail = "must not change while they are read"
            fault = EventsError("events", detail)
        raise fault

    return guarded


def _too_many_digits(most: int, name: str) -> str:
    shape, remedy = f"at most {most} digits after the point", "more need a type of their own"
    if most == 0:
        shape, remedy = "whole numbers", "a fraction needs another type or a unit"
    return f"must have {shape} in {name}: {remedy}; NA is not a number"


def digits_in(name: str, most: int) -> str:
    """What a query raises if a column has more digits after the point. ``reading`` knows it by its exact words."""
    return f"gsh: more than {most} digits in {name.encode().hex()}"


def literal_path(name: str | Path) -> str:
    """A path without patterns, as DuckDB's readers take it: they would read [1] as a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(name))


def literal(text: str | Path) -> str:
    """A string in DuckDB's SQL."""
    return "'" + str(text).replace("'", "''") + "'"
