"""An audit of a black box: engines as stated pass, and planted faults are found."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gsh
from gsh.accounting.engines.evidence import least_probability, shown_delta
from gsh.errors import InvalidParameter
from tests.gsh.library.black_boxes import FAULTS, SAID, Box

GAUSSIAN = SAID["gaussian"]
RULES = {
    "keeps a tie, and says >": "threshold",
    "no test of τ": "tau",
    "noise drawn again after the test": "threshold",
    "threshold too low": "threshold",
    "one seed for all runs": "repeated noise",
    "one draw for all groups": "shared noise",
}


def audited(said: dict[str, Any], changed: dict[str, Any], **options: Any) -> gsh.Audit:
    return gsh.audit(Box(np.random.default_rng(11), said, changed), **said, **{"blocks": 500} | options)


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_an_engine_as_stated_has_no_fault_and_shows_most_of_its_delta(said: dict[str, Any]) -> None:
    found = audited(said, {})

    assert found.faults == ()
    assert all(each.shown <= each.certified for each in found.evidence)
    assert max(each.shown / each.certified for each in found.evidence) > 0.5


@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_fault_is_found_and_named(name: str) -> None:
    found = audited(*FAULTS[name])

    assert RULES.get(name, "privacy") in {each.rule for each in found.faults}


def test_groups_that_no_event_has_are_a_fault() -> None:
    honest = Box(np.random.default_rng(2), GAUSSIAN, {})

    found = gsh.audit(lambda events: honest(events) | {"made up": 9.0}, **GAUSSIAN, blocks=100)

    assert [each.rule for each in found.faults] == ["keys"]


def test_a_table_is_read_like_a_mapping() -> None:
    honest = Box(np.random.default_rng(2), GAUSSIAN, {})

    def as_table(events: pa.Table) -> pa.Table:
        found = honest(events)
        return pa.table({"count": list(found.values()), "key": list(found)})

    assert gsh.audit(as_table, **GAUSSIAN, blocks=100).is_as_stated


def test_our_own_publication_is_as_its_mechanism_says() -> None:
    """The whole path: events, bounding, counting, noise and threshold."""
    said = gsh.Mechanism(c_u=2, tau=2, tau_star=5.0, sigma=1.5)

    def box(events: pa.Table) -> pa.Table:
        return gsh.publish(events, user="user", by="key", c_u=2, tau=2, mechanism=said).table

    assert gsh.audit(box, noise="gaussian", scale=1.5, c_u=2, tau=2, threshold=5, blocks=400).is_as_stated


def test_bounded_events_have_each_user_once_in_at_most_c_u_groups() -> None:
    tables = []

    def box(events: pa.Table) -> dict[str, float]:
        tables.append(events)
        return {}

    gsh.audit(box, **GAUSSIAN, blocks=100, is_bounded=True)

    pairs = tables[0].group_by(["user", "key"]).aggregate([("user", "count")])
    assert set(pairs["user_count"].to_pylist()) == {1}
    assert max(pairs.group_by("user").aggregate([("key", "count")])["key_count"].to_pylist()) == 2


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"blocks": 0}, "blocks"),
        ({"blocks": 10}, "blocks"),
        ({"runs": 1}, "runs"),
        ({"level": 1.0}, "level"),
        ({"epsilon": []}, "epsilon"),
        ({"scale": 100, "threshold": 900}, "blocks"),
        ({"scale": 1e6, "threshold": 1.0}, "blocks"),
        ({"noise": "uniform"}, "noise"),
    ],
)
def test_what_cannot_be_audited_is_refused_by_name(changed: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        gsh.audit(lambda _: {}, **GAUSSIAN | {"blocks": 500} | changed)

    assert caught.value.pointer == pointer


@pytest.mark.parametrize("published", [None, 7, {"a": "x"}, {"a": math.inf}, {1: 2.0}, [{"key": "a"}]])
def test_what_no_box_may_return_is_refused(published: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        gsh.audit(lambda _: published, **GAUSSIAN, blocks=100)

    assert caught.value.pointer == "run"


@pytest.mark.parametrize(("hits", "samples", "expected"), [(0, 10, 0.0), (10, 10, 0.05 ** (1 / 10))])
def test_the_bound_of_clopper_and_pearson_at_its_ends(hits: int, samples: int, expected: float) -> None:
    assert math.isclose(least_probability(hits, samples, 0.05), expected)


def test_the_shown_delta_is_below_the_frequencies() -> None:
    assert shown_delta(60, 10, 100, 0.5, 0.01) < 0.6 - math.exp(0.5) * 0.1
