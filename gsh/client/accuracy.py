"""What published numbers mean, and what a mechanism would publish, asked of the service: as the library's functions.

The library checks the numbers before they are sent, so that its errors name them. SciPy is loaded by the first call.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Real, Reals, real, reals
from gsh.client.decoding import decoded
from gsh.client.encoding import IN_A_MECHANISM, MechanismLike, any_mechanism, one_mechanism
from gsh.client.operations import Answer, Bound, Operation
from gsh.client.requests import ask, json_call
from gsh.documents import parsed
from gsh.library.targets import Calibration
from gsh.wire import Json, mechanism_to_json

if TYPE_CHECKING:
    from gsh.accuracy.intervals import Interval
    from gsh.accuracy.utility import Utility
    from gsh.library.accuracy import Integers, Intervals, Totals

__all__ = ["intervals", "means", "ratios", "total", "utility"]

_UNKNOWN = {"low": -math.inf, "estimate": math.nan, "high": math.inf}
"""What null means: the numbers do not say it."""


def intervals(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Operation["Intervals"]:
    """Where the true numbers of published groups are, as ``gsh.intervals``. It costs no privacy."""
    from gsh.library.accuracy import Intervals  # noqa: PLC0415 - loads SciPy

    def found(answer: Json) -> Intervals:
        return Intervals(float(answer["level"]), _interval(answer["counts"]), _each(answer["values"]))

    return decoded((yield from _published(self, mechanism, counts, values, level, is_rounded, units)), found)


def total(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Operation["Totals"]:
    """The sum of the true numbers of some published groups, as ``gsh.total``. It costs no privacy."""
    from gsh.library.accuracy import Total, Totals  # noqa: PLC0415

    def found(answer: Json) -> Totals:
        sums = answer["total"]
        columns = {name: parsed(Total, column) for name, column in sums["values"].items()}
        return Totals(float(answer["level"]), parsed(Total, sums["counts"]), columns)

    asked = _published(self, mechanism, counts, values, level, is_rounded, units, total=True)
    return decoded((yield from asked), found)


def means(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals],
    means: Mapping[str, tuple[Real, Real]],
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Operation[Mapping[str, "Interval"]]:
    """The means per user of published groups, as ``gsh.means``. It costs no privacy."""
    asked = _published(self, mechanism, counts, values, level, is_rounded, units, means=means)
    return decoded((yield from asked), lambda answer: _each(answer["means"]))


def ratios(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals],
    ratios: Mapping[str, tuple[str, str]],
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Operation[Mapping[str, "Interval"]]:
    """The ratios of the sums of two columns, as ``gsh.ratios``. It costs no privacy."""
    asked = _published(self, mechanism, counts, values, level, is_rounded, units, ratios=ratios)
    return decoded((yield from asked), lambda answer: _each(answer["ratios"]))


def _each(columns: Mapping[str, Mapping[str, list[float | None]]]) -> Mapping[str, "Interval"]:
    return MappingProxyType({name: _interval(column) for name, column in columns.items()})


def _interval(column: Mapping[str, list[float | None]]) -> "Interval":
    from gsh.accuracy.intervals import Interval  # noqa: PLC0415

    ends = ([_UNKNOWN[end] if each is None else each for each in column[end]] for end in ("low", "estimate", "high"))
    return Interval(*(np.array(each, np.float64) for each in ends))


def _published(
    self: Bound[Any],
    mechanism: MechanismLike,
    counts: Reals,
    values: Mapping[str, Reals] | None,
    level: Real,
    is_rounded: bool,
    units: Mapping[str, Real] | None,
    *,
    total: bool = False,
    means: Mapping[str, tuple[Real, Real]] | None = None,
    ratios: Mapping[str, tuple[str, str]] | None = None,
) -> Operation[Answer]:
    """The answer about published numbers."""
    from gsh.library.means import mean_columns, ratio_columns  # noqa: PLC0415
    from gsh.library.published_numbers import level_of, published_numbers  # noqa: PLC0415

    used, chosen = any_mechanism(mechanism), level_of(level)
    given = published_numbers(used, counts, values, is_rounded, units)
    columns = {name: each.numbers.tolist() for name, each in given.values.items()}
    body: Json = {"mechanism": mechanism_to_json(used), "level": chosen, "counts": given.counts.tolist()}
    body |= {"values": columns, "total": total}
    if is_rounded:
        body |= {"is_rounded": True, "units": {name: float(unit) for name, unit in (units or {}).items()}}
    if means is not None:
        mean_columns(used, given, means)
        body["means"] = {name: [float(bound) for bound in bounds] for name, bounds in means.items()}
    if ratios is not None:
        ratio_columns(used, given, ratios)
        body["ratios"] = {name: list(pair) for name, pair in ratios.items()}
    return (yield from ask(self, json_call("POST", "/intervals", body, is_safe=True), IN_A_MECHANISM))


def utility(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    sizes: "Integers",
    times: "Integers | None" = None,
    below: Real | None = None,
    quantiles: Reals = (0.5, 0.9, 0.95),
) -> Operation["Utility"]:
    """What the mechanism would publish of groups of these sizes, as ``gsh.utility``.

    Only the histogram of the sizes is sent. The result depends on the sizes exactly: use public or made-up ones.
    """
    from gsh.accuracy.bounds import counted  # noqa: PLC0415 - these load SciPy
    from gsh.library.accuracy import integers  # noqa: PLC0415

    used = one_mechanism(mechanism)
    found, groups = counted(integers("sizes", sizes), None if times is None else integers("times", times))
    body: Json = {"mechanism": mechanism_to_json(used), "sizes": found.tolist(), "times": groups.tolist()}
    body["quantiles"] = list(reals("quantiles", quantiles))
    if below is not None:
        body["below"] = real("below", below)
    call = json_call("POST", "/utility", body, is_safe=True)
    return decoded((yield from ask(self, call, IN_A_MECHANISM)), _utility_of)


def _utility_of(answer: Mapping[str, Any]) -> "Utility":
    from gsh.accuracy.utility import ColumnNoise, Utility  # noqa: PLC0415

    groups, volume, false = answer["groups"], answer["volume"], answer["false_groups"]
    columns: dict[str, list[Any]] = {
        name: [each[name] for each in answer["sizes"]] for name in ("size", "times", "probability")
    }
    errors = [each["error"] for each in answer["relative_errors"]]
    share = false["share"]
    return Utility(
        sizes=np.array(columns["size"], np.int64),
        times=np.array(columns["times"], np.int64),
        probabilities=np.array(columns["probability"], np.float64),
        all_groups=groups["total"],
        groups=float(groups["expected"]),
        groups_deviation=float(groups["standard_deviation"]),
        all_volume=float(volume["total"]),
        volume=float(volume["expected"]),
        below=float(false["below"]),
        false_groups=float(false["expected"]),
        false_share=None if share is None else float(share),
        quantiles=tuple(float(each["quantile"]) for each in answer["relative_errors"]),
        relative_errors=None if share is None else tuple(map(float, errors)),
        columns=tuple(
            ColumnNoise(each["name"], float(each["standard_deviation"]), float(each["total_standard_deviation"]))
            for each in answer["columns"]
        ),
    )
