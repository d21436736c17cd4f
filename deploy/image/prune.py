"""python prune.py FOLDER: delete from installed packages what the service never loads, so that the image is smaller.

A line that matches nothing is an error: a new version of a package has moved it, and the image would grow unnoticed.
"""

import shutil
import sys
from pathlib import Path

__all__ = ["UNUSED", "prune"]

UNUSED = (
    # Tests, and what is needed only to compile against a package.
    "**/tests",
    "**/*.h",
    "**/*.hpp",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.pyi",
    "**/*.pyx",
    "pyarrow/include",
    "pyarrow/src",
    # The same library three times; the others load the one with the short version.
    "pyarrow/libarrow_python.so",
    "pyarrow/libarrow_python.so.*.*.*",
    # Flight, and files in the stores of clouds.
    "pyarrow/*flight*",
    "pyarrow/*s3*",
    "pyarrow/_azurefs*",
    "pyarrow/_gcsfs*",
    "pyarrow/_hdfs*",
    # plotly's Python: the pages need one script of package_data.
    "plotly/[!_p]*",
    "plotly/package_data/widgetbundle.js",
    # SciPy without scipy.special, and what that may need.
    "scipy/io",
    "scipy/ndimage",
    "scipy/optimize",
    "scipy/signal",
    "scipy/spatial",
    "scipy/stats",
    # uvicorn's watcher of changed files, for developers.
    "watchfiles",
    # The installer.
    "pip",
    "pip-*.dist-info",
)
"""Patterns within the folder of the packages."""


def prune(packages: Path) -> list[str]:
    """Delete all that matches. The result is the patterns that match nothing."""
    return [pattern for pattern in UNUSED if not _deleted(packages, pattern)]


def _deleted(packages: Path, pattern: str) -> bool:
    found = list(packages.glob(pattern))
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # it may have been in a folder that was found before
    return bool(found)


def main() -> int:
    missing = prune(Path(sys.argv[1]))
    for pattern in missing:
        sys.stderr.write(f"prune.py: nothing matches {pattern}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
