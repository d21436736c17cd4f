"""An audit of publish with two tables: can an attacker show that the certified δ is too small?

One publication has many copies of the same small data, each with users and groups of its own. Neighbouring event tables
differ in one user per copy, who is in every group. The event with a likelihood ratio of at least e^ε, over both tables,
bounds δ from below. The whole path is inside: events, public keys, bounding, calibration, noise, thresholds.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import beta

import gsh
from gsh.duckdb import publishing
from gsh.duckdb import tables as several
from gsh.events.terms import Terms
from gsh.library import groups
from tests.gsh.histogram.recorded import Recorded

pytestmark = pytest.mark.slow

COPIES = 20_000
DOUBT = 1e-6
MANY = 20
"""Other users of a group of the secret table that is far above its threshold."""
Outcomes = Mapping[str, NDArray[np.float64]]

TABLES = {
    "secret": gsh.Table(by=["copy", "g"], c_u=2),
    "public": gsh.Table(by=["listed"], public_keys=np.arange(COPIES), c_u=1),
}
NOISE = {"secret": gsh.Mechanism(c_u=2, tau_star=8.0, sigma=2.0), "public": gsh.PlainGaussian(c_u=1, sigma=1.2)}
"""δ at ε = 0.5 is that of the noise of both tables together."""
LOW = {"secret": gsh.Mechanism(c_u=2, tau_star=7.0, sigma=4.0), "public": gsh.PlainGaussian(c_u=1, sigma=8.0)}
"""δ at ε = 1 is that of groups which exist for one user alone."""


def events(is_there: bool, others: int) -> pa.Table:
    """In each copy two groups with so many other users, and the user in question in both, in two records each.

    That user alone is in the listed group of the copy, which counts 0 without. The records of others are not listed.
    """
    copies, group, member = (each.ravel() for each in np.meshgrid(np.arange(COPIES), [0, 1], np.arange(others)))
    rows = [(-1 - copies, group, copies, copies * 1000 + group * 100 + member + 10)]
    if is_there:
        own = np.repeat(np.arange(COPIES), 4)
        rows.append((own, np.tile([0, 0, 1, 1], COPIES), own, own * 1000))
    kept = [np.concatenate(each) for each in zip(*rows, strict=True)]
    return pa.table({"listed": kept[0], "g": kept[1], "copy": kept[2], "u": kept[3]})


def released(is_there: bool, others: int, **target: Any) -> Outcomes:
    """The noisy counts of each copy; NaN for a dropped group."""
    made = gsh.publish(events(is_there, others), user="u", tables=TABLES, **target)
    found = {"secret": np.full((COPIES, 2), np.nan), "public": np.full((COPIES, 1), np.nan)}
    secret, public = made.tables["secret"], made.tables["public"]
    found["secret"][secret["copy"].to_numpy(), secret["g"].to_numpy()] = secret["count"].to_numpy()
    found["public"][public["listed"].to_numpy(), 0] = public["count"].to_numpy()
    return found


Event = Callable[[Outcomes], NDArray[np.bool_]]


def likely(claimed: Mapping[str, Any], others: int, epsilon: float) -> Event:
    """The likelihood ratio of the two event tables is at least e^ε, if the noise is as claimed."""
    secret = claimed["secret"]
    log_p = float(log_ndtr((secret.tau_star - 1) / secret.sigma))

    def event(outcomes: Outcomes) -> NDArray[np.bool_]:
        ratio = (outcomes["public"][:, 0] - 0.5) / claimed["public"].sigma ** 2
        if others:
            return np.asarray(ratio + (outcomes["secret"] - others - 0.5).sum(axis=1) / secret.sigma**2 >= epsilon)
        seen = ~np.isnan(outcomes["secret"]).all(axis=1)
        return np.asarray(seen | (ratio + 2 * log_p >= epsilon))

    return event


def audited(event: Event, others: int, epsilon: float, **target: Any) -> float:
    """The δ at ε that these neighbours reveal, from below."""
    yes, no = (int(event(released(is_there, others, **target)).sum()) for is_there in (True, False))
    lower = float(beta.ppf(DOUBT, yes, COPIES - yes + 1)) if yes else 0.0
    return lower - math.exp(epsilon) * float(beta.ppf(1 - DOUBT, no + 1, COPIES - no))


def certified(mechanisms: Mapping[str, Any], epsilon: float) -> float:
    return gsh.exact(mechanisms, epsilon=epsilon).delta


@pytest.mark.parametrize(("noise", "others", "epsilon", "share"), [(NOISE, MANY, 0.5, 0.7), (LOW, 0, 1.0, 0.5)])
def test_neighbours_reveal_no_more_than_the_certified_delta_and_most_of_it(
    noise: Mapping[str, Any], others: int, epsilon: float, share: float
) -> None:
    found = audited(likely(noise, others, epsilon), others, epsilon, mechanism=noise)

    assert share * certified(noise, epsilon) < found <= certified(noise, epsilon)


def test_the_audit_detects_public_zeros_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that adds the zeros after the noise."""
    original = several.release

    def planted(mechanism: Any, table: pa.Table, **roles: Any) -> pa.Table:
        private = original(mechanism, table, **roles)
        if roles["public_keys"] is None:
            return private
        posted = dict(zip(table["listed"].to_pylist(), table["count"].to_pylist(), strict=True))
        noisy = zip(private["listed"].to_pylist(), private["count"].to_pylist(), strict=True)
        return private.set_column(1, "count", pa.array([count if posted[key] else 0.0 for key, count in noisy]))

    monkeypatch.setattr(several, "release", planted)
    assert audited(likely(NOISE, MANY, 0.5), MANY, 0.5, mechanism=NOISE) > certified(NOISE, 0.5)


