"""The second draw of an answer that was charged, but whose key was never stored: nobody can have read the first.

It is not charged. The history gets an entry that records it, so that the chain covers the answer that is read.
"""

import logging
from dataclasses import replace

from app.ledger.answer_keys import replace_mark
from app.ledger.answers import Staged
from app.ledger.budget_rows import add_entry, set_budget
from app.ledger.charges import claim_parts, drawn_details
from app.ledger.connections import Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.releases import Notes, RecordedRelease, find_release
from app.ledger.secret import Secret
from app.ledger.state import Budget
from app.ledger.statements import Statements

__all__ = ["draw_again"]

logger = logging.getLogger("app.ledger")


def draw_again(
    execute: Execute,
    sql: Statements,
    secret: Secret,
    budget: Budget,
    before: RecordedRelease,
    notes: Notes,
    made: Staged,
    at: str,
) -> RecordedRelease | None:
    """The release with another draw, whose key the next transaction stores; None if the first key was stored meanwhile.

    What people said about the release stays as the first request said it.
    """
    assert before.place is not None
    assert made.place is not None
    if not replace_mark(execute, sql, secret, before.place.answer, made.place.answer):
        now = find_release(execute, sql, before.key)
        if now is None or now.is_unread:
            raise LedgerUnavailable("the key of an answer was removed by somebody else: run gsh verify")
        return None
    changed, entry = budget.redrawn(at, {"key": before.key} | drawn_details(notes, made), notes.by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.set_content, (made.media_type, made.content, before.key))
    texts = (notes.release_id or None, notes.certificate or None, notes.layout or None)
    execute(sql.draw_again, (*texts, made.place.answer, before.key))
    if before.place.answer != made.place.answer:
        execute(sql.stage, (before.place.answer, ""))  # its parts are removed later
    claim_parts(execute, sql, made)
    logger.warning("an answer was charged, and never stored: it is drawn again, and not charged again")
    return replace(
        before,
        notes=replace(before.notes, release_id=notes.release_id, certificate=notes.certificate, layout=notes.layout),
        media_type=made.media_type,
        size=made.size,
        answer_sha256=made.sha256,
        place=made.place,
    )
