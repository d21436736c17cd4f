"""Arguments and results of the library in requests and answers of the service."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from gsh.accounting.accountings import AccountingName, Point
from gsh.accounting.calibration import comparison, draft
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.mechanism import Mechanism
from gsh.arguments import instance
from gsh.library.privacy import Privacy, privacy_of
from gsh.library.targets import Calibration, Comparison, Price
from gsh.wire import Json, mechanism_from_json, mechanism_to_json

__all__ = [
    "AnyMechanism",
    "Calibrated",
    "calibrated_of",
    "calibration_of",
    "comparison_of",
    "mechanism_json",
    "one_mechanism",
    "points_of",
    "stated_epsilon",
]

AnyMechanism: TypeAlias = Mechanism | Calibration | Mapping[str, Any]
"""A mechanism, a calibration that has one, or the JSON object of the contract: for plain Gaussian noise, say."""


def one_mechanism(given: Mechanism | Calibration) -> Mechanism:
    """The mechanism itself, or that of a calibration."""
    return instance("mechanism", given.mechanism if isinstance(given, Calibration) else given, Mechanism)


def stated_epsilon(given: object) -> float | None:
    """The ε that a release of a calibration states, unless another point is asked for: that of the target."""
    return given.privacy.epsilon if isinstance(given, Calibration) else None


def mechanism_json(given: AnyMechanism) -> Json:
    if isinstance(given, Mapping):
        return dict(given)
    return mechanism_to_json(one_mechanism(given))


_PARAMETERS: Mapping[str, draft.Parameter] = {"c_u": "c_u", "sigma": "sigma", "tau_star": "tau_star"}


class Calibrated(NamedTuple):
    """An answer of /calibrate: the mechanism with the parameters that were solved, and the point that it meets."""

    mechanism: Mechanism
    solved: tuple[draft.Parameter, ...]
    epsilon: float
    delta: float
    largest_sigma: float | None


def calibrated_of(answer: Mapping[str, Any]) -> Calibrated:
    """The mechanism of an answer of /calibrate."""
    largest = answer.get("largest_sigma")
    return Calibrated(
        mechanism=mechanism_from_json(answer["mechanism"]),
        solved=tuple(_PARAMETERS[name] for name in answer["solved"]),
        epsilon=float(answer["epsilon"]),
        delta=float(answer["delta"]),
        largest_sigma=None if largest is None else float(largest),
    )


def calibration_of(answer: Mapping[str, Any]) -> Calibration:
    """An answer of /calibrate for a target (ε, δ)."""
    found = calibrated_of(answer)
    privacy = privacy_of(answer["accounting"], _point(answer, float(answer["mu"])))
    return Calibration(found.mechanism, found.solved, privacy, found.largest_sigma)


def points_of(answer: Mapping[str, Any], several: int) -> tuple[Privacy, ...]:
    """The points of an answer of /account, as many as were asked for."""
    accounting: AccountingName = answer["accounting"]
    mu = float(answer["mechanism"]["mu"])
    points = tuple(privacy_of(accounting, _point(each, mu)) for each in answer["points"])
    if len(points) != several:
        raise ValueError
    return points


def _point(point: Mapping[str, Any], mu: float) -> Point:
    epsilon, gaussian = (None if point[name] is None else float(point[name]) for name in ("epsilon", "delta_gaussian"))
    return Point(epsilon, float(point["delta"]), gaussian, float(point["delta_infinite"]), point["binding"], mu)


def comparison_of(answer: Mapping[str, Any]) -> Comparison:
    """The prices of an answer of /compare."""
    found = {each["accounting"]: each["price"] for each in answer["accountings"]}
    exact = mechanism_from_json(found["exact"]["mechanism"])
    prices = tuple((name, _price(name, price, exact)) for name, price in found.items())
    capped = answer.get("without_caps")
    without = None if capped is None else _price("exact", capped["price"], exact)
    return Comparison(float(answer["epsilon"]), float(answer["delta"]), prices, without, has_caps=capped is not None)


def _price(name: ComparedName, price: Mapping[str, Any] | None, exact: Mechanism) -> Price | None:
    if price is None:
        return None
    mechanism = mechanism_from_json(price["mechanism"])
    return Price(
        mechanism=mechanism,
        privacy=privacy_of(name, _point(price, float(price["mu"]))),
        least_sigma=float(price["least_sigma"]),
        sigma_ratio=float(price["sigma_ratio"]),
        tau_star_ratio=float(price["tau_star_ratio"]),
        column_ratios=comparison.column_ratios(mechanism, exact),
    )
