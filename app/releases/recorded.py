"""Recorded releases as JSON: what the ledger says about them, and their certificates."""

import base64
import json
from typing import Any

from pydantic_core import to_json

from app.ledger.releases import RecordedRelease
from app.releases.schemas.releases import ReleaseOut
from gsh.certificate import Certificate

__all__ = ["certificate_of", "open_answer", "released_certificate", "shown", "with_contents"]


def shown(release: RecordedRelease) -> ReleaseOut:
    """What the ledger says about a release."""
    return ReleaseOut.model_validate(_fields(release))


def released_certificate(release: RecordedRelease) -> Certificate:
    """The recorded certificate, with the digests of the released rows, if the ledger knows them."""
    committed = release.committed
    contents = release.notes.contents if committed is None else committed.contents or ""
    return with_contents(release.notes.certificate, contents)


def with_contents(certificate: str, contents: str) -> Certificate:
    """The certificate of two texts that the ledger keeps."""
    found = Certificate.from_json(json.loads(certificate))
    return found.with_contents(json.loads(contents)) if contents else found


def certificate_of(release: RecordedRelease) -> Certificate:
    """The same, with what the ledger says about the release."""
    has_answer, committed = release.has_answer, release.committed
    return released_certificate(release).recorded(
        {
            "state": release.state,
            "entry": release.number,
            "head": release.head,
            "at": release.at,
            "answer_sha256": release.answer_sha256 if has_answer else None,
            "media_type": release.media_type if has_answer else None,
            "size": release.size if has_answer else None,
            "committed_digest": None if committed is None else committed.sha256,
        }
    )


def open_answer(release: RecordedRelease, seed: bytes | None) -> bytes:
    """OpenOut: the release with the seed of its noise, which is absent after the commit."""
    secret = {} if seed is None else {"seed": base64.b64encode(seed).decode()}
    provenance = json.loads(release.notes.provenance)
    certificate = certificate_of(release).to_dict()
    return to_json({**_fields(release), **secret, "provenance": provenance, "certificate": certificate})


def _fields(release: RecordedRelease) -> dict[str, Any]:
    """The fields of ReleaseOut."""
    notes, committed = release.notes, release.committed
    answer = {
        "media_type": release.media_type,
        "size": release.size,
        "sha256": release.answer_sha256,
        "erased_at": release.erased_at,
    }
    return {
        "key": release.key,
        "state": release.state,
        "budget": release.budget,
        "entry": release.number,
        "head": release.head,
        "ancestors": [each._asdict() for each in release.ancestors],
        "at": release.at,
        "release_id": notes.release_id or None,
        "description": notes.description,
        "labels": list(notes.labels),
        "by": None if notes.by is None else {"id": notes.by.id, "note": notes.by.note},
        "mu_squared": release.cost.mu_squared,
        "hazard": release.cost.hazard,
        "answer": answer if release.has_answer else None,
        "committed": None
        if committed is None
        else {"digest": committed.sha256, "rows": committed.rows, "at": committed.at},
    }
