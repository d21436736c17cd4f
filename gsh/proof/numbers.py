"""The numbers of a certificate, computed again from its mechanisms in ball arithmetic."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.certificate import Certificate, bounds_of, certificate_of
from gsh.histogram.noise import Noise
from gsh.surveyed import SurveyStatement

__all__ = ["wrong_numbers"]

_CLOSE = 1e-12
"""Versions of the arithmetic may round in the last digit."""


def wrong_numbers(stated: Certificate) -> Iterator[tuple[str, str]]:
    """The members that do not follow from the mechanisms, each with what it must be."""
    mechanisms, survey = stated.mechanisms, stated.get("survey")
    meanings = stated.meanings
    again = certificate_of(
        mechanisms,
        {name: Noise(each, meanings[name].rounded if name in meanings else None) for name, each in mechanisms.items()},
        epsilon=None,
        delta=None,
        unprotected=(),
        enforced_by="caller",
        plan_digest=None,
        trust_model="",
        survey=None if survey is None else SurveyStatement.from_json(survey),
    )
    for name in ("mu", "mu_squared", "hazard", "delta_infinite"):
        yield from _unlike(name, stated.get(name), again[name])
    for (name, table), other in zip(stated.described.items(), again.described.values(), strict=True):
        at = f"tables/{name}/" if name else ""
        for member in ("mu_0", "capped", *(("mu_squared", "hazard") if name else ())):
            yield from _unlike(f"{at}{member}", _plain(table.get(member)), _plain(other.get(member)))
        if table.get("grid") is not None:
            yield from _unlike(f"{at}grid", _plain(table.grid), _plain(other.grid))
        bounds = _plain(table.bounds)
        for member, value in bounds_of(mechanisms[name]).items():
            if member != "intervals_cover":
                yield from _unlike(f"{at}bounds/{member}", bounds.get(member), value)
    yield from _wrong_point(stated)


def _wrong_point(stated: Certificate) -> Iterator[tuple[str, str]]:
    epsilon, delta, release = stated.epsilon, stated.delta, stated.release.without_columns
    if epsilon is None and delta is None:
        return
    if epsilon is None or delta is None:
        yield "delta", "must be given with ε"
        return
    found = at_epsilon(EXACT, release, epsilon).delta
    if _are_close(found, delta):
        return
    smallest = at_delta(EXACT, release, delta).epsilon if 0 < delta < 1 else None
    if smallest is None or not _are_close(smallest, epsilon):
        yield "delta", f"must be {found!r} at ε = {epsilon!r}, by the mechanisms"


def _unlike(where: str, stated: Any, again: Any) -> Iterator[tuple[str, str]]:
    if not _are_close(stated, again):
        yield where, f"must be {again!r}, by the mechanisms"


def _are_close(one: Any, two: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_are_close(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_are_close, one, two))
    if isinstance(one, float) or isinstance(two, float):
        numbers = isinstance(one, int | float) and isinstance(two, int | float)
        return numbers and math.isclose(one, two, rel_tol=_CLOSE, abs_tol=0.0)
    return bool(one == two)


def _plain(given: Any) -> Any:
    if isinstance(given, tuple):
        return list(map(_plain, given))
    return {name: _plain(each) for name, each in given.items()} if isinstance(given, Mapping) else given
