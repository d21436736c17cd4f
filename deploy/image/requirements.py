"""python requirements.py PYPROJECT: write what the service needs to service.txt, and what builds it to build.txt."""

import sys
import tomllib
from pathlib import Path

__all__: list[str] = []


def main() -> None:
    """Next to pyproject.toml."""
    place = Path(sys.argv[1])
    read = tomllib.loads(place.read_text())
    project = read["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["service"]]
    place.with_name("service.txt").write_text("\n".join(needed) + "\n")
    place.with_name("build.txt").write_text("\n".join(read["build-system"]["requires"]) + "\n")


if __name__ == "__main__":
    main()
