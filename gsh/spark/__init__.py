"""Publishing with Spark, exactly once: on Spark 4 (classic and Connect) and 3.5 (classic).  [docs/publish-spark.md]

publishing.py   publish: the steps from events to a private table in its place
two_stages.py   publish with bounds that a survey chooses
aggregates.py   the bounding as expressions of a DataFrame, with two shuffles
tables.py       several tables of one release as one query
public_keys.py  lists of public keys as a DataFrame
needs.py        what Spark needs on the driver and on the executors, tried before anything is charged
noise.py        the noise of one partition, from a seed; it runs on the executors
keepers.py      who keeps the seed and takes the commit: the service, or a file
places.py       the folder of a release, its staging folder, and the digest of its rows
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gsh.spark.publishing import publish

__all__ = ["publish"]


def __getattr__(name: str) -> Any:
    """Load pyspark when publish is first used: executors load only the noise."""
    if name != "publish":
        raise AttributeError(f"module 'gsh.spark' has no attribute {name!r}")
    try:
        from gsh.spark.publishing import publish  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        detail = "gsh.spark.publish needs PySpark: pip install 'gaussian-sparse-histogram[spark]'"
        raise ModuleNotFoundError(detail, name="pyspark") from None
    return publish
