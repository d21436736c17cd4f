"""What a release was asked for, and whether its certificate says the same.

A certificate is read in this order, so that a server cannot make a client work for long:

    the names of its tables      must be unique, at most 64, and those that were asked for
    the JSON of each mechanism   must be what was sent; if nothing was sent, it must have at most 100 columns
    the mechanism                is made only now: its linear algebra takes the cube of the number of columns
    the stated point, the budget and the idempotency key
                                 must be those of the request, also if the release is replayed: a request with the same
                                 key and another content is refused by the service
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gsh.accounting.mechanism import MOST_TABLES, AnyMechanism
from gsh.certificate import Certificate
from gsh.client.decoding import Contradiction
from gsh.histogram.roles import Roles
from gsh.wire import Json, check_table_name, mechanism_to_json, release_from_json

__all__ = ["MOST_COLUMNS", "Asked", "certified", "check_sizes"]

MOST_COLUMNS = 100
"""The most columns that the service takes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says that the certificate of its answer repeats."""

    mechanisms: Mapping[str, AnyMechanism]
    """By the names of the tables. The only table without a name has the empty one."""
    epsilon: float | None = None
    delta: float | None = None
    budget: str | None = None
    once: str | None = None
    roles: Mapping[str, Roles] = field(default_factory=dict)
    """The columns of each table; nothing for groups in JSON."""

    @classmethod
    def of(
        cls,
        mechanisms: Mapping[str, AnyMechanism],
        request: Mapping[str, Any],
        once: str | None,
        roles: Mapping[str, Roles] | None = None,
    ) -> "Asked":
        """From the fields of a request."""
        epsilon, delta, budget = (request.get(name) for name in ("epsilon", "delta", "budget"))
        return cls(mechanisms, epsilon, delta, budget, once, roles or {})


def certified(document: Json, asked: Asked | None = None) -> tuple[Certificate, Mapping[str, AnyMechanism]]:
    """The certificate of a JSON object and its mechanisms, which must be those that were asked for.

    ``Contradiction`` if they are not, and an error of Python or of the library if it is no certificate.
    """
    described = _described(document)
    if asked is None:
        check_sizes(document)
    elif described.keys() != asked.mechanisms.keys():
        raise Contradiction("its certificate is about other tables")
    elif any(each != mechanism_to_json(asked.mechanisms[name]) for name, each in described.items()):
        raise Contradiction("its certificate has another mechanism")
    certificate = Certificate.from_json(document)
    mechanisms = {name: release_from_json(each) for name, each in described.items()}
    if asked is not None:
        _check_point(certificate, asked)
        if (None if certificate.budget is None else certificate.budget.id) != asked.budget:
            raise Contradiction("its certificate names another budget")
        if certificate.idempotency_key != asked.once:
            raise Contradiction("its certificate has another idempotency key")
    return certificate, mechanisms


def check_sizes(document: Json) -> None:
    """The mechanisms of a certificate are few, and small enough to be read later."""
    for each in _described(document).values():
        _check_size(each)


def _described(document: Json) -> dict[str, Any]:
    """The JSON of each mechanism by the name of its table."""
    if "tables" not in document:
        return {"": document["mechanism"]}
    tables = document["tables"]
    if not isinstance(tables, list) or not 1 <= len(tables) <= MOST_TABLES:
        raise ValueError
    described = {}
    for table in tables:
        check_table_name("name", table["name"])
        described[table["name"]] = table["mechanism"]
    if len(described) != len(tables):
        raise ValueError
    return described


def _check_size(mechanism: Any) -> None:
    """A mechanism has no more columns than the service takes. Costs of columns are as many as the columns."""
    columns = mechanism.get("aggregates") or {}
    change = columns.get("sensitivity") or {}
    lists = [columns.get(name) or () for name in ("names", "covariance", "capped")]
    lists += [change.get(name) or () for name in ("lower", "upper", "groups")]
    lists += columns.get("covariance") or ()
    lists += change.get("vectors") or ()
    if any(len(each) > MOST_COLUMNS for each in lists):
        raise ValueError


def _check_point(certificate: Certificate, asked: Asked) -> None:
    """At an asked ε the certificate states a δ, and at an asked δ an ε; this δ may be smaller than the asked one."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if asked.epsilon is None and asked.delta is None:
        if (epsilon, delta) != (None, None):
            raise Contradiction("its certificate states an ε that was not asked for")
        return
    if epsilon is None or delta is None or asked.epsilon not in (epsilon, None):
        raise Contradiction("its certificate states another ε")
    if asked.delta is not None and not 0 <= delta <= asked.delta:
        raise Contradiction("its certificate states another δ")
