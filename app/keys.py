"""python -m app.keys: the same as ``gsh keys``, with the Python that has the service."""

import sys
from collections.abc import Sequence

from app.commands.keys import keys
from gsh.cli import run

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    return run(keys, arguments, "python -m app.keys")


if __name__ == "__main__":
    sys.exit(main())
