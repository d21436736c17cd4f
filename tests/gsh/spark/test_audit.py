"""An audit of the whole path: can an attacker who sees Spark's output show that the certified δ is too small?

Many copies of two neighbouring tables of events are published in one job, side by side: the copy is a part of the user
and of the group key, so that each is a release of its own. One table has a user more, in a₌ groups that then sit
exactly at τ and in a₊ groups far above. tests/gsh/histogram/test_audit.py has the same audit of the noise alone.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import beta

import gsh
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.events.plan import make_plan
from gsh.spark import aggregates as spark_aggregates
from gsh.spark import publishing
from gsh.spark.aggregates import by_user
from gsh.spark.publishing import noised
from tests.gsh.spark.faults import keeping, threshold_too_low
from tests.normality import UNLIKELY, kolmogorov_smirnov

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.long

COPIES = 12_000
DOUBT = 1e-6
MANY = 14
"""Users of a group far above the thresholds, the one in question not counted."""
EPSILON = 0.5
ABOVE = gsh.Mechanism(c_u=2, tau=2, tau_star=5.5, sigma=1.0)
"""Its δ at ε is that of the noise: groups at τ are published too rarely to add to it."""
AT_TAU = gsh.Mechanism(c_u=2, tau=2, tau_star=6.0, sigma=4.0)
"""Its δ at ε is that of groups at τ: 1 − Φ((τ* − τ)/σ)² = 0.292."""
PLAN = make_plan(user="u", by=["copy", "g"], c_u=2, tau=2, salt="5" * 32, partitions=4)


def events(spark: "SparkSession", is_there: bool, groups: int, a_equal: int) -> "DataFrame":
    """In each copy one other user in each of the first a₌ groups, MANY in the rest, and the user in question in all."""
    places = f"range({COPIES}) c CROSS JOIN (SELECT CAST(id AS INT) AS g FROM range({groups}))"
    table = spark.sql(
        f"SELECT c.id AS copy, concat(c.id, '-', g * 100 + m) AS u, g FROM {places} "
        f"CROSS JOIN (SELECT CAST(id AS INT) AS m FROM range({MANY})) WHERE m = 0 OR g >= {a_equal}"
    )
    if not is_there:
        return table
    # Two records in each group: the user counts once.
    user = spark.sql(f"SELECT c.id AS copy, concat(c.id, '-user') AS u, g FROM {places}")
    return table.union(user).union(user)


def certified(mechanism: gsh.Mechanism) -> float:
    return at_epsilon(EXACT, mechanism, EPSILON).delta


def released(frame: "DataFrame", mechanism: gsh.Mechanism, groups: int, seed: int) -> NDArray[np.float64]:
    """The noisy counts of each copy; NaN for a dropped group."""
    found = np.full((COPIES, groups), np.nan)
    rows = noised(by_user(frame, PLAN), PLAN, mechanism, seed.to_bytes(32, "big")).toPandas()
    found[rows["copy"].to_numpy(), rows["g"].to_numpy()] = rows["count"].to_numpy()
    return found


def audited(spark: "SparkSession", mechanism: gsh.Mechanism, a_equal: int, groups: int) -> float:
    """The δ at ε that these neighbours reveal, from below: how often the likelihood ratio is at least e^ε."""
    log_p = float(log_ndtr((mechanism.tau_star - mechanism.tau) / mechanism.sigma))

    def hits(outcomes: NDArray[np.float64]) -> int:
        seen = ~np.isnan(outcomes[:, :a_equal]).all(axis=1) if a_equal else np.zeros(COPIES, np.bool_)
        towards = (outcomes[:, a_equal:] - MANY - 0.5).sum(axis=1) / mechanism.sigma**2
        return int((seen | (towards >= EPSILON - a_equal * log_p)).sum())

    likely, unlikely = (
        hits(released(events(spark, is_there, groups, a_equal), mechanism, groups, 1 + is_there))
        for is_there in (True, False)
    )
    lower = float(beta.ppf(DOUBT, likely, COPIES - likely + 1)) if likely else 0.0
    return lower - math.exp(EPSILON) * float(beta.ppf(1 - DOUBT, unlikely + 1, COPIES - unlikely))


@pytest.mark.parametrize(
    ("mechanism", "a_equal", "is_worst"), [(ABOVE, 0, True), (ABOVE, 1, False), (ABOVE, 2, False), (AT_TAU, 2, True)]
)
def test_neighbours_reveal_no_more_than_the_certified_delta(
    spark: "SparkSession", mechanism: gsh.Mechanism, a_equal: int, is_worst: bool
) -> None:
    """The user has exactly C_u groups: at τ, above it, and one of each. The worst neighbours reveal most of δ."""
    found = audited(spark, mechanism, a_equal, mechanism.c_u)

    assert found <= certified(mechanism)
    if is_worst:
        assert found > certified(mechanism) / 2


def test_the_audit_detects_a_group_too_many(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """A user in six groups is counted in C_u of them; with the planted bug, in all."""
    assert audited(spark, ABOVE, 0, 6) <= certified(ABOVE)
    monkeypatch.setattr(spark_aggregates, "_kept", keeping(4))
    assert audited(spark, ABOVE, 0, 6) > certified(ABOVE)


def test_the_audit_detects_a_threshold_that_is_too_low(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """The executors compare with τ* − 1."""
    original = publishing.noise_function
    monkeypatch.setattr(publishing, "noise_function", lambda *given: threshold_too_low(original(*given)))

    assert audited(spark, AT_TAU, 2, 2) > certified(AT_TAU)


def test_the_output_has_the_distribution_of_the_noise(spark: "SparkSession") -> None:
    """Counts and sums of groups far above the threshold, minus the true numbers, in units of their noise."""
    frame = spark.range(0, 20 * 20_000, 1, 4).selectExpr("id AS u", "id % 20000 AS g", "id % 7 AS x")
    plan = make_plan(user="u", by="g", sums={"x": (0, 6)}, c_u=1, salt="5" * 32, partitions=4)
    mechanism = gsh.Mechanism(
        c_u=1,
        tau=1,
        tau_star=2.0,
        sigma=1.5,
        aggregates=gsh.Aggregates(names=["x"], covariance=[[4.0]], sensitivity=gsh.box(lower=[0], upper=[6])),
    )
    rows = noised(by_user(frame, plan), plan, mechanism, bytes(32)).toPandas().sort_values("g")
    numbers = np.arange(20 * 20_000)
    truth = np.bincount(numbers % 20_000, weights=numbers % 7)[rows["g"]]

    assert len(rows) == 20_000
    for sample in ((rows["count"] - 20) / 1.5, (rows["x"] - truth) / 2.0):
        assert kolmogorov_smirnov(sample.to_numpy()) > UNLIKELY
    assert abs(np.corrcoef(rows["count"], rows["x"] - truth)[0, 1]) < 0.05
