"""The system's Chromium for Playwright, instead of Playwright's own download."""

import os
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Playwright

from tests.app.process import PATIENCE

__all__ = ["launch", "launch_with_profile"]

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launch(playwright: Playwright) -> Browser:
    """A headless Chromium without background requests."""
    return playwright.chromium.launch(executable_path=_program(), args=_arguments())


def launch_with_profile(playwright: Playwright, profile: Path, **options: Any) -> BrowserContext:
    """A headless Chromium with a profile in a folder, where it caches compiled scripts."""
    context = playwright.chromium.launch_persistent_context(
        profile, executable_path=_program(), args=_arguments(), **options
    )
    context.set_default_timeout(1000 * PATIENCE)
    return context


def _program() -> str:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, "no Chromium: run `make test`, which installs it or says what to install"
    return found


def _arguments() -> list[str]:
    """Chromium's sandbox does not work for root."""
    return [*_ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else _ARGUMENTS
