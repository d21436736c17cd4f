"""Publishing with Spark, exactly once: on Spark 4 (classic and Connect) and 3.5 (classic).  [docs/publish-spark.md]

publishing.py   publish: the steps from events to a private table in its place
surveying.py    users by bins; survey: a noisy histogram by itself
two_stages.py   publish with bounds that a survey chooses
aggregates.py   the bounding as expressions of a DataFrame, with two shuffles
tables.py       several tables of one release as one query
public_keys.py  lists of public keys as a DataFrame
needs.py        what Spark needs on the driver and on the executors, tried before anything is charged
noise.py        the noise of one partition, from a seed; it runs on the executors
keepers.py      who keeps the seed and takes the commit: the service, or a file
places.py       the folder of a release, its staging folder, and the digest of its rows
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gsh.spark.publishing import publish
    from gsh.spark.surveying import survey

__all__ = ["publish", "survey"]

_MODULES: Final = {"publish": "gsh.spark.publishing", "survey": "gsh.spark.surveying"}


def __getattr__(name: str) -> Any:
    """Load pyspark when a name is first used: executors load only the noise."""
    if name not in _MODULES:
        raise AttributeError(f"module 'gsh.spark' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        detail = f"gsh.spark.{name} needs PySpark: pip install 'gaussian-sparse-histogram[spark]'"
        raise ModuleNotFoundError(detail, name="pyspark") from None
