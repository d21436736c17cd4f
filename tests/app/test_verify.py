"""`python -m app.verify`, as `make verify-ledger` runs it."""

import base64
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import app.verify
from app.checkpoint import checkpoint
from app.ledger.access.access_keys import new_key
from app.ledger.auditing.heads import HeadsFile
from app.ledger.databases.statements import MIGRATIONS
from app.ledger.opening import open_ledger
from app.ledger.signing.signer import KeyPlace, KeyRing, rotate
from gsh.accounting.budget_limits import Limit
from gsh.proof.keys import KeySet, SigningKey
from tests.app.ledger.examples import AT, charge, paid
from tests.app.ledger.test_division import OLD_LEDGER, OLD_SECRET
from tests.app.process import PATIENCE, ROOT, environment, run_command
from tests.postgres import Postgres

pytestmark = pytest.mark.slow

SECRET = "thirty-two characters at least, or more"


def verify(place: Path | str, **others: str) -> subprocess.CompletedProcess[str]:
    return run_command("app.verify", ledger=str(place), **others)


def test_every_budget_is_checked_and_a_fault_is_an_exit_code(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    ledger = open_ledger(str(place), "")
    for name in ("ads", "web"):
        ledger.put_budget(name, Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid("web"))
    ledger.keys.add(new_key(frozenset({"admin"}), frozenset(), "", AT)[1])
    seal, (_, head) = ledger.keys.read().seal, ledger.keys.verify().head or (0, "")
    heads = {budget.id: budget.head for budget in ledger.budgets()}
    ledger.close()

    settings = environment(ledger=str(place))
    command = [sys.executable, "-m", "app.verify"]
    clean = subprocess.run(
        command, cwd=ROOT, env=settings, timeout=PATIENCE, capture_output=True, text=True, check=False
    )
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE entries SET at = '2020-01-01T00:00:00Z' WHERE budget = 'web' AND number = 2")
    connection.close()
    damaged = verify(place)

    assert (clean.returncode, clean.stderr) == (0, "")
    assert clean.stdout.splitlines() == [
        f"ads: intact; 1 entries; head {heads['ads']}",
        f"web: intact; 2 entries; head {heads['web']}",
        f"access keys: intact; 1 access keys; seal {seal}",
        f"access history: intact; 2 entries; head {head}",
        "Checked budgets: 2; entries: 3; budgets at fault: 0",
    ]
    assert damaged.returncode == 1
    assert damaged.stdout.splitlines()[1].startswith("web: FAULT: entry 2 does not have the hash")


def test_missing_and_unreadable_budgets_are_faults_and_others_are_intact(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    ledger = open_ledger(str(place), "")
    for name in ("ads", "gone", "web"):
        ledger.put_budget(name, Limit(1.0, 1e-4), "", AT)
    ledger.close()
    with sqlite3.connect(place) as connection:
        connection.execute("DELETE FROM budgets WHERE id = 'gone'")
        connection.execute("UPDATE budgets SET d = 'nothing' WHERE id = 'ads'")
    connection.close()

    found = verify(place)

    assert (found.returncode, found.stderr) == (1, "")
    ads, gone, web, _, _, total = found.stdout.splitlines()
    assert ads.startswith("ads: FAULT: the budget cannot be read; ")
    assert gone.startswith("gone: FAULT: the budget is gone, though there are entries of its history; ")
    assert web.startswith("web: intact; 1 entries; ")
    assert total == "Checked budgets: 3; entries: 1; budgets at fault: 2"


def test_an_access_key_inserted_into_the_database_is_a_fault_and_an_exit_code(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    open_ledger(str(place), "").close()
    with sqlite3.connect(place) as connection:
        values = ("mine", "hash", "admin", "", "", AT, None, None, None)
        connection.execute("INSERT INTO access_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    connection.close()

    found = verify(place)

    assert (found.returncode, found.stderr) == (1, "")
    keys, history, total = found.stdout.splitlines()
    assert history.startswith("access history: FAULT: it does not say what the access key mine is; 1 entries; ")
    assert keys.startswith("access keys: FAULT: mine was not made by this service; 1 access keys; seal ")
    assert total == "Checked budgets: 0; entries: 0; budgets at fault: 0"


def test_a_budget_divided_again_by_an_earlier_version_is_no_fault_and_its_promise_is_printed(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    shutil.copy(OLD_LEDGER, place)
    open_ledger(str(place), OLD_SECRET).close()

    found = verify(place, ledger_secret=OLD_SECRET)

    assert (found.returncode, found.stderr) == (0, "")
    divided, plain, unused, *_ = found.stdout.splitlines()
    assert re.fullmatch(r"divided: intact, promises delta 0\.00018\d+ at epsilon 1\.0 \(.*\); 3 entries; .*", divided)
    assert plain.startswith("plain: intact; 3 entries; ")
    assert unused.startswith("unused: intact; 1 entries; ")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(place: Path | str, **others: str) -> str:
    """The line that says why nothing could be verified."""
    finished = verify(place, **others)
    assert (finished.returncode, finished.stdout) == (2, "")
    (line,) = finished.stderr.splitlines()
    return line


def test_a_missing_ledger_is_not_created(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"

    assert refused(place) == f"The ledger cannot be verified: there is no file {place}"
    assert "there is no file" in refused(tmp_path / "missing" / "ledger.sqlite3")
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "there is no ledger in the database"), (b"only text" * 100, "file is not a database")]
)
def test_a_file_without_a_ledger_is_not_changed(tmp_path: Path, content: bytes, said: str) -> None:
    place = tmp_path / "ledger.sqlite3"
    place.write_bytes(content)

    assert "but its secret is not" in refused(place)
    assert said in refused(place, ledger_secret=SECRET)
    assert files(tmp_path) == {"ledger.sqlite3": content}


def test_a_database_without_a_ledger_is_not_changed(postgres: Postgres) -> None:
    place = postgres.make_database()

    assert "there is no ledger in the database" in refused(place, ledger_secret=SECRET)
    assert "there is no ledger in the database" in refused(place, ledger_secret=SECRET)
    assert "GSH_LEDGER_SECRET" in refused(place)


def test_an_older_ledger_is_not_migrated_and_a_newer_one_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    open_ledger(str(place), "").close()
    for version, said in ((1, "an earlier version"), (len(MIGRATIONS) + 1, "a newer version")):
        with sqlite3.connect(place) as connection:
            connection.execute("UPDATE schema_version SET version = ?", (version,))
        connection.close()
        before = files(tmp_path)["ledger.sqlite3"]

        assert said in refused(place)
        assert files(tmp_path)["ledger.sqlite3"] == before


def test_a_wrong_or_short_secret_is_an_error(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    open_ledger(str(place), "").close()

    assert "another secret" in refused(place, ledger_secret=SECRET)
    assert refused(place, ledger_secret="short-value").startswith("GSH_LEDGER_SECRET: ")
    assert "short-value" not in refused(place, ledger_secret="short-value")


def test_an_unreachable_server_is_an_error_without_the_password() -> None:
    place = "postgresql://ledger:password-of-mine@127.0.0.1:1/none"

    line = refused(place, ledger_secret=SECRET)

    assert "Connection refused" in line
    assert "password-of-mine" not in line


@pytest.fixture
def noted_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A ledger in which three charges and two access keys were noted, one after the other."""
    place, heads = tmp_path / "ledger.sqlite3", tmp_path / "heads"
    monkeypatch.setenv("GSH_LEDGER", str(place))
    file = HeadsFile(heads)
    with closing(open_ledger(str(place), "")) as ledger:
        KeyRing(KeyPlace(str(place), "")).load(ledger)
        ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
        for number in range(2):
            ledger.keys.add(new_key(frozenset({"admin"}), frozenset(), "", AT)[1])
            charge(ledger, paid("web", key=f"k{number}", request=f"r{number}"))
            file.note(ledger.heads.read, AT)
            with (
                closing(sqlite3.connect(tmp_path / f"copy{number}")) as copy,
                closing(sqlite3.connect(place)) as source,
            ):
                source.backup(copy)
    return place, heads


def heads_said(capsys: pytest.CaptureFixture[str], heads: Path, *further: str) -> tuple[int, list[str]]:
    code = app.verify.main(["--heads", str(heads), *further])
    lines = capsys.readouterr().out.splitlines()
    return code, [line for line in lines if "noted heads" in line or "notes of heads" in line]


def test_noted_heads_are_found_in_the_ledger_that_they_were_noted_from(
    noted_ledger: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place, heads = noted_ledger
    assert heads_said(capsys, heads) == (0, ["Checked notes of heads: 4; faults: 0"])

    with closing(open_ledger(str(place), "")) as ledger:  # a ledger that went on
        ledger.keys.add(new_key(frozenset({"admin"}), frozenset(), "", AT)[1])
        charge(ledger, paid("web", key="later", request="r"))
    assert heads_said(capsys, heads)[0] == 0


def test_a_ledger_that_was_set_back_is_found_by_its_noted_heads(
    noted_ledger: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is intact: only a head that was noted elsewhere shows that a charge and an access key are missing."""
    place, heads = noted_ledger
    (tmp_path / "copy0").replace(place)

    assert app.verify.main([]) == 0
    assert heads_said(capsys, heads) == (
        1,
        [
            f"noted heads: FAULT: line 3: web had another entry 3 at {AT}",
            "noted heads: FAULT: line 4: the access keys are again as they were at line 2",
            "Checked notes of heads: 4; faults: 2",
        ],
    )


def test_a_rewritten_history_access_keys_that_are_set_back_and_lost_lines_are_found(
    noted_ledger: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place, heads = noted_ledger
    lines = heads.read_text().splitlines(keepends=True)
    with closing(open_ledger(str(place), "")) as ledger:
        present = ledger.keys.read().seal
    assert present in lines[3]
    heads.write_text("".join([lines[3], lines[0].replace(" 2,", " 1,"), lines[1], "torn\n"]))

    code, said = heads_said(capsys, heads)

    assert code == 1
    assert said == [
        f"noted heads: FAULT: line 2: web had another entry 1 at {AT}",
        "noted heads: FAULT: line 4 cannot be read",
        "noted heads: FAULT: line 3: the access keys are again as they were at line 1",
        "Checked notes of heads: 4; faults: 3",
    ]
    heads.write_text(lines[3].replace('"access_keys": 2', '"access_keys": 3').replace(present, "other"))
    assert heads_said(capsys, heads)[1][0] == "noted heads: FAULT: there were 3 access keys, and now there are 2"


def test_a_missing_file_of_heads_is_no_success(
    noted_ledger: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert app.verify.main(["--heads", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == "The file of heads cannot be read: No such file or directory\n"


@pytest.fixture
def checkpoints(noted_ledger: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Two checkpoints as `gsh ledger checkpoint` prints them; the second one is of the ledger after the copy1."""
    assert checkpoint() == 0
    with closing(open_ledger(str(noted_ledger[0]), "")) as ledger:
        charge(ledger, paid("web", key="later", request="r"))
    assert checkpoint() == 0
    return capsys.readouterr().out.splitlines(keepends=True)


def test_a_ledger_that_goes_on_has_all_its_checkpoints(
    noted_ledger: tuple[Path, Path], checkpoints: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, heads = noted_ledger
    with heads.open("a") as file:
        file.writelines(checkpoints)

    assert heads_said(capsys, heads) == (0, ["Checked notes of heads: 8; faults: 0"])


@pytest.mark.parametrize("again", [False, True])
def test_one_checkpoint_finds_a_ledger_that_was_set_back(
    noted_ledger: tuple[Path, Path],
    checkpoints: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    *,
    again: bool,
) -> None:
    """Also if the copy has made as many checkpoints since."""
    place, heads = noted_ledger
    (tmp_path / "copy1").replace(place)
    heads.write_text(checkpoints[-1])
    for _ in range(2 if again else 0):
        assert checkpoint() == 0

    code, said = heads_said(capsys, heads)
    assert code == 1
    assert ("was made twice" if again else "the ledger has made 0 only") in said[0]
    assert said[-1] == "Checked notes of heads: 1; faults: 1"


def test_checkpoints_of_two_lives_of_a_ledger_do_not_follow_on_each_other(
    noted_ledger: tuple[Path, Path],
    checkpoints: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All heads of the first one are in the history of the copy. Only the chain shows that something is lost."""
    place, heads = noted_ledger
    (tmp_path / "copy1").replace(place)
    monkeypatch.setattr("app.ledger.clock.now", lambda: "2999-01-01T00:00:00Z")
    for _ in range(2):
        assert checkpoint() == 0
    heads.write_text(checkpoints[0] + capsys.readouterr().out.splitlines()[1])

    code, said = heads_said(capsys, heads)
    assert code == 1
    assert "line 2: checkpoint number 2 does not follow on the one before" in said[0]


def test_a_rewritten_history_is_found_by_the_heads_of_a_checkpoint(
    noted_ledger: tuple[Path, Path], checkpoints: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    place, heads = noted_ledger
    heads.write_text(checkpoints[0])
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE entries SET hash = 'g' || substr(hash, 2) WHERE budget = 'web' AND number = 3")
        connection.commit()

    code, said = heads_said(capsys, heads)
    assert code == 1
    assert "web had another entry 3" in said[0]


def test_a_checkpoint_that_nobody_signed_is_a_fault(
    noted_ledger: tuple[Path, Path], checkpoints: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, heads = noted_ledger
    envelope = json.loads(checkpoints[0])
    statement = base64.b64decode(envelope["payload"]).replace(b'"number":1', b'"number":2')
    envelope["payload"] = base64.b64encode(statement).decode()
    heads.write_text(json.dumps(envelope))
    assert "signature does not fit" in heads_said(capsys, heads)[1][0]

    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(KeySet.of([SigningKey.made().public]).to_json()))
    heads.write_text(checkpoints[0])
    assert heads_said(capsys, heads, "--keys", str(keys))[0] == 1
    assert heads_said(capsys, heads)[0] == 0


def test_an_empty_ledger_has_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GSH_LEDGER", str(tmp_path / "ledger.sqlite3"))
    assert checkpoint() == 2
    open_ledger(str(tmp_path / "ledger.sqlite3"), "").close()

    assert checkpoint() == 1
    assert "nothing to sign" in capsys.readouterr().err


def test_the_first_key_signs_at_once_whatever_the_overlap_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GSH_LEDGER", str(tmp_path / "ledger.sqlite3"))
    with closing(open_ledger(str(tmp_path / "ledger.sqlite3"), "")) as ledger:
        ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
        rotate(ledger, KeyPlace(str(tmp_path / "ledger.sqlite3"), ""), "2999-01-01T00:00:00Z")

    assert checkpoint() == 0
