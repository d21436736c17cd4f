"""Erases answers whose retention period has passed. Their charges and certificates stay for ever."""

from app.ledger.answer_keys import erase_key
from app.ledger.answers import remove
from app.ledger.audit import erasure_seal
from app.ledger.connections import Execute
from app.ledger.secret import Secret
from app.ledger.statements import Statements

__all__ = ["erase_answers", "remove_abandoned", "seal_erasures"]


def erase_answers(execute: Execute, sql: Statements, secret: Secret, before: str, at: str) -> int:
    """Erase some answers of releases before a time, and say how many; 0 if there are none.

    With its key, an answer is lost at once. The parts of a large one are listed for removal.
    """
    outdated = execute(sql.outdated, (before,))
    for key, answer in outdated:
        if answer is not None:
            execute(sql.stage, (answer, ""))
            erase_key(execute, sql, answer)
        execute(sql.erase_content, (key,))
        execute(sql.set_erased, (at, erasure_seal(secret, key, at), key))
    return len(outdated)


def remove_abandoned(execute: Execute, sql: Statements, before: str) -> bool:
    """Remove some parts that were written before a time and never charged, or are erased; False if there are none."""
    abandoned = execute(sql.abandoned, (before,))
    for (answer,) in abandoned:
        remove(execute, sql, answer)
    return bool(abandoned)


def seal_erasures(execute: Execute, sql: Statements, secret: Secret) -> None:
    """Seal all erased answers anew."""
    for key, at in execute(sql.erased):
        execute(sql.set_erasure, (erasure_seal(secret, key, at), key))
