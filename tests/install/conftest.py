"""Tests that install packages, each in an environment of its own. Only ``make install-test`` collects them."""

import os

if os.environ.get("INSTALL_TEST") != "1":
    collect_ignore_glob = ["test_*.py"]
