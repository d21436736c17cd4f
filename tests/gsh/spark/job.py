"""A publishing job as a program: ``python -m tests.gsh.spark.job '{…}'``. It can die after a step, and have faults.

It prints what it made, or an error of the library, as JSON.

master, settings    the cluster; without a master it is Spark Connect, in this machine
events, to, url, budget, once
tables              whether to publish views.TABLES in place of views.RELEASE
die                 the step after which the driver kills itself: one of STEPS
changes             to the arguments of views.RELEASE
fault               one of the functions of faults.py, with its arguments, after the noise
"""

import json
import os
import signal
import sys
from typing import Any

STEPS = ("open", "stage", "finish", "commit", "certify", "place")


def main() -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    import gsh  # noqa: PLC0415
    from gsh.spark import publishing  # noqa: PLC0415
    from tests.gsh.spark import faults  # noqa: PLC0415
    from tests.gsh.spark.views import RELEASE, TABLES  # noqa: PLC0415

    given: dict[str, Any] = json.loads(sys.argv[1])
    master = given.get("master")
    builder = SparkSession.builder.master(master) if master else SparkSession.builder.remote("local[2]")
    for name, value in (SETTINGS | given.get("settings", {})).items():
        builder = builder.config(name, value)
    if given.get("die"):
        _die_after(given["die"])
    if given.get("fault"):
        name, *arguments = given["fault"]
        original = publishing.noised

        def faulty(*parts: Any) -> Any:
            rows = original(*parts)
            return rows.mapInArrow(getattr(faults, name)(*arguments), rows.schema)

        publishing.noised = faulty
    events = builder.getOrCreate().read.parquet(given["events"])
    named = {name: given[name] for name in ("to", "budget", "once")}
    asked = (TABLES if given.get("tables") else RELEASE) | given.get("changes", {})
    try:
        made = gsh.spark.publish(events, service=gsh.Client(given["url"]), **named, **asked)
    except gsh.Error as error:
        print(json.dumps({"error": str(error)}))  # noqa: T201
        raise
    print(json.dumps({"groups": made.groups, "is_replayed": made.is_replayed}))  # noqa: T201


# A driver that lives for a minute spends most of its time on verifying its own code and on making it faster.
SHORT_LIFE = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For a few rows Java would take longer to compile a query than to run it."""
SETTINGS = {
    **SHORT_LIFE,
    **INTERPRETED,
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def _die_after(step: str) -> None:
    from gsh.spark import publishing  # noqa: PLC0415
    from gsh.spark.keepers import ByService  # noqa: PLC0415
    from gsh.spark.places import Place  # noqa: PLC0415

    owner, name = {
        "open": (ByService, "open"),
        "stage": (publishing, "_stage"),
        "finish": (publishing, "_finished"),
        "commit": (ByService, "commit"),
        "certify": (Place, "certify"),
        "place": (Place, "move"),
    }[step]
    original = getattr(owner, name)

    def last(*arguments: Any) -> None:
        original(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, last)


if __name__ == "__main__":
    main()
