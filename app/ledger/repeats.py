"""A request whose idempotency key is used: whether it is the request that was paid for, and gets its answer again.

The answer says whether two requests are the same, so enough guesses would reveal the posted data. So requests are
compared five times at once, then once every six seconds. An attempt is counted before its result is sent, in the
transaction that compares. Only the client that paid is compared at all, so other clients learn nothing and cannot lock
it out. A refused attempt is not counted, so the wait does not grow.
"""

import math

from app.ledger.charges import Charge
from app.ledger.clock import seconds_of
from app.ledger.databases import Execute, Statements
from app.ledger.errors import AnswerErased, KeyReused, LedgerError, TooManyComparisons
from app.ledger.releases import RecordedRelease, check_seal, find_release
from app.ledger.secret import Secret

__all__ = ["BURST", "SECONDS", "has_same_bytes", "is_of_another", "refusal", "released_for", "used_by"]

BURST = 5
SECONDS = 6.0


def used_by(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | None:
    """The release of a used idempotency key; an error if the request cannot get it, whatever its content."""
    release = find_release(execute, sql, charge.idempotency_key)
    if release is None:
        return None
    if is_of_another(release.client, client):
        raise KeyReused(release.key, release.budget, has_answer=release.has_answer)
    check_seal(secret, release.identity, release.seal)
    too_many = _wait_before(execute, sql, charge.idempotency_key, seconds_of(at))
    if too_many is not None:
        raise too_many
    return release


def has_same_bytes(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | None:
    """The release of the idempotency key if the request has the same bytes as the one that paid for it.

    None reveals nothing to a client. It is not counted, because ``released_for`` then compares the content and counts.
    """
    execute(sql.locked_key, (charge.idempotency_key,))
    release = used_by(execute, sql, secret, charge, client, at)
    if release is None or not charge.request or release.request != charge.request:
        return None
    erased = _erased(release)
    if erased is not None:
        raise erased
    return release


def released_for(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | LedgerError | None:
    """The release of an idempotency key, or why the request does not get it, or None if the key is unused.

    Every comparison with another request counts, so the error must be raised after the commit.
    """
    rows = execute(sql.locked_key, (charge.idempotency_key,))
    release = find_release(execute, sql, charge.idempotency_key) if rows else None
    if release is None:
        return None
    reused = KeyReused(release.key, release.budget, has_answer=release.has_answer)
    if is_of_another(release.client, client):
        return reused
    check_seal(secret, release.identity, release.seal)
    is_same = charge.request in {release.request} - {""} or charge.content in {release.content_hash} - {None, ""}
    refused = refusal(execute, sql, reused, is_same=is_same, now=seconds_of(at))
    return refused or _erased(release) or release


def _wait_before(execute: Execute, sql: Statements, key: str, now: float) -> TooManyComparisons | None:
    """Whether a comparison must wait, without making one. Readers can refuse most of a flood with it."""
    wait = _until(execute, sql, key, now) - now - (BURST - 1) * SECONDS
    return TooManyComparisons(math.ceil(wait)) if wait > 0 else None


def refusal(execute: Execute, sql: Statements, reused: KeyReused, *, is_same: bool, now: float) -> LedgerError | None:
    """Why a request does not get the stored answer, or None. The caller has locked the row of the idempotency key.

    The error is returned and not raised: raised inside the transaction, it would roll back the count.
    """
    key = reused.idempotency_key
    too_many = _wait_before(execute, sql, key, now)
    if too_many is not None or is_same:
        return too_many
    execute(sql.set_comparisons, (key, _until(execute, sql, key, now) + SECONDS))
    return reused


def _until(execute: Execute, sql: Statements, key: str, now: float) -> float:
    """When all attempts so far are forgotten: a full burst from now at the latest, even if a clock was set back."""
    rows = execute(sql.comparisons, (key,))
    until = float(rows[0][0]) if rows else now
    return min(max(until, now), now + BURST * SECONDS)


def is_of_another(owner: str | None, client: str) -> bool:
    """Whether another client has paid. Its request is not compared: the answer would reveal what it posted."""
    return owner is not None and owner != client  # charges of version 0.1 have no owner


def _erased(release: RecordedRelease) -> AnswerErased | None:
    return None if release.erased_at is None else AnswerErased(release.erased_at)
