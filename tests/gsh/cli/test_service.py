"""gsh keys and gsh verify: the programs of the service, under one name and with JSON."""

from pathlib import Path

import pytest

from app.ledger.access_keys import SCOPES
from gsh.cli.service import Scope
from tests.gsh.cli.running import run


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ledger.sqlite3"
    monkeypatch.setenv("GSH_LEDGER", str(path))
    return path


def test_an_access_key_lives_through_all_commands() -> None:
    made = run("keys create --scope release --scope account --budget web --note=-weekly")
    listed = run("keys list")
    identifier = listed.text.split()[0]
    rotated = run(f"keys rotate {identifier} --overlap 7d")
    revoked = run(f"keys revoke {identifier}")
    sealed = run("keys seal")
    verified = run("verify")

    assert [each.code for each in (made, listed, rotated, revoked, sealed, verified)] == [0] * 6
    assert len(made.text.split()) == 1
    assert made.text.strip() not in listed.text
    assert "account,release  web  -weekly" in listed.text
    assert "access keys: intact; 2 access keys" in verified.text


def test_keys_in_json_have_a_secret_only_when_they_are_made() -> None:
    made = run("keys create --scope release --note weekly --expires 2900-01-31 --json").document
    rotated = run(f"keys rotate {made['id']} --json").document
    assert run(f"keys revoke {made['id']} --json").document == {"id": made["id"], "revoked": True}
    wrong = run("keys create --scope account --expires soon")
    assert (wrong.code, wrong.errors.count("\n")) == (2, 1)
    listed = {each["id"]: each for each in run("keys list --json").document}  # in one second, in any order
    first, second = listed[made["id"]], listed[rotated["id"]]

    assert made.keys() == rotated.keys() == {"key", "id", "expires_at"}
    assert made["key"] != rotated["key"]
    assert (len(listed), first["replaced_by"], second["replaces"]) == (2, rotated["id"], made["id"])
    assert (first["scopes"], first["budgets"], first["note"]) == (["release"], [], "weekly")
    assert first["state"].startswith("revoked")
    assert second["expires_at"] == rotated["expires_at"]
    assert not {"key", "hash", "secret"} & first.keys()


def test_verify_in_json_says_what_is_intact(tmp_path: Path) -> None:
    run("keys create --scope release")
    (tmp_path / "heads").write_text("not a note\n")

    good, bad = run("verify --json"), run(f"verify --heads {tmp_path / 'heads'} --json")

    assert good.code == 0
    assert good.document["budgets"] == []
    assert good.document["access_keys"]["fault"] is None
    assert good.document["access_keys"]["number"] == 1
    assert good.document["notes"] is None
    assert bad.code == 1
    assert bad.document["notes"] == {"checked": 1, "faults": ["line 1 cannot be read"]}


def test_programs_of_the_service_keep_their_exit_codes() -> None:
    assert run("verify").code == 2  # no ledger is there
    assert run("keys revoke nobody").code == 1
    wrong = run("keys create --scope release --expires yesterday")
    assert (wrong.code, wrong.output) == (2, b"")
    assert wrong.errors.splitlines()[-1].startswith("gsh keys create: argument --expires: must be a date")


def test_scopes_are_those_of_the_service() -> None:
    assert tuple(Scope) == SCOPES


@pytest.mark.parametrize("missing", ["app", "fastapi", "uvicorn"])
@pytest.mark.parametrize("command", ["serve", "keys list", "verify", "openapi"])
def test_without_the_service_one_line_says_what_to_install(
    command: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else name)

    answer = run(command)

    assert answer.code == 1
    expected = "gsh: the service is not installed (hint: in a checkout: pip install . ./service)\n"
    assert answer.errors == expected
