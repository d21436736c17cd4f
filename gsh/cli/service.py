"""The commands of the service, if it is installed. Its distribution names them, so no module of it is named here."""

from importlib.metadata import PackageNotFoundError, distribution

import typer

from gsh.cli.errors import Code, Refusal

__all__ = ["add_commands"]

_DISTRIBUTION = "gaussian-sparse-histogram-service"
_GROUP = "gsh.commands"
_MISSING = ("serve", "keys", "verify", "openapi")
"""The commands that say how to install it."""
_TAKES_EVERYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_commands(program: typer.Typer) -> None:
    """The service's own commands, or in their place commands that say that it is not installed."""
    try:
        found = distribution(_DISTRIBUTION).entry_points.select(group=_GROUP)
        loaded = [each.load() for each in found]
    except (PackageNotFoundError, ImportError):  # a damaged service does not stop the commands of the library
        missing = typer.Typer()
        for name in _MISSING:
            missing.command(name, context_settings=_TAKES_EVERYTHING, add_help_option=False)(_refuse)
        loaded = [missing]
    for each in loaded:
        program.add_typer(each)


def _refuse() -> None:
    """(The service is not installed.)"""
    raise Refusal(Code.OTHER, "the service is not installed", "in a checkout: pip install . ./service")
