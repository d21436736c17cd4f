"""A change of the code is a small download: the layers that a build makes anew, and what is in them."""

import shutil
import uuid
from pathlib import Path

import pytest

from tests.image.engine import IMAGE, ROOT, build, checked, engine_or_skip
from tests.image.layers import METADATA, compressed_bytes, contents, digests, parts

engine_or_skip()
pytestmark = pytest.mark.image

CHANGED = f"{IMAGE}:changed"
MOST_BYTES = 1_000_000
"""Of all new layers together, compressed."""


def copied(tree: Path) -> Path:
    """All that a build reads."""
    names = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in ("Dockerfile", ".dockerignore", *names):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, tree / name)
    return tree


@pytest.mark.parametrize("changed", ["app/version.py", "gsh/errors.py"])
def test_a_change_of_one_package_makes_less_than_a_megabyte_anew(tmp_path: Path, changed: str) -> None:
    """The other package and the dependencies are the same layers as before."""
    tree = copied(tmp_path / "tree")
    with (tree / changed).open("a") as source:
        source.write(f"# {uuid.uuid4()}\n")  # no engine has built this before
    build(tree, CHANGED)
    try:
        after = contents(CHANGED)
    finally:
        checked("image", "rm", CHANGED)
    before = digests(IMAGE)
    new = [content for digest, content in after.items() if digest not in before]

    assert set().union(*map(parts, new)) == {changed.partition("/")[0], *METADATA}
    assert sum(map(compressed_bytes, new)) < MOST_BYTES
