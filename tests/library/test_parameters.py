"""Arguments: numpy's numbers are welcome, and every other type is refused by the parameter's name."""

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gsh
from tests.library.examples import COLUMNS, PAIRS

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
    "array without dimensions": np.array(1.0),
    "nan": float("nan"),
    "infinity": np.float32("inf"),
    "negative": -1,
    "huge": -(10**400),
}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, (_, _, names) in CALLS.items() for name in names])
def test_an_error_names_the_parameter(call: str, name: str, value: object) -> None:
    function, others, _ = CALLS[call]

    with pytest.raises(gsh.InvalidParameter) as raised:
        function(**others | {name: value})

    assert raised.value.pointer.removeprefix("aggregates/") == name
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
        ({"names": "likes"}, "aggregates/names: must be a list or an array of strings, not str"),
        ({"names": [1, 2]}, "aggregates/names/0: must be a string, not int"),
        ({"names": ["a", "a"]}, "aggregates/names: must be unique"),
        ({"covariance": 400}, "aggregates/covariance: must be a list or an array of rows of numbers, not int"),
        ({"covariance": [400, 100]}, "aggregates/covariance/0: must be a list or an array of numbers, not int"),
        ({"covariance": [[400, "0"], [0, 100]]}, "aggregates/covariance/0/1: must be a number, not str"),
        ({"covariance": [[400, 1], [2, 100]]}, "aggregates/covariance: must be symmetric"),
        ({"covariance": np.ones((2, 2))}, "aggregates/covariance: must be positive definite"),
        ({"sensitivity": 1.0}, "aggregates/sensitivity: must come from gsh.box, gsh.l1, gsh.l2 or gsh.vectors"),
        ({"sensitivity": gsh.box(lower=[0], upper=[1])}, "aggregates/sensitivity/lower: must have one number per"),
        ({"sensitivity": gsh.l2(-1)}, "aggregates/sensitivity/bound: must be at least 0"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_columns_that_are_none_are_refused(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"names": ["a", "b"], "covariance": np.diag([400, 100]), "sensitivity": gsh.l1(1)}

    with pytest.raises(gsh.InvalidParameter) as raised:
        gsh.Aggregates(**given | arguments)

    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: gsh.box(lower=["0"], upper=[1]), "lower/0"),  # type: ignore[list-item]
        (lambda: gsh.box(lower=[0], upper=1), "upper"),  # type: ignore[arg-type]
        (lambda: gsh.l1(None), "bound"),  # type: ignore[arg-type]
        (lambda: gsh.l2(True), "bound"),
        (lambda: gsh.vectors([1, 2]), "vectors/0"),  # type: ignore[list-item]
    ],
)
def test_a_sensitivity_names_its_parameter(make: Callable[[], object], name: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=f"^aggregates/sensitivity/{name}: must be "):
        make()


@pytest.mark.parametrize("name", PAIRS)
def test_a_mechanism_is_a_value(name: str) -> None:
    """Equal, hashable, frozen; it survives a pickle and its own repr."""
    mechanism, core = PAIRS[name]

    assert isinstance(mechanism, type(core))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert len({mechanism, dataclasses.replace(mechanism)}) == 1
    assert dataclasses.replace(mechanism, sigma=9000.0).sigma == 9000.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.sigma = 1.0  # type: ignore[misc]
    assert mechanism.mu_0 == core.mu_0
    if mechanism.aggregates is None:
        assert eval(repr(mechanism), {"Mechanism": gsh.Mechanism}) == mechanism


def test_mu_0_and_columns_exclude_each_other() -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"^aggregates/mu_0: "):
        gsh.Mechanism(**MECHANISM, mu_0=0.5, aggregates=COLUMNS)


def test_a_mechanism_must_be_one() -> None:
    for wrong in (MECHANISM, None, "m"):
        with pytest.raises(gsh.InvalidParameter, match=r"^mechanism: must be a gsh\.Mechanism, not "):
            gsh.exact(wrong, epsilon=1.0)  # type: ignore[call-overload]
    with pytest.raises(gsh.InvalidParameter, match=r"^aggregates: must be gsh\.Aggregates, not dict"):
        gsh.Mechanism(**MECHANISM, aggregates={"mu_0": 0.1})


def test_every_error_is_an_error_of_the_library() -> None:
    tree = [gsh.AccountingError, gsh.InvalidParameter, gsh.InfeasibleTarget, gsh.ReleaseError, gsh.InvalidGroups]

    assert all(issubclass(kind, gsh.Error) for kind in [*tree, gsh.TooManyGroups])
    assert str(gsh.InvalidGroups("/groups/keys", "must be unique")) == "groups/keys: must be unique"
    assert str(pickle.loads(pickle.dumps(gsh.InvalidParameter("sigma", "must be so")))) == "sigma: must be so"
