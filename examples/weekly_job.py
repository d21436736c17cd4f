"""A weekly job that publishes a private table exactly once: events in DuckDB, then the service, then a Parquet file.

    python examples/weekly_job.py --week 2026-W46 --budget web --to published

It may be killed at any place and started again: the idempotency key names the release, so that every run gets the same
table and the budget is charged once. Without --events the job makes up a table of events.
"""

import argparse
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import gsh
from gsh.client import IdempotencyKeyReused, Retries

# At most 8 groups a user and 600 seconds in each: (ε, δ) = (1, 10⁻⁶) a week. gsh.calibrate found it, once for all.
SECONDS = gsh.Aggregates(names=["seconds"], covariance=[[600**2 * 17**2]], sensitivity=gsh.box(lower=[0], upper=[600]))
MECHANISM = gsh.Mechanism(c_u=8, tau=1, tau_star=89, sigma=17, aggregates=SECONDS)

MADE_UP = """
    SELECT hash(i) % 3000 AS user_id, 'https://example.org/' || (hash(i, 1) % 97) AS url,
           CASE hash(i, 2) % 4 WHEN 0 THEN NULL WHEN 1 THEN 'FR' ELSE 'US' END AS country,
           CAST(hash(i, 3) % 900 AS INTEGER) AS seconds
    FROM range(30000) AS made_up(i)
"""
# One record per user and group, within its bounds. Then at most C_u groups per user. A hash draws the lots and not
# random(): the same events give the same table again. Sums of integers do not depend on the order of rows.
BOUNDED = """
    WITH per_user AS (
        SELECT user_id, url, country, LEAST(GREATEST(COALESCE(SUM(seconds), 0), 0), 600) AS seconds
        FROM events WHERE user_id IS NOT NULL GROUP BY user_id, url, country
    ), ranked AS (
        SELECT url, country, seconds, ROW_NUMBER() OVER (
            PARTITION BY user_id ORDER BY md5(concat_ws('|', $week, user_id, url, country)), url, country) AS place
        FROM per_user
    )
    SELECT url, country, COUNT(*) AS users, CAST(SUM(seconds) AS BIGINT) AS seconds
    FROM ranked WHERE place <= $c_u GROUP BY url, country
"""
RETRIES = Retries(most=7, seconds=600, longest=60)


def bounded(events: duckdb.DuckDBPyConnection, week: str) -> pa.Table:
    """The groups and their true numbers, from a table or view with the name events."""
    return events.sql(BOUNDED, params={"week": week, "c_u": MECHANISM.c_u}).to_arrow_table()


def released(service: gsh.Client, key: str, budget: str, groups: pa.Table) -> tuple[pa.Table, str]:
    """The private table and its certificate. The same idempotency key always gets the same ones."""
    columns = {"users": "users", "keys": ["url", "country"]}
    try:
        made = service.release(groups, MECHANISM, **columns, epsilon=1, budget=budget, once=key, labels=["weekly"])
    except IdempotencyKeyReused:
        # The events or the query have changed since, or another client paid. What was released stays; a correction
        # is another release, under another idempotency key.
        print(f"{key} was released from other data or by another client: taking that table", file=sys.stderr)
        made = service.releases.load(key)
    return made.table, service.releases.certificate_text(key)


def publish(path: Path, write: Callable[[Path], object]) -> None:
    """The whole file or none: it is written under another name, is on the disk, and then gets its name."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    write(unfinished)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def client(url: str | None) -> gsh.Client:
    """Of the service. The access key, if it needs one, is in GSH_KEY: never in a command line or in code."""
    return gsh.Client(url, retries=RETRIES)


def publish_week(database: duckdb.DuckDBPyConnection, week: str, budget: str, url: str | None, folder: Path) -> Path:
    """The place of the private table of a week. Its certificate is next to it."""
    key = f"{budget}-views-{week}"
    with client(url) as service:
        table, certificate = released(service, key, budget, bounded(database, week))
    folder.mkdir(parents=True, exist_ok=True)
    # The table comes last: where it is, its certificate is.
    publish(folder / f"{key}.certificate.json", lambda path: path.write_text(certificate))
    publish(folder / f"{key}.parquet", lambda path: pq.write_table(table, path))
    return folder / f"{key}.parquet"


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish the views of one week.")
    parser.add_argument("--week", required=True, help="such as 2026-W46")
    parser.add_argument("--budget", required=True)
    parser.add_argument("--to", required=True, type=Path, help="the folder of the published tables")
    parser.add_argument("--events", help="a Parquet file with user_id, url, country, seconds of that week")
    parser.add_argument("--service", default=os.environ.get("GSH_URL", "http://127.0.0.1:8000"))
    given = parser.parse_args()
    with duckdb.connect() as database:
        events = database.read_parquet(given.events) if given.events else database.sql(MADE_UP)
        events.create_view("events")
        try:
            print("published", publish_week(database, given.week, given.budget, given.service, given.to))
        except gsh.Error as error:
            sys.exit(f"{given.week}: {error}")


if __name__ == "__main__":
    main()
