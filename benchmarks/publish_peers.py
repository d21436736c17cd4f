"""The same table by PipelineDP or Tumult Analytics on Spark, in an environment of their own.

It prints the seconds and the number of published groups.

    build/pipelinedp-env/bin/python -m benchmarks.publish_peers PipelineDP events.parquet
    build/tumult-env/bin/python -m benchmarks.publish_peers "Tumult Analytics" events.parquet

The tasks are as close as the libraries allow: users per URL and country with private group selection, at most C_u
groups of a user, two clipped sums. The second of two runs counts: the first one starts Spark and compiles.
"""

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.spark_session import local_session

C_U, EPSILON, DELTA = 16, 1.0, 1e-6


def main() -> None:
    name, path = sys.argv[1:]
    spark = local_session(str(Path(path).resolve().parent))
    run = {"PipelineDP": pipeline_dp_rows, "Tumult Analytics": tumult_rows}[name]
    for _ in range(2):
        start = perf_counter()
        groups = run(spark, path)
        seconds = perf_counter() - start
    print(json.dumps({"seconds": seconds, "groups": groups}))


def pipeline_dp_rows(spark: Any, path: str) -> int:
    import pipeline_dp as dp  # noqa: PLC0415

    rows = spark.read.parquet(path).rdd
    accountant = dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = dp.DPEngine(accountant, dp.SparkRDDBackend(spark.sparkContext))

    def asked(column: str, upper: float, metrics: list[Any]) -> Any:
        params = dp.AggregateParams(
            noise_kind=dp.NoiseKind.GAUSSIAN,
            metrics=metrics,
            max_partitions_contributed=C_U,
            max_contributions_per_partition=1,
            min_sum_per_partition=0,
            max_sum_per_partition=upper,
        )
        extractors = dp.DataExtractors(
            partition_extractor=lambda row: (row.url, row.country),
            privacy_id_extractor=lambda row: row.user_id,
            value_extractor=lambda row: row[column],
        )
        return engine.aggregate(rows, params, extractors)

    results = [
        asked("likes", 1, [dp.Metrics.PRIVACY_ID_COUNT, dp.Metrics.SUM]),
        asked("seconds", 600, [dp.Metrics.SUM]),
    ]
    accountant.compute_budgets()
    return min(result.count() for result in results)


def tumult_rows(spark: Any, path: str) -> int:
    from tmlt.analytics import (  # noqa: PLC0415
        AddRowsWithID,
        ApproxDPBudget,
        KeySet,
        MaxRowsPerID,
        QueryBuilder,
        Session,
    )

    session = Session.from_dataframe(
        privacy_budget=ApproxDPBudget(EPSILON, DELTA),
        source_id="events",
        dataframe=spark.read.parquet(path),
        protected_change=AddRowsWithID("user_id"),
    )
    columns = ["url", "country"]
    part = ApproxDPBudget(EPSILON / 4, DELTA / 4)
    # It bounds the groups of one column only, so rows are bounded instead.
    bounded = QueryBuilder("events").enforce(MaxRowsPerID(C_U))
    groups = KeySet.from_dataframe(session.evaluate(bounded.get_groups(columns), part))
    queries = (
        bounded.groupby(groups).count_distinct(["user_id"]),
        bounded.groupby(groups).sum("likes", 0, 1),
        bounded.groupby(groups).sum("seconds", 0, 600),
    )
    return min(session.evaluate(query, part).count() for query in queries)


if __name__ == "__main__":
    main()
