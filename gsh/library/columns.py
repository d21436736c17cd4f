"""Further columns, as people describe them to ``calibrate`` and ``compare``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from gsh.accounting.aggregates import Aggregates, RelativeAggregates
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.column_costs import Capped, Caps, capped_of
from gsh.accounting.sensitivity import Box
from gsh.arguments import Integer, Real, integer, real, reals, texts
from gsh.errors import InvalidParameter, renamed

__all__ = ["Columns"]

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Columns:
    """The parameters that describe further columns. At most one way of describing them is given."""

    mu_0: Real = 0.0
    capped: Caps | None = None
    aggregates: Aggregates | RelativeAggregates | None = None
    sums: Mapping[str, tuple[Real, Real]] | None = None
    caps: Mapping[str, Integer] | None = None
    weights: Mapping[str, Real] | None = None

    def described(self, c_u: int | None) -> tuple[Aggregates | RelativeAggregates | float, tuple[Capped, ...]]:
        """The columns of a draft."""
        if not isinstance(self.aggregates, Aggregates | RelativeAggregates | None):
            detail = f"must be gsh.Aggregates or gsh.RelativeAggregates, not {type(self.aggregates).__name__}"
            raise InvalidParameter("aggregates", detail)
        number, capped = real("mu_0", self.mu_0), capped_of(self.capped)
        if self.sums is None:
            for name, given in (("caps", self.caps), ("weights", self.weights)):
                if given is not None:
                    raise InvalidParameter(name, "must be omitted unless sums are given")
        described = "aggregates" if self.aggregates is not None else "sums" if self.sums is not None else None
        for name, is_given in (("mu_0", number != 0), ("capped", bool(capped))):
            if is_given and described is not None:
                raise InvalidParameter(name, f"must be omitted if {described} are given")
        if self.sums is None:
            return number if self.aggregates is None else self.aggregates, capped
        if self.aggregates is not None:
            raise InvalidParameter("aggregates", "must be omitted if sums are given")
        return self._balanced(self.sums, c_u), ()

    def _balanced(self, sums: Mapping[str, tuple[Real, Real]], c_u: int | None) -> RelativeAggregates:
        if not (isinstance(sums, Mapping) and sums):
            raise InvalidParameter("sums", "must be a mapping from names of columns to (lower, upper)")
        names = texts("sums", list(sums))
        ranges = [reals(f"sums/{name}", sums[name]) for name in names]
        for name, bounds in zip(names, ranges, strict=True):
            if len(bounds) != 2:
                raise InvalidParameter(f"sums/{name}", "must be a pair: lower, upper")
        lower, upper = zip(*ranges, strict=True)
        caps, weights = _listed("caps", self.caps, names), _listed("weights", self.weights, names)
        groups = tuple(None if cap is None else integer(f"caps/{names[j]}", cap) for j, cap in enumerate(caps))
        shares = [1.0 if share is None else real(f"weights/{names[j]}", share) for j, share in enumerate(weights)]
        by_place = [
            (f"{part}/{j}", f"{parameter}/{name}")
            for part, parameter in _PARTS.items()
            for j, name in reversed(list(enumerate(names)))
        ]
        box = Box(lower, upper, None if all(cap is None for cap in groups) else groups)
        # The rest is about all sums together.
        parts = ("names", "relative_covariance", "sensitivity/lower", "sensitivity/upper")
        with renamed(*by_place, *((part, "sums") for part in parts)):
            return balanced(names, box, c_u, shares)


_PARTS = {
    "sensitivity/groups": "caps",
    "sensitivity/lower": "sums",
    "sensitivity/upper": "sums",
    "weights": "weights",
}


def _listed(parameter: str, given: Mapping[str, V] | None, names: tuple[str, ...]) -> list[V | None]:
    """The value of each column, or None."""
    if given is None:
        return [None] * len(names)
    if not isinstance(given, Mapping):
        detail = f"must be a mapping from names of columns, not {type(given).__name__}"
        raise InvalidParameter(parameter, detail)
    for name in given:
        if name not in names:
            raise InvalidParameter(parameter, "must name only columns of sums")
    return [given.get(name) for name in names]
