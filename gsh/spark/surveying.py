"""The survey of events on Spark: users by bins, a query per table; and a survey that is released by itself."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.arguments import Integer, Real, text
from gsh.events.plan import Plan
from gsh.events.public_keys import KeysLike, ListedKeys, Origin
from gsh.events.surveys.alone import released_survey, surveying_alone
from gsh.events.surveys.asked import SURVEY
from gsh.events.surveys.histograms import Counts, counted, survey_query
from gsh.events.surveys.result import Survey
from gsh.events.surveys.surveying import Surveying
from gsh.events.terms import payer_of, salt_for
from gsh.spark.aggregates import by_user, kinds_of, quoted
from gsh.spark.keepers import ENGINE
from gsh.spark.public_keys import listed_keys
from gsh.spark.publishing import check_columns, check_frame, local_files

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["survey", "survey_counts"]


def survey(
    data: DataFrame,
    /,
    *,
    user: str,
    by: str | Sequence[str],
    epsilon: Real,
    delta: Real,
    c_u: Any = SURVEY,
    sums: Mapping[str, Any] | None = None,
    events: Mapping[str, Any] | None = None,
    means: Mapping[str, Any] | None = None,
    units: Mapping[str, Real] | None = None,
    weights: Mapping[str, Real] | None = None,
    tau: Integer = 1,
    public_keys: KeysLike | None = None,
    survey: SurveyShare | None = None,
    expected_users: Integer | None = None,
    service: "Client | None" = None,
    budget: str | None = None,
    period: str | None = None,
    once: str | None = None,
    description: str = "",
    labels: Sequence[str] = (),
    privacy_unit: str | None = None,
) -> Survey:
    """Count the users in public bins, with noise, and choose C_u and clips from it.  [docs/choosing-bounds.md]

    The arguments and the result mean the same as those of ``gsh.survey``. The numbers of the bins come to the driver,
    and get their noise there or in the service: the executors need nothing of this library.

        found = gsh.spark.survey(df, user="user_id", by="url", epsilon=1, delta=1e-6)
        found.c_u[""], print(found)
    """
    check_frame(data)
    payer = payer_of(service, budget, once, period, description, labels, privacy_unit)
    surveying, lists = surveying_alone(
        {"c_u": c_u, "sums": sums, "events": events, "means": means, "units": units},
        Origin(text("user", user), data, lambda: local_files(data)),
        by=by,
        public_keys=public_keys,
        epsilon=epsilon,
        delta=delta,
        weights=weights,
        survey=survey,
        expected_users=expected_users,
        tau=tau,
        salt=salt_for(payer),
    )
    check_columns(data, surveying.plan)
    return released_survey(
        surveying,
        lambda: survey_counts(data, surveying, lists),
        engine=ENGINE,
        payer=payer,
        privacy_unit=privacy_unit,
    )


def survey_counts(events: DataFrame, surveying: Surveying, listed: Mapping[str, ListedKeys]) -> Counts:
    """The true numbers of users in all bins. They are raw data."""
    rows, plans = by_user(events, surveying.plan), surveying.tables
    kinds = surveying.plan.kinds_in(kinds_of(rows.schema))
    found: Counts = {}
    for name, asks in surveying.asks.items():
        records = _of_listed(rows, plans[name], listed_keys(events, plans[name], listed, name))
        view = f"gsh_survey_{secrets.token_hex(8)}"
        records.createOrReplaceTempView(view)
        try:
            query = survey_query(plans[name], asks, kinds, "spark", view)
            answered: Iterable[Any] = events.sparkSession.sql(query).collect()
        finally:
            with suppress(Exception):
                events.sparkSession.catalog.dropTempView(view)
        found[name] = counted(plans[name], asks, (tuple(row) for row in answered))
    return found


def _of_listed(rows: DataFrame, plan: Plan, keys: DataFrame | None) -> DataFrame:
    """The records of listed groups. A missing part of a key is a value of its own."""
    if keys is None:
        return rows
    keys = keys.toDF(*(f"_listed{place}" for place in range(len(plan.by))))
    same = [quoted(name).eqNullSafe(F.col(f"_listed{place}")) for place, name in enumerate(plan.by)]
    return rows.join(F.broadcast(keys), same, "left_semi")
