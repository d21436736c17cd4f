"""The private table of a week as a Python model of dbt-duckdb: however often dbt runs, the week is paid once.

The name of the release is made of the week. GSH_URL is the service, and GSH_KEY the access key, if the service needs
one. It needs dbt-duckdb, and this package in the same environment.
"""

import gsh


def model(dbt, session):  # noqa: ARG001 - dbt gives both
    with gsh.Client() as service:
        private = gsh.publish(
            dbt.ref("events"),
            user="user_id",
            by=["url", "country"],
            sums={"likes": (0, 1)},
            c_u=8,
            epsilon=1,
            delta=1e-6,
            service=service,
            budget="web",
            once=f"web-dbt-views-{dbt.config.get('week')}",
        )
    return private.table
