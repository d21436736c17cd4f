"""The mechanism as JSON: the object that the service takes and gives, and that a certificate has."""

from collections.abc import Callable, Mapping, Set
from typing import Any, TypeAlias

from gsh.accounting.errors import InvalidParameter
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity
from gsh.library.parameters import Aggregates, Mechanism
from gsh.library.sensitivities import box, l1, l2, vectors

__all__ = ["Json", "mechanism_from_json", "mechanism_to_json", "sensitivity_to_json"]

Json: TypeAlias = dict[str, Any]

_KINDS: dict[str, tuple[set[str], Callable[[Mapping[str, Any]], Sensitivity]]] = {
    "box": (
        {"lower", "upper"},
        lambda given: box(lower=given["lower"], upper=given["upper"], groups=given.get("groups")),
    ),
    "l1": ({"bound"}, lambda given: l1(given["bound"])),
    "l2": ({"bound"}, lambda given: l2(given["bound"])),
    "vectors": ({"vectors"}, lambda given: vectors(given["vectors"])),
}


def mechanism_to_json(mechanism: Mechanism) -> Json:
    """A mechanism as a JSON object. ``aggregates`` is absent for counts only."""
    written: Json = {
        "c_u": mechanism.c_u,
        "tau": mechanism.tau,
        "tau_star": mechanism.tau_star,
        "sigma": mechanism.sigma,
    }
    columns = mechanism.aggregates
    if columns is not None:
        written["aggregates"] = {
            "names": list(columns.names),
            "covariance": [list(row) for row in columns.covariance],
            "sensitivity": sensitivity_to_json(columns.sensitivity),
        }
    elif mechanism.mu_0 or mechanism.capped:
        caps = [{"groups": groups, "mu_0": mu_0} for groups, mu_0 in mechanism.capped]
        written["aggregates"] = {"mu_0": mechanism.mu_0 or 0.0} | ({"capped": caps} if caps else {})
    return written


def mechanism_from_json(given: object) -> Mechanism:
    """The mechanism of a JSON object. Unknown and missing fields are refused; errors name the field.

    >>> from gsh.library.mechanism_json import mechanism_from_json
    >>> mechanism_from_json({"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20})
    Mechanism(c_u=3, tau=1, tau_star=120.0, sigma=20.0)
    """
    fields = _object("mechanism", given, {"c_u", "tau", "tau_star", "sigma"}, {"aggregates"})
    numbers = {name: fields[name] for name in ("c_u", "tau", "tau_star", "sigma")}
    aggregates = fields.get("aggregates")
    if aggregates is None:
        return Mechanism(**numbers)
    if isinstance(aggregates, Mapping) and "mu_0" in aggregates:
        costs = _object("aggregates", aggregates, {"mu_0"}, {"capped"})
        return Mechanism(**numbers, mu_0=costs["mu_0"], capped=_capped_from_json(costs.get("capped")))
    columns = _object("aggregates", aggregates, {"names", "covariance", "sensitivity"})
    return Mechanism(
        **numbers,
        aggregates=Aggregates(
            names=columns["names"],
            covariance=columns["covariance"],
            sensitivity=_sensitivity_from_json(columns["sensitivity"]),
        ),
    )


def sensitivity_to_json(sensitivity: Sensitivity) -> Json:
    match sensitivity:
        case Box(lower, upper, groups):
            caps = {} if groups is None else {"groups": list(groups)}
            return {"kind": "box", "lower": list(lower), "upper": list(upper)} | caps
        case L1Norm(bound):
            return {"kind": "l1", "bound": bound}
        case L2Norm(bound):
            return {"kind": "l2", "bound": bound}
        case listed:
            return {"kind": "vectors", "vectors": [list(vector) for vector in listed.vectors]}


def _sensitivity_from_json(given: object) -> Sensitivity:
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidParameter("aggregates/sensitivity/kind", f"must be one of {', '.join(_KINDS)}")
    needed, make = _KINDS[kind]
    return make(_object("aggregates/sensitivity", given, {"kind", *needed}, {"groups"} if kind == "box" else set()))


def _capped_from_json(given: object) -> tuple[tuple[Any, Any], ...]:
    if not isinstance(given, list | None):
        raise InvalidParameter("aggregates/capped", "must be a list")
    parts = [_object("aggregates/capped", part, {"groups", "mu_0"}) for part in given or ()]
    return tuple((part["groups"], part["mu_0"]) for part in parts)


def _object(pointer: str, given: object, needed: Set[str], allowed: Set[str] = frozenset()) -> Mapping[str, Any]:
    """The fields of an object, all that are needed and no unknown ones. An unknown name is not repeated."""
    if not isinstance(given, Mapping):
        raise InvalidParameter(pointer, "must be a JSON object")
    for name in sorted(needed - given.keys()):
        raise InvalidParameter(pointer, f"must have the field {name}")
    if given.keys() - needed - allowed:
        raise InvalidParameter(pointer, f"must have no fields other than {', '.join(sorted(needed | allowed))}")
    return given
