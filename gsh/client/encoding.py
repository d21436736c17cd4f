"""The objects of the library as JSON of the HTTP contract, and back."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from gsh.accounting.accountings import EXACT, AccountingName, Binding, Point
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors
from gsh.library.arguments import Integer, Real, integer, real
from gsh.library.parameters import Aggregates, Mechanism, RelativeAggregates
from gsh.library.privacy import Privacy, privacy_of
from gsh.library.targets import Calibration, Comparison, Price

__all__ = [
    "AnyMechanism",
    "Json",
    "bare_mechanism",
    "comparison_of",
    "draft_json",
    "mechanism_json",
    "mechanism_of",
    "points_of",
    "stated_epsilon",
]

Json: TypeAlias = dict[str, Any]
AnyMechanism: TypeAlias = Mechanism | Calibration | Mapping[str, Any]
"""A mechanism, a calibration that has one, or the JSON object of the contract: for plain Gaussian noise, say."""


def bare_mechanism(given: Mechanism | Calibration) -> Mechanism:
    """The mechanism itself."""
    mechanism = given.mechanism if isinstance(given, Calibration) else given
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter("mechanism", f"must be a gsh.Mechanism, not {type(mechanism).__name__}")
    return mechanism


def stated_epsilon(given: object) -> float | None:
    """The ε that a release of a calibration states, unless another point is asked for: that of the target."""
    return given.privacy.epsilon if isinstance(given, Calibration) else None


def mechanism_json(given: AnyMechanism) -> Json:
    if isinstance(given, Mapping):
        return dict(given)
    mechanism = bare_mechanism(given)
    fields = {"c_u": mechanism.c_u, "tau": mechanism.tau, "tau_star": mechanism.tau_star, "sigma": mechanism.sigma}
    return fields | _aggregates_json(mechanism.mu_0 or 0.0, mechanism.aggregates)


def draft_json(
    *,
    c_u: Integer | None,
    tau: Integer,
    tau_star: Real | None = None,
    sigma: Real | None = None,
    mu_0: Real,
    aggregates: Aggregates | RelativeAggregates | None,
) -> Json:
    """A mechanism without the parameters to solve for."""
    if not isinstance(aggregates, Aggregates | RelativeAggregates | None):
        detail = f"must be gsh.Aggregates or gsh.RelativeAggregates, not {type(aggregates).__name__}"
        raise InvalidParameter("aggregates", detail)
    number = real("mu_0", mu_0)
    if aggregates is not None and number != 0:
        raise InvalidParameter("mu_0", "must be omitted if aggregates are given")
    fields = {
        "c_u": None if c_u is None else integer("c_u", c_u),
        "tau": integer("tau", tau),
        "tau_star": None if tau_star is None else real("tau_star", tau_star),
        "sigma": None if sigma is None else real("sigma", sigma),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return given | _aggregates_json(number, aggregates)


def _aggregates_json(mu_0: float, aggregates: Aggregates | RelativeAggregates | None) -> Json:
    if aggregates is None:
        return {"aggregates": {"mu_0": mu_0}} if mu_0 else {}
    rows = "covariance" if isinstance(aggregates, Aggregates) else "relative_covariance"
    columns = {
        "names": list(aggregates.names),
        rows: [list(row) for row in getattr(aggregates, rows)],
        "sensitivity": _sensitivity_json(aggregates.sensitivity),
    }
    return {"aggregates": columns}


def _sensitivity_json(sensitivity: Sensitivity) -> Json:
    match sensitivity:
        case Box():
            return {"kind": "box", "lower": list(sensitivity.lower), "upper": list(sensitivity.upper)}
        case L1Norm(bound=bound):
            return {"kind": "l1", "bound": bound}
        case L2Norm(bound=bound):
            return {"kind": "l2", "bound": bound}
        case Vectors(vectors=vectors):
            return {"kind": "vectors", "vectors": [list(row) for row in vectors]}


def mechanism_of(document: Mapping[str, Any]) -> Mechanism:
    """The mechanism of an answer. Making it checks it again."""
    aggregates = document.get("aggregates") or {}
    has_columns = "names" in aggregates
    return Mechanism(
        c_u=document["c_u"],
        tau=document["tau"],
        tau_star=document["tau_star"],
        sigma=document["sigma"],
        mu_0=None if has_columns else aggregates.get("mu_0", 0.0),
        aggregates=_aggregates_of(aggregates) if has_columns else None,
    )


def _aggregates_of(columns: Mapping[str, Any]) -> Aggregates:
    return Aggregates(
        names=list(columns["names"]),
        covariance=[list(row) for row in columns["covariance"]],
        sensitivity=_sensitivity_of(columns["sensitivity"]),
    )


def _sensitivity_of(document: Mapping[str, Any]) -> Sensitivity:
    match document["kind"]:
        case "box":
            return Box(tuple(map(float, document["lower"])), tuple(map(float, document["upper"])))
        case "l1":
            return L1Norm(float(document["bound"]))
        case "l2":
            return L2Norm(float(document["bound"]))
        case _:
            return Vectors(tuple(tuple(map(float, row)) for row in document["vectors"]))


def points_of(answer: Mapping[str, Any]) -> tuple[Privacy, ...]:
    """The points of an answer of /account."""
    accounting: AccountingName = answer["accounting"]
    mu = float(answer["mechanism"]["mu"])
    return tuple(privacy_of(accounting, _point(each, mu)) for each in answer["points"])


def _point(point: Mapping[str, Any], mu: float) -> Point:
    epsilon, gaussian = (None if point[name] is None else float(point[name]) for name in ("epsilon", "delta_gaussian"))
    return Point(epsilon, float(point["delta"]), gaussian, float(point["delta_infinite"]), point["binding"], mu)


def comparison_of(answer: Mapping[str, Any]) -> Comparison:
    """The prices of an answer of /compare."""
    epsilon = float(answer["epsilon"])
    pairs = ((each["accounting"], each["price"]) for each in answer["accountings"])
    prices = tuple((name, None if price is None else _price(name, price, epsilon)) for name, price in pairs)
    return Comparison(epsilon, float(answer["delta"]), prices)


def _price(accounting: ComparedName, price: Mapping[str, Any], epsilon: float) -> Price:
    mechanism = mechanism_of(price["mechanism"])
    gaussian, infinite = float(price["delta_gaussian"]), float(price["delta_infinite"])
    binding: Binding = EXACT.binding(infinite, gaussian) if accounting == "exact" else "both"
    point = Point(epsilon, float(price["delta"]), gaussian, infinite, binding, mechanism.mu)
    return Price(
        mechanism=mechanism,
        privacy=privacy_of(accounting, point),
        least_sigma=float(price["least_sigma"]),
        sigma_ratio=float(price["sigma_ratio"]),
        tau_star_ratio=float(price["tau_star_ratio"]),
    )
