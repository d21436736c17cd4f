"""A bare environment: a copy of the checkout, a new virtual environment on PATH, and nothing else of this machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "Bare", "console_blocks", "install_lines"]

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_INSTALL = re.compile(r"pip install (?:-e )?(?:'\.\[[a-z,]+\]'|\. \./service|\.(?=[`\s]))")


def install_lines() -> list[str]:
    """Every documented line that installs this package from a checkout."""
    return sorted({line for document in DOCUMENTS for line in _INSTALL.findall(document.read_text())})


def console_blocks(document: Path) -> list[str]:
    return re.findall(r"^```console\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


class Bare:
    """A shell in a copy of the checkout. ``python3`` and ``pip`` are those of an environment that has no packages."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self._home = folder / "home"
        self._home.mkdir()
        listed = ["git", "ls-files", "-coz", "--exclude-standard"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, files.split("\0")):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.checkout / name, follow_symlinks=False)
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        self._path = f"{folder / 'env' / 'bin'}:/usr/bin:/bin"

    def run(self, script: str, **settings: str) -> str:
        """The output of a script. Each command in it must succeed."""
        with self.start(script, **settings) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, f"{script}\n{output[-3000:]}\n{errors[-5000:]}"
        return output

    def start(self, script: str, **settings: str) -> subprocess.Popen[str]:
        """A script in a session of its own, so that it can be killed with all that it starts."""
        inherited = {
            name: os.environ[name] for name in ("JAVA_HOME", "PIP_CONFIG_FILE", "TMPDIR") if name in os.environ
        }
        inherited |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
        own = {"PATH": self._path, "HOME": str(self._home), "LANG": "C.UTF-8", "SPARK_LOCAL_IP": "127.0.0.1"}
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.checkout,
            env=inherited | own | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
