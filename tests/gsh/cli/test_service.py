"""gsh keys and gsh ledger: commands of the service, mounted if it is installed."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

import app.keys
from gsh.cli import add_commands
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
    verified = run("ledger verify")

    assert [each.code for each in (made, listed, rotated, revoked, sealed, verified)] == [0] * 6
    assert len(made.text.split()) == 1
    assert made.text.strip() not in listed.text
    assert "account,release  web  -weekly" in listed.text
    assert "access keys: intact; 2 access keys" in verified.text


@pytest.mark.parametrize("command", ["list", "seal", "rotate 4f1c2a9b", "revoke 4f1c2a9b"])
def test_only_the_first_access_key_makes_a_ledger(command: str, tmp_path: Path) -> None:
    answer = run(f"keys {command}")

    assert (answer.code, answer.output) == (2, b"")
    assert answer.errors.startswith(f"The ledger cannot be opened: there is no file {tmp_path / 'ledger.sqlite3'}")
    assert list(tmp_path.iterdir()) == []


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

    good, bad = run("ledger verify --json"), run(f"ledger verify --heads {tmp_path / 'heads'} --json")

    assert good.code == 0
    assert good.document["budgets"] == []
    assert good.document["access_keys"]["fault"] is None
    assert good.document["access_keys"]["number"] == 1
    assert good.document["notes"] is None
    assert bad.code == 1
    assert bad.document["notes"] == {"checked": 1, "faults": ["line 1 cannot be read"]}


def test_programs_of_the_service_keep_their_exit_codes() -> None:
    assert run("ledger verify").code == 2  # no ledger is there
    run("keys create --scope release")
    assert run("keys revoke nobody").code == 1
    wrong = run("keys create --scope release --expires yesterday")
    assert (wrong.code, wrong.output) == (2, b"")
    assert wrong.errors.splitlines()[-1].startswith("gsh: invalid value for '--expires': must be a date")


def test_a_note_cannot_move_the_cursor_or_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """An operator's terminal shows what is in a note, and does not obey it."""
    note = "job\x1b[2K\r\nforged  active\u202e"
    assert run("keys", "create", "--scope", "release", "--note", note).code == 0

    (line,) = run("keys list").text.splitlines()
    assert line.endswith(r"job\x1b[2K\r\nforged  active\u202e")
    assert run("keys list --json").text.replace("\n", "").isprintable()
    assert run("keys list --json").document[0]["note"] == note
    assert app.keys.main(["list"]) == 0
    assert capsys.readouterr().out == f"{line}\n"


WITHOUT_THE_SERVICE = """
import importlib.metadata, sys
import gsh.cli

def missing(name):
    raise importlib.metadata.PackageNotFoundError(name)

gsh.cli.distribution = missing
commands = ["serve --port 1", "keys list", "keys create --scope x", "keys --help", "ledger verify --heads h", "openapi"]
codes = [gsh.cli.main(each.split()) for each in commands]
print(*codes, "app" in sys.modules)
"""


@pytest.mark.slow
def test_without_the_service_one_line_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_SERVICE], capture_output=True, text=True, check=True)

    assert done.stdout == "1 1 1 1 1 1 False\n"
    expected = "gsh: the service is not installed (hint: in a checkout: pip install . ./service)\n"
    assert done.stderr == expected * 6


def test_a_damaged_service_does_not_stop_the_commands_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_entry: EntryPoint) -> None:
        raise ImportError

    monkeypatch.setattr(EntryPoint, "load", load)
    program = typer.Typer()
    add_commands(program)
    (mounted,) = program.registered_groups

    assert mounted.typer_instance is not None
    assert [each.name for each in mounted.typer_instance.registered_commands] == ["serve", "keys", "ledger", "openapi"]


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "app.settings", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_settings", None)

    answer = run("ledger verify")

    assert answer.code == 1
    expected = "gsh: the Python package pydantic_settings is not installed (hint: pip check lists what is missing)\n"
    assert answer.errors == expected
