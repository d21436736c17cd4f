"""The layers of an image, and the packages in them.

``IMAGE_ENGINE=docker python -m tests.image.layers`` prints those of the code, with their sizes.
"""

import gzip
import io
import json
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.image.engine import IMAGE, VERSION, checked, inspected

__all__ = ["METADATA", "compressed_bytes", "contents", "digests", "parts"]

METADATA = {
    f"gaussian_sparse_histogram-{VERSION}.dist-info",
    f"gaussian_sparse_histogram_service-{VERSION}.dist-info",
    "/opt/service/bin/gsh",
}


def digests(image: str) -> list[str]:
    """Of the contents, before they are compressed."""
    return list(inspected("image", image)["RootFS"]["Layers"])


def contents(image: str) -> dict[str, bytes]:
    """Each layer as a tar file, which some engines compress. manifest.json is in archives of all engines."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "image.tar"
        checked("save", f"--output={archive}", image)
        with tarfile.open(archive) as saved:
            (manifest,) = json.loads(_read(saved, "manifest.json"))
            return {digest: _read(saved, name) for digest, name in zip(digests(image), manifest["Layers"], strict=True)}


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    assert member
    return member.read()


def parts(layer: bytes) -> set[str]:
    """Installed packages that have files in it, and the paths of all other files."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as opened:
        paths = ["/" + member.name.removeprefix("./") for member in opened if not member.isdir()]
    return {re.sub(r"^/opt/service/lib/python3\.\d+/site-packages/([^/]+)/.*", r"\1", path) for path in paths}


def compressed_bytes(layer: bytes) -> int:
    """As a registry has it."""
    return len(layer if layer.startswith(b"\x1f\x8b") else gzip.compress(layer, 6))


def main() -> None:
    for layer in contents(IMAGE).values():
        if (found := parts(layer)) <= {"app", "gsh", *METADATA}:
            sizes = f"{len(layer):9,} bytes, compressed {compressed_bytes(layer):7,}"
            sys.stdout.write(f"{sizes}: {', '.join(sorted(found))}\n")


if __name__ == "__main__":
    main()
