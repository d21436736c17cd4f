"""The image is built once, before the first container starts."""

import pytest

from tests.image.engine import IMAGE, ROOT, VERSION, build


@pytest.fixture(scope="session", autouse=True)
def image() -> None:
    """As `make image` builds it."""
    build(ROOT, f"{IMAGE}:{VERSION}", IMAGE)
