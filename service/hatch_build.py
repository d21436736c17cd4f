"""The dependencies of the service: the library of the same version, and requirements.txt."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Dependencies(MetadataHookInterface):
    """The version is written once, in the library's pyproject.toml, so the requirement is made from it."""

    def update(self, metadata: dict[str, Any]) -> None:
        lines = (Path(self.root) / "requirements.txt").read_text().splitlines()
        listed = [line for line in lines if not line.startswith("#")]
        metadata["dependencies"] = [f"gaussian-sparse-histogram=={metadata['version']}", *listed]
