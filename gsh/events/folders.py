"""Columns that folders name, as in Hive: day=2026-11-16/part.parquet.

A folder gives a column of the plan only if no file has that column, every file is in such a folder, and the column is
not the user. Otherwise it is an error: one who makes folders could replace a column of the files. A column that
the plan does not name is never taken from a folder.
"""

from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from gsh.errors import InvalidParameter
from gsh.events.tables import AnyPlan

__all__ = ["checked_folders", "folder_columns"]


def folder_columns(
    files: Sequence[str], plan: AnyPlan, columns_of: Callable[[Sequence[str]], Iterable[str]]
) -> list[str]:
    """The columns of the plan that the folders give. Only if there are any, ``columns_of`` files is called."""
    wanted = checked_folders(files, plan, columns_of)
    if not wanted:
        return []
    folders = [_names(file) for file in files]
    for name in wanted:
        if any(names.count(name) != 1 or sum(_plain(each) == _plain(name) for each in names) != 1 for names in folders):
            raise InvalidParameter("events", f"must all be in one folder {name}=… each, with the name in these letters")
    if len({frozenset(names) for names in folders}) != 1:
        raise InvalidParameter("events", "must all be in folders of the same columns, if one of these columns is used")
    return wanted


def checked_folders(
    files: Sequence[str], plan: AnyPlan, columns_of: Callable[[Sequence[str]], Iterable[str]]
) -> list[str]:
    """The columns of the plan that are names of folders: not the user, and no column that files in them have."""
    wanted = []
    for pointer, name in plan.pointed:
        below = [file for file in files if _plain(name) in map(_plain, _names(file))]
        if not below:
            continue
        if _plain(name) in map(_plain, columns_of(below)):
            detail = f"must have the column {name} either in the files or in the names of folders, not in both"
            raise InvalidParameter("events", f"{detail}: rename one of them")
        if pointer == "user":
            detail = f"must be a column of the files: the names of folders {name}=… are not taken for users"
            raise InvalidParameter("user", detail)
        wanted.append(name)
    return wanted


def _names(file: str) -> list[str]:
    """The names of columns in the folders of a path, as they are written."""
    return [name for name, mark, _ in (folder.partition("=") for folder in file.split("/")[:-1]) if mark and name]


def _plain(name: str) -> str:
    """As SQL engines compare names: without case. Some engines decode the names of folders too."""
    return unquote(name).lower()
