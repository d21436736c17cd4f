"""The private table of a week as a dbt model: dbt writes what the function returns, as often as it runs."""

import weekly_job


def model(dbt, session):
    dbt.ref("events")
    week, budget = dbt.config.get("week"), dbt.config.get("budget")
    with weekly_job.client(dbt.config.get("service")) as service:
        table, _ = weekly_job.released(service, f"{budget}-dbt-{week}", budget, weekly_job.bounded(session, week))
    return table
