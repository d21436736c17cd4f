"""A private table per week as a partitioned Dagster asset: however often a week is materialised, it is paid once.

    dagster asset materialize -f examples/dagster_asset.py --select private_views --partition 2026-11-09

The name of the release is made of the partition. So a retry, a backfill and a second materialisation all get the same
table. The events of a week are in events/2026-11-09.parquet, and its table in published/. GSH_URL is the service, and
GSH_KEY the access key, if the service needs one.

It needs Dagster, and this package with its engine: pip install '.[duckdb]' dagster
"""

from pathlib import Path

from dagster import AssetExecutionContext, Backoff, MaterializeResult, RetryPolicy, WeeklyPartitionsDefinition, asset

import gsh

WEEKS = WeeklyPartitionsDefinition(start_date="2026-01-05", day_offset=1)  # a week is named by its Monday
RETRIES = RetryPolicy(max_retries=3, delay=60, backoff=Backoff.EXPONENTIAL)


@asset(partitions_def=WEEKS, retry_policy=RETRIES)
def private_views(context: AssetExecutionContext) -> MaterializeResult:
    """Users and likes per page and country, of one week."""
    once = f"web-dagster-views-{context.partition_key}"
    Path("published").mkdir(exist_ok=True)
    with gsh.Client() as service:
        private = gsh.publish(
            f"events/{context.partition_key}.parquet",
            user="user_id",
            by=["url", "country"],
            sums={"likes": (0, 1)},
            c_u=8,
            epsilon=1,
            delta=1e-6,
            service=service,
            budget="web",
            once=once,
            to=f"published/{once}.parquet",
        )
    return MaterializeResult(metadata={"summary": private.summary(), "groups": len(private)})
