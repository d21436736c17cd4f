"""The README is true: its commands give the output shown, its tables are the code's."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.api.problems import _INFEASIBLE, _KINDS, _LIMIT, _NO_FORM
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


def post(path: str, content: str) -> Any:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post(path, content=content, headers={"Content-Type": "application/json"})

    return asyncio.run(send()).json()


@pytest.mark.parametrize(("command", "path", "body", "output"), COMMANDS, ids=[row[1] for row in COMMANDS])
def test_each_curl_command_prints_what_is_shown(command: str, path: str, body: str, output: str) -> None:
    """To the last digit, but for what is random or the time."""
    assert "-H 'Content-Type: application/json'" in command
    answers = [post(path, body), json.loads(output)]
    if path == "/release":
        for answer in answers:
            assert all(
                abs(noisy - true) < 25_000
                for noisy, true in zip(answer["groups"]["counts"], (61004, 48211), strict=True)
            )
            answer["groups"]["counts"] = len(answer["groups"]["counts"])
            answer["certificate"] |= {"release_id": None, "released_at": None}

    assert answers[0] == answers[1]


def test_the_curl_command_for_a_table_works(tmp_path: Path) -> None:
    """Its form, sent as curl would."""
    (path, output), form = re.findall(r"(/release/table) -o (\S+)", README)[0], README.partition("-F 'request=")[2]
    request, _, rest = form.partition(";type=application/json' \\\n  -F table=@")
    assert (output, rest.partition("\n")[0]) == ("private.parquet", "groups.parquet")
    table = pa.table({"url": ["a.org"], "country": ["US"], "users": [48211]})

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            files = {"request": (None, request, "application/json"), "table": ("groups.parquet", as_parquet(table))}
            return await client.post(path, files=files)

    assert from_bytes(asyncio.run(send()).content)["url"].to_pylist() == ["a.org"]


def test_there_is_a_curl_command_for_every_endpoint_with_a_body() -> None:
    """Someone who has only curl can begin."""
    with_body = {path for path, item in create_app(Settings()).openapi()["paths"].items() if "post" in item}

    assert {path for _, path, _, _ in COMMANDS} | {"/release/table"} == with_body


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
    kinds = {kind.name for kind in (*_KINDS.values(), _INFEASIBLE, _LIMIT, _NO_FORM)}

    assert set(re.findall(r"`([a-z]+-[a-z-]+|busy)`", table)) == kinds


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)(.*?)\)", README))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
