"""A private table per week as an Airflow DAG: however often a task runs for a date, that date is paid once.

    AIRFLOW__CORE__DAGS_FOLDER=$PWD/examples airflow dags test weekly_private_views 2026-11-09

The name of the release is made of ds, the date of the run. So a retry, a cleared task and a backfill all get the same
table. The events of a date are in events/2026-11-09.parquet, and its table in published/. GSH_URL is the service, and
GSH_KEY the access key, if the service needs one.

It needs Airflow 3, and this package with its engine: pip install '.[duckdb]' 'apache-airflow>=3'
"""

from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import dag, task

import gsh


@task(retries=3, retry_delay=timedelta(minutes=1), retry_exponential_backoff=True)
def private_views(week: str) -> str:
    """Users and likes per page and country, of one week."""
    once = f"web-airflow-views-{week}"
    Path("published").mkdir(exist_ok=True)
    with gsh.Client() as service:
        private = gsh.publish(
            f"events/{week}.parquet",
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
    return private.summary()


@dag(schedule="0 6 * * 1", start_date=datetime(2026, 1, 5), catchup=False)
def weekly_private_views() -> None:
    private_views(week="{{ ds }}")


weekly_private_views()
