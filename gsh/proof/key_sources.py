"""Where public keys come from: a file, an address, or their JSON."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gsh.errors import InvalidParameter
from gsh.proof.keys import KeySet

__all__ = ["KeysLike", "keys_of"]

KeysLike: TypeAlias = KeySet | Mapping[str, Any] | str | os.PathLike[str]

_WELL_KNOWN = "/.well-known/gsh-keys.json"
_MOST_BYTES, _SECONDS = 1 << 20, 20


def keys_of(given: KeysLike) -> KeySet:
    """The keys of an issuer. A text that begins with https:// is an address; http:// is for this machine only."""
    if isinstance(given, KeySet):
        return given
    if isinstance(given, Mapping):
        return KeySet.from_json(given)
    name = os.fspath(given)
    content = _fetched(name) if name.startswith(("https://", "http://")) else _read(name)
    try:
        return KeySet.from_json(json.loads(content))
    except (ValueError, RecursionError):
        raise InvalidParameter("keys", "must be a JSON Web Key Set, as /.well-known/gsh-keys.json has it") from None


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise InvalidParameter("keys", f"must be a file that can be read, or an address: {error.strerror}") from None


def _fetched(address: str) -> bytes:
    url = address if address.endswith(".json") else address.rstrip("/") + _WELL_KNOWN
    host = url.partition("://")[2].partition("/")[0].rpartition(":")[0] or url.partition("://")[2].partition("/")[0]
    if url.startswith("http://") and host not in ("localhost", "127.0.0.1", "[::1]"):
        raise InvalidParameter("keys", "must be an address with https://: others could change the keys on the way")
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - http and https only
            content: bytes = answer.read(_MOST_BYTES)
            return content
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise InvalidParameter("keys", f"must be an address that answers: {error}") from None
