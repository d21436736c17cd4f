"""gsh demo, plan, publish, preview and bound."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from docs.generate.transcripts import README
from tests.gsh.cli.running import ROOT, in_terminal, run, run_process

pytestmark = pytest.mark.slow

PLAN = "--user user_id --by url,country --sum likes=0:1"


def test_the_story_of_the_readme_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    install, *commands = (line.partition("#")[0].strip() for line in block.splitlines())

    assert install == "pip install '.[duckdb]'"
    for command in commands:
        ran = run(command.removeprefix("gsh ").replace("--users 200000", "--users 2000"))
        assert ran.code == 0, ran.errors
    assert pq.read_table("private.parquet").column_names == ["url", "country", "count", "likes"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "events.parquet"
    assert run("demo", path, "--users", 2000).code == 0
    return path


def test_the_demo_is_the_same_for_the_same_seed_and_skewed(events: Path, tmp_path: Path) -> None:
    for name, seed in (("same", 0), ("other", 1)):
        assert run("demo", tmp_path / f"{name}.parquet", "--users", 2000, "--seed", seed).code == 0
    first, same, other = (
        pq.read_table(path) for path in (events, tmp_path / "same.parquet", tmp_path / "other.parquet")
    )

    assert first == same
    assert first != other
    assert first["user_id"].null_count > 0
    pages = first["url"].value_counts().field("counts").to_pylist()
    assert max(pages) > 50 * sorted(pages)[len(pages) // 2]


def test_the_demo_replaces_nothing(events: Path) -> None:
    ran = run("demo", events)

    assert ran.code == 2
    assert "exists already" in ran.errors


def test_publish_writes_a_table_with_its_certificate(events: Path, tmp_path: Path) -> None:
    target = tmp_path / "private.parquet"
    ran = run(f"publish {events} {PLAN} --c-u 8 --epsilon 1 --delta 1e-6 -o {target}")

    assert ran.code == 0, ran.errors
    table = pq.read_table(target)
    assert table.column_names == ["url", "country", "count", "likes"]
    assert json.loads(table.schema.metadata[b"certificate"])["bounds"]["enforced_by"] == "gsh.duckdb"
    assert "nothing keeps count" in ran.text
    assert ran.text.endswith("certificate in the metadata of the file\n")
    again = run(f"publish {events} {PLAN} --c-u 8 --epsilon 1 --delta 1e-6 -o {target}")
    assert again.code == 2
    assert "--output" in again.errors


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ("--by user_id", "--by"),
        ("--by nothing", "--by"),
        ("--sum likes=1:0", "--sum"),
        ("--cap likes=9", "--cap"),
        ("--sum seconds=0:600", "--sum-unit"),
        ("--events views=0", "--events views: must be at least 1"),
        ("--events views", "--events: must be NAME=N"),
        ("--count url", "--by: must have unique names, other than url"),
        ("--count user_id", "--count: must not be the user column"),
        ("--events likes=1", "--events likes: must be a name that sums lack"),
        ("--once week", "--once"),
        ("--memory much", "--memory"),
        ("--type url=text", "--type"),
    ],
)
def test_mistakes_name_the_option(change: str, option: str, events: Path, tmp_path: Path) -> None:
    given = "--user user_id --by url,country" if "--sum likes" in change else PLAN
    ran = run(f"publish {events} {given} --c-u 8 --epsilon 1 --delta 1e-6 -o {tmp_path / 'x.csv'} {change}")

    assert ran.code == 2
    assert option in ran.errors
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_that_the_shell_has_expanded_is_explained(events: Path, tmp_path: Path) -> None:
    answer = run(f"publish {events} {events} --user user_id --by url -o {tmp_path / 'o.parquet'}")

    assert answer.code == 2
    assert "a pattern of files stands in quotes, such as 'day-*.parquet'" in answer.errors


def test_the_preview_warns_and_agrees_with_its_page(events: Path, tmp_path: Path) -> None:
    page = tmp_path / "preview.html"
    asked = f"preview {events} {PLAN} --c-u 1,4,100000000 --epsilon 1 --delta 1e-6 --html {page} --events views=4"
    ran, plain = run(f"{asked} --json"), run(f"{asked} --force")

    kept = ran.document["kept"]
    assert [each["c_u"] for each in kept] == [1, 4, 10**8]
    assert kept[0]["bounded"] < kept[1]["bounded"] < kept[2]["bounded"] == 1
    assert all(0 <= each["published"] <= each["bounded"] for each in kept)
    assert "not private" in ran.document["warning"]
    assert "--unprotected" in plain.errors
    text = page.read_text()
    assert "not private" in text
    assert "http" not in text
    for each in kept:
        assert f"{each['bounded']:.1%}" in text
        assert f"{each['bounded']:.1%}" in plain.text
        clips = [one for one in each["clips"] if one["column"] == "views"]
        assert [one["upper"] for one in clips] == [1, 2, 4, 8, 16]
        assert sorted(one["clipped"] for one in clips) == [one["clipped"] for one in reversed(clips)]
    everything = [f"{one['bias']:.1%}" for one in kept[-1]["clips"]]  # that of the others depends on their lots
    assert all(bias in text and bias in plain.text for bias in everything)


def test_bound_prints_a_query_that_runs(events: Path) -> None:
    asked = f"bound --dialect duckdb --from views {PLAN} --c-u 3 --tau 2 --salt {'0' * 32}"
    query = run(asked).text
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW views AS SELECT * FROM '{events}'")
        rows = connection.execute(query).fetchall()
        ((users,),) = connection.execute("SELECT COUNT(DISTINCT user_id) FROM views").fetchall()

    assert sum(row[2] for row in rows) <= 3 * users
    assert min(row[2] for row in rows) >= 2
    assert run(asked).text == query
    assert "not executed here" in run(asked.replace("duckdb", "bigquery")).text


def test_bound_adds_noise_and_threshold_for_presto() -> None:
    """Numbers or a file say the noise."""
    asked = f"bound --from views --user u --by url --c-u 3 --tau 2 --salt {'0' * 32} --dialect"
    query = run(f"{asked} presto --sigma 4 --tau-star 30").text

    assert 'noisy_count_gaussian(1, 4.0) AS "count"' in query
    assert 'WHERE "count" >= 31;' in query
    assert "--mechanism: must be omitted for trino" in run(f"{asked} trino --sigma 4 --tau-star 30").errors


def test_the_number_of_events_is_an_option_of_every_command_that_bounds(events: Path, tmp_path: Path) -> None:
    asked = f"{events} --user user_id --by url --events views=2 --epsilon 1 --delta 1e-6"
    ran = run(f"publish {asked} --c-u 2 --cap views=1 --count people -o {tmp_path / 'x.parquet'} --json")
    small, plain = (run(f"preview {each} --c-u 2 --json") for each in (asked, asked.replace("--events views=2", "")))
    query = run("bound --dialect duckdb --user user_id --by url --events views=2 --count people --c-u 2").text

    assert ran.code == 0, ran.errors
    assert pq.read_table(tmp_path / "x.parquet").column_names == ["url", "people", "views"]
    assert ran.document["plan"]["measures"][0]["groups"] == 1
    assert small.document["kept"][0]["sigma"] > plain.document["kept"][0]["sigma"]
    assert "-- views: the number of records, at most 2 per user and group." in query
    assert 'COUNT(*) AS "people"' in query


def test_a_terminal_shows_the_stages(events: Path, tmp_path: Path) -> None:
    """The bar is on standard error, and the last line on standard output."""
    arguments = f"publish {events} {PLAN} --c-u 8 --epsilon 1 --delta 1e-6 -o {tmp_path / 'private.csv'}".split()
    command = shlex.join([sys.executable, "-m", "gsh.cli", *arguments])
    shown = in_terminal(["bash", "-c", f"{command} 2>&1 >{tmp_path}/said"])

    for stage in ("Opening", "Bounding", "Noise", "Writing"):
        assert stage in shown
    assert "100%" in shown
    assert re.fullmatch(r"\d+ groups? published in .*certificate\.json\n", (tmp_path / "said").read_text())


@pytest.mark.parametrize("unit", ["2^-10", "2**-10", "0.0009765625"])
def test_a_unit_can_be_written_as_a_power_of_two(unit: str, events: Path) -> None:
    asked = (
        f"bound --dialect duckdb --user user_id --by url --sum seconds=0:600 --c-u 3 --sum-unit seconds={unit} --json"
    )

    assert run(asked).document["plan"]["sums"][0]["unit"] == 2**-10


def test_without_duckdb_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise ModuleNotFoundError(name='duckdb')")
    for command in ("publish", "preview"):
        ran = run_process(
            *f"{command} x.parquet --user u --by k --c-u 3 --epsilon 1 --delta 1e-6".split(),
            *(["-o", "y.csv"] if command == "publish" else []),
            PYTHONPATH=f"{tmp_path}:{ROOT}",
        )

        assert ran.code == 1
        assert ran.errors == "gsh: gsh.publish needs DuckDB: pip install 'gaussian-sparse-histogram[duckdb]'\n"


TOML = """
user = "user_id"
epsilon = 1
delta = 1e-6
rest = true
names = { count = "people" }
[tables.by_country]
by = "country"
c_u = 4
public_keys = "countries.csv"
[tables.detail]
by = ["url", "country"]
c_u = 8
share = 2
sums = { likes = [0, 1], seconds = [0, 600] }
events = { views = 20 }
units = { seconds = "2^-10" }
caps = { likes = 4 }
"""


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_several_tables_are_published_by_a_plan(ending: str, events: Path, tmp_path: Path) -> None:
    """A file of keys is found from the folder of the plan."""
    (tmp_path / "plans").mkdir()
    plan, place = tmp_path / "plans" / f"plan.{ending}", tmp_path / "private"
    plan.write_text(TOML if ending == "toml" else json.dumps(tomllib.loads(TOML)))
    (tmp_path / "plans" / "countries.csv").write_text("country\nDE\nAtlantis\n")
    ran = run(f"publish {events} --tables {plan} -o {place} --json")

    assert ran.code == 0, ran.errors
    names = {"by_country.parquet", "by_country_rest.parquet", "detail.parquet", "certificate.json", "plan.json"}
    assert {path.name for path in place.iterdir()} == names
    assert sorted(pq.read_table(place / "by_country.parquet")["country"].to_pylist()) == ["Atlantis", "DE"]
    assert pq.read_table(place / "detail.parquet").column_names[2:] == ["people", "likes", "seconds", "views"]
    said = json.loads((place / "certificate.json").read_bytes())
    assert ran.document["certificate"] == said
    assert ran.document["tables"]["by_country"] == 2
    assert ran.document["plan"] == json.loads((place / "plan.json").read_bytes())
    again = run(f"publish {events} --tables {plan} -o {place}")
    assert (again.code, "--output" in again.errors) == (2, True)
    assert "tables published" in run(f"publish {events} --tables {plan} -o {place} --force").text


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("", "more = 1\n", "more: is not a field"),
        ("c_u = 8", "cu = 8", "--tables detail/cu: is not a field; the fields are by, c_u"),
        ("c_u = 8", "", "--tables detail/c_u: must be given"),
        ('user = "user_id"', "", "--tables user: must be in the file"),
        ("likes = [0, 1]", "likes = [1, 0]", "--tables detail/sums/likes: must have a lower bound"),
        ("views = 20", "views = 0", "--tables detail/events/views: must be at least 1"),
        ("{ views = 20 }", '"views"', "--tables detail/events: must map a name to the most events"),
        ("countries.csv", "missing.csv", "--tables by_country/public_keys: must be a file that exists"),
        ("share = 2", "share = 0", "--tables detail/share"),
        ("epsilon = 1", "epsilon = ", "--tables: must be TOML: see line"),
        ('by = "country"', 'by = "land"', "--tables by_country/"),
    ],
)
def test_a_mistake_in_a_plan_has_its_place(before: str, after: str, place: str, events: Path, tmp_path: Path) -> None:
    changed = after + TOML if not before else TOML.replace(before, after, 1)
    (tmp_path / "plan.toml").write_text(changed)
    (tmp_path / "countries.csv").write_text("country\nDE\n")
    ran = run(f"publish {events} --tables {tmp_path / 'plan.toml'} -o {tmp_path / 'private'}")

    assert ran.code == 2
    assert place in ran.errors
    assert not (tmp_path / "private").exists()


def test_options_of_one_table_and_a_plan_exclude_each_other(events: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(f'budget = "web"\n{TOML}')
    common = f"publish {events} --tables {tmp_path / 'plan.toml'} -o {tmp_path / 'private'}"

    for extra in ("--by url", "--epsilon 1", "--count people", "--sum likes=0:1", "--events views=2", "--budget app"):
        ran = run(f"{common} {extra}")
        assert (ran.code, extra.split()[0] in ran.errors) == (2, True)
    for missing in ("--user u --by url", "--user u --c-u 1", "--by url --c-u 1"):
        assert "is missing" in run(f"publish {events} {missing} -o x.csv").errors


def test_public_keys_of_one_table_come_from_a_file(events: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("country\nDE\nAtlantis\n")
    common = f"publish {events} --user user_id --c-u 2 --epsilon 1 --delta 1e-6 -o {tmp_path / 'x.parquet'}"
    ran = run(f"{common} --by country --public-keys {tmp_path / 'keys.csv'}")

    assert ran.code == 0, ran.errors
    assert sorted(pq.read_table(tmp_path / "x.parquet")["country"].to_pylist()) == ["Atlantis", "DE"]
    assert "--public-keys" in run(f"{common} --by url --public-keys {tmp_path / 'keys.csv'} --force").errors


def test_a_plan_to_start_from_can_be_published(events: Path, tmp_path: Path) -> None:
    ran = run("plan", events)
    (tmp_path / "plan.toml").write_text(ran.text)

    assert ran.code == 0, ran.errors
    assert run("plan", events, "--json").document == tomllib.loads(ran.text)
    published = run(f"publish {events} --tables {tmp_path / 'plan.toml'} -o {tmp_path / 'private'}")
    assert published.code == 0, published.errors
    complete = re.sub(r"^# (sums|events|units|rest|tau|share)", r"\1", ran.text, flags=re.MULTILINE)
    (tmp_path / "plan.toml").write_text(complete)
    published = run(f"publish {events} --tables {tmp_path / 'plan.toml'} -o {tmp_path / 'more'}")
    assert published.code == 0, published.errors
    (tmp_path / "events.csv").write_text('"a ""b""",user\nx,y\n')
    (tmp_path / "lines.jsonl").write_text('{"user": "a", "page": "x"}\n')
    for name in ("events.csv", "lines.jsonl"):
        assert tomllib.loads(run("plan", tmp_path / name).text)["user"] == "user"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough users for a survey."""
    path = tmp_path_factory.mktemp("many") / "events.parquet"
    assert run("demo", path, "--users", 12_000).code == 0
    return path


def test_a_survey_is_a_chart_with_its_choice(many: Path, tmp_path: Path) -> None:
    asked = f"survey {many} --user user_id --by url --epsilon 1 --delta 1e-6"
    ran, document = run(f"{asked} --html {tmp_path}/survey.html"), run(f"{asked} --json")

    assert ran.code == document.code == 0, ran.errors
    assert ran.text.startswith("groups of a user, noise 42.")
    assert re.search(r"\nC_u = \d+: about [\d.]+% of pairs are dropped; \d+ would cost 41 % more noise\n$", ran.text)
    assert "nothing keeps count" in ran.errors
    assert (tmp_path / "survey.html").read_text().count("<svg") == 1
    (bound,) = json.loads(document.output)["bounds"]
    assert json.loads(document.output)["chosen"][0].startswith(f"C_u = {bound['bound']:.0f}: ")
    assert json.loads(document.output)["certificate"]["hazard"] == 0
    assert len(json.loads(document.output)["histograms"][0]["intervals"]) == 21


def test_publish_takes_bounds_from_a_survey(many: Path, tmp_path: Path) -> None:
    asked = (
        f"--user user_id --by url --c-u survey --sum likes=survey:4 --epsilon 1 --delta 1e-6 -o {tmp_path}/a.parquet"
    )
    ran = run(f"publish {many} {asked} --expected-users 12000 -o {tmp_path}/a.parquet")

    assert ran.code == 0, ran.errors
    assert re.search(r"gsh: C_u = \d+: ", ran.errors)
    assert "gsh: likes: 0 to " in ran.errors
    file = tmp_path / "plan.toml"
    file.write_text(
        'user = "user_id"\nepsilon = 1\ndelta = 1e-6\nsurvey = 0.02\n'
        '[tables.by_url]\nby = ["url"]\nc_u = "survey"\nsums = { likes = ["survey", 4] }\n'
    )
    several = run(f"publish {many} --tables {file} -o {tmp_path}/private --json")
    assert several.code == 0, several.errors
    assert [each["table"] for each in json.loads(several.output)["survey"]["bounds"]] == ["by_url", "by_url"]
    assert json.loads(several.output)["certificate"]["unprotected"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--c-u surveys", "--c-u: must end with a number"),
        ("--c-u survey:0", "--c-u: must be from 1"),
        ("--c-u 4 --survey-share 0.01", "--survey-share: must be omitted unless"),
        ("--c-u survey --survey-share 2", "--survey-share: must be greater than 0"),
        ("--c-u 4 --expected-users 5", "--expected-users: must be omitted unless"),
    ],
)
def test_wrong_words_about_a_survey_name_the_option(change: str, message: str, events: Path, tmp_path: Path) -> None:
    ran = run(f"publish {events} --user user_id --by url {change} --epsilon 1 --delta 1e-6 -o {tmp_path}/a.parquet")

    assert ran.code == 2
    assert message in ran.errors
