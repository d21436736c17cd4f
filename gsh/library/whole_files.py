"""Files that appear whole or not at all: written under another name, on the disk, and only then with their own name."""

import os
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

__all__ = ["whole_file", "whole_files"]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write. It gets its name when the block ends without an error; otherwise nothing is left.

    A file that has the name already is replaced.
    """
    with whole_files([path], replaced=[path]) as (file,):
        yield file


@contextmanager
def whole_files(
    paths: Sequence[str | os.PathLike[str]], replaced: Collection[str | os.PathLike[str]] = ()
) -> Iterator[Sequence[IO[bytes]]]:
    """Several files to write: all get their names, or none of them. The last one gets its name last.

    ``FileExistsError`` if another program was first, unless the name is one of ``replaced``.
    """
    replaceable = [path in replaced for path in paths]
    targets = [Path(os.path.realpath(path)) for path in paths]  # a link stays, and what it leads to is replaced
    partials = [each.with_name(f".{each.name[:200]}.{secrets.token_hex(4)}.partial") for each in targets]
    try:
        with ExitStack() as opened:
            files = [opened.enter_context(partial.open("xb")) for partial in partials]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        _name(partials, targets, replaceable)
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


def _name(partials: Sequence[Path], targets: Sequence[Path], replaceable: Sequence[bool]) -> None:
    """An error or Ctrl-C between two names takes back those that were not there before."""
    new: list[Path] = []
    try:
        for partial, target, may_replace in zip(partials, targets, replaceable, strict=True):
            if not may_replace:
                os.link(partial, target)  # unlike a rename, it fails if the name is taken
                new.append(target)
            else:
                if not os.path.lexists(target):
                    new.append(target)
                partial.replace(target)
    except BaseException:
        for target in new:
            target.unlink(missing_ok=True)
        raise
