"""Where files are: a path of the local file system, or a URI of another one, such as s3://bucket/folder."""

import os
import re
from dataclasses import dataclass, replace
from errno import EIO

import pyarrow as pa
from pyarrow import fs

from gsh.arguments import path as path_of
from gsh.errors import FileError, InvalidParameter

__all__ = ["Location", "TooLarge", "located"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HALF_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)")


class TooLarge(ValueError):
    """A file, or a table, that takes more memory than it may."""


@dataclass(frozen=True, slots=True)
class Location:
    """A path of a file system."""

    files: fs.FileSystem
    path: str
    prefix: str
    """What comes before a path of this file system, so that Spark finds it whatever its default is."""
    is_local: bool

    def __truediv__(self, name: str) -> "Location":
        return replace(self, path=f"{self.path}/{name}")

    def is_file(self) -> bool:
        return self._is(fs.FileType.File)

    def is_folder(self) -> bool:
        return self._is(fs.FileType.Directory)

    def folders(self) -> list[str]:
        """The names of the folders inside of a folder, without those that readers skip."""
        found = self.files.get_file_info(fs.FileSelector(self.path))
        names = sorted(each.base_name for each in found if each.type == fs.FileType.Directory)
        return [name for name in names if not name.startswith((".", "_"))]

    def content(self, name: str, most_bytes: int) -> pa.Buffer:
        """The whole file, in memory: on the disk another program may change it. ``name`` is for errors."""
        try:
            with self.files.open_input_file(self.path) as file:
                size = file.size()
                content = file.read() if size <= most_bytes else b""
        except OSError as error:
            number = error.errno or EIO
        else:
            if size > most_bytes:
                raise TooLarge
            return pa.py_buffer(content)
        raise FileError(name, f"must be a file that can be read: {os.strerror(number)}")

    def _is(self, kind: fs.FileType) -> bool:
        return bool(self.files.get_file_info(self.path).type == kind)


def located(pointer: str, given: str | os.PathLike[str]) -> Location:
    """The place of a path or a URI. A name without a scheme is on the local, or a mounted, file system."""
    name = path_of(pointer, given)
    if _HALF_URI.match(name):
        raise InvalidParameter(pointer, "must be a path, or a URI with two slashes after its scheme, such as s3://")
    if not _URI.match(name) or name.startswith("file://"):
        path = os.path.abspath(name.removeprefix("file://"))
        return Location(fs.LocalFileSystem(), path.rstrip("/"), "file://", is_local=True)
    try:
        files, path = fs.FileSystem.from_uri(name)
    except (pa.ArrowException, OSError) as error:
        detail = "must be a place that pyarrow can reach, with its credentials"
        raise InvalidParameter(pointer, f"{detail}: {error}") from None
    prefix = name.partition("?")[0].rstrip("/").removesuffix(path.rstrip("/"))
    return Location(files, path.rstrip("/"), prefix, is_local=False)
