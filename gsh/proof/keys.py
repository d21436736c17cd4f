"""Ed25519 keys that sign certificates, and the sets of public keys by which everybody verifies them.  [RFC 8032]

A public key is published as a JSON Web Key, and named by its thumbprint.

    {"kty": "OKP", "crv": "Ed25519", "x": "…"}                          [RFC 8037]
    key id = SHA-256 of these members, sorted and without spaces        [RFC 7638]

The package cryptography is needed: the extra ``proof`` installs it, and the service has it.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gsh.errors import InvalidParameter, ProofError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["KeySet", "PublicKey", "SigningKey"]

_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_MOST_KEYS = 1000


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key: 32 bytes."""

    raw: bytes

    @property
    def jwk(self) -> dict[str, str]:
        """The key as a JSON Web Key: only the members that its id depends on."""
        return {"crv": "Ed25519", "kty": "OKP", "x": base64.urlsafe_b64encode(self.raw).rstrip(b"=").decode()}

    @property
    def id(self) -> str:
        """The thumbprint."""
        digest = hashlib.sha256(json.dumps(self.jwk, separators=(",", ":")).encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    @staticmethod
    def from_jwk(given: object) -> "PublicKey":
        """The key of a JSON Web Key. Its further members are ignored."""
        if not isinstance(given, Mapping) or (given.get("kty"), given.get("crv")) != ("OKP", "Ed25519"):
            raise InvalidParameter("keys", "must be Ed25519 keys, as JSON Web Keys (kty OKP, crv Ed25519)")
        text = given.get("x")
        try:
            raw = base64.urlsafe_b64decode(f"{text}=") if isinstance(text, str) and len(text) == 43 else b""
        except ValueError:
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise InvalidParameter("keys", "must have a public key of 32 bytes in x, as base64url without padding")
        return PublicKey(raw)

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature of the message is by this key."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra, and slow to load
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

        if len(signature) != _SIGNATURE_BYTES:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey:
    """A private key. It is never shown."""

    __slots__ = ("_private", "public")

    def __init__(self, private: "Ed25519PrivateKey") -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    @staticmethod
    def made() -> "SigningKey":
        """A new key, from random bits of the operating system."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

        return SigningKey(Ed25519PrivateKey.generate())

    @staticmethod
    def from_pem(content: bytes) -> "SigningKey":
        """The key of a PKCS#8 file without a password, as ``openssl genpkey -algorithm ed25519`` writes it."""
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        try:
            private = load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidParameter("signing_key", "must be an Ed25519 key in PKCS#8 (PEM), without a password")
        return SigningKey(private)

    def to_pem(self) -> bytes:
        """The private key as a PKCS#8 file, without a password."""
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.id}>"


@dataclass(frozen=True, slots=True)
class KeySet:
    """The public keys of an issuer: the present one, and those that signed before."""

    keys: Mapping[str, PublicKey]
    """By their ids."""
    issuer: str | None = None
    """Who says that these are its keys."""
    address: str | None = None
    """Where the issuer publishes them."""

    @staticmethod
    def of(keys: Iterable[PublicKey], issuer: str | None = None, address: str | None = None) -> "KeySet":
        return KeySet({key.id: key for key in keys}, issuer, address)

    @staticmethod
    def from_json(given: object) -> "KeySet":
        """The keys of a JSON Web Key Set. An id that is not that of its key is refused."""
        listed = given.get("keys") if isinstance(given, Mapping) else None
        if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_KEYS:
            raise InvalidParameter("keys", f"must be a JSON Web Key Set with 1 to {_MOST_KEYS} keys")
        assert isinstance(given, Mapping)
        keys = [PublicKey.from_jwk(each) for each in listed]
        for each, key in zip(listed, keys, strict=True):
            if each.get("kid", key.id) != key.id:
                raise InvalidParameter("keys", "must have the thumbprint of each key (RFC 7638) as its kid")
        issuer, address = (given.get(name) for name in ("issuer", "address"))
        texts = (each if isinstance(each, str) else None for each in (issuer, address))
        return KeySet.of(keys, *texts)

    def to_json(self) -> dict[str, Any]:
        keys = [{**key.jwk, "kid": name, "use": "sig", "alg": "EdDSA"} for name, key in self.keys.items()]
        about = {"issuer": self.issuer, "address": self.address}
        return {name: text for name, text in about.items() if text is not None} | {"keys": keys}

    def signer_of(self, message: bytes, signatures: Iterable[tuple[str, bytes]]) -> PublicKey:
        """The key by which one of the signatures is; each is named by the id of its key."""
        known = [(self.keys[name], signature) for name, signature in signatures if name in self.keys]
        if not known:
            raise ProofError("signature", "is by a key that is not in the set of keys")
        for key, signature in known:
            if key.has_signed(message, signature):
                return key
        raise ProofError("signature", "does not fit: the certificate or the signature was changed")
