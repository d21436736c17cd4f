"""Files that only their owner can read or write, in a folder next to an output: seeds, and what was drawn from them."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from typing import Any

from gsh.errors import InvalidParameter

__all__ = ["check_own", "write_own"]


def write_own(folder: str, path: str, document: Mapping[str, Any]) -> None:
    """A JSON document in the folder, which is made if it is not there. Of two writers, one is first."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    check_own(folder, path)
    partial = f"{path}.{secrets.token_hex(4)}.partial"
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(partial, path)
    except FileExistsError:
        pass  # that of the other writer stays
    finally:
        os.unlink(partial)


def check_own(folder: str, *files: str) -> None:
    """On a local file system: nobody else can write to the folder, or has put these files into it.

    Who can plant a seed can remove the noise that is made of it.
    """
    for path in (folder, *files):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        is_expected = (stat.S_ISDIR if path == folder else stat.S_ISREG)(found.st_mode)
        if not is_expected or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise InvalidParameter("to", f"must have a staging folder of your own: {path} belongs to others")
