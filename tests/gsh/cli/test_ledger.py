"""gsh release, budgets and releases with a real service: charged once, and fetched again."""

import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gsh.cli.errors import Code
from tests.app.process import Service
from tests.gsh.cli.running import GROUPS, PROGRAM, groups_file, in_terminal, run, run_process

pytestmark = pytest.mark.slow

MECHANISM = "--c-u 3 --tau-star 120 --sigma 20"
ROLES = "--users users --keys url,country"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(autouse=True)
def url(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GSH_URL", service.url)
    return service.url


def budget(name: str, epsilon: float = 5, delta: float = 1e-5) -> Any:
    return run(f"budgets put {name} --epsilon {epsilon} --delta {delta} --description views --json").document


def test_a_release_is_charged_once_and_fetched_again(tmp_path: Path) -> None:
    budget("weekly")
    given = groups_file(tmp_path)
    command = f"release {given} {ROLES} {MECHANISM} --epsilon 1 --budget weekly --once W46 --description 'week 46'"

    first = run(f"{command} -o {tmp_path / 'first.parquet'} --certificate {tmp_path / 'first.json'} --json")
    again = run(f"{command} -o {tmp_path / 'again.parquet'}")
    got = run(f"releases get W46 -o {tmp_path / 'got.parquet'} --certificate {tmp_path / 'got.json'} --json")

    assert [each.code for each in (first, again, got)] == [0, 0, 0], (first.errors, again.errors, got.errors)
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("first", "again", "got")]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0]["url"].to_pylist() == ["a.org", "b.org"]
    promise, recorded = (json.loads((tmp_path / name).read_text()) for name in ("first.json", "got.json"))
    assert json.loads(tables[0].schema.metadata[b"certificate"]) == promise == first.document["certificate"]
    assert promise["budget"]["id"] == "weekly"
    assert promise | {"record": recorded["record"]} == recorded
    assert recorded["record"]["state"] == "made"
    assert run("budgets get weekly --json").document["spent"]["releases"] == 1
    assert "weekly" in again.text
    assert (got.document["key"], got.document["description"]) == ("W46", "week 46")


def test_publish_refuses_a_sliver_of_a_budget_and_leaves_its_name_free(tmp_path: Path) -> None:
    budget("sliver", epsilon=0.001, delta=1e-9)
    events = tmp_path / "events.csv"
    events.write_text("user,page\na,x\nb,x\n")
    command = f"publish {events} --user user --by page --c-u 16 --budget sliver --once sliver-1 --releases 100000"

    refused = run(f"{command} -o {tmp_path / 'private.csv'}")
    accepted = run(f"{command} --most-sigma 1e12 -o {tmp_path / 'private.csv'}")

    assert refused.code == Code.BUDGET
    assert "--releases: too little is left" in refused.errors
    assert "--most-sigma" in refused.errors
    assert accepted.code == 0, accepted.errors
    assert run("budgets get sliver --json").document["spent"]["releases"] == 1


def test_the_stored_answer_has_the_hash_of_the_ledger(tmp_path: Path) -> None:
    budget("hashes")
    run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} --budget hashes --once H1 -o {tmp_path / 'a.parquet'}")

    piped = run("releases get H1 -o - --format arrows")
    said = run("releases get H1 --json").document

    assert hashlib.sha256(piped.output).hexdigest() == said["answer"]["sha256"]


def test_a_release_says_what_it_used_of_its_budget_and_which_ancestors_paid(tmp_path: Path) -> None:
    budget("family")
    assert run("budgets put member --epsilon 5 --delta 1e-5 --parent family").code == 0
    run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} --budget member --once M1 -o {tmp_path / 'a.parquet'}")

    told = run("releases get M1 --json")
    assert told.code == 0, told.errors
    assert [each["budget"] for each in told.document["ancestors"]] == ["family"]
    assert told.document["budget_use"]["budget"] in {"member", "family"}
    assert "family" in run("releases get M1").text


def test_tables_come_through_pipes_and_in_every_format(tmp_path: Path) -> None:
    budget("pipes")
    csv = b"url,country,users\na.org,US,20000000\n"
    command = f"release - --from csv {ROLES} {MECHANISM} --budget pipes"

    answer = run(f"{command} --once P1 -o -", stdin=csv)
    run(f"{command} --once P2 -o {tmp_path / 'private.arrow'}", stdin=csv)

    assert answer.text.startswith("url,country,users\na.org,US,")
    assert "budget pipes" in answer.errors
    assert pa.ipc.open_file((tmp_path / "private.arrow").read_bytes()).read_all()["url"].to_pylist() == ["a.org"]
    for name in ("csv", "arrow", "arrows", "parquet"):
        assert run(f"releases get P1 -o {tmp_path / f'got.{name}'}").code == 0
    assert (tmp_path / "got.csv").read_text() == answer.text


