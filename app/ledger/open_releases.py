"""Releases that another engine makes: opened with a charge and a seed, closed by a commit that erases the seed.

The engine draws its noise from the seed, so that a task that runs twice draws the same noise twice:

    seed = HMAC-SHA-256(the ledger's secret, nonce, idempotency key, client),   nonce = 32 bytes of the operating system

The client is the keyed hash of who opened the release. So another client would get another seed. A release that version
0.2 opened has a seed without the client, and keeps it. Its client is sealed, as that of every release is.

While a release is open, the database and the secret together give the seed back. The commit deletes the nonce. After
it nothing does.
"""

import json
import os
from dataclasses import asdict

from app.ledger.answers import ENCRYPTED
from app.ledger.budget_rows import add_entry, known_budget, set_budget
from app.ledger.charges import sha256_of
from app.ledger.databases import Execute, Statements
from app.ledger.errors import AlreadyCommitted, AlreadySurveyed, NotOpen, NotOwner, UnknownRelease
from app.ledger.releases import ChosenBounds, Commit, RecordedRelease, check_seal, find_release
from app.ledger.secret import Secret
from app.ledger.state import Budget, By

__all__ = ["add_nonce", "commit", "record_survey", "seed_of"]

_WITH_CLIENT = ENCRYPTED
"""The version of releases whose seeds depend on the client. Those before have version 1."""
_NONCE_BYTES = 32


def add_nonce(execute: Execute, sql: Statements, key: str) -> None:
    """In the transaction that charges."""
    execute(sql.add_seed, (key, os.urandom(_NONCE_BYTES)))


def seed_of(execute: Execute, sql: Statements, secret: Secret, release: RecordedRelease) -> bytes | None:
    """The seed of an open release; None after its commit."""
    check_seal(secret, release.identity, release.seal)
    rows = execute(sql.seed, (release.key,)) if release.state == "open" else []
    if not rows:
        return None
    parts = (bytes(rows[0][0]), release.key.encode())
    if release.version < _WITH_CLIENT:
        return secret.derived(b"seed", *parts)
    return secret.derived(b"seed of a client", *parts, (release.client or "").encode())


def commit(
    execute: Execute, sql: Statements, secret: Secret, key: str, made: Commit, *, by: By | None, client: str | None
) -> RecordedRelease:
    """The release, committed. The same digest again changes nothing.

    Another client than the one that opened it is refused: it could end the release while its engine still works.
    ``client`` is None for a client that may do it all the same.
    """
    budget, release = _locked(execute, sql, secret, key, client)
    if release.committed is not None:
        if release.committed.sha256 != made.sha256:
            raise AlreadyCommitted
        return release
    if release.state != "open":
        raise NotOpen
    details = {"key": key, "sha256": made.sha256, "rows": made.rows}
    details |= {} if made.contents is None else {"contents_sha256": sha256_of(made.contents)}
    changed, entry = budget.committed(made.at, details, by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.set_state, ("committed", json.dumps(asdict(made)), key))
    execute(sql.erase_seed, (key,))
    return _known(execute, sql, key)


def record_survey(
    execute: Execute,
    sql: Statements,
    secret: Secret,
    key: str,
    made: ChosenBounds,
    *,
    by: By | None,
    client: str | None,
) -> RecordedRelease:
    """The release with the bounds that its survey chose. The same ones again change nothing, also after the commit.

    Nothing may be drawn with them before they are recorded: a job that is killed must not choose again.
    """
    budget, release = _locked(execute, sql, secret, key, client)
    if "digest" in json.loads(release.notes.certificate or "{}").get("survey", {}):
        if release.notes.certificate != made.certificate:
            raise AlreadySurveyed
        return release
    if release.state != "open":
        raise NotOpen
    texts = {"certificate_sha256": sha256_of(made.certificate), "provenance_sha256": sha256_of(made.provenance)}
    changed, entry = budget.surveyed(made.at, {"key": key, "digest": made.digest} | texts, by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.set_surveyed, (made.certificate, made.provenance, key))
    return _known(execute, sql, key)


def _locked(
    execute: Execute, sql: Statements, secret: Secret, key: str, client: str | None
) -> tuple[Budget, RecordedRelease]:
    """An open release of this client, and its budget, which nobody else changes meanwhile."""
    budget = known_budget(execute, sql, _known(execute, sql, key).budget, lock=True)
    release = _known(execute, sql, key)  # as it is now: another commit may have held the lock
    if None not in (client, release.client) and client != release.client:
        raise NotOwner
    check_seal(secret, release.identity, release.seal)
    return budget, release


def _known(execute: Execute, sql: Statements, key: str) -> RecordedRelease:
    release = find_release(execute, sql, key)
    if release is None:
        raise UnknownRelease
    return release
