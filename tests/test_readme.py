"""The README is true: its commands give the output shown, its tables are the code's."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.api.problems import KINDS
from app.main import create_app
from app.settings import Settings
from tests.release.uploads import as_parquet, from_bytes

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(
    r"```console\n(curl -s http://127\.0\.0\.1:8000(/\S+) (?:(?!```).)*?-d '(.*?)' \| python3 -m json\.tool)\n```\n"
    r"```json\n(.*?)\n```",
    README,
    re.DOTALL,
)


RANDOM = ("release_id", "released_at", "head", "at")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the service says to each command, in the order of the README, with a ledger of its own."""
    app = create_app(Settings(ledger=str(tmp_path_factory.mktemp("readme") / "ledger.sqlite3")))

    async def send(command: str, path: str, body: str) -> Any:
        transport = httpx.ASGITransport(app)
        headers = dict(re.findall(r"-H '([\w-]+): (.*?)'", command))
        method = "PUT" if " -X PUT " in command else "POST"
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.request(method, path, content=body, headers=headers)).json()

    said = [asyncio.run(send(command, path, body)) for command, path, body, _ in COMMANDS]
    app.state.services.ledger_pool.close()
    app.state.services.close_pools()
    return said


def settled(answer: Any) -> Any:
    """All of an answer but for what is random or the time."""
    if isinstance(answer, dict):
        shown = {name: None if name in RANDOM else settled(value) for name, value in answer.items()}
        if "counts" in shown:
            assert all(abs(noisy - true) < 25_000 for noisy, true in zip(shown["counts"], (61004, 48211), strict=True))
            shown["counts"] = len(shown["counts"])
        return shown
    return [settled(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("place", range(len(COMMANDS)), ids=[row[1] for row in COMMANDS])
def test_each_curl_command_prints_what_is_shown(answers: list[Any], place: int) -> None:
    """To the last digit, but for what is random or the time."""
    command, _, _, output = COMMANDS[place]
    assert "-H 'Content-Type: application/json'" in command

    assert settled(answers[place]) == settled(json.loads(output))


def test_the_curl_command_for_a_table_works(tmp_path: Path) -> None:
    """Its form, sent as curl would."""
    (path, output), form = re.findall(r"(/release/table) -o (\S+)", README)[0], README.partition("-F 'request=")[2]
    request, _, rest = form.partition(";type=application/json' \\\n  -F table=@")
    assert (output, rest.partition("\n")[0]) == ("private.parquet", "groups.parquet")
    table = pa.table({"url": ["a.org"], "country": ["US"], "users": [48211]})

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            files = {"request": (None, request, "application/json"), "table": ("groups.parquet", as_parquet(table))}
            return await client.post(path, files=files)

    assert from_bytes(asyncio.run(send()).content)["url"].to_pylist() == ["a.org"]


def test_there_is_a_curl_command_for_every_endpoint_with_a_body() -> None:
    """Someone who has only curl can begin."""
    with_body = {
        path for path, item in create_app(Settings()).openapi()["paths"].items() if item.keys() & {"post", "put"}
    }

    shown = {path.replace("/budgets/web", "/budgets/{id}") for _, path, _, _ in COMMANDS}
    assert shown | {"/release/table"} == with_body


def test_the_first_commands_are_the_two_that_do_everything() -> None:
    """make run, make test, before anything else."""
    first = re.search(r"```console\n(.*?)```", README, re.DOTALL)
    assert first is not None

    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make run", "make test"]


def test_every_make_target_that_is_mentioned_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    mentioned = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", README, re.MULTILINE))

    for target in {one or other for one, other in mentioned}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_settings_table_is_the_settings() -> None:
    """Every variable, its default and its meaning, in the code's order and words."""
    rows = re.findall(r"^\| `(GSH_\w+)` \| `(.*?)` \| (.*) \|$", README, re.MULTILINE)
    expected = []
    for name, field in Settings.model_fields.items():
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default) or "(empty)"
        expected.append((f"GSH_{name.upper()}", default, field.description))

    assert rows == expected


def test_the_error_table_has_every_type_of_problem() -> None:
    table = README.partition("## Errors")[2].partition("## ")[0]
    kinds = {kind.name for kind in KINDS}

    assert set(re.findall(r"`([a-z]+-[a-z-]+|busy)`", table)) == kinds


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)(.*?)\)", README))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