def test_lists_are_the_service_s(tmp_path: Path) -> None:
    made = budget("listed")
    for name in ("L1", "L2", "L3"):
        paid = f"--budget listed --once {name} -o {tmp_path / name}.csv"
        assert run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} {paid}").code == 0

    budgets = {each["id"]: each for each in run("budgets --json").document["budgets"]}
    newest = run("releases --budget listed --limit 2 --json").document["releases"]
    text = run("releases --budget listed").text.splitlines()

    assert budgets["listed"]["limit"]["epsilon"] == made["limit"]["epsilon"] == 5
    assert [each["key"] for each in newest] == ["L3", "L2"]
    assert [line.split()[:3] for line in text[1:]] == [[name, "made", "listed"] for name in ("L3", "L2", "L1")]
    assert any(line.split()[:2] == ["listed", "5.0"] for line in run("budgets").text.splitlines())
    assert run("budgets get listed").text.startswith("budget")


def test_each_kind_of_refusal_has_its_exit_code(tmp_path: Path) -> None:
    budget("small", epsilon=0.1, delta=1e-9)
    budget("once")
    given = groups_file(tmp_path)
    command = f"release {given} {ROLES} {MECHANISM} -o {tmp_path / 'private.parquet'} --retries 0"

    for arguments, code, said in (
        (
            "--budget small --once S1",
            Code.BUDGET,
            "gsh: The release does not fit the remaining budget: noise and threshold need",
        ),
        ("--budget nobody --once S2", Code.INVALID, "budget"),
        ("--budget once", Code.INVALID, "--once"),
        ("--budget once --once 'not a name'", Code.INVALID, "--once: must be 1 to 255"),
        ("--service http://127.0.0.1:1", Code.UNREACHABLE, "no answer"),
        ("--service ftp://127.0.0.1", Code.INVALID, "--service: must begin with http"),
        ("--budget once --once S3 --users clicks", Code.INVALID, "--count"),
    ):
        answer = run(f"{command} {arguments}")
        assert (answer.code, answer.output) == (code, b""), answer.errors
        assert said in answer.errors
        assert answer.errors.count("\n") == 1
        assert "(hint: " in answer.errors
        assert not any(key in answer.errors for key in ("a.org", "b.org", "c.org"))
    assert not (tmp_path / "private.parquet").exists()
    assert run("releases get nobody").code == Code.INVALID


def test_a_used_name_with_another_content_is_refused(tmp_path: Path) -> None:
    budget("reused")
    command = f"--budget reused --once R1 {ROLES} {MECHANISM}"
    run(f"release {groups_file(tmp_path)} {command} -o {tmp_path / 'a.parquet'}")
    other = tmp_path / "other.parquet"
    pq.write_table(GROUPS.slice(0, 1), other)

    answer = run(f"release {other} {command} -o {tmp_path / 'b.parquet'}")

    assert answer.code == Code.INVALID
    assert "gsh releases get" in answer.errors
    assert not (tmp_path / "b.parquet").exists()


def test_a_replay_and_a_dry_run_say_what_the_name_does(tmp_path: Path) -> None:
    """In words, in JSON, and next to a table on standard output."""
    budget("names")
    given, other = groups_file(tmp_path), tmp_path / "other.parquet"
    pq.write_table(GROUPS.slice(0, 1), other)
    command = f"{ROLES} {MECHANISM} --budget names --once N1"
    dry = run(f"release {given} {command} -o {tmp_path / 'dry.parquet'} --dry-run")
    assert (dry.code, dry.text.splitlines()[3].split()) == (0, ["N1", "is", "free"])
    first = run(f"release {given} {command} -o {tmp_path / 'a.parquet'} --json").document
    assert (first["is_replayed"], first["released_at"]) == (False, None)

    again = run(f"release {given} {command} -o {tmp_path / 'b.parquet'} --json").document
    at = run("releases get N1 --json").document["at"]
    assert (again["is_replayed"], again["released_at"]) == (True, at)
    said = f"released on {at}, nothing was charged now"
    assert said in run(f"release {given} {command} -o {tmp_path / 'c.parquet'}").text
    assert f"gsh: replayed: {said}; released " in run(f"release {given} {command} -o - --format csv").errors
    dry = run(f"release {given} {command} -o {tmp_path / 'dry.parquet'} --dry-run --json")
    assert (dry.code, dry.document["released_at"]) == (0, at)
    taken = run(f"release {other} {command} -o {tmp_path / 'dry.parquet'} --dry-run")
    assert taken.code == Code.INVALID
    assert "gsh releases get" in taken.errors
    here = run(f"release {given} {ROLES} {MECHANISM} -o {tmp_path / 'dry.parquet'} --dry-run")
    assert (here.code, "--dry-run: needs a service" in here.errors) == (Code.INVALID, True)
    assert not (tmp_path / "dry.parquet").exists()
    assert run("budgets get names --json").document["spent"]["releases"] == 1


