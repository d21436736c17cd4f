"""A weekly job that publishes a private table exactly once: events, then the service, then a Parquet file.

    python examples/weekly_job.py --week 2026-W46 --budget web --to published

It may be killed at any place and started again: the name of the release, `once`, does not change, so that every run
gets the same table and the budget is charged once. Without --events the job makes up events.

It needs this package with its engine: pip install '.[duckdb]'
"""

import argparse
import os
import sys
from pathlib import Path

import gsh
from gsh.client import Retries

try:
    import duckdb
except ModuleNotFoundError:
    sys.exit("weekly_job.py needs DuckDB: pip install '.[duckdb]' from the checkout")

MADE_UP = """
    SELECT hash(i) % 3000 AS user_id, 'https://example.org/' || (hash(i, 1) % 97) AS url,
           CASE hash(i, 2) % 4 WHEN 0 THEN NULL WHEN 1 THEN 'FR' ELSE 'US' END AS country,
           CAST(hash(i, 3) % 900 AS INTEGER) AS seconds
    FROM range(30000) AS made_up(i)
"""
# A job at night may wait ten minutes for the service to come back.
RETRIES = Retries(seconds=600, longest=60)


def publish_week(
    events: str | duckdb.DuckDBPyRelation, week: str, budget: str, service: gsh.Client, folder: Path
) -> gsh.Published:
    """The private table of a week: at most 8 pages and countries of each user, and 600 seconds in each of them."""
    folder.mkdir(parents=True, exist_ok=True)
    once = f"{budget}-views-{week}"
    return gsh.publish(
        events,
        user="user_id",
        by=["url", "country"],
        sums={"seconds": (0, 600)},
        c_u=8,
        epsilon=1,
        delta=1e-6,
        service=service,
        budget=budget,
        once=once,
        description=f"views of {week}",
        to=folder / f"{once}.parquet",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish the views of one week.")
    parser.add_argument("--week", required=True, help="such as 2026-W46")
    parser.add_argument("--budget", required=True)
    parser.add_argument("--to", required=True, type=Path, help="the folder of the published tables")
    parser.add_argument("--events", help="Parquet files with user_id, url, country, seconds of that week")
    parser.add_argument("--service", default=os.environ.get("GSH_URL", "http://127.0.0.1:8000"))
    given = parser.parse_args()
    try:
        # The access key, if the service needs one, is in GSH_KEY: never in a command line or in code.
        with gsh.Client(given.service, retries=RETRIES) as service:
            made = publish_week(given.events or duckdb.sql(MADE_UP), given.week, given.budget, service, given.to)
    except gsh.Error as error:
        sys.exit(f"{given.week}: {error}")
    print(made.summary())


if __name__ == "__main__":
    main()
