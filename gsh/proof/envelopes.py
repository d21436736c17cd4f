"""Signed certificates: an in-toto statement in a DSSE envelope.  [docs/certificate.md]

    statement     {"_type": "https://in-toto.io/Statement/v1", "subject": […], "predicateType": …, "predicate": …}
    signed        "DSSEv1" length(type) type length(statement) statement, with spaces between    [DSSE 1.0, PAE]
    envelope      {"payloadType": …, "payload": base64, "signatures": [{"keyid": …, "sig": base64}]}

The predicate is the certificate. The subjects are digests: of the rows of each table (histogram/released_content.py),
and of the bytes of the answer if they are known. The exact bytes of the statement are signed and kept, so that no
canonical form of JSON is needed.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gsh.certificate import Certificate
from gsh.errors import InvalidParameter, ProofError
from gsh.proof.keys import KeySet, SigningKey

__all__ = [
    "PAYLOAD_TYPE",
    "Signed",
    "Subject",
    "opened",
    "opened_statement",
    "pre_authentication",
    "sealed",
    "stated_in",
    "statement_about",
    "statement_of",
    "subjects_of",
]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_MOST_BYTES = 1 << 22
_MOST_SIGNATURES = 16


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement is about: a name, and its SHA-256 as hexadecimal digits."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A statement whose signature was verified."""

    certificate: Certificate
    subjects: tuple[Subject, ...]
    key_id: str


def subjects_of(certificate: Certificate) -> tuple[Subject, ...]:
    """What a certificate is about: the rows of each table, the bytes of the answer, and what an engine committed.

    A certificate that knows none of them is about itself.
    """
    found = [Subject(f"rows of {name}" if name else "rows", each.sha256) for name, each in certificate.contents.items()]
    record = certificate.get("record") or {}
    found += [Subject("answer", record["answer_sha256"])] if record.get("answer_sha256") else []
    found += [Subject("committed", record["committed_digest"])] if record.get("committed_digest") else []
    itself = hashlib.sha256(certificate.to_json().encode()).hexdigest()
    return tuple(found) or (Subject("certificate", itself),)


def statement_of(certificate: Certificate, subjects: Sequence[Subject] | None = None) -> bytes:
    """The statement of a certificate about its subjects, as JSON."""
    subjects = subjects_of(certificate) if subjects is None else subjects
    return statement_about(subjects, certificate.schema, certificate.to_dict())


def statement_about(subjects: Sequence[Subject], kind: str, predicate: Mapping[str, Any]) -> bytes:
    """A statement of any kind, as JSON."""
    document = {
        "_type": _STATEMENT_TYPE,
        "subject": [{"name": each.name, "digest": {"sha256": each.sha256}} for each in subjects],
        "predicateType": kind,
        "predicate": predicate,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def sealed(statement: bytes, key: SigningKey) -> dict[str, Any]:
    """The envelope of a statement."""
    signature = key.sign(pre_authentication(PAYLOAD_TYPE, statement))
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [{"keyid": key.public.id, "sig": base64.b64encode(signature).decode()}],
    }


def opened(envelope: object, keys: KeySet) -> Signed:
    """The certificate of an envelope whose signature is by one of the keys. Nothing is believed before."""
    return _stated(*opened_statement(envelope, keys))


def opened_statement(envelope: object, keys: KeySet) -> tuple[bytes, str]:
    """The statement of such an envelope, whatever it says, and the id of the key."""
    if not isinstance(envelope, Mapping):
        raise ProofError("envelope", "must be a JSON object: a DSSE envelope")
    payload = _decoded("payload", envelope.get("payload"))
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        raise ProofError("envelope/payloadType", f"must be {PAYLOAD_TYPE}")
    listed = envelope.get("signatures")
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_SIGNATURES:
        raise ProofError("envelope/signatures", f"must be a list of 1 to {_MOST_SIGNATURES} signatures")
    signatures = [(str(each.get("keyid")), _decoded("signatures", each.get("sig"))) for each in map(_object, listed)]
    key = keys.signer_of(pre_authentication(PAYLOAD_TYPE, payload), signatures)
    return payload, key.id


def stated_in(envelope: Mapping[str, Any]) -> Certificate:
    """The certificate of an envelope that nobody has checked."""
    return _stated(_decoded("payload", envelope.get("payload")), "").certificate


def pre_authentication(kind: str, content: bytes) -> bytes:
    """The bytes that are signed: the type and the content, each after its length."""
    named = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(named), named, len(content), content)


def _stated(payload: bytes, key_id: str) -> Signed:
    """The statement of signed bytes. Its issuer may use a format that this version does not know."""
    try:
        document = json.loads(payload)
        certificate = Certificate.from_json(document["predicate"])
        subjects = tuple(Subject(str(each["name"]), str(each["digest"]["sha256"])) for each in document["subject"])
        is_statement = document["_type"] == _STATEMENT_TYPE and document["predicateType"] == certificate.schema
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidParameter):
        is_statement = False
    if not is_statement:
        raise ProofError("envelope/payload", "must be an in-toto statement (version 1) with a certificate")
    return Signed(certificate, subjects, key_id)


def _object(given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ProofError("envelope/signatures", "must be JSON objects")
    return given


def _decoded(name: str, given: object) -> bytes:
    """The bytes of base64 in either of its two alphabets."""
    text = given.translate(_TO_STANDARD) if isinstance(given, str) and len(given) <= _MOST_BYTES else "-"
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ProofError(f"envelope/{name}", f"must be base64, of at most {_MOST_BYTES} characters") from None


_TO_STANDARD = str.maketrans("-_", "+/")
