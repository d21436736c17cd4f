"""gsh demo, plan and publish: made-up events to start with, and private tables with a certificate from raw events."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gsh
from gsh.cli import options
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, paying
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE
from gsh.cli.output import AsJson, Sheet, line, note, progress_bar, show, working
from gsh.histogram.file_formats import EXTENSIONS
from gsh.library.whole_files import ended_by_signals

if TYPE_CHECKING:
    from gsh.events.published import OnProgress, Progress, Published

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh demo events.parquet --users 200000")
def demo(
    path: Annotated[str, typer.Argument(metavar="FILE", help="The Parquet file to write.")],
    users: Annotated[int, typer.Option("--users", metavar="N", help="How many users.")] = 200_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same number gives the same events.")] = 0,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """Write made-up events with the skew of real ones: few popular pages, few very active users, missing values."""
    from gsh.events.demo import SCHEMA, write_demo  # noqa: PLC0415 - loads pyarrow

    target = Path(path)
    if EXTENSIONS.get(target.suffix.lower()) != "parquet":
        raise Refusal(Code.INVALID, f"{path}: must end with .parquet", "such as events.parquet")
    if target.exists() and not force:
        raise Refusal(Code.INVALID, f"{path}: exists already", "choose another name, or add --force")
    with working("Writing events"):
        events = write_demo(target, users, seed)
    rows = [["output", path], ["events", str(events)], ["columns", ", ".join(SCHEMA.names)]]
    document = {"output": path, "events": events, "users": users, "seed": seed}
    show(document, Sheet(("made up", ""), rows), as_json=as_json)


@commands.command(
    epilog="Example:  gsh publish events.parquet --user user_id --by url,country --sum likes=0:1 --c-u 16 --epsilon 1 "
    "--delta 1e-6 -o private.parquet"
)
def publish(
    data: options.EventsPath,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The private table: Parquet, Arrow or CSV. With --tables: a folder for all tables.",
        ),
    ],
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="Several tables in one release: a plan in TOML or JSON, in place of the options that describe one. "
            "gsh plan prints one to start from.",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="COLUMN", help="The column with the user.")] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMNS", help="The columns of the group key, with commas between them."),
    ] = None,
    c_u: options.SurveyedC_U = None,
    public_keys: options.PublicKeys = None,
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
            help="Refuse a larger σ: 10⁶ if not given, and then --releases needs half of a usual release.",
        ),
    ] = None,
    expected_users: options.ExpectedUsers = None,
    survey_share: options.SurveyPart = None,
    sums: options.Sums = None,
    events: options.NumberOfEvents = None,
    means: options.Means = None,
    ratios: options.Ratios = None,
    rounded: options.Rounded = False,
    units: options.Units = None,
    caps: options.Caps = None,
    weights: options.Weights = None,
    tau: options.Tau = None,
    mechanism: options.MechanismFile = None,
    mechanism_of: options.MechanismOf = None,
    count: options.CountName = None,
    types: options.ColumnTypes = None,
    unit: options.PrivacyUnit = None,
    unprotected: options.Unprotected = None,
    budget: options.PaidBy = None,
    period: options.OfPeriod = None,
    once: options.Once = None,
    description: options.Description = None,
    labels: options.Labels = None,
    about: options.About = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    memory: options.Memory = None,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """Publish raw events: bound each user, count the groups, add noise, drop small groups, and certify.

    One table with --user, --by and --c-u, or several in one release with --tables. In this process with DuckDB. With
    --budget and --once a service adds the noise and charges it exactly once.
    """
    paid: dict[str, Any] = {"budget": budget, "period": period, "once": once}
    paid |= {"description": description, "labels": labels, "about": options.about_of(about)}
    if tables is not None:
        if output == PIPE:
            raise Refusal(Code.INVALID, "--output: must be a folder with --tables, not standard output")
        one: dict[str, Any] = {"user": user, "by": by, "c_u": c_u, "public_keys": public_keys, "sum": sums}
        one |= {"epsilon": epsilon, "delta": delta, "tau": tau, "events": events, "sum_unit": units, "cap": caps}
        one |= {"weight": weights, "count": count, "type": types, "unit": unit, "unprotected": unprotected}
        one |= {"mechanism": mechanism, "mean": means, "ratio": ratios, "round": rounded or None}
        one |= {"survey_share": survey_share}
        either = {
            "expected_users": expected_users,
            "releases": releases,
            "most_sigma": most_sigma,
            "mechanism_of": mechanism_of,
            **paid,
        }
        arguments = _in_file(tables, one, either)
        paid = {name: arguments.pop(name, None) for name in paid}
    else:
        if user is None or by is None or c_u is None:
            missing = "--user" if user is None else "--by" if by is None else "--c-u"
            raise Refusal(Code.INVALID, f"{missing}: is missing", "give --user, --by and --c-u, or --tables FILE")
        arguments = options.planned(user, by, sums, events, means, units, caps, types) | {"c_u": options.c_u_of(c_u)}
        arguments |= {"ratios": options.ratios_of(ratios) or None, "round": rounded}
        arguments |= {"tau": 1 if tau is None else tau, "names": options.named(count)}
        arguments |= {"weights": options.columns_of(sums, caps, weights)["weights"], "public_keys": public_keys}
        arguments |= {"epsilon": epsilon, "delta": delta, "releases": releases, "most_sigma": most_sigma}
        arguments |= {"mechanism_of": mechanism_of}
        if mechanism is not None:
            arguments["mechanism"] = options.mechanism_of(mechanism, None, None, None, None)
        arguments |= {"privacy_unit": unit, "unprotected": options.unprotected_of(unprotected)}
        arguments |= {"expected_users": expected_users, "survey": options.survey_part(survey_share)}
    arguments |= {"to": output, "overwrite": force}
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        arguments |= stack.enter_context(paying(paid, service, key_file, retries))
        arguments["progress"] = stack.enter_context(_bar())
        published = gsh.publish(data, memory_limit=memory, **arguments)
    _report(published, output, as_json=as_json)


_FIELDS = {
    "survey_share": "survey",
    "sum": "sums",
    "sum_unit": "units",
    "mean": "means",
    "ratio": "ratios",
    "cap": "caps",
    "count": "names",
    "weight": "weights",
    "type": "types",
    "unit": "privacy_unit",
}
"""The fields of a plan whose options have other names."""


def _in_file(path: str, options_of_one: dict[str, Any], either: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a plan of tables has, and those that the file or the options may say, not both."""
    from gsh.events.plan_file import publication_in  # noqa: PLC0415 - loads pyarrow

    for name, value in options_of_one.items():
        if value is not None:
            hint = f"write {_FIELDS.get(name, name)} in the file"
            if name == "mechanism":
                hint = "the noise of each table follows from epsilon and delta, or from releases, in the file"
            raise Refusal(Code.INVALID, f"{_option(name)}: must be omitted with --tables", hint)
    found = publication_in(path)
    if not found.get("user"):
        raise Refusal(Code.INVALID, "--tables user: must be in the file", 'such as user = "user_id"')
    for name, value in either.items():
        if value is not None and name in found:
            what = f"{_option(name)}: must be omitted: the file of --tables has it"
            raise Refusal(Code.INVALID, what, "remove one of them")
    return found | {name: value for name, value in either.items() if value is not None}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@commands.command(epilog="Example:  gsh plan events.parquet > plan.toml")
