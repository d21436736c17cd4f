"""Public keys as a DataFrame, in the types of the events."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - as everyone calls it
from pyspark.sql.pandas.types import to_arrow_type

from gsh.events.plan import Plan
from gsh.events.public_keys import ListedKeys, listed_kinds, not_of_type
from gsh.spark.aggregates import kinds_of

__all__ = ["listed_keys"]


def listed_keys(events: DataFrame, plan: Plan, keys: Mapping[str, ListedKeys], name: str = "") -> DataFrame | None:
    """The list of a table, if it has one. Values that are not of the types of the key columns are refused."""
    if name not in keys:
        return None
    kinds, listed = plan.kinds_in(kinds_of(events.schema)), keys[name]
    listed_kinds(listed, [kinds[column] for column in plan.by])
    types = [events.schema[column].dataType for column in plan.by]
    schema = T.StructType([T.StructField(f"_listed{j}", kind) for j, kind in enumerate(types)])
    columns = []
    for by, column, kind in zip(plan.by, listed.table.columns, types, strict=True):
        cast = _cast(column, to_arrow_type(kind))
        if cast is None:
            raise not_of_type(by, kinds[by])
        columns.append(cast)
    table = pa.table(dict(zip(schema.names, columns, strict=True)))
    # Spark 3.5 makes no DataFrame of an Arrow table.
    rows: Any = table if pyspark.__version__ >= "4" else [tuple(row.values()) for row in table.to_pylist()]
    return events.sparkSession.createDataFrame(rows, schema)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        if pa.types.is_integer(column.type) and pa.types.is_decimal(kind):
            column = column.cast(pa.string())  # digits enough, whatever its width
        return column.cast(kind)
    except pa.ArrowException:
        return None  # its errors quote values
