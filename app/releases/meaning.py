"""What a request means, as a digest: equal for equal requests, in whatever form they come.

It covers the operation, the mechanism, the stated ε or δ, the budget, the names of columns, the set of groups, and the
level of intervals, because they are part of the answer. It does not cover the description, labels and provenance: a job
that restarts may say them in other words.
"""

import hashlib
import json
from typing import Any

from app.releases.schemas.certified import AnyCertified

__all__ = ["meaning_of"]


def meaning_of(operation: str, body: AnyCertified, budget: str | None, groups: bytes = b"", **names: Any) -> bytes:
    """The digest of a request. ``groups`` is the digest of its groups, if it has any."""
    said = body.model_dump(mode="json", include={"mechanism", "epsilon", "delta"})
    document = {"operation": operation, "budget": budget, "groups": groups.hex(), "names": names, **said}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