def plan(events: options.EventsPath, as_json: AsJson = False) -> None:
    """Print a plan of several tables to start from, for gsh publish --tables. It reads the names of columns alone."""
    from gsh.duckdb.sources import columns_of  # noqa: PLC0415 - loads DuckDB
    from gsh.duckdb.workspace import workspace  # noqa: PLC0415
    from gsh.events.plan_file import plan_text, started_plan  # noqa: PLC0415

    with workspace() as space:
        columns = columns_of(space, events)
    if as_json:
        show(started_plan(columns), as_json=True)
    else:
        sys.stdout.write(plan_text(events, columns))


def _report(published: "Published", output: str, *, as_json: bool) -> None:
    """The document for programs, or the last line for people."""
    if as_json:
        document: dict[str, Any] = {"output": output, "groups": published.groups}
        if "" not in published.tables:
            document["tables"] = {name: len(table) for name, table in published.tables.items()}
        document["certificate"] = published.certificate.to_dict()
        replay = options.replay_of(published)
        if published.survey is not None:
            document["survey"] = published.survey.to_dict()
        show({**document, **replay, "plan": published.plan.to_json()}, as_json=True)
    else:
        if published.survey is not None:
            for chosen in published.survey.chosen:
                note(f"gsh: {chosen}")
        line(published.summary())
        for name in published.tables:
            said = published[name].intervals_cover
            note(f"gsh: {name}: {said}" if name else f"gsh: {said}")


@contextmanager
def _bar() -> "Iterator[OnProgress]":
    """A progress bar with the stages, on standard error. Nothing without a terminal."""
    with progress_bar("Bar", "TaskProgress", "TimeElapsed") as bar:
        if bar is None:
            yield lambda _progress: None
            return
        tasks: dict[str, Any] = {}

        def report(step: "Progress") -> None:
            if step.stage not in tasks:
                for task in tasks.values():
                    bar.update(task, total=1, completed=1)
                tasks[step.stage] = bar.add_task(step.stage.capitalize(), total=step.total)
            bar.update(tasks[step.stage], completed=step.done)

        yield report
