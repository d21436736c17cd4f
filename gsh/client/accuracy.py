"""What a mechanism would publish, and what published numbers mean: as the library says it, by the service."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Real, Reals, real, reals
from gsh.client.budgets import IN_A_MECHANISM
from gsh.client.calls import Answer, Operation
from gsh.client.decoding import decoded
from gsh.client.documents import parsed
from gsh.client.encoding import one_mechanism
from gsh.client.json_calls import ask, json_call
from gsh.client.operations import Bound
from gsh.library.targets import Calibration
from gsh.wire import Json, mechanism_to_json

if TYPE_CHECKING:
    from gsh.accuracy.utility import Utility
    from gsh.library.accuracy import Intervals, Totals
    from gsh.library.utility import Integers

__all__ = ["intervals", "total", "utility"]


def intervals(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
) -> Operation["Intervals"]:
    """Where the true numbers of published groups are, as ``gsh.intervals``. It costs no privacy."""
    from gsh.library.accuracy import Interval, Intervals  # noqa: PLC0415

    def interval(column: Mapping[str, list[float]]) -> Interval:
        return Interval(*(np.array(column[end], np.float64) for end in ("low", "estimate", "high")))

    def found(answer: Json) -> Intervals:
        columns = {name: interval(column) for name, column in answer["values"].items()}
        return Intervals(float(answer["level"]), interval(answer["counts"]), columns)

    return decoded((yield from _published(self, mechanism, counts, values, level, is_total=False)), found)


def total(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
) -> Operation["Totals"]:
    """The sum of the true numbers of some published groups, as ``gsh.total``. It costs no privacy."""
    from gsh.library.accuracy import Total, Totals  # noqa: PLC0415

    def found(answer: Json) -> Totals:
        sums = answer["total"]
        columns = {name: parsed(Total, column) for name, column in sums["values"].items()}
        return Totals(float(answer["level"]), parsed(Total, sums["counts"]), columns)

    return decoded((yield from _published(self, mechanism, counts, values, level, is_total=True)), found)


def _published(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    counts: Reals,
    values: Mapping[str, Reals] | None,
    level: Real,
    *,
    is_total: bool,
) -> Operation[Answer]:
    """The answer about published numbers. The library checks them, so that its errors name them."""
    from gsh.library.accuracy import level_of, published_numbers  # noqa: PLC0415

    used, chosen = one_mechanism(mechanism), level_of(level)
    numbers, others = published_numbers(used, counts, values)
    columns = {name: column.tolist() for name, (_, column) in others.items()}
    body: Json = {"mechanism": mechanism_to_json(used), "level": chosen, "counts": numbers.tolist(), "values": columns}
    call = json_call("POST", "/intervals", body | {"total": is_total}, is_safe=True)
    return (yield from ask(self, call, IN_A_MECHANISM))


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
    from gsh.accuracy.sizes import counted  # noqa: PLC0415 - these load SciPy
    from gsh.library.utility import integers  # noqa: PLC0415

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
