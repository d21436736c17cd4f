"""gsh serve, gsh keys, gsh verify and gsh openapi: the service's own programs, under one name.

The service imports the library and never the reverse, so its modules are named here and loaded when they are asked for.
"""

import importlib
import importlib.util
import os
import runpy
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gsh.cli.errors import Code, Refusal
from gsh.cli.output import AsJson

__all__ = ["commands"]

commands = typer.Typer()
keys = typer.Typer(no_args_is_help=True, help="Create, list, rotate and revoke access keys of the ledger GSH_LEDGER.")
commands.add_typer(keys, name="keys", epilog="Example:  gsh keys create --scope release --budget web")

KeyId: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As gsh keys list shows it.")]
Expires: TypeAlias = Annotated[
    str | None, typer.Option("--expires", metavar="TIME", help="When it ends: a date or an ISO 8601 time, in UTC.")
]


class Scope(StrEnum):
    """What an access key may do. A test compares it with the service's."""

    ACCOUNT = "account"
    RELEASE = "release"
    ADMIN = "admin"


_NEEDED = ("app", "fastapi", "uvicorn", "pydantic_settings", "psycopg")


@commands.command(epilog="Example:  gsh serve --port 8000 --ledger ledger.sqlite3")
def serve(
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="GSH_HOST: where to listen.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="N", help="GSH_PORT: the port.")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="PLACE", help="GSH_LEDGER: a file. A URL with a password belongs in the variable."
        ),
    ] = None,
) -> None:
    """Run the service. All other settings are environment variables (docs/operations.md)."""
    _check_installed()
    given = {"GSH_HOST": host, "GSH_PORT": port, "GSH_LEDGER": ledger}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    # The same process goes on as the service, so that signals reach it. -P: a folder `app` here is not the service.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "app"])  # noqa: S606 - no shell, and no argument from outside


@keys.command(epilog='Example:  gsh keys create --scope release --budget web --note "weekly job" --expires 2027-01-31')
def create(
    scope: Annotated[list[Scope], typer.Option("--scope", help="What it may do. Repeatable.")],
    budget: Annotated[
        list[str] | None, typer.Option("--budget", metavar="ID", help="Bind it to a budget. Repeatable.")
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="For people.")] = "",
    expires: Expires = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key, and print it once."""
    scopes = [part for each in scope for part in ("--scope", each)]
    budgets = [part for each in budget or () for part in ("--budget", each)]
    return _run("keys", "create", *scopes, *budgets, f"--note={note}", *_given("--expires", expires), *_json(as_json))


@keys.command("list", epilog="Example:  gsh keys list")
def list_keys(as_json: AsJson = False) -> int:
    """List all access keys, without their secrets."""
    return _run("keys", "list", *_json(as_json))


@keys.command(epilog="Example:  gsh keys rotate 4f1c2a9b --overlap 7d")
def rotate(
    key_id: KeyId,
    overlap: Annotated[
        str | None, typer.Option("--overlap", metavar="TIME", help="How long the old one still works: 7d, 12h, 30m, 0.")
    ] = None,
    expires: Expires = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key in place of another, and print it once."""
    times = [*_given("--overlap", overlap), *_given("--expires", expires)]
    return _run("keys", "rotate", *times, *_json(as_json), "--", key_id)


@keys.command(epilog="Example:  gsh keys revoke 4f1c2a9b")
def revoke(key_id: KeyId, as_json: AsJson = False) -> int:
    """End an access key, within a second."""
    return _run("keys", "revoke", *_json(as_json), "--", key_id)


@keys.command(epilog="Example:  gsh keys seal")
def seal(as_json: AsJson = False) -> int:
    """Seal all access keys as they are, after you have checked the list: for a ledger with a new secret."""
    return _run("keys", "seal", *_json(as_json))


@commands.command(epilog="Example:  gsh verify --heads heads.jsonl")
def verify(
    heads: Annotated[
        Path | None, typer.Option("--heads", metavar="FILE", help="Every head in this file must still be there.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check the histories of all budgets, and the access keys, of the ledger GSH_LEDGER."""
    return _run("verify", *_given("--heads", heads), *_json(as_json))


@commands.command(epilog="Example:  gsh openapi > openapi.json")
def openapi() -> None:
    """Print the OpenAPI document of the service."""
    _check_installed()
    runpy.run_module("app.main", run_name="__main__")


def _run(module: str, *arguments: str) -> int:
    """Run a program of the service in this process. It writes its own sentences, and returns its exit code."""
    _check_installed()
    code: int = importlib.import_module(f"app.{module}").main(arguments, program=f"gsh {module}")
    return code


def _json(asked: bool) -> list[str]:
    return ["--json"] if asked else []


def _given(option: str, value: object) -> list[str]:
    return [] if value is None else [f"{option}={value}"]


def _check_installed() -> None:
    if not all(map(importlib.util.find_spec, _NEEDED)):
        hint = "in a checkout: pip install . ./service"
        raise Refusal(Code.OTHER, "the service is not installed", hint)
