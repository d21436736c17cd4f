"""A certificate of the library is the service's certificate of the same mechanism, and fits the schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from gsh.certificate import Certificate, certificate
from gsh.certificate_words import NO_THRESHOLD, TIE_RULE, intervals_cover
from gsh.histogram.roles import Roles
from gsh.wire import mechanism_from_json, mechanism_to_json, release_from_json

SCHEMA = json.loads((Path(__file__).parents[3] / "openapi" / "certificate.schema.json").read_text())
COUNTS = {"c_u": 16, "tau": 1, "tau_star": 90.5, "sigma": 17.0}
BOX = {"kind": "box", "lower": [0.0, -1.0], "upper": [1.0, 5.0]}
COLUMNS = {"names": ["likes", "shares"], "covariance": [[400.0, 0.0], [0.0, 100.0]]}
MECHANISMS: list[dict[str, Any]] = [
    COUNTS,
    COUNTS | {"aggregates": {"mu_0": 0.07}},
    COUNTS | {"aggregates": {"mu_0": 0.0, "capped": [{"groups": 2, "mu_0": 0.05}, {"groups": 9, "mu_0": 0.01}]}},
    *(
        COUNTS | {"aggregates": COLUMNS | {"sensitivity": sensitivity}}
        for sensitivity in (
            BOX,
            BOX | {"groups": [None, 4]},
            {"kind": "l1", "bound": 2.0},
            {"kind": "l2", "bound": 1.5},
            {"kind": "vectors", "vectors": [[1.0, 0.0], [1.0, 1.0]]},
        )
    ),
]


@pytest.mark.parametrize("point", [{}, {"epsilon": 0.5}, {"delta": 1e-4}], ids=["no-point", "epsilon", "delta"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=range(len(MECHANISMS)))
def test_it_fits_the_published_schema(mechanism: dict[str, Any], point: dict[str, float]) -> None:
    ours = certificate(mechanism_from_json(mechanism), unprotected=["c_u"], **point)

    jsonschema_rs.validate(SCHEMA, ours.to_dict())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=range(len(MECHANISMS)))
def test_a_mechanism_is_the_same_after_json(mechanism: dict[str, Any]) -> None:
    assert mechanism_to_json(mechanism_from_json(mechanism)) == mechanism
    assert json.loads(json.dumps(mechanism)) == mechanism


@settings(deadline=None)
@given(c_u=st.integers(1, 10**18), tau=st.integers(0, 100), gap=st.floats(1.5, 1e9), sigma=st.floats(1e-3, 1e9))
def test_no_digit_is_lost_in_json(c_u: int, tau: int, gap: float, sigma: float) -> None:
    mechanism = gsh.Mechanism(c_u=c_u, tau=tau, tau_star=tau + gap, sigma=sigma)

    assert mechanism_from_json(json.loads(json.dumps(mechanism_to_json(mechanism)))) == mechanism


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"c_u": None}, "c_u"),
        ({"c_u": 2.0}, "c_u"),
        ({"sigma": "17"}, "sigma"),
        ({"unknown": 1}, "mechanism"),
        ({"aggregates": {"mu_0": 0.1, "names": []}}, "aggregates"),
        ({"aggregates": []}, "aggregates"),
        ({"aggregates": {"mu_0": 0.0, "capped": {}}}, "aggregates/capped"),
        ({"aggregates": {"mu_0": 0.0, "capped": [{"groups": 2}]}}, "aggregates/capped/mu_0"),
        (
            {"aggregates": COLUMNS | {"sensitivity": {"kind": "l1", "bound": 1, "groups": [1]}}},
            "aggregates/sensitivity",
        ),
        ({"aggregates": COLUMNS}, "aggregates/sensitivity"),
        ({"aggregates": COLUMNS | {"sensitivity": {"kind": "ball"}}}, "aggregates/sensitivity/kind"),
        ({"aggregates": COLUMNS | {"sensitivity": {"kind": ["box"]}}}, "aggregates/sensitivity/kind"),
        ({"aggregates": COLUMNS | {"sensitivity": BOX | {"bound": 1}}}, "aggregates/sensitivity"),
    ],
)
def test_a_fault_in_json_is_named(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as raised:
        mechanism_from_json(COUNTS | change)

    assert raised.value.pointer == pointer
    assert "unknown" not in raised.value.detail


def test_a_point_that_does_not_exist_is_refused() -> None:
    mechanism = mechanism_from_json(COUNTS)

    with pytest.raises(gsh.InfeasibleTarget, match="delta: must be at least"):
        certificate(mechanism, delta=1e-12)
    with pytest.raises(gsh.InvalidParameter, match="at most one of epsilon and delta"):
        certificate(mechanism, epsilon=1, delta=1e-5)
    with pytest.raises(gsh.InvalidParameter, match="unprotected"):
        certificate(mechanism, unprotected=[""])


TABLES = {
    "by_url": gsh.Mechanism(c_u=16, tau=1, tau_star=161.5, sigma=29.27),
    "by_country": gsh.PlainGaussian(c_u=1, sigma=7.3),
}


def test_the_certificate_of_several_tables_describes_each_of_them() -> None:
    ours = certificate(TABLES, epsilon=1)

    assert ours.schema == "urn:gsh:certificate:3"
    assert ours.delta == gsh.exact(TABLES, epsilon=1).delta
    assert ours.mechanisms == TABLES
    assert [table.tie_rule for table in ours.tables] == [TIE_RULE, NO_THRESHOLD]
    assert [table.bounds.c_u for table in ours.tables] == [16, 1]
    assert not {"mechanism", "bounds", "grid", "tie_rule", "mu_0"} & set(ours)


def test_the_costs_of_the_tables_add_up_to_those_of_the_release() -> None:
    ours = certificate(TABLES)

    for cost in ("mu_squared", "hazard"):
        assert sum(table[cost] for table in ours.tables) == pytest.approx(ours[cost], rel=1e-12)


WORDS = {
    "at most 16 groups.": COUNTS,
    "at most 16 groups, values as the caller bounds them.": COUNTS | {"aggregates": {"mu_0": 0.07}},
    "at most 16 groups, likes clipped to 0 … 1, shares clipped to -1 … 5 in at most 4 of them.": MECHANISMS[4],
    "at most 16 groups, values clipped so that the sum of their absolute values is at most 2.": MECHANISMS[5],
    "at most 16 groups, values clipped so that their Euclidean norm is at most 1.5.": MECHANISMS[6],
    "at most 16 groups, values as in one of 2 vectors.": MECHANISMS[7],
    "1 group.": {"c_u": 1, "sigma": 7.3},
}


@pytest.mark.parametrize("said", WORDS)
def test_it_says_what_intervals_cover(said: str) -> None:
    ours = certificate(release_from_json(WORDS[said]), privacy_unit="household")

    start, end = "Intervals cover the bounded numbers: each", "What bounding removed is not in them."
    assert ours.bounds.intervals_cover == f"{start} unit in {said} {end}"
    assert intervals_cover(ours.bounds, ours.unit) == f"{start} household in {said} {end}"


def test_the_unit_has_its_period() -> None:
    ours = Certificate.from_json(certificate(TABLES["by_url"]).to_dict() | {"period": "week"})

    assert ours.unit == "user-week"


def test_it_names_the_columns_of_the_tables() -> None:
    roles = {"by_url": Roles(("url", "day"), "users", ("likes",)), "by_country": Roles(("country",), "users", ())}

    assert certificate(TABLES, roles=roles).columns == roles
    assert certificate(TABLES["by_url"], roles=roles["by_url"]).columns == {"": roles["by_url"]}
    assert certificate(TABLES).columns == {}
    jsonschema_rs.validate(SCHEMA, certificate(TABLES, roles=roles).to_dict())


@pytest.mark.parametrize("wrong", [3, [], {}, {"keys": "ab", "count": "n", "values": []}])
def test_what_are_no_roles_is_no_certificate(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        Certificate.from_json(certificate(TABLES["by_url"]).to_dict() | {"roles": wrong})


def test_one_mechanism_keeps_its_format() -> None:
    ours = certificate(TABLES["by_url"], epsilon=1)

    assert ours.schema == "urn:gsh:certificate:2"
    assert ours.mechanisms == {"": TABLES["by_url"]}
    assert "tables" not in ours
