"""Several tables in one release, as people describe them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.certificate import certificate

EITHER = "must be a gsh.Mechanism or a gsh.PlainGaussian"
LEVELS = {
    "by_country": gsh.Table(c_u=1, tau=None),
    "by_url": gsh.Table(c_u=16, share=2),
    "detail": gsh.Table(c_u=16, sums={"likes": (0, 1)}, caps={"likes": 4}),
}


def test_three_levels_meet_the_target_together() -> None:
    found = gsh.calibrate_tables(LEVELS, epsilon=1, delta=1e-6)

    assert [type(each) for each in found.tables.values()] == [gsh.PlainGaussian, gsh.Mechanism, gsh.Mechanism]
    assert found.shares == {"by_country": 0.25, "by_url": 0.5, "detail": 0.25}
    assert found.tables["detail"].column_names == ("likes",)
    assert found.privacy == gsh.exact(found.tables, epsilon=1)
    assert 0.99e-6 < found.privacy.delta <= 1e-6
    assert gsh.add_deltas(found.tables, epsilon=1).delta > found.privacy.delta


def test_one_table_by_its_name_is_that_table() -> None:
    mechanism = gsh.Mechanism(c_u=51914, tau_star=13948, sigma=2228)
    alone, named = (gsh.exact(given, epsilon=[0.1, 0.349]) for given in (mechanism, {"views": mechanism}))

    assert alone == named
    assert isinstance(alone, gsh.Curve)


def test_public_groups_alone_have_no_threshold_cost() -> None:
    found = gsh.exact(gsh.PlainGaussian(c_u=4, sigma=20), epsilon=1)

    assert (found.delta_infinite, found.binding) == (0.0, "gaussian")
    assert gsh.exact(gsh.PlainGaussian(c_u=4, sigma=20), delta=found.delta).epsilon == pytest.approx(1)


def test_numpy_numbers_are_numbers() -> None:
    tables = {"a": gsh.Table(c_u=np.int64(3), share=np.float32(0.5)), "b": gsh.Table(c_u=3, share=np.float64(0.5))}
    found = gsh.calibrate_tables(tables, epsilon=1, delta=1e-6)

    assert found.tables["a"] == found.tables["b"]


def test_the_number_of_events_is_a_column_from_0_to_its_bound() -> None:
    """As sums of ones, after the other sums."""
    named = gsh.Table(c_u=16, sums={"likes": (0, 1)}, events={"views": 20}, caps={"views": 4}, weights={"likes": 2})
    plain = gsh.Table(c_u=16, sums={"likes": (0, 1), "views": (0, 20)}, caps={"views": 4}, weights={"likes": 2})
    found = [gsh.calibrate_tables({"a": each}, epsilon=1, delta=1e-6) for each in (named, plain)]

    assert found[0] == found[1]
    assert found[0].tables["a"].column_names == ("likes", "views")


def test_balanced_shares_replace_those_of_the_tables() -> None:
    found = gsh.calibrate_tables(
        {"a": gsh.Table(c_u=1, share=7), "b": gsh.Table(c_u=16)}, epsilon=1, delta=1e-6, shares="balanced"
    )

    assert found.shares == {"a": 0.2, "b": 0.8}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "tables: must be 1 to 64 tables"),
        ({"a": 1}, f"tables/a: {EITHER}, not int"),
        ({"a.b": None}, f"tables/a.b: {EITHER}, not NoneType"),
        ({"a": gsh.PlainGaussian(c_u=1, sigma=2), "b": 2}, f"tables/b: {EITHER}, not int"),
        ({"c_u": 1, "sigma": 2}, f"tables/c_u: {EITHER}, not int"),
        (3, f"mechanism: {EITHER}, not int"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda wrong: gsh.exact(wrong, epsilon=1),
        lambda wrong: gsh.add_deltas(wrong, delta=1e-6),
        lambda wrong: certificate(wrong, epsilon=1),
    ],
)
def test_what_is_no_table_is_named(use: Callable[[Any], object], wrong: object, said: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        use(wrong)

    assert str(error.value) == said


@pytest.mark.parametrize(
    ("tables", "options", "pointer", "detail"),
    [
        ({}, {}, "tables", "must be a mapping"),
        ([gsh.Table(c_u=1)], {}, "tables", "must be a mapping"),
        ({"a": gsh.Table(c_u=1), "b.c": gsh.Table(c_u=0)}, {}, "tables/b.c/c_u", "from 1 to 10^18"),
        ({"a": gsh.Table(c_u=1), "b/c": gsh.Table(c_u=1)}, {}, "tables/b~1c", "letters, digits"),
        ({"a b": gsh.Table(c_u=1)}, {}, "tables/a b", "letters, digits"),
        ({1: gsh.Table(c_u=1)}, {}, "tables/1", "letters, digits"),
        ({"a": gsh.Table(c_u=1), "A": gsh.Table(c_u=1)}, {}, "tables/A", "upper and lower case"),
        ({"a": gsh.Table(c_u=1), "b": gsh.Table(c_u=1, share=0)}, {}, "tables/b/share", "greater than 0"),
        ({"a": gsh.Table(c_u=1, share="2")}, {}, "tables/a/share", "must be a number"),
        ({"a": gsh.Table(c_u=1, share=-1)}, {"shares": "balanced"}, "tables/a/share", "greater than 0"),
        ({"a": gsh.Mechanism(c_u=1, tau_star=9, sigma=2)}, {}, "tables/a", "must be a gsh.Table"),
        ({"a": gsh.Table(c_u=1, caps={"x": 1})}, {}, "tables/a/caps", "must be omitted unless sums"),
        ({"a": gsh.Table(c_u=1, events="views")}, {}, "tables/a/events", "such as {'views': 20}"),
        ({"a": gsh.Table(c_u=1, events={"x": 1}, sums={"x": (0, 1)})}, {}, "tables/a/events", "other names than sums"),
        ({"a": gsh.Table(c_u=1)}, {"shares": [1]}, "shares", "must be 'balanced'"),
        ({"a": gsh.Table(c_u=1)}, {"delta": 2}, "delta", "less than 1"),
    ],
)
def test_an_error_names_the_table_and_the_bound(
    tables: Any, options: dict[str, Any], pointer: str, detail: str
) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.calibrate_tables(tables, **{"epsilon": 1, "delta": 1e-6} | options)

    assert error.value.pointer == pointer
    assert detail in error.value.detail


@pytest.mark.parametrize(
    ("released", "pointer"),
    [
        ({}, "tables"),
        ({"c_u": 1, "sigma": 2}, "tables/c_u"),
        ({"a": gsh.PlainGaussian(c_u=1, sigma=2), "b": 2}, "tables/b"),
        ({"b/c": gsh.PlainGaussian(c_u=1, sigma=2)}, "tables/b~1c"),
        ({"a": gsh.PlainGaussian(c_u=1, sigma=2), "A": gsh.PlainGaussian(c_u=1, sigma=2)}, "tables/A"),
        ("views", "mechanism"),
    ],
)
def test_only_mechanisms_have_a_privacy_curve(released: Any, pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.exact(released, epsilon=1)

    assert error.value.pointer == pointer
