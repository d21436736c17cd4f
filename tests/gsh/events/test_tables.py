"""Plans of several tables, and lists of public keys: JSON and back, digests, and errors that name the place."""

import datetime
import decimal
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.events.lots import salt_of_table
from gsh.events.plan import Plan, make_plan
from gsh.events.public_keys import listed_kinds, public_keys_of
from gsh.events.tables import Plans, plan_from_json, planned

SALT = "0123456789abcdef0123456789abcdef"
SECONDS = {"sums": {"likes": (0, 1), "seconds": (0, 600)}, "units": {"seconds": 2**-10}, "caps": {"likes": 4}}
TABLES = {
    "by_country": gsh.Table(by="country", public_keys=["DE", "FR", None], c_u=1),
    "detail": gsh.Table(by=["url", "country"], c_u=16, tau=2, share=2, **SECONDS),
}


def plans(tables: Any = TABLES, **more: Any) -> Plans:
    return planned(tables, **{"user": "user_id", "salt": SALT, **more})[0]


def test_a_plan_of_tables_survives_json() -> None:
    plan = plans(types={"country": "string", "url": "string"})
    written = json.loads(json.dumps(plan.to_json()))

    assert plan_from_json(written) == Plans.from_json(written) == plan
    assert Plans.from_json(written).digest == plan.digest
    assert plan.columns == ("user_id", "country", "url", "likes", "seconds")


def test_each_table_is_a_plan_of_its_own_that_depends_on_no_other_table() -> None:
    alone = plans({"detail": TABLES["detail"]}).tables["detail"]
    expected = make_plan(
        user="user_id", by=["url", "country"], c_u=16, tau=2, salt=salt_of_table(SALT, "detail"), **SECONDS
    )

    assert plans().tables["detail"] == alone == expected
    assert plans({"other": TABLES["detail"]}).tables["other"].salt != alone.salt


def test_one_table_with_public_keys_survives_json() -> None:
    listed = public_keys_of(["DE", "FR"], ["country"])
    plan = make_plan(user="u", by="country", c_u=1, salt=SALT, public_keys=listed.digest)
    written = json.loads(json.dumps(plan.to_json()))

    assert (plan.tau, written["version"]) == (0, 2)
    assert plan_from_json(written) == plan
    assert plan.digest != make_plan(user="u", by="country", c_u=1, tau=0, salt=SALT).digest
    for change in ({"version": 1}, {"public_keys": None}, {"public_keys": "x"}, {"tau": 2}):
        with pytest.raises(gsh.InvalidParameter):
            Plan.from_json(written | change)


def test_the_digest_is_of_every_table_and_every_list() -> None:
    first, second = TABLES["by_country"], TABLES["detail"]
    changed = [
        TABLES,
        {"by_country": first},
        {"detail": second, "by_country": first},
        {"by_land": first, "detail": second},
        {"by_country": gsh.Table(by="country", public_keys=["DE", "FR"], c_u=1), "detail": second},
        {"by_country": gsh.Table(by="country", c_u=1), "detail": second},
        {"by_country": gsh.Table(by="country", c_u=1, tau=0), "detail": second},
        {"by_country": first, "detail": gsh.Table(by=["url", "country"], c_u=15, tau=2, **SECONDS)},
    ]

    assert len({plans(tables).digest for tables in changed}) == len(changed)
    assert plans(salt=SALT[::-1]).digest != plans().digest
    # Shares are of the noise, and not of the plan.
    again = TABLES | {"detail": gsh.Table(by=["url", "country"], c_u=16, tau=2, **SECONDS)}
    assert plans(again).digest == plans().digest


