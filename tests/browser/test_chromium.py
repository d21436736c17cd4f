"""If Chromium is missing and cannot be installed, one line names the package."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent / "chromium.sh"


def test_a_missing_chromium_is_one_line_that_names_the_package(tmp_path: Path) -> None:
    found = subprocess.run(
        ["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.splitlines() == ["The pages are tested in Chromium, which is missing: apt-get install chromium"]


def test_an_installed_chromium_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "chromium").touch(mode=0o755)

    assert subprocess.run(["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, check=True).returncode == 0
