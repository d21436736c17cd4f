"""The first access key as a setting, and secrets in files."""

import re
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.access.access_keys import given_key, hash_of
from app.ledger.access.scopes import SCOPES
from app.ledger.opening import open_ledger
from app.settings import Settings, settings_or_exit
from tests.app.process import ROOT, Service, run_command

SECRET, KEY, OTHER = "s" * 32, "first-key-" + "k" * 32, "other-key-" + "k" * 32
AT, LATER = "2026-11-17T12:00:00Z", "2026-11-18T12:00:00Z"
SECRETS = {"ledger": "postgresql://ledger:word@server/ledger", "ledger_secret": SECRET, "admin_key": KEY}


def plain(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    return value if isinstance(value, str) else str(value.get_secret_value())


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSH_LEDGER")


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that names the setting."""
    with pytest.raises(SystemExit, match="2"):
        settings_or_exit()
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_be_in_a_file(name: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_bytes((SECRETS[name] + end).encode())
    monkeypatch.setenv(f"GSH_{name.upper()}_FILE", str(tmp_path / "secret"))

    assert plain(Settings(), name) == SECRETS[name]


def test_a_file_replaces_the_ledger_that_the_image_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image sets GSH_LEDGER, and the operator only the file."""
    (of_the_image,) = re.findall(r"GSH_LEDGER=(\S+)", (ROOT / "Dockerfile").read_text())
    (tmp_path / "ledger").write_text(SECRETS["ledger"])
    monkeypatch.setenv("GSH_LEDGER", of_the_image)
    monkeypatch.setenv("GSH_LEDGER_FILE", str(tmp_path / "ledger"))

    assert Settings().ledger == SECRETS["ledger"]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\xff" * 40, b"s" * 70_000, None],
    ids=["empty", "a line end", "no text", "too long", "missing"],
)
def test_a_file_without_a_secret_is_refused_and_not_shown(
    name: str,
    content: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty file never counts as no secret: the ledger would get another one."""
    if content is not None:
        (tmp_path / "hidden").write_bytes(content)
    monkeypatch.setenv(f"GSH_{name.upper()}_FILE", str(tmp_path / "hidden"))

    line = refused(capsys)
    assert line.startswith(f"GSH_{name.upper()}: ")
    assert f"GSH_{name.upper()}_FILE" in line
    assert "hidden" not in line


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_and_its_file_together_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text(OTHER)
    monkeypatch.setenv(f"GSH_{name.upper()}", SECRETS[name])
    monkeypatch.setenv(f"GSH_{name.upper()}_FILE", str(tmp_path / "secret"))

    line = refused(capsys)
    assert line.startswith(f"GSH_{name.upper()}: ")
    assert SECRETS[name] not in line
    assert OTHER not in line


@pytest.mark.parametrize("key", ["k" * 31, "k" * 513, "k k" * 20, "é" * 40, "k" * 40 + "\n", "k" * 40 + "\x7f"])
def test_a_first_key_is_long_and_fits_a_header(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GSH_ADMIN_KEY", key)

    line = refused(capsys)
    assert line.startswith("GSH_ADMIN_KEY: ")
    assert key.strip() not in line


@pytest.mark.parametrize("secret", ["s" * 31, " " * 40, "\udcff" * 40], ids=["short", "blank", "no text"])
def test_a_secret_of_the_ledger_is_long_and_text(
    secret: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GSH_LEDGER_SECRET", secret)

    assert refused(capsys).startswith("GSH_LEDGER_SECRET: ")


def test_the_first_key_is_not_the_secret_of_the_ledger(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clients send the key, and the secret must stay in the service."""
    monkeypatch.setenv("GSH_LEDGER_SECRET", KEY)
    monkeypatch.setenv("GSH_ADMIN_KEY", KEY)

    line = refused(capsys)
    assert line.startswith("GSH_ADMIN_KEY: ")
    assert KEY not in line


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=32, max_size=512))
def test_every_printable_key_of_32_characters_is_accepted_and_not_shown(key: str) -> None:
    settings = Settings(admin_key=key)

    assert plain(settings, "admin_key") == key
    assert key not in repr(settings)


def test_a_key_is_added_once_for_everything_and_only_its_hash_is_stored(ledger_url: str) -> None:
    with closing(open_ledger(ledger_url, SECRET)) as ledger:
        first = ledger.keys.add_once(given_key(KEY, "first", AT))
        again = ledger.keys.add_once(given_key(KEY, "again", LATER))
        other = ledger.keys.add_once(given_key(OTHER, "other", LATER))
        found = ledger.keys.read()

    assert first == again
    assert found.every == (first, other)
    assert (first.hash, first.scopes, first.budgets, first.made_at) == (hash_of(KEY), set(SCOPES), frozenset(), AT)
    assert found.faults == {}
    assert KEY not in repr(found)
    assert first.id not in hash_of(KEY)


def test_a_revoked_key_stays_revoked(ledger_url: str) -> None:
    with closing(open_ledger(ledger_url, SECRET)) as ledger:
        first = ledger.keys.add_once(given_key(KEY, "first", AT))
        assert ledger.keys.revoke(first.id, LATER)

        assert ledger.keys.add_once(given_key(KEY, "first", LATER)).revoked_at == LATER
        assert ledger.keys.read().usable == []


@pytest.mark.slow
def test_the_service_starts_on_all_addresses_with_a_key_in_a_file(tmp_path: Path) -> None:
    place, file = tmp_path / "ledger.sqlite3", tmp_path / "key"
    file.write_text(KEY + "\n")
    settings = {"host": "0.0.0.0", "ledger": str(place), "admin_key_file": str(file), "log_level": "debug"}
    for _ in range(2):
        with Service(temporary=tmp_path, **settings) as service:
            url = service.url.replace("0.0.0.0", "127.0.0.1")
            assert httpx.get(f"{url}/budgets").status_code == 401
            assert httpx.get(f"{url}/budgets", headers={"authorization": f"Bearer {KEY}"}).status_code == 200
            assert service.stop() == 0
        assert KEY not in service.output + service.errors
    with closing(open_ledger(str(place), "")) as ledger:
        (key,) = ledger.keys.read().every
        assert ledger.keys.revoke(key.id, AT)
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("ledger.sqlite3*"))

    with Service(temporary=tmp_path, **settings) as service:
        url = service.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/budgets", headers={"authorization": f"Bearer {KEY}"}).status_code == 401
        service.stop()
    assert any(line["message"].startswith(f"GSH_ADMIN_KEY: access key {key.id} was revoked") for line in service.log)


@pytest.mark.slow
def test_a_key_that_cannot_be_added_is_one_line(tmp_path: Path) -> None:
    done = run_command("app", port="0", ledger=str(tmp_path / "missing" / "ledger.sqlite3"), admin_key=KEY)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("GSH_LEDGER: cannot be opened to add GSH_ADMIN_KEY: ")
    assert len(done.stderr.splitlines()) == 1
    assert KEY not in done.stderr
