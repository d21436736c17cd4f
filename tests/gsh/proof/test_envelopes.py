"""Signed certificates: what third parties verify, and that no change of an envelope is accepted."""

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from gsh.accounting.mechanism import Mechanism
from gsh.certificate import certificate
from gsh.errors import InvalidParameter, ProofError
from gsh.proof.envelopes import PAYLOAD_TYPE, Subject, opened, pre_authentication, sealed, statement_of
from gsh.proof.keys import KeySet, PublicKey, SigningKey

KEY = SigningKey.made()
KEYS = KeySet.of([KEY.public], "Example")
CERTIFICATE = certificate(Mechanism(c_u=3, tau=1, tau_star=120, sigma=20), epsilon=1)
SUBJECTS = (Subject("private.parquet", "ab" * 32), Subject("rows", "cd" * 32))
ENVELOPE = sealed(statement_of(CERTIFICATE, SUBJECTS), KEY)


def test_a_key_is_named_by_its_thumbprint() -> None:
    """The example of RFC 8037, appendix A.3."""
    key = PublicKey.from_jwk({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})

    assert key.id == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_what_is_signed_is_the_encoding_of_dsse() -> None:
    """The example of the DSSE protocol."""
    assert (
        pre_authentication("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_the_signature_is_that_of_rfc_8032() -> None:
    """Test 2 of section 7.1, as a PKCS#8 file."""
    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    content = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + secret)
    key = SigningKey.from_pem(b"-----BEGIN PRIVATE KEY-----\n" + content + b"\n-----END PRIVATE KEY-----\n")

    assert key.public.raw.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540")


def test_another_implementation_verifies_an_envelope() -> None:
    envelope = Envelope.from_dict(copy.deepcopy(ENVELOPE))
    public = SSlibKey(KEY.public.id, "ed25519", "ed25519", {"public": KEY.public.raw.hex()})

    assert set(envelope.verify([public], 1)) == {KEY.public.id}
    assert json.loads(envelope.payload)["predicate"] == CERTIFICATE.to_dict()


def test_an_envelope_gives_the_certificate_that_was_signed() -> None:
    found = opened(json.loads(json.dumps(ENVELOPE)), KeySet.from_json(json.loads(json.dumps(KEYS.to_json()))))

    assert found.certificate == CERTIFICATE
    assert found.subjects == SUBJECTS
    assert found.key_id == KEY.public.id


def test_both_alphabets_of_base64_are_read() -> None:
    key = SigningKey.made()
    signed = sealed(statement_of(CERTIFICATE, [Subject("ÿ~ü", "00")] * 9), key)
    for part in (signed, *signed["signatures"]):
        for name in ("payload", "sig"):
            if name in part:
                part[name] = part[name].translate(str.maketrans("+/", "-_")).rstrip("=")

    assert opened(signed, KeySet.of([key.public])).key_id == key.public.id


@given(st.data())
def test_no_changed_byte_of_the_payload_or_the_signature_is_accepted(data: st.DataObject) -> None:
    envelope = copy.deepcopy(ENVELOPE)
    part, name = data.draw(st.sampled_from([(envelope, "payload"), (envelope["signatures"][0], "sig")]))
    content = bytearray(base64.b64decode(part[name]))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    part[name] = base64.b64encode(content).decode()

    with pytest.raises(ProofError, match="signature: does not fit"):
        opened(envelope, KEYS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_an_envelope_of_another_shape_is_refused_by_name(data: st.DataObject) -> None:
    envelope: Any = copy.deepcopy(ENVELOPE)
    name = data.draw(st.sampled_from(["", *envelope, "keyid", "sig"]))
    put = data.draw(JSON)
    if name in ("keyid", "sig"):
        envelope["signatures"][0][name] = put
    elif name:
        envelope[name] = put
    else:
        envelope = put

    with pytest.raises(ProofError):
        opened(envelope, KEYS)


def test_a_signature_by_another_key_is_refused() -> None:
    other = KeySet.of([SigningKey.made().public])

    with pytest.raises(ProofError, match="signature: is by a key that is not in the set of keys"):
        opened(ENVELOPE, other)


def test_a_signature_under_the_name_of_another_key_is_refused() -> None:
    other = SigningKey.made()
    envelope = sealed(statement_of(CERTIFICATE, SUBJECTS), other)
    envelope["signatures"][0]["keyid"] = KEY.public.id

    with pytest.raises(ProofError, match="signature: does not fit"):
        opened(envelope, KEYS)


@pytest.mark.parametrize("predicate", [None, [], {}, {"schema": "urn:gsh:certificate:2"}, "x"])
def test_a_signed_statement_without_a_certificate_is_refused(predicate: object) -> None:
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [],
        "predicateType": "x",
        "predicate": predicate,
    }

    with pytest.raises(ProofError, match="must be an in-toto statement"):
        opened(sealed(json.dumps(statement).encode(), KEY), KEYS)


@pytest.mark.parametrize(
    "keys",
    [
        None,
        {"keys": []},
        {"keys": [{"kty": "EC", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]},
        {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR"}]},
        {"keys": [{**KEY.public.jwk, "kid": "another"}]},
    ],
)
def test_a_set_of_other_keys_is_refused(keys: object) -> None:
    with pytest.raises(InvalidParameter, match="keys: must"):
        KeySet.from_json(keys)


def test_a_private_key_is_read_back_and_never_shown() -> None:
    again = SigningKey.from_pem(KEY.to_pem())

    assert again.public == KEY.public
    assert repr(KEY) == f"<SigningKey {KEY.public.id}>"
    with pytest.raises(InvalidParameter, match="signing_key: must be an Ed25519 key"):
        SigningKey.from_pem(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")


def test_the_payload_type_is_that_of_in_toto() -> None:
    assert ENVELOPE["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    with pytest.raises(ProofError, match="envelope/payloadType"):
        opened({**ENVELOPE, "payloadType": "application/json"}, KEYS)
