"""Tests that need real data from packages. Only ``make gallery-test`` collects them."""

import os

if os.environ.get("GALLERY_TEST") != "1":
    collect_ignore_glob = ["test_*.py"]
