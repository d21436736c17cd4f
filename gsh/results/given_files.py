"""Files in memory by their names, read as if they were in one folder."""

from collections.abc import Mapping
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import fs

from gsh.results.locations import Location

__all__ = ["folder_of"]


def folder_of(files: Mapping[str, pa.Buffer]) -> Location:
    """The folder that has these files, and no others."""
    return Location(fs.PyFileSystem(_Given(files)), "", "", is_local=False)


class _Given(fs.FileSystemHandler):  # type: ignore[misc]
    """A file system of one folder. Nothing can be written to it."""

    def __init__(self, files: Mapping[str, pa.Buffer]) -> None:
        super().__init__()
        self._files = files

    def get_type_name(self) -> str:
        return "given"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path.strip("/")) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return [self._info(name) for name in self._files] if not selector.base_dir.strip("/") else []

    def open_input_file(self, path: str) -> pa.NativeFile:
        content = self._files.get(path.strip("/"))
        if content is None:
            raise FileNotFoundError(path)
        return pa.PythonFile(pa.BufferReader(content), mode="r")

    open_input_stream = open_input_file

    def _info(self, name: str) -> fs.FileInfo:
        if name in self._files:
            return fs.FileInfo(f"/{name}", fs.FileType.File, size=self._files[name].size)
        return fs.FileInfo(f"/{name}", fs.FileType.NotFound if name else fs.FileType.Directory)

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise PermissionError("these files cannot be changed")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refused
    move = copy_file = open_output_stream = open_append_stream = _refused
