"""Published files, changed in bytes, lengths and ends, and read again.

``python -m tests.gsh.results.hostile_files FOLDER SEED COUNT`` is the child process: a crash of Arrow ends it, and not
the tests. It prints how many changed files were refused, how many could be used, and what else happened.
"""

import json
import random
import resource
import shutil
import sys
from collections import Counter
from pathlib import Path

import gsh
from tests.gsh.client.hostile import changed, use
from tests.gsh.results.files import write_all, write_one, write_spark

__all__ = ["attack"]

_MEMORY = 6 << 30
"""The address space of the child: it ends a test in which a file takes what its headers declare."""
_ALONE = ("private.parquet", "private.arrow", "private.arrows", "private.csv")
_TOGETHER = ("folder-parquet", "folder-arrow", "folder-arrows", "folder-csv", "all.zip", "spark", "committed")


def attack(folder: Path, seed: int, count: int) -> dict[str, int]:
    """How often each outcome happened."""
    chance = random.Random(seed)
    write_one(folder)
    certificates = dict.fromkeys(_TOGETHER, write_all(folder))
    certificates["spark"] = write_spark(folder / "spark")
    certificates["committed"] = write_spark(folder / "committed", "by_country", "detail", is_committed=True)
    happened: Counter[str] = Counter()
    for number in range(count):
        name = (_ALONE + _TOGETHER)[number % 11]
        place = folder / "changed" / name
        (shutil.copytree if (folder / name).is_dir() else shutil.copy)(folder / name, _made(place))
        if name == "private.csv":
            shutil.copy(folder / f"{name}.certificate.json", place.parent)
        files = sorted(path for path in place.parent.rglob("*") if path.is_file() and path.name != "plan.json")
        file = chance.choice(files)
        file.write_bytes(changed(file.read_bytes(), chance))
        try:
            found = gsh.read(place)
        except gsh.FileError as error:
            str(error)
            happened["refused"] += 1
        except BaseException as error:  # whatever a hostile file brings about
            happened[f"{name}: {type(error).__name__}: {error}"] += 1
        else:
            use(found)
            is_outside = file.name.endswith("certificate.json")
            is_same = found.certificate.recorded(None) == certificates.get(name, found.certificate).recorded(None)
            happened[
                "used" if is_same or (is_outside and name == "folder-csv") else f"{name}: another certificate"
            ] += 1
        shutil.rmtree(folder / "changed")
    return dict(happened)


def _made(place: Path) -> Path:
    place.parent.mkdir()
    return place


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.stdout.write(json.dumps(attack(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
