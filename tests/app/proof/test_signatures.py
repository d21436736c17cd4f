"""What the service signs: third parties verify it, and keys are rotated with overlap."""

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from app import keys as key_commands
from app.ledger.errors import LedgerUnavailable
from app.ledger.signing import signer as module
from gsh.proof.envelopes import opened, subjects_of
from gsh.proof.keys import KeySet, SigningKey
from tests.app.budgets.test_budgets import LIMIT, SECRET
from tests.app.client import Client, Json, problem_errors

BODY: Json = {
    "mechanism": {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 20},
    "budget": "web",
    "groups": {"keys": ["a", "b"], "counts": [90_000, 3]},
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def made_service(place: Path, **settings: Any) -> Client:
    return Client(ledger=str(place), ledger_secret=SECRET, **settings)


def released(service: Client, key: str = "first") -> Json:
    assert service.request("PUT", "/budgets/web", json=LIMIT).status_code == 200
    answer: Json = service.request("POST", "/release", json=BODY, headers={"idempotency-key": key}).json()
    return answer


def key_set(service: Client) -> Json:
    found: Json = service.get("/.well-known/gsh-keys.json").json()
    return found


def closed(service: Client) -> None:
    service.app.state.services.ledger_pool.close()
    service.app.state.services.close_pools()


@pytest.fixture
def service(place: Path) -> Any:
    made = made_service(place, issuer="Example Org", public_url="https://gsh.example.org")
    yield made
    closed(made)


def test_another_implementation_verifies_what_the_service_signs(service: Client) -> None:
    released(service)
    envelope = service.get("/releases/first/certificate?signed=true").json()
    (key,) = key_set(service)["keys"]
    raw = base64.urlsafe_b64decode(key["x"] + "=").hex()

    theirs = Envelope.from_dict(json.loads(json.dumps(envelope)))
    assert theirs.verify([SSlibKey(key["kid"], "ed25519", "ed25519", {"public": raw})], 1)
    statement = json.loads(theirs.payload)
    certificate = service.get("/releases/first/certificate").json()
    assert statement["predicate"] == certificate
    assert [each["digest"]["sha256"] for each in statement["subject"]] == [
        certificate["content"]["sha256"],
        certificate["record"]["answer_sha256"],
    ]


def test_the_key_is_made_once_and_only_the_service_can_read_it(service: Client, place: Path) -> None:
    first = key_set(service)
    assert (first["issuer"], first["address"]) == ("Example Org", "https://gsh.example.org")
    (file,) = place.parent.glob("ledger.sqlite3.*.signing.pem")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SigningKey.from_pem(file.read_bytes()).public.id == first["keys"][0]["kid"]

    again = made_service(place)
    assert key_set(again)["keys"] == first["keys"]
    closed(again)


def test_a_new_key_is_published_before_it_signs(
    service: Client, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released(service)
    before = service.get("/releases/first/certificate?signed=true").json()["signatures"][0]["keyid"]
    monkeypatch.setenv("GSH_LEDGER", str(place))
    monkeypatch.setenv("GSH_LEDGER_SECRET", SECRET)

    assert key_commands.main(["rotate-signing", "--overlap", "1d", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    service.app.state.services.signer._read_at = -1e9  # a minute passes
    assert {each["kid"] for each in key_set(service)["keys"]} == {before, made["id"]}
    assert service.get("/releases/first/certificate?signed=true").json()["signatures"][0]["keyid"] == before

    monkeypatch.setattr(module, "now", lambda: "2999-01-01T00:00:00Z")
    envelope = service.get("/releases/first/certificate?signed=true").json()
    assert envelope["signatures"][0]["keyid"] == made["id"]
    certificate = opened(envelope, KeySet.from_json(key_set(service))).certificate
    assert subjects_of(certificate)[0].name == "rows"

    assert key_commands.main(["rotate-signing", "--overlap", "0"]) == 0
    files = {path.name.split(".")[2] for path in place.parent.glob("*.signing.pem")}
    assert before not in files  # it signs no more, and nobody can steal it
    assert len(KeySet.from_json(key_set(service)).keys) >= 2


def test_a_key_may_be_given(place: Path, tmp_path: Path) -> None:
    key = SigningKey.made()
    file = tmp_path / "given.pem"
    file.write_bytes(key.to_pem())
    service = made_service(place, signing_key_file=str(file))
    released(service)

    envelope = service.get("/releases/first/certificate?signed=true").json()
    assert opened(envelope, KeySet.of([key.public])).certificate.budget is not None
    assert not list(place.parent.glob("*.signing.pem"))
    closed(service)

    file.write_text("no key")
    service = made_service(place, signing_key_file=str(file))
    assert service.get("/.well-known/gsh-keys.json").status_code == 503
    closed(service)


def test_a_ledger_on_a_server_signs_only_with_a_given_key() -> None:
    place = module.KeyPlace("postgresql://host/gsh", "")

    assert not place.may_make


def test_nobody_without_the_secret_can_add_a_key(service: Client) -> None:
    key_set(service)
    ledger = service.app.state.services.ledger_pool._ledger
    with ledger._connections.transaction() as execute:
        ((text,),) = execute(ledger._sql.fact, ("signing keys",))
        document = json.loads(text)
        document["keys"].append(["k", "x" * 43, "2026-01-01T00:00:00Z"])
        execute(ledger._sql.set_fact, ("signing keys", json.dumps(document)))

    with pytest.raises(LedgerUnavailable, match="sealed"):
        ledger.signing_keys.read()
    service.app.state.services.signer._read_at = -1e9
    problem_errors(service.get("/.well-known/gsh-keys.json"), 503, "ledger-unavailable")
