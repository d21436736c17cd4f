"""The system's Chromium, for Playwright, whose own download is not needed."""

import os
import shutil

from playwright.sync_api import Browser, Playwright

__all__ = ["launch"]

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launch(playwright: Playwright) -> Browser:
    """A headless Chromium that asks nobody for anything. Root has no sandbox to give it."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, "no Chromium: run `make test`, which installs it or says what to install"
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=found, args=_ARGUMENTS + sandbox)
