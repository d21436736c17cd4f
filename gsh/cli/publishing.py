"""gsh publish: raw events in, a private table with its certificate out."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gsh
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import read_json
from gsh.cli.options import (
    Caps,
    Force,
    MechanismFile,
    Once,
    PaidBy,
    Sums,
    Tau,
    Unprotected,
    Weights,
    columns_of,
    mechanism_in,
)
from gsh.cli.output import AsJson, colours, line, show
from gsh.cli.planning import By, ColumnTypes, EventsPath, Memory, Units, User, planned
from gsh.library.signals import ended_by_signals

if TYPE_CHECKING:
    from gsh.events.published import OnProgress, Progress, Published

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  gsh publish events.parquet --user user_id --by url,country --sum likes=0:1 --c-u 16 --epsilon 1 "
    "--delta 1e-6 -o private.parquet"
)
def publish(
    events: EventsPath,
    user: User,
    by: By,
    c_u: Annotated[int, typer.Option("--c-u", metavar="N", help="C_u: the most groups that one user can touch.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The private table: Parquet, Arrow or CSV.")
    ],
    epsilon: Annotated[float | None, typer.Option("--epsilon", metavar="X", help="ε of the target.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", metavar="X", help="δ of the target.")] = None,
    releases: Annotated[
        int | None,
        typer.Option(
            "--releases",
            metavar="N",
            help="Instead of a target: the smallest noise with which N equal releases fit the rest of the budget.",
        ),
    ] = None,
    most_sigma: Annotated[
        float | None,
        typer.Option(
            "--most-sigma",
            metavar="X",
            help="With --releases: refuse a larger σ. By default: refuse if less than half of a usual release is left.",
        ),
    ] = None,
    sums: Sums = None,
    units: Units = None,
    caps: Caps = None,
    weights: Weights = None,
    tau: Tau = None,
    mechanism: MechanismFile = None,
    types: ColumnTypes = None,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="TEXT", help="The privacy unit; user if not given.")
    ] = None,
    unprotected: Unprotected = None,
    budget: PaidBy = None,
    once: Once = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = 6,
    memory: Memory = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Publish raw events: bound each user, count the groups, add noise, drop small groups, and certify.

    In this process with DuckDB. With --budget and --once a service adds the noise and charges it exactly once.
    """
    arguments = planned(user, by, sums, units, caps, types) | {"c_u": c_u, "tau": 1 if tau is None else tau}
    arguments |= {"weights": columns_of(sums, caps, weights)["weights"]}
    arguments |= {"epsilon": epsilon, "delta": delta, "releases": releases, "most_sigma": most_sigma}
    if mechanism is not None:
        arguments["mechanism"] = mechanism_in(read_json(mechanism, "--mechanism"))
    arguments |= {"privacy_unit": unit, "unprotected": unprotected or (), "to": output, "overwrite": force}
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        if budget is not None or service is not None:
            paid = {
                "service": stack.enter_context(connected(service, key_file, retries)),
                "budget": budget,
                "once": once,
            }
            arguments |= paid
        elif once is not None:
            raise Refusal(Code.INVALID, "--once: needs a service", "add --budget ID and --service URL")
        arguments["progress"] = stack.enter_context(_bar())
        published = gsh.publish(events, memory_limit=memory, **arguments)
    _tell(published, output, as_json=as_json)


def _tell(published: "Published", output: str, *, as_json: bool) -> None:
    """The document for programs, or the last line for people."""
    if as_json:
        document = {"output": output, "groups": published.groups, "certificate": published.certificate}
        replay = {"is_replayed": published.is_replayed, "released_at": published.released_at}
        show({**document, **replay, "plan": published.plan.to_json()}, as_json=True)
    else:
        line(published.summary())


@contextmanager
def _bar() -> "Iterator[OnProgress]":
    """A progress bar with the stages, on standard error. Nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich import progress  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    shown = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*shown, console=Console(stderr=True, color_system=colours()), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(step: "Progress") -> None:
            if step.stage not in tasks:
                for task in tasks.values():
                    bar.update(task, total=1, completed=1)
                tasks[step.stage] = bar.add_task(step.stage.capitalize(), total=step.total)
            bar.update(tasks[step.stage], completed=step.done)

        yield report
