"""A weekly job on Spark that publishes a private table exactly once.

    spark-submit examples/spark_job.py --events /mnt/events --week 2026-W46 --budget web --to /mnt/published/2026-W46

It may be killed at any place and started again, tasks may fail and run twice: the idempotency key names the release,
the service gives the same seed to every run, and the budget is charged once. Without --service the job keeps the seed
in a file next to the output until it is complete, and nothing keeps count. Without --events it makes up events.

The driver needs this package, the executors need it too: docs/publish-spark.md shows how to ship it.
"""

import argparse
import os
import sys

import gsh

try:
    from pyspark.sql import DataFrame, SparkSession
except ModuleNotFoundError:
    sys.exit("spark_job.py needs PySpark: pip install '.[spark]' from the checkout")

MADE_UP = """
    SELECT pmod(xxhash64(id), 3000) AS user_id, concat('https://example.org/', pmod(xxhash64(id, 1), 97)) AS url,
           CASE pmod(xxhash64(id, 2), 4) WHEN 0 THEN NULL WHEN 1 THEN 'FR' ELSE 'US' END AS country,
           CAST(pmod(xxhash64(id, 3), 900) AS INT) AS seconds
    FROM range(30000)
"""


def main() -> None:
    asked = parser().parse_args()
    spark = SparkSession.builder.appName(f"views-{asked.week}").getOrCreate()
    paid = {}
    if asked.service is not None:
        service = gsh.Client(asked.service, key=os.environ.get("GSH_KEY"))
        paid = {"service": service, "budget": asked.budget, "once": f"web-spark-views-{asked.week}"}
    published = gsh.spark.publish(
        events(spark, asked.events),
        user="user_id",
        by=["url", "country"],
        sums={"seconds": (0, 600)},
        c_u=8,
        epsilon=1,
        delta=1e-6,
        to=asked.to,
        partitions=asked.partitions,
        **paid,
    )
    print(published.summary())
    spark.stop()


def events(spark: SparkSession, path: str | None) -> DataFrame:
    """The events of the week. Filters on single records are free: they need no privacy budget."""
    return spark.sql(MADE_UP) if path is None else spark.read.parquet(path)


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description="Publish a private table of views from Spark, exactly once.")
    arguments.add_argument("--events", help="Parquet files with user_id, url, country, seconds")
    arguments.add_argument("--week", required=True, help="such as 2026-W46")
    arguments.add_argument("--to", required=True, help="the folder of the result, which driver and executors see")
    arguments.add_argument("--partitions", type=int, default=8, help="files of the result, each below a million groups")
    arguments.add_argument("--service", help="such as http://127.0.0.1:8000; its access key is in GSH_KEY")
    arguments.add_argument("--budget", default="web")
    return arguments


if __name__ == "__main__":
    main()