@pytest.mark.parametrize(
    ("tables", "more", "pointer"),
    [
        ({}, {}, "tables"),
        ([], {}, "tables"),
        ({"a/b": TABLES["detail"]}, {}, "tables/a~1b"),
        ({3: TABLES["detail"]}, {}, "tables/3"),
        ({"a": TABLES["detail"], "A": TABLES["detail"]}, {}, "tables/A"),
        ({f"t{k}": gsh.Table(by="k", c_u=1) for k in range(65)}, {}, "tables"),
        ({"a": 3}, {}, "tables/a"),
        ({"a": gsh.Table(c_u=1)}, {}, "tables/a/by"),
        ({"a": gsh.Table(c_u=1, public_keys=["x"])}, {}, "tables/a/by"),
        ({"a": gsh.Table(by="k", c_u=0)}, {}, "tables/a/c_u"),
        ({"a": gsh.Table(by="k", c_u=1, tau=None)}, {}, "tables/a/public_keys"),
        ({"a": gsh.Table(by="k", c_u=1, public_keys=[])}, {}, "tables/a/public_keys"),
        ({"a": gsh.Table(by="k", c_u=1, public_keys=["x"], tau=5)}, {}, "tables/a/tau"),
        ({"a": gsh.Table(by="k", c_u=1, sums={"s": (1, 0)})}, {}, "tables/a/sums/s"),
        ({"a": gsh.Table(by="user_id", c_u=1)}, {}, "tables/a/by"),
        (TABLES, {"user": ""}, "user"),
        (TABLES, {"salt": "x"}, "salt"),
        (TABLES, {"types": {"other": "string"}}, "types"),
        (TABLES, {"types": {"url": "text"}}, "types/url"),
        (TABLES, {"types": ["url"]}, "types"),
    ],
)
def test_every_mistake_names_its_place(tables: Any, more: dict[str, Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        plans(tables, **more)

    assert error.value.pointer == pointer


@pytest.mark.parametrize(
    "change", [{"version": 1}, {"tables": 3}, {"tables": []}, {"tables": [{}]}, {"more": 1}, {"types": {"x": "string"}}]
)
def test_a_json_that_is_no_plan_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(gsh.InvalidParameter):
        Plans.from_json(plans().to_json() | change)
    twice = plans().to_json()
    twice["tables"] *= 2
    with pytest.raises(gsh.InvalidParameter):
        Plans.from_json(twice)


def test_columns_of_files_without_types_must_mean_the_same_in_all_tables() -> None:
    tables = {"a": gsh.Table(by="k", c_u=1), "b": gsh.Table(by="url", c_u=1, sums={"k": (0, 1)})}
    with pytest.raises(gsh.InvalidParameter, match=r"^types/k: must be declared"):
        plans(tables).default_kinds()

    assert plans(tables, types={"k": "integer"}).default_kinds()["k"] == "integer"
    with pytest.raises(gsh.InvalidParameter) as error:
        plans().kinds_in({"user_id": "string", "country": "string", "likes": "integer", "seconds": "double"})
    assert error.value.pointer == "tables/detail/by/0"


DAYS = [datetime.date(2026, 11, 16), None, datetime.date(1969, 12, 31)]
FORMS: dict[str, Callable[[Path], Any]] = {
    "a list": lambda _: DAYS,
    "with duplicates and in another order": lambda _: [*DAYS[::-1], *DAYS],
    "a list of lists": lambda _: [[day] for day in DAYS],
    "an array": lambda _: pa.array(DAYS),
    "a column": lambda _: pa.table({"day": DAYS})["day"],
    "a dictionary": lambda _: pa.array(DAYS).dictionary_encode(),
    "a column of polars": lambda _: polars.Series("x", DAYS),
    "a column of pandas": lambda _: pandas.Series(DAYS, dtype=pandas.ArrowDtype(pa.date32())),
    "a table with another column": lambda _: pa.table({"more": [1, 2, 3], "day": DAYS}),
    "a frame of polars": lambda _: polars.DataFrame({"day": DAYS}),
    "a frame of pandas": lambda _: pa.table({"day": DAYS}).to_pandas(types_mapper=pandas.ArrowDtype),
    "a file": lambda folder: _written(
        folder / "days.parquet", lambda path: pq.write_table(pa.table({"day": DAYS}), path)
    ),
}


def _written(path: Path, write: Callable[[Path], Any]) -> Path:
    write(path)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_list_is_the_same_list(form: str, tmp_path: Path) -> None:
    listed = public_keys_of(FORMS[form](tmp_path), ["day"])

    assert set(listed.table["day"].to_pylist()) == set(DAYS)
    assert len(listed) == 3
    assert listed.digest == public_keys_of(DAYS, ["day"]).digest
    assert listed.digest != public_keys_of(DAYS[:2], ["day"]).digest


def test_texts_of_files_are_texts(tmp_path: Path) -> None:
    """007 is not 7, and an empty cell is a missing part, as in events."""
    (tmp_path / "keys.csv").write_text('url,more,country\n007,1,DE\n"a,b",2,\n')
    (tmp_path / "keys.tsv").write_text("url\tcountry\n007\tDE\na,b\t\n")

    for name in ("keys.csv", "keys.tsv"):
        listed = public_keys_of(tmp_path / name, ["url", "country"])
        assert listed.table.to_pylist() == [{"url": "007", "country": "DE"}, {"url": "a,b", "country": None}]
        assert listed.digest == public_keys_of([("a,b", None), ("007", "DE")], ["url", "country"]).digest


def test_a_file_with_semicolons_is_told_to_have_commas(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("country;name\nDE;Germany\n")

    with pytest.raises(gsh.InvalidParameter, match="there is no country: the header has one column; separate columns"):
        public_keys_of(tmp_path / "keys.csv", ["country"])


def test_listed_texts_that_are_not_of_the_type_name_the_column() -> None:
    keys = [("DE", "secret"), ("FR", "2")]
    with pytest.raises(gsh.InvalidParameter, match=r"^public_keys: .* key columns: n is of type integer$"):
        gsh.publish(VIEWS, user="user_id", by=["country", "n"], public_keys=keys, c_u=1, epsilon=1, delta=1e-6)


def test_no_two_lists_have_the_same_text() -> None:
    lists = [
        [("ab", "c")],
        [("a", "bc")],
        [("a", None)],
        [("a", "-")],
        [("a", "")],
        [("1:a", "")],
        [("ab", "c"), ("a", "")],
    ]

    assert len({public_keys_of(each, ["x", "y"]).digest for each in lists}) == len(lists)
    assert public_keys_of(["ab"], ["x"]).digest != public_keys_of([("a", "b")], ["x", "y"]).digest


@pytest.mark.parametrize(
    ("keys", "by"),
    [
        (3, ["k"]),
        (b"ab", ["k"]),
        ([], ["k"]),
        ([1.5], ["k"]),
        ([["a", "b"]], ["k"]),
        (["a"], ["k", "l"]),
        (["a", 1], ["k"]),
        ([{"a": 1}], ["k"]),
        (pa.array(["a"]), ["k", "l"]),
        (pa.table({"other": ["a"]}), ["k"]),
        ("missing.csv", ["k"]),
        ("keys.xlsx", ["k"]),
        (Path(__file__).parent, ["k"]),
    ],
)
def test_what_is_no_list_of_keys_is_refused(keys: Any, by: list[str]) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        public_keys_of(keys, by)

    assert error.value.pointer == "public_keys"


VIEWS = pa.table({"user_id": ["u", "v"], "country": ["DE", "FR"], "n": [1, 2]})
COPY = pa.table({name: VIEWS[name].to_pylist() for name in VIEWS.column_names})


@pytest.mark.parametrize(
    ("events", "keys", "by"),
    [
        (VIEWS, VIEWS, "country"),
        (VIEWS, VIEWS["country"], "country"),
        (VIEWS, VIEWS.select(["country"]), "country"),
        (VIEWS, COPY, "country"),
        (VIEWS, COPY.rename_columns(["User_ID", "country", "n"]), "country"),
        *((frame, frame, "country") for frame in [VIEWS.to_pandas(), polars.from_arrow(VIEWS)]),
        *((frame, frame["n"], "n") for frame in [VIEWS.to_pandas(), polars.from_arrow(VIEWS)]),
        (VIEWS.to_pandas(), COPY.to_pandas(), "country"),
        ("events.parquet", "events.parquet", "country"),
        ("events.parquet", "folder/../link.parquet", "country"),
        (["events.parquet", "more.parquet"], Path("more.parquet"), "country"),
        ("*.parquet", "more.parquet", "country"),
        ("m*.parquet", "m*.parquet", "country"),
        ("folder", "folder/deep/some.parquet", "country"),
        ("folder", "folder", "country"),
        ("file://{}/more.parquet", "more.parquet", "country"),
        ("missing.parquet", "events.parquet", "country"),
        ("missing.parquet", "events.csv", "country"),
        ("missing.parquet", "events.tsv", "country"),
        ("missing.parquet", VIEWS, "country"),
    ],
)
@pytest.mark.parametrize("is_several", [True, False])
def test_keys_must_not_come_from_the_events(
    events: Any, keys: Any, by: str, is_several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    pq.write_table(VIEWS, "events.parquet")
    for name in ("more.parquet", "folder/deep/some.parquet"):
        pq.write_table(VIEWS.select(["country"]), name)
    (tmp_path / "link.parquet").symlink_to("events.parquet")
    (tmp_path / "events.csv").write_text("n,user_id,country\n1,u,DE\n")
    (tmp_path / "events.tsv").write_text("n\tuser_id\tcountry\n1\tu\tDE\n")
    events = events.format(tmp_path) if isinstance(events, str) else events
    table = gsh.Table(by=by, public_keys=keys, c_u=1)
    asked: dict[str, Any] = {"tables": {"t": table}} if is_several else {"by": by, "public_keys": keys, "c_u": 1}

    with pytest.raises(gsh.InvalidParameter, match="must not come from the events: a list of the groups that") as error:
        gsh.publish(events, user="user_id", **asked, epsilon=1, delta=1e-6)

    assert error.value.pointer == ("tables/t/public_keys" if is_several else "public_keys")


@pytest.mark.parametrize("keys", [COPY["country"], COPY.select(["country"]), "countries.csv", ["DE", "FR"]])
def test_keys_with_the_values_of_the_events_are_fine(
    keys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where a list comes from is asked, never what the events are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "countries.csv").write_text("country\nDE\nFR\n")

    private = gsh.publish(VIEWS, user="user_id", by="country", public_keys=keys, c_u=1, epsilon=1, delta=1e-6)

    assert private.table["country"].to_pylist() == ["DE", "FR"]


@pytest.mark.parametrize(
    ("keys", "kind", "is_fine"),
    [
        (["a"], "string", True),
        (["a"], "integer", True),
        ([1], "string", True),
        ([1], "integer", True),
        ([1], "decimal(10,2)", True),
        ([None], "date", True),
        ([True], "boolean", True),
        ([decimal.Decimal("1.5")], "decimal(10,2)", True),
        ([datetime.datetime(2026, 11, 16)], "timestamp", True),
        ([1], "date", False),
        ([True], "string", False),
        ([decimal.Decimal("1.5")], "integer", False),
        ([datetime.datetime(2026, 11, 16)], "date", False),
        ([datetime.datetime(2026, 11, 16)], "timestamptz", False),
        ([str(uuid.uuid4())], "uuid", True),
    ],
)
def test_listed_values_must_be_able_to_mean_those_of_the_column(keys: Any, kind: str, is_fine: bool) -> None:
    listed = public_keys_of(keys, ["k"])
    if is_fine:
        listed_kinds(listed, [kind])
    else:
        with pytest.raises(gsh.InvalidParameter, match=r"^public_keys/0: must be of the type of the key column"):
            listed_kinds(listed, [kind])
