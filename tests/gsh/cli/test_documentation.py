"""docs/cli.md is true: its tables are the code's, its commands write what it shows, and every example runs."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.generate.command_reference import ADDRESS, CLI, commands_of, masked, outputs, reference, shell, shown, written
from docs.generate.terminal import FIGURE, description, recorded
from gsh.cli.files import _FORMATS
from gsh.histogram.file_formats import EXTENSIONS
from tests.app.process import Service
from tests.gsh.cli.running import run

NOT_RUN = {"gsh serve", "gsh openapi", "gsh approvals approve", "gsh approvals refuse", "gsh verify"}
"""These have tests of their own, as processes, with several access keys, or with signed files."""
LARGE = "--users users --keys url,country --c-u 16 --tau-star 1000 --sigma 100"


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running


def test_the_tables_are_those_of_the_code() -> None:
    text = CLI.read_text()

    assert written(text) == text, "python -m docs.generate writes them again"


def test_every_format_is_listed() -> None:
    rows = re.findall(r"(?m)^\| (`\..*?) \| `(\w+)` \|", CLI.read_text())

    documented = {extension: name for found, name in rows for extension in re.findall(r"`(\.\w+)`", found)}
    assert {extension: _FORMATS[name] for extension, name in documented.items()} == EXTENSIONS


@pytest.mark.slow
def test_every_command_shown_writes_what_is_shown(service: Service, tmp_path: Path) -> None:
    """To the last digit, unless noise is in it or a ledger."""
    asked = shown()
    assert len(asked) > 8

    for each, ran in zip(asked, outputs(tmp_path, service.url, asked), strict=True):
        if ran is None:
            assert each.command.startswith("gsh serve")
        elif any(name in each.command for name in ("release", "budgets", "intervals")):
            assert masked(ran.text) == masked(each.output) or not each.output, each.command
        else:
            assert ran.text.rstrip() == each.output, each.command


def test_a_changed_output_would_be_found() -> None:
    assert masked("a  1.5\nb  2e-6") == masked("a  7\nb 3")
    assert masked("a  1.5") != masked("b  1.5")
    assert masked("a 1 2") != masked("a 1")


def test_every_command_has_help_and_an_example() -> None:
    for name, command in commands_of().items():
        assert command.help, name
        assert f"{command.epilog} ".startswith(f"Example:  {name} "), name
        assert all(each.help for each in command.params if each.name != "help"), name
    assert set(commands_of()) == set(re.findall(r"(?m)^### (gsh .*)$", reference()))


@pytest.mark.slow
def test_every_example_runs(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the commands, in one folder, with one service and one ledger. Fewer people need less time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GSH_URL", service.url)
    monkeypatch.setenv("GSH_LEDGER", str(tmp_path / "ledger.sqlite3"))
    groups = pa.table({"url": ["a.org"], "country": ["US"], "users": [61004]})
    pq.write_table(groups, "groups.parquet")
    Path("heads.jsonl").touch()
    run("keys create --scope admin")
    (first,) = run("keys list --json").document
    examples = {name: command.epilog.partition("Example:  ")[2] for name, command in commands_of().items()}
    # What is made comes before what is shown.
    order = sorted(examples, key=lambda name: (name != "gsh calibrate", "put" not in name))
    paid = f"release groups.parquet {LARGE} --budget web --once web-2026-W46 -o paid.csv"

    for name in order:
        if name in NOT_RUN:
            continue
        example = examples[name].replace("4f1c2a9b", first["id"]).replace(ADDRESS, service.url)
        example = example.replace("--users 200000", "--users 20000")
        if "-o private.parquet" in example:
            Path("private.parquet").unlink(missing_ok=True)
        assert shell(example, service.url).code == 0, example
        if name == "gsh budgets put":
            assert run(paid).code == 0

    assert json.loads(Path("mechanism.json").read_text())["solved"] == ["sigma", "tau_star"]


@pytest.mark.parametrize("name", commands_of())
def test_help_is_written_for_every_command(name: str) -> None:
    answer = run(*shlex.split(name)[1:], "--help")

    assert answer.code == 0
    assert "Example:" in answer.text
    assert "--json" in answer.text or name in {"gsh ledger checkpoint", "gsh serve", "gsh openapi"}


@pytest.mark.slow
def test_the_picture_of_a_terminal_is_of_these_commands() -> None:
    """Its text is what the session writes now, except for numbers; and it loads nothing."""
    picture = FIGURE.read_text()
    text = html.unescape(re.findall(r'<desc id="text">(.*?)</desc>', picture, re.DOTALL)[0])

    assert masked(text) == masked(description(recorded())), "python -m docs.generate.terminal draws it again"
    assert re.findall(r"https?://\S+", picture.replace("http://www.w3.org/2000/svg", "")) == []
    assert "url(" not in picture.replace("url(#", "")