@pytest.mark.parametrize("paid", ["", "--budget typed --once T1"], ids=["here", "service"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("url,country,users\na.org,US,5\nb.org,FR,1.000\n", "--count: line 3 has a number such as 1.000"),
        ('url,country,users\na.org,US,"1,000"\n', "--count: line 2 has a number such as 1.000"),
        ("url;country;users\na.org;US;1000\n", "the header line has semicolons"),
    ],
)
def test_a_number_that_can_be_read_in_two_ways_is_refused_with_its_line(
    content: str, said: str, paid: str, tmp_path: Path
) -> None:
    budget("typed")
    given = tmp_path / "counts.csv"
    given.write_text(content)

    answer = run(f"release {given} {ROLES} {MECHANISM} {paid} -o {tmp_path / 'private.parquet'}")

    assert answer.code == Code.INVALID
    assert said in answer.errors
    assert not (tmp_path / "private.parquet").exists()
    assert run("budgets get typed --json").document["spent"]["releases"] == 0


@pytest.mark.parametrize("missing", ["--users users", "--keys url,country"])
def test_the_roles_of_the_columns_are_never_guessed(missing: str, tmp_path: Path) -> None:
    """Of a table with one column of texts and one of numbers either."""
    roles = ROLES.replace(missing, "")
    answer = run(f"release {groups_file(tmp_path)} {roles} {MECHANISM} -o {tmp_path / 'private.parquet'}")

    assert answer.code == Code.INVALID
    assert missing.split(maxsplit=1)[0].replace("users", "count") in answer.errors
    assert not (tmp_path / "private.parquet").exists()


def test_without_a_service_nothing_is_charged_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL in the environment alone sends no table anywhere."""
    command = f"release {groups_file(tmp_path)} {ROLES} {MECHANISM}"
    monkeypatch.setenv("GSH_URL", "http://127.0.0.1:1")  # nobody listens there
    assert "nothing keeps count" in run(f"{command} -o {tmp_path / 'here.parquet'}").text

    assert "--budget" in run(f"{command} --once X -o {tmp_path / 'x.parquet'}").errors
    monkeypatch.delenv("GSH_URL")
    missing = run(f"{command} --budget web --once X -o {tmp_path / 'x.parquet'}")
    assert (missing.code, "GSH_URL" in missing.errors) == (Code.INVALID, True)


def test_an_access_key_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    ledger = {"GSH_LEDGER": str(tmp_path / "ledger.sqlite3")}
    made = run_process("keys", "create", "--scope", "release", **ledger).text.strip()
    key = tmp_path / "key"
    key.write_text(f"{made}\n")
    wrong = tmp_path / "wrong"
    wrong.write_text(f"{made[:-4]}aaaa\n")
    with Service(temporary=tmp_path, ledger=ledger["GSH_LEDGER"]) as guarded:
        place = f"--service {guarded.url} --retries 0"
        none, refused, allowed = (
            run(f"releases {place}{with_key}") for with_key in ("", f" --key-file {wrong}", f" --key-file {key}")
        )
        lacking = run(f"budgets put web --epsilon 1 --delta 1e-6 {place} --key-file {key}")

    assert (none.code, refused.code, allowed.code, lacking.code) == (Code.ACCESS, Code.ACCESS, 0, Code.ACCESS)
    assert "GSH_KEY" in none.errors
    assert not any(made[-12:] in each.errors for each in (none, refused, allowed, lacking))


def test_the_service_can_be_named_before_the_subcommand(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget("before")
    monkeypatch.delenv("GSH_URL")

    assert run(f"budgets --service {url} get before --json").document["id"] == "before"


def test_a_terminal_shows_the_progress_of_an_upload(tmp_path: Path, url: str) -> None:
    """On standard error; and nothing of it without a terminal."""
    given = groups_file(tmp_path)
    command = f"{shlex.join(PROGRAM)} release {given} {ROLES} {MECHANISM} --service {url} -o"

    shown = in_terminal(["bash", "-c", f"{command} {tmp_path / 'a.parquet'} 2>&1 > {tmp_path / 'out'}"])
    quiet = run(f"release {given} {ROLES} {MECHANISM} --service {url} -o {tmp_path / 'b.parquet'}")

    assert "waiting for the answer" in shown
    assert "budget" in (tmp_path / "out").read_text()
    assert quiet.errors == ""