def test_the_audit_detects_noise_that_two_tables_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second table is drawn from the stream of the first: the difference of two numbers shows the true one."""
    noise = NOISE | {"public": gsh.PlainGaussian(c_u=1, sigma=2.0)}

    def event(outcomes: Outcomes) -> NDArray[np.bool_]:
        difference = outcomes["secret"].ravel()[:COPIES] - outcomes["public"][:, 0]
        return np.asarray(np.abs(difference - np.round(difference)) < 1e-3)

    honest = event(released(True, MANY, mechanism=noise)).mean()
    original = several.release

    def planted(*given: Any, **roles: Any) -> pa.Table:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(groups, "operating_system", Recorded("the same"))
            return original(*given, **roles)

    monkeypatch.setattr(several, "release", planted)
    assert event(released(True, MANY, mechanism=noise)).mean() > honest + 0.5


def test_the_audit_detects_shares_of_the_noise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration that gives each table its share of the noise cost, and to each the whole cost of thresholds."""
    epsilon, delta = 1.0, 0.05
    tables = {name: gsh.Table(by=["copy", "g"], c_u=2) for name in ("first", "second")}

    def found() -> float:
        def hits(is_there: bool) -> int:
            made = gsh.publish(events(is_there, 0), user="u", tables=tables, epsilon=epsilon, delta=delta)
            return len({copy for table in made.tables.values() for copy in table["copy"].to_pylist()})

        yes, no = hits(is_there=True), hits(is_there=False)
        lower = float(beta.ppf(DOUBT, yes, COPIES - yes + 1))
        return lower - math.exp(epsilon) * float(beta.ppf(1 - DOUBT, no + 1, COPIES - no))

    assert found() <= delta
    original = publishing.terms_for_tables

    def planted(*given: Any, **aim: Any) -> Terms:
        honest = original(*given, **aim)
        alone = {
            name: gsh.calibrate(c_u=2, sigma=each.sigma, epsilon=epsilon, delta=delta).mechanism
            for name, each in honest.mechanisms.items()
        }
        return Terms(alone, honest.stated)

    monkeypatch.setattr(publishing, "terms_for_tables", planted)
    assert found() > delta
