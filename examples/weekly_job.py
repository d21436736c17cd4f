"""A weekly job that publishes a private table exactly once: events in DuckDB, then the service, then a Parquet file.

    python examples/weekly_job.py --week 2026-W46 --budget web --to published

It may be killed at any place and started again: the idempotency key names the release, so that every run gets the same
table and the budget is charged once. Without --events the job makes up a table of events.
"""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb
import httpx
import pyarrow as pa
import pyarrow.parquet as pq

# At most 8 groups a user and 600 seconds in each: (ε, δ) = (1, 10⁻⁶) a week. POST /calibrate found it, once for all.
SECONDS = {"names": ["seconds"], "covariance": [[600**2 * 17**2]]}
SECONDS |= {"sensitivity": {"kind": "box", "lower": [0], "upper": [600]}}
MECHANISM = {"c_u": 8, "tau": 1, "tau_star": 89, "sigma": 17, "aggregates": SECONDS}
COLUMNS = {"key_columns": ["url", "country"], "count_column": "users"}

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
ARROW = "application/vnd.apache.arrow.stream"
ATTEMPTS, LONGEST_WAIT = 8, 60.0


def bounded(events: duckdb.DuckDBPyConnection, week: str) -> pa.Table:
    """The groups and their true numbers, from a table or view with the name events."""
    return events.sql(BOUNDED, params={"week": week, "c_u": MECHANISM["c_u"]}).to_arrow_table()


def released(service: httpx.Client, key: str, budget: str, groups: pa.Table) -> tuple[pa.Table, bytes]:
    """The private table and its certificate. The same idempotency key always gets the same ones."""
    request = {"mechanism": MECHANISM, "epsilon": 1, "budget": budget, **COLUMNS, "labels": ["weekly"]}
    form = {"request": (None, json.dumps(request), "application/json"), "table": ("groups", _as_arrow(groups))}
    answer = patiently(lambda: service.post("/release/table", files=form, headers={"Idempotency-Key": key}))
    if answer.status_code == 422 and answer.json()["type"] == "/problems/key-reused":
        # The events have changed since, or the query. What was published stays; a correction needs a new key.
        print(f"{key} was made from other data: taking the table of that release", file=sys.stderr)
        answer = patiently(lambda: service.get(f"/releases/{key}/answer", headers={"Accept": ARROW}))
    certificate = patiently(lambda: service.get(f"/releases/{key}/certificate")) if answer.is_success else answer
    if not certificate.is_success:
        sys.exit(f"{key}: {certificate.json()['detail']}")
    return pa.ipc.open_stream(answer.content).read_all(), certificate.content


def _as_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer, after retries if the connection breaks or the service is busy. A release is still charged once."""
    for attempt in range(ATTEMPTS):
        wait = 2.0**attempt / 4
        try:
            answer = send()
            if answer.status_code not in (429, 503) or attempt == ATTEMPTS - 1:
                return answer
            asked = answer.headers.get("Retry-After", "")
            wait = max(wait, float(asked)) if asked.isdigit() else wait
        except httpx.TransportError:
            if attempt == ATTEMPTS - 1:
                raise
        time.sleep(min(wait, LONGEST_WAIT))
    raise AssertionError


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


def client(url: str) -> httpx.Client:
    """Of the service. The access key, if it needs one, is in the environment: never in a command line or in code."""
    access_key = os.environ.get("ACCESS_KEY")
    headers = {"Authorization": f"Bearer {access_key}"} if access_key else {}
    return httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(600, connect=10))


def publish_week(database: duckdb.DuckDBPyConnection, week: str, budget: str, url: str, folder: Path) -> Path:
    """The place of the private table of a week. Its certificate is next to it."""
    key = f"{budget}-views-{week}"
    with client(url) as service:
        table, certificate = released(service, key, budget, bounded(database, week))
    folder.mkdir(parents=True, exist_ok=True)
    # The table comes last: where it is, its certificate is.
    publish(folder / f"{key}.certificate.json", lambda path: path.write_bytes(certificate))
    publish(folder / f"{key}.parquet", lambda path: pq.write_table(table, path))
    return folder / f"{key}.parquet"


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish the views of one week.")
    parser.add_argument("--week", required=True, help="such as 2026-W46")
    parser.add_argument("--budget", required=True)
    parser.add_argument("--to", required=True, type=Path, help="the folder of the published tables")
    parser.add_argument("--events", help="a Parquet file with user_id, url, country, seconds of that week")
    parser.add_argument("--service", default="http://127.0.0.1:8000")
    given = parser.parse_args()
    with duckdb.connect() as database:
        events = database.read_parquet(given.events) if given.events else database.sql(MADE_UP)
        events.create_view("events")
        print("published", publish_week(database, given.week, given.budget, given.service, given.to))


if __name__ == "__main__":
    main()
