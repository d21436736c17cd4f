"""``python -m benchmarks.library``: how long the library takes to load, and how much its installation takes up."""

from pathlib import Path

from benchmarks.accounting import start
from benchmarks.markdown import table
from benchmarks.timing import duration

__all__ = ["main"]

LIBRARY = Path(__file__).parent.parent / "build" / "library-env"
MECHANISM = "gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)"
ACCOUNT = f"gsh.exact({MECHANISM}, epsilon=0.349)"
CALIBRATE = "gsh.calibrate(c_u=51914, epsilon=0.349, delta=1e-5)"
RELEASE = f"gsh.release({MECHANISM}, keys=['a'], counts=[61004])"
STARTS = (
    ("the interpreter alone", "pass", ""),
    ("import gsh", "import gsh", "< 150 ms"),
    ("and account for a mechanism", f"import gsh; {ACCOUNT}", ""),
    ("and calibrate one", f"import gsh; {CALIBRATE}", ""),
    ("and release a group", f"import gsh; {RELEASE}", ""),
)


def main() -> None:
    print("\n## The library: time to load\n")
    print(loading())
    print("\n## The library: size of its environment, without pip\n")
    print(sizes())


def loading(rounds: int = 5) -> str:
    """A fresh interpreter each; what it takes more than the interpreter alone is the library's."""
    best = {name: min(filter(None, (start(program) for _ in range(rounds)))) for name, program, _ in STARTS}
    alone = best[STARTS[0][0]]
    rows = [
        (name, duration(best[name]), duration(best[name] - alone) if best[name] > alone else "", goal)
        for name, _, goal in STARTS
    ]
    return table(("program", "best", "more than the interpreter", "goal"), rows)


def sizes(most: int = 6) -> str:
    """The largest packages of the environment that ``make bench`` installs the wheel into, and all of them."""
    found = next(LIBRARY.glob("lib/python*/site-packages"), None)
    if found is None:
        return "`make bench` builds the environment first."
    parts = {path.name: _bytes(path) for path in found.iterdir() if path.name.partition("-")[0] not in _TOOLS}
    rows = [(name, _megabytes(size), "") for name, size in sorted(parts.items(), key=lambda part: -part[1])[:most]]
    return table(("part", "size", "goal"), [*rows, ("all", _megabytes(sum(parts.values())), "< 300 MB")])


_TOOLS = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils"}


def _bytes(path: Path) -> int:
    """Sizes of the files; a file that is there by two names counts once."""
    files = [file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in (file.stat() for file in files)}.values())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
