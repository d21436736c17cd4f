"""The rows of a table with noise from a seed: the same for the same groups, unrelated for others."""

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.events.plan import Plan
from gsh.histogram.entropy import stream
from gsh.histogram.noise import Noise
from gsh.histogram.public_keys import POSTED
from gsh.histogram.tables import check_table

__all__ = ["seeded_rows"]

_LABEL = b"gsh table stream 1"


def seeded_rows(
    table: pa.Table,
    mechanism: AnyMechanism,
    plan: Plan,
    seed: bytes,
    plan_digest: str,
    name: str,
    *,
    is_public: bool,
) -> pa.Table:
    """The published rows of the aggregates. ``name`` is that of the table; the only one has none."""
    noise = Noise(mechanism, plan.meaning.rounded)
    checked = check_table(noise, table, plan.roles, POSTED if is_public else None)
    entropy = stream(seed, _LABEL, plan_digest.encode(), name.encode(), checked.digest())
    return checked.release(entropy).read_all()
