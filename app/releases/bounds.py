"""What one release may ask for: its work and the size of its certificate, bounded before anything is computed or drawn.

The certificate of several tables is in the file of each of them, and in one of its own. Without a bound on it, and on
all copies together, an answer would grow with the square of the number of tables.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.accounting.schemas.account import FEWER_COLUMNS, FEWER_TABLES
from app.errors import LimitExceeded
from app.releases.schemas.stated import Stated
from app.schemas.mechanism import PostedMechanism, TableIn
from app.workers.work_bounds import (
    AT_ONCE,
    check_work,
    needs_search,
    points_work,
    posted_cuts,
    surveyed_work,
    take_long,
    work_of,
)

__all__ = ["MOST_CERTIFICATE_BYTES", "MOST_COPIED_BYTES", "Bounds", "check_certificate"]

MOST_CERTIFICATE_BYTES = 1024**2
"""For a release of named tables."""
MOST_COPIED_BYTES = 16 * MOST_CERTIFICATE_BYTES
"""For all copies of the certificate in one archive."""
_ROOM = 4096
"""For what a certificate says of the budget and of the ledger: both come after the draft."""
_PER_TABLE = 0.2
"""For a table without further columns, in milliseconds: its noise, and its part of the certificate."""


class Bounds(NamedTuple):
    """What the operator allows one release."""

    work: int
    most: tuple[float, float] | None = None
    """An ε, and the most δ that the release may have there; None if that is not bounded for this client."""

    def check(self, body: Stated, posted: Sequence[PostedMechanism | TableIn], *, are_tables: bool) -> bool:
        """An error if the work is too much, or the certificate too large. Whether the event loop may do the work."""
        cuts, is_searched = posted_cuts(posted), needs_search(body.delta, body.epsilon)
        columns = sum(map(work_of, posted))
        work = columns + points_work(cuts, 1, needs_search=is_searched)
        if body.statement is not None:
            work += surveyed_work(posted, by_delta=body.delta is not None)
        if are_tables:
            check_work(self.work, "/tables", work, FEWER_TABLES)
            _check_size(sum(len(mechanism.model_dump_json()) for mechanism in posted), len(posted))
        else:
            check_work(self.work, "/mechanism/aggregates", work, FEWER_COLUMNS)
        if self.most is not None:
            is_searched = is_searched or needs_search(None, self.most[0])
        if body.statement is not None:
            return False
        return columns + _PER_TABLE * len(posted) <= AT_ONCE and not take_long(cuts, needs_search=is_searched)


def check_certificate(draft: str, tables: int) -> None:
    """Refuse named tables whose certificate, before a budget pays, is too large."""
    _check_size(len(draft.encode()), tables)


def _check_size(size: int, tables: int) -> None:
    size += _ROOM
    if size > MOST_CERTIFICATE_BYTES:
        raise LimitExceeded("/tables", "must have fewer tables or columns: the certificate would have more than 1 MiB")
    if size * (tables + 1) > MOST_COPIED_BYTES:
        detail = "must have fewer tables or columns: the certificates in all files would have more than 16 MiB"
        raise LimitExceeded("/tables", detail)
