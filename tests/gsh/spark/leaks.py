"""Where a seed has got to: the files, views and settings of a session, searched for it in every form."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def leaks(seed: bytes, folders: Iterable[Path], *texts: str) -> list[str]:
    """The files and texts that have the seed. Files must not be compressed."""
    files = {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}
    said = {f"text {number}": text.encode() for number, text in enumerate(texts)}
    return [name for name, content in (files | said).items() if _has(content, seed)]


def shown_by(spark: "SparkSession") -> str:
    """All settings of a session, and its temporary views with their definitions. Its event log is then complete."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    settings = [*spark.sparkContext.getConf().getAll(), *((row.key, row.value) for row in spark.sql("SET").collect())]
    tables = [*spark.sql("SHOW TABLES").collect(), *spark.sql("SHOW TABLES IN global_temp").collect()]
    names = {".".join(f"`{part}`" for part in (table.namespace, table.tableName) if part) for table in tables}
    views = [spark.table(name)._jdf.queryExecution().toString() for name in names]
    return "\n".join([*map(str, settings), *names, *views])


def _has(content: bytes, seed: bytes) -> bool:
    exact = [seed, base64.b64encode(seed).rstrip(b"="), base64.urlsafe_b64encode(seed).rstrip(b"=")]
    exact += [form.encode() for form in (repr(seed), repr(seed)[2:-1], json.dumps(repr(seed))[3:-2], str(list(seed)))]
    # Spark writes 0xAB…, SQL X'AB…', Python ab….
    return any(form in content for form in exact) or seed.hex().encode() in content.lower()
