"""The plan to start from: whatever the names of the columns are, its TOML and its JSON are one plan that works."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.errors import InvalidParameter
from gsh.events.kinds import Kind
from gsh.events.plan_file import plan_text, publication_in, started_plan
from gsh.events.tables import planned
from gsh.library.tables import Table

SALT = "0" * 32
KINDS: list[Kind | None] = ["string", "integer", "double", "boolean", "date", "decimal(10,2)", None]


def check(columns: dict[str, Kind | None], folder: Path, events: str = "events.parquet") -> dict[str, object]:
    """The plan in TOML, the same in JSON, and the one with all that comments offer can be published."""
    text = plan_text(events, columns)
    plan = started_plan(columns)
    assert tomllib.loads(text) == plan == json.loads(json.dumps(plan))
    assert text.replace("\n", "").isprintable()
    complete = re.sub(r"^# (sums|events|units|rest|tau|share)\b(?!s)", r"\1", text, flags=re.MULTILINE)
    for name, content in (("a.toml", text), ("b.json", json.dumps(plan)), ("c.toml", complete)):
        (folder / name).write_text(content, "utf-8")
        found = publication_in(folder / name)
        plans, _ = planned(found["tables"], user=found["user"] or "the user", salt=SALT)
        tables = [each.lower() for each in plans.tables]
        assert len({*tables, *(f"{each}_rest" for each in tables)}) == 2 * len(tables)
    return plan


@pytest.mark.parametrize(
    "names",
    [
        ["page.url", "page.country"],
        ['a "b"', "it's", "back\\slash"],
        ["with space", " ", "\ttab"],
        ["größe", "日本", "🙂", "\u202eevil"],
        ["x" * 80, "x" * 79 + "y"],
        ["x" * 60, "y" * 60],
        ["page", "PAGE", "Page"],
        ["count", "Count", "page"],
        ["page", "rest"],
        ["count_low", "count"],
        ["a=b", "[tables]", "#"],
        ["user", "USER_ID"],
        ["k"],
        [],
    ],
)
@pytest.mark.parametrize("kind", ["string", "double", None])
def test_odd_names_give_a_plan_that_works(names: list[str], kind: Kind | None, tmp_path: Path) -> None:
    plan = check(dict.fromkeys(["user_id", *names], "string") | dict.fromkeys(names, kind), tmp_path)

    assert plan["user"] == "user_id"


def test_a_column_with_a_dot_gives_a_table_of_one_name(tmp_path: Path) -> None:
    plan = check({"user_id": "string", "page.url": "string", "ad.likes": "integer"}, tmp_path)

    assert plan["tables"] == {"by_page_url": {"by": ["page.url"], "c_u": 16}}
    text = plan_text("events.parquet", {"user_id": "string", "page.url": "string", "ad.likes": "integer"})
    assert '# sums."ad.likes" = [0, 1]' in text


def test_long_names_give_tables_of_different_names(tmp_path: Path) -> None:
    plan = check({"user_id": "string", "x" * 80: "string", "y" * 80: "string"}, tmp_path)

    assert isinstance(plan["tables"], dict)
    assert [table["c_u"] for table in plan["tables"].values()] == [4, 16]


def test_a_user_is_a_column_that_can_be_one(tmp_path: Path) -> None:
    """Floating-point numbers cannot."""
    assert check({"user": "double", "uid": "integer", "page": "string"}, tmp_path)["user"] == "uid"


@pytest.mark.parametrize("columns", [{"key": "string"}, {"x": "double"}, {"Key": None}, {"user_id": "integer"}])
def test_too_few_columns_give_a_plan_with_other_names(columns: dict[str, Kind | None], tmp_path: Path) -> None:
    check(columns, tmp_path)


@pytest.mark.parametrize(
    "columns", [{"year": "integer", "tailnum": "string"}, {"event_id": "string", "page": "string"}]
)
def test_the_user_column_is_not_guessed_from_other_names(columns: dict[str, Kind | None], tmp_path: Path) -> None:
    """A certificate for single events, or for a year, would promise privacy to nobody."""
    assert check(columns, tmp_path)["user"] == ""
    assert 'user = ""' in plan_text("events.parquet", columns)
    assert "FILL IN" in plan_text("events.parquet", columns)
    with pytest.raises(InvalidParameter, match="user"):
        planned({"t": Table(by="page", c_u=1)}, user="", salt=SALT)


@pytest.mark.parametrize(
    "text",
    [
        '{"user": "u", "epsilon": 1, "epsilon": 500, "tables": {"t": {"by": ["a"], "c_u": 1}}}',
        '{"user": "u", "tables": {"t": {"by": ["a"], "c_u": 1, "c_u": 3}}}',
        '{"user": "u", "tables": {"t": {"by": ["a"], "c_u": 1}, "t": {"by": ["b"], "c_u": 1}}}',
    ],
)
def test_no_member_of_a_plan_is_lost_because_it_is_there_twice(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)

    with pytest.raises(InvalidParameter, match="is there twice"):
        publication_in(tmp_path / "plan.json")


def test_a_plan_may_begin_with_a_mark_and_has_a_bounded_size(tmp_path: Path) -> None:
    text = plan_text("events.parquet", {"user_id": "string", "page": "string"})
    (tmp_path / "plan.toml").write_text("\ufeff" + text, "utf-8")
    assert publication_in(tmp_path / "plan.toml")["user"] == "user_id"

    (tmp_path / "plan.toml").write_text("#" * (1 << 20) + "\n")
    with pytest.raises(InvalidParameter, match="at most 1048576 bytes"):
        publication_in(tmp_path / "plan.toml")


def test_a_plan_is_not_read_from_a_device() -> None:
    with pytest.raises(InvalidParameter, match="plain file"):
        publication_in(Path("/dev/zero"))


def test_the_path_of_the_events_cannot_end_the_comment(tmp_path: Path) -> None:
    check({"user": "string", "page": "string"}, tmp_path, "a\nuser = 3\x1b[2J.csv")


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=80), st.sampled_from(KINDS), max_size=6))
def test_any_names_give_a_plan_that_works(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, Kind | None]
) -> None:
    check(columns, tmp_path_factory.getbasetemp())
