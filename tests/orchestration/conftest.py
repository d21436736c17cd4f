"""Tests that install dbt, Dagster and Airflow, which are large. Only ``make orchestration-test`` collects them."""

import os

if os.environ.get("ORCHESTRATION_TEST") != "1":
    collect_ignore_glob = ["test_*.py"]
