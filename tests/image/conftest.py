"""The image is built once, before the first container starts."""

import os

import pytest

from tests.image.engine import IMAGE, ROOT, VERSION, checked, extra


@pytest.fixture(scope="session", autouse=True)
def image() -> None:
    """As `make image` builds it. Podman's own format of images has no health check."""
    options = ["--format=docker"] if os.environ["IMAGE_ENGINE"] == "podman" else []
    tags = [f"--tag={IMAGE}:{VERSION}", f"--tag={IMAGE}"]
    checked("build", *options, *extra("IMAGE_BUILD_OPTIONS"), *tags, ".", cwd=ROOT)
