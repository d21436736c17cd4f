"""The weekly job under Dagster: the policy runs it again after a failure, and the budget is still charged once."""

from pathlib import Path

import duckdb
import weekly_job
from dagster import Backoff, Config, RetryPolicy, job, op


class Week(Config):
    """What one run publishes."""

    week: str
    budget: str
    folder: str
    service: str = "http://127.0.0.1:8000"


@op(retry_policy=RetryPolicy(max_retries=3, delay=1, backoff=Backoff.EXPONENTIAL))
def private_views(config: Week) -> str:
    with duckdb.connect() as database:
        database.sql(weekly_job.MADE_UP).create_view("events")
        return str(weekly_job.publish_week(database, config.week, config.budget, config.service, Path(config.folder)))


@job
def weekly_views() -> None:
    private_views()
