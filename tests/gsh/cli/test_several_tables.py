"""A release of several tables with the command: fetched again, as a whole or table by table."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.cli.errors import Code
from gsh.cli.publishing import _FIELDS
from gsh.events import plan_file
from tests.gsh.cli.here import service_here
from tests.gsh.cli.running import run

MECHANISMS = {
    "by_url": gsh.Mechanism(c_u=3, tau=2, tau_star=1200, sigma=200),
    "by_country": gsh.PlainGaussian(c_u=1, sigma=150),
}
TABLES = {
    "by_url": pa.table({"url": ["b", "a", "c"], "users": [10**6, 2 * 10**6, 3]}),
    "by_country": pa.table({"country": ["US", "FR"], "users": [3 * 10**6, 3]}),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gsh.Client]:
    """With a release of two tables, and one of a single table."""
    with service_here(tmp_path_factory.mktemp("ledger")) as client:
        client.budgets.put("web", epsilon=1000, delta=0.5)
        client.release(
            TABLES,
            MECHANISMS,
            users="users",
            keys={"by_url": ["url"], "by_country": ["country"]},
            public_keys={"by_country": ["DE", "FR", "US"]},
            budget="web",
            once="two",
        )
        client.release(TABLES["by_url"], MECHANISMS["by_url"], users="users", keys=["url"], budget="web", once="single")
        yield client


@pytest.fixture(autouse=True)
def _url(service: gsh.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSH_URL", "http://localhost")


def test_all_tables_come_back_in_an_archive(service: gsh.Client, tmp_path: Path) -> None:
    for arguments in (f"-o {tmp_path / 'k.zip'}", f"-o {tmp_path / 'k.bin'} --format zip"):
        ran = run(f"releases get two {arguments}")
        assert ran.code == 0, ran.errors
    piped = run("releases get two -o - --format zip")

    expected = bytes(service.releases.answer("two", "zip"))
    assert piped.output == expected == (tmp_path / "k.zip").read_bytes() == (tmp_path / "k.bin").read_bytes()
    with zipfile.ZipFile(io.BytesIO(expected)) as archive:
        assert {Path(name).stem for name in archive.namelist()} == {"by_url", "by_country", "certificate"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "arrows"])
def test_one_of_several_tables_comes_back_in_every_format(ending: str, service: gsh.Client, tmp_path: Path) -> None:
    ran = run(f"releases get two --table by_country -o {tmp_path / 'k'}.{ending} --json")

    assert ran.code == 0, ran.errors
    assert ran.document["key"] == "two"
    formats = {"arrow": "arrow_file", "arrows": "arrow"}
    expected = service.releases.answer("two", formats.get(ending, ending), "by_country")  # type: ignore[arg-type]
    assert (tmp_path / f"k.{ending}").read_bytes() == bytes(expected)
    if ending == "parquet":
        assert pq.read_table(tmp_path / "k.parquet")["country"].to_pylist() == ["DE", "FR", "US"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("two -o k.csv", "the release has the tables by_url, by_country (hint: add --table NAME"),
        ("two -o - --format csv", "the release has the tables by_url, by_country (hint: add --table NAME"),
        ("two -o k.csv --table by_day", "--table: must be one of them: the release has the tables by_url, by_country"),
        ("two -o k.zip --table by_url", "--table: must be omitted with zip"),
        ("two --table by_url", "--table: needs --output"),
        ("two -o k.txt", "the extension names no format (hint: give --format csv, parquet, arrow, arrows or zip)"),
        ("single -o k.zip", "the release is one table"),
        ("single -o k.csv --table by_url", "--table: must be omitted: the release is one table"),
    ],
)
def test_what_a_release_does_not_have_is_refused_with_its_tables(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ran = run(f"releases get {arguments}")

    assert (ran.code, ran.output) == (Code.INVALID, b"")
    assert said in ran.errors
    assert ran.errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_release_of_one_table_comes_back_as_before(service: gsh.Client, tmp_path: Path) -> None:
    assert run(f"releases get single -o {tmp_path / 'k.csv'}").code == 0
    assert (tmp_path / "k.csv").read_bytes() == bytes(service.releases.answer("single", "csv"))


PLAN = """\
user = "user"
[tables.by_page]
by = "page"
c_u = 2
[tables.by_country]
by = "country"
c_u = 1
public_keys = ["DE", "FR"]
"""
TWO = {"by_page": gsh.Table(c_u=2), "by_country": gsh.Table(c_u=1, tau=None)}


@pytest.fixture
def publication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that publishes by a plan without a target."""
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text("user,page,country\na,x,DE\nb,x,FR\n")
    Path("plan.toml").write_text(PLAN)
    return "publish events.csv --tables plan.toml -o private"


