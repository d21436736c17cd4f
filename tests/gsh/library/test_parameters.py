"""Arguments: numpy's numbers are welcome, and every other type is refused by the parameter's name."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.accounting.composition import cost_of
from tests.gsh.library.examples import COLUMNS, PAIRS

MECHANISM: dict[str, Any] = {"c_u": 10, "tau": 2, "tau_star": 50.0, "sigma": 8.0}
TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any], tuple[str, ...]]] = {
    "Mechanism": (gsh.Mechanism, MECHANISM, ("c_u", "tau", "tau_star", "sigma", "mu_0")),
    "exact": (lambda **asked: gsh.exact(gsh.Mechanism(**MECHANISM), **asked), {}, ("epsilon", "delta")),
    "calibrate": (gsh.calibrate, {"c_u": 10} | TARGET, ("c_u", "tau", "tau_star", "sigma", "mu_0", "epsilon", "delta")),
    "compare": (gsh.compare, {"c_u": 10} | TARGET, ("c_u", "tau", "mu_0", "epsilon", "delta")),
}
NO_NUMBERS: dict[str, object] = {
    "str": "1",
    "bytes": b"1",
    "bool": True,
    "numpy bool": np.True_,
    "object": object(),
    "complex": 1j,
    "dict": {},
    "array without dimensions": np.array("1.0"),
    "Boolean without dimensions": np.array(True),
    "nan": float("nan"),
    "infinity": np.float32("inf"),
    "negative": -1,
    "huge": -(10**400),
}


def public() -> dict[str, Any]:
    """The names after ``from gsh import *``."""
    return {name: getattr(gsh, name) for name in gsh.__all__}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, (_, _, names) in CALLS.items() for name in names])
def test_an_error_names_the_parameter(call: str, name: str, value: object) -> None:
    function, others, _ = CALLS[call]

    with pytest.raises(gsh.InvalidParameter) as raised:
        function(**others | {name: value})

    assert raised.value.pointer == name
    assert str(raised.value).startswith(f"{raised.value.pointer}: must be ")


@pytest.mark.parametrize(("name", "value"), [("c_u", 3.0), ("tau", np.float64(1)), ("c_u", None), ("sigma", None)])
def test_an_integer_is_no_float_and_none_is_nothing(name: str, value: object) -> None:
    with pytest.raises(gsh.InvalidParameter, match=f"^{name}: must be an? "):
        gsh.Mechanism(**MECHANISM | {name: value})


def test_what_was_given_as_numpy_is_kept_as_python() -> None:
    mechanism = gsh.Mechanism(c_u=np.int16(10), tau=np.uint64(2), tau_star=np.int32(50), sigma=np.float32(8))

    assert mechanism == gsh.Mechanism(**MECHANISM)
    assert [type(value) for value in (mechanism.c_u, mechanism.tau, mechanism.tau_star, mechanism.sigma)] == [
        int,
        int,
        float,
        float,
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"names": "likes"}, "names: must be a list or an array of strings, not str"),
        ({"names": [1, 2]}, "names/0: must be a string, not int"),
        ({"names": ["a", "a"]}, "names: must be unique"),
        ({"covariance": 400}, "covariance: must be a list or an array of rows of numbers, not int"),
        ({"covariance": [400, 100]}, "covariance/0: must be a list or an array of numbers, not int"),
        ({"covariance": [[400, "0"], [0, 100]]}, "covariance/0/1: must be a number, not str"),
        ({"covariance": [[400, 1], [2, 100]]}, "covariance: must be symmetric"),
        ({"covariance": np.ones((2, 2))}, "covariance: must be positive definite"),
        ({"sensitivity": 1.0}, "sensitivity: must come from gsh.box, gsh.l1, gsh.l2 or gsh.vectors"),
        ({"sensitivity": gsh.box(lower=[0], upper=[1])}, "sensitivity/lower: must have one number per"),
        ({"names": ["a", "count"]}, "names: must not contain key or count"),
        ({"covariance": [[400]]}, "covariance: must have one row and one column per name"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_columns_that_are_none_are_refused(arguments: dict[str, Any], said: str) -> None:
    """Both kinds of columns, each by the name of its own parameter, when they are made."""
    given: dict[str, Any] = {"names": ["a", "b"], "covariance": np.diag([400, 100]), "sensitivity": gsh.l1(1)}
    given |= arguments
    relative = {f"relative_{name}" if name == "covariance" else name: value for name, value in given.items()}

    with pytest.raises(gsh.InvalidParameter) as raised:
        gsh.Aggregates(**given)
    with pytest.raises(gsh.InvalidParameter) as also_raised:
        gsh.RelativeAggregates(**relative)

    assert str(raised.value).startswith(said)
    assert str(also_raised.value).removeprefix("relative_").startswith(said)


def test_a_box_of_many_columns_is_refused_by_name() -> None:
    many = 21
    with pytest.raises(gsh.InvalidParameter, match=r"^sensitivity: box allows at most 20 columns"):
        gsh.Aggregates(
            names=[f"c{place}" for place in range(many)],
            covariance=np.eye(many) + 1,
            sensitivity=gsh.box(lower=[0] * many, upper=[1] * many),
        )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: gsh.box(lower=["0"], upper=[1]), "lower/0"),  # type: ignore[list-item]
        (lambda: gsh.box(lower=[0], upper=1), "upper"),  # type: ignore[arg-type]
        (lambda: gsh.l1(None), "bound"),  # type: ignore[arg-type]
        (lambda: gsh.l2(True), "bound"),
        (lambda: gsh.vectors([1, 2]), "changes/0"),  # type: ignore[list-item]
        (lambda: gsh.box(lower=[0, 1], upper=[0, 0]), "lower/1"),
        (lambda: gsh.box(lower=[0], upper=[1, 1]), "upper"),
        (lambda: gsh.box(lower=[], upper=[]), "lower"),
        (lambda: gsh.box(lower=[0], upper=[np.inf]), "upper"),
        (lambda: gsh.l1(-1), "bound"),
        (lambda: gsh.l2(np.nan), "bound"),
        (lambda: gsh.vectors([]), "changes"),
        (lambda: gsh.vectors([[]]), "changes/0"),
        (lambda: gsh.vectors([[1, 2], [1]]), "changes/1"),
    ],
)
def test_a_sensitivity_names_its_parameter(make: Callable[[], object], name: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=f"^{name}: must "):
        make()


@pytest.mark.parametrize("name", PAIRS)
def test_a_mechanism_is_a_value(name: str) -> None:
    """Equal, hashable, frozen; it survives a pickle, a deep copy and its own repr."""
    mechanism, core = PAIRS[name]

    assert mechanism == core
    for copied in (pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism), eval(repr(mechanism), public())):
        assert copied == mechanism
        assert copied == core
    assert len({mechanism, dataclasses.replace(mechanism)}) == 1
    assert dataclasses.replace(mechanism, sigma=9000.0).sigma == 9000.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.sigma = 1.0  # type: ignore[misc]
    if mechanism.aggregates is None:
        assert mechanism.mu_0 == core.mu_0
    else:
        assert (mechanism.mu_0, mechanism.aggregates.mu_0) == (None, core.costs.mu_0)


@pytest.mark.parametrize(
    "sensitivity", [gsh.box(lower=[0], upper=[1]), gsh.l1(2), gsh.l2(0.1), gsh.vectors([[1], [-1]])], ids=repr
)
def test_the_repr_of_columns_makes_them(sensitivity: gsh.Sensitivity) -> None:
    columns = gsh.Aggregates(names=["it's"], covariance=[[0.1]], sensitivity=sensitivity)
    relative = gsh.RelativeAggregates(names=["it's"], relative_covariance=[[0.1]], sensitivity=sensitivity)

    assert eval(repr(columns), public()) == columns
    assert eval(repr(relative), public()) == relative


def test_replace_takes_the_columns_with_their_own_mu_0() -> None:
    other = gsh.Aggregates(names=["views"], covariance=[[9]], sensitivity=gsh.l2(1))
    counts, columns = gsh.Mechanism(**MECHANISM), gsh.Mechanism(**MECHANISM, aggregates=COLUMNS)

    assert dataclasses.replace(columns, aggregates=other) == gsh.Mechanism(**MECHANISM, aggregates=other)
    assert dataclasses.replace(columns, aggregates=other).costs.mu_0 == other.mu_0
    assert dataclasses.replace(columns, aggregates=None) == counts
    assert dataclasses.replace(columns, aggregates=None).costs.mu_0 == 0
    assert dataclasses.replace(counts, aggregates=COLUMNS) == columns
    with pytest.raises(gsh.InvalidParameter, match=r"^mu_0: must be omitted if aggregates are given"):
        dataclasses.replace(columns, mu_0=0.5)


@pytest.mark.parametrize("name", PAIRS)
def test_costs_are_doubles_rounded_up(name: str) -> None:
    mechanism, core = PAIRS[name]
    cost = cost_of(core)

    assert (mechanism.mu_squared, mechanism.hazard) == (cost.mu_squared, cost.hazard)
    assert mechanism.mu == gsh.exact(mechanism, epsilon=1).mu
    assert {type(cost) for cost in (mechanism.mu, mechanism.mu_squared, mechanism.hazard)} == {float}


def test_a_mechanism_shows_no_numbers_but_python_ones() -> None:
    """No ball of the core: its accuracy would depend on what other threads compute."""
    for mechanism, _ in PAIRS.values():
        shown = {name: getattr(mechanism, name) for name in dir(mechanism) if not name.startswith("_")}
        assert shown.pop("without_columns").aggregates is None
        assert isinstance(shown.pop("without_thresholds"), gsh.PlainGaussian)
        assert callable(shown.pop("from_certificate"))
        costs = shown.pop("costs")
        numbers = [*shown.pop("capped"), *shown.pop("caps"), costs.mu_0, *costs.capped]
        assert {type(name) for name in shown.pop("column_names")} <= {str}
        assert {type(value) for value in (*numbers, *shown.values())} <= {int, float, type(None), gsh.Aggregates}
        given = {"aggregates", "c_u", "mu_0", "sigma", "tau", "tau_star"}
        assert shown.keys() == given | {"effective_tau", "hazard", "mu", "mu_squared", "tau_gap"}


def test_mu_0_and_columns_exclude_each_other() -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"^mu_0: must be omitted if aggregates are given"):
        gsh.Mechanism(**MECHANISM, mu_0=0.5, aggregates=COLUMNS)


def test_a_mechanism_must_be_one() -> None:
    both = r"must be a gsh\.Mechanism or a gsh\.PlainGaussian, not "
    for wrong in (None, "m", 3):
        with pytest.raises(gsh.InvalidParameter, match=f"^mechanism: {both}"):
            gsh.exact(wrong, epsilon=1.0)  # type: ignore[call-overload]
    with pytest.raises(gsh.InvalidParameter, match=f"^tables/c_u: {both}int"):
        gsh.exact(MECHANISM, epsilon=1.0)  # type: ignore[call-overload]
    with pytest.raises(gsh.InvalidParameter, match=r"^aggregates: must be gsh\.Aggregates, not dict"):
        gsh.Mechanism(**MECHANISM, aggregates={"mu_0": 0.1})


def test_every_error_is_an_error_of_the_library() -> None:
    tree = [gsh.AccountingError, gsh.InvalidParameter, gsh.InfeasibleTarget, gsh.ReleaseError, gsh.InvalidGroups]

    assert all(issubclass(kind, gsh.Error) for kind in [*tree, gsh.TooManyGroups])
    assert str(gsh.InvalidGroups("/groups/keys", "must be unique")) == "groups/keys: must be unique"
    assert str(pickle.loads(pickle.dumps(gsh.InvalidParameter("sigma", "must be so")))) == "sigma: must be so"


@pytest.mark.parametrize("bound", [2**53 + 1, np.longdouble(1) + np.longdouble(2) ** -60])
def test_a_number_that_is_not_a_double_is_refused(bound: Any) -> None:
    """Rounded down, a bound on the sensitivity would promise too much."""
    with pytest.raises(gsh.InvalidParameter, match="must be a double"):
        gsh.l2(bound)
