"""What every release may say about itself: a point of its privacy curve, and texts for people."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from gsh.arguments import Real, real
from gsh.client.documents import Document
from gsh.client.encoding import AnyMechanism, stated_epsilon
from gsh.client.records import Provenance
from gsh.wire import Json

__all__ = ["PaidOptions", "ReleaseOptions", "stated"]


class ReleaseOptions(TypedDict, total=False):
    """``epsilon`` or ``delta`` is the point that the certificate states. None of the texts may depend on the data."""

    epsilon: Real | None
    delta: Real | None
    description: str
    labels: Sequence[str]
    unprotected: Sequence[str]
    """What you chose by looking at the data. The certificate repeats it."""
    provenance: Provenance | Mapping[str, Any] | None


class PaidOptions(ReleaseOptions, total=False):
    """The budget that pays, and the idempotency key, which names the release: it is made and charged once."""

    budget: str | None
    once: str | None


def stated(mechanism: AnyMechanism, options: ReleaseOptions) -> Json:
    """The options as fields of a request. A calibration states the ε of its target, if no other point is given."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    fields: Json = {name: real(name, given[name]) for name in ("epsilon", "delta") if name in given}
    if not fields and (epsilon := stated_epsilon(mechanism)) is not None:
        fields["epsilon"] = epsilon
    fields |= {name: given[name] for name in ("description", "budget") if name in given}
    fields |= {name: list(given[name]) for name in ("labels", "unprotected") if name in given}
    if "provenance" in given:
        fields["provenance"] = _provenance(given["provenance"])
    return fields


def _provenance(given: Provenance | Mapping[str, Any]) -> Json:
    if not isinstance(given, Provenance):
        return dict(given)
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    plain = {name: value.to_dict() if isinstance(value, Document) else value for name, value in fields.items()}
    return {name: value for name, value in plain.items() if value is not None}