def test_a_plan_or_options_say_how_many_releases_fit_the_budget(service: gsh.Client, publication: str) -> None:
    by_options = run(f"{publication} --budget web --once options --releases 3 --most-sigma 50 --json")
    assert by_options.code == 0, by_options.errors
    service.budgets.put("other", epsilon=1000, delta=0.5)
    Path("plan.toml").write_text(f'releases = 3\nmost_sigma = 50\nbudget = "other"\nonce = "file"\n{PLAN}')
    by_file = run(f"{publication} --service http://localhost --force --json")
    assert by_file.code == 0, by_file.errors

    assert [each["name"] for each in by_file.document["certificate"]["tables"]] == ["by_page", "by_country"]
    expected = service.budgets.calibrate_tables("other", TWO, releases=2).tables
    found = by_file.document["certificate"]["tables"]
    assert [each["mechanism"]["sigma"] for each in found] == pytest.approx([each.sigma for each in expected.values()])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--releases 3", "--releases: must be omitted: the file of --tables has it"),
        ("--most-sigma 9", "--most-sigma: must be omitted: the file of --tables has it"),
        ("--mechanism m.json", "--mechanism: must be omitted with --tables (hint: the noise of each table follows"),
        ("--unit person", "--unit: must be omitted with --tables (hint: write privacy_unit in the file)"),
        ("--sum-unit likes=1", "--sum-unit: must be omitted with --tables (hint: write units in the file)"),
        ("--epsilon 1", "--epsilon: must be omitted with --tables (hint: write epsilon in the file)"),
    ],
)
def test_an_option_that_a_plan_excludes_names_the_field(arguments: str, said: str, publication: str) -> None:
    Path("plan.toml").write_text(f"releases = 3\nmost_sigma = 9\n{PLAN}")

    ran = run(f"{publication} {arguments}")

    assert (ran.code, ran.output) == (Code.INVALID, b"")
    assert said in ran.errors


def test_every_field_that_a_hint_names_is_one_of_a_plan() -> None:
    fields = _FIELDS | {name: name for name in ("user", "by", "c_u", "epsilon", "delta", "tau", "unprotected")}
    for field in fields.values():
        assert field in plan_file._FIELDS or field in plan_file._TABLE_FIELDS


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that releases public groups, without their list."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLES["by_country"], "groups.parquet")
    Path("mechanism.json").write_text('{"c_u": 1, "sigma": 150}')
    Path("countries.csv").write_text("country\nDE\nFR\nUS\n")
    return "release groups.parquet --users users --keys country --mechanism mechanism.json -o private.parquet"


@pytest.mark.parametrize("paid", ["", "--budget web --once public"], ids=["here", "service"])
def test_all_public_groups_of_a_file_are_released(paid: str, public: str) -> None:
    missing = run(f"{public} {paid}")
    ran = run(f"{public} --public-keys countries.csv {paid}")

    assert ran.code == 0, ran.errors
    assert pq.read_table("private.parquet")["country"].to_pylist() == ["DE", "FR", "US"]
    assert (missing.code, "--public-keys: must list the groups" in missing.errors) == (Code.INVALID, True)


def test_a_list_with_other_columns_or_for_thresholds_is_refused(public: str) -> None:
    Path("lands.csv").write_text("land\nDE\n")
    pq.write_table(pa.table({"land": ["DE"]}), "lands.parquet")
    with_thresholds = public.replace("--mechanism mechanism.json", "--c-u 1 --tau-star 900 --sigma 150")

    for command in (f"{public} --public-keys lands.parquet", f"{public} --public-keys lands.csv"):
        assert (run(command).code, "country" in run(command).errors) == (Code.INVALID, True)
    assert "--public-keys: must be omitted" in run(f"{with_thresholds} --public-keys countries.csv").errors
    assert "--public-keys: must be a file" in run(f"{public} --public-keys -").errors
    assert not Path("private.parquet").exists()


def test_one_group_is_not_called_groups(public: str) -> None:
    Path("countries.csv").write_text("country\nUS\n")
    pq.write_table(TABLES["by_country"].slice(0, 1), "groups.parquet")

    ran = run(public.replace("-o private.parquet", "-o - --format parquet --public-keys countries.csv"))

    assert "released 1 group;" in ran.errors
