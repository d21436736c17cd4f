"""@hey-api/openapi-ts: the client and a program for it compile with every strict check of TypeScript."""

import re
import shutil
from pathlib import Path

import pytest

from tests.clients.generated import DOCUMENT, HERE, run

MODULES = HERE.parents[1] / "node_modules"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client, and a program that imports it."""
    assert MODULES.is_dir(), "make node_modules/stamp installs the generator"
    folder = tmp_path_factory.mktemp("openapi-ts")
    run(MODULES / ".bin" / "openapi-ts", "--input", DOCUMENT, "--output", folder / "gsh_client", "--no-log-file")
    shutil.copy(HERE / "story.ts", folder)
    return folder


def test_the_client_and_a_program_for_it_compile(generated: Path) -> None:
    """The program also has calls that must not compile: tsc fails if one of them does."""
    run(
        *(MODULES / ".bin" / "tsc", "--noEmit", "--strict", "--noUncheckedIndexedAccess", "--noImplicitOverride"),
        *("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--skipLibCheck"),
        *("--module", "esnext", "--moduleResolution", "bundler", generated / "story.ts"),
    )


def test_no_type_has_a_numbered_name(generated: Path) -> None:
    names = re.findall(r"(?m)^export type (\w+)", (generated / "gsh_client" / "types.gen.ts").read_text())

    assert len(names) > 100
    assert [name for name in names if re.search(r"\d$", name)] == []
