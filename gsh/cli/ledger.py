"""gsh budgets and gsh releases: what the service keeps count of, and what it has released."""

import dataclasses
import json
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE, AnswerName, Pipes, answer_named, written
from gsh.cli.options import Force
from gsh.cli.output import AsJson, Sheet, number, show
from gsh.histogram.file_formats import JSON, ZIP

if TYPE_CHECKING:
    from gsh.client import Budget, RecordedRelease
    from gsh.histogram.file_formats import Format

__all__ = ["commands"]

commands = typer.Typer()
budgets = typer.Typer()
releases = typer.Typer()
commands.add_typer(budgets, name="budgets")
commands.add_typer(releases, name="releases")

Renews: TypeAlias = Literal["week", "month", "quarter", "year"]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The name of the budget.")]


@budgets.callback(invoke_without_command=True, epilog="Example:  gsh budgets --service http://127.0.0.1:8000")
def list_budgets(
    context: typer.Context,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """List the budgets of the service, show one, or make one."""
    if context.invoked_subcommand is not None:
        return
    with connected(service, key_file, retries) as client:
        found = list(client.budgets)
    columns = ("budget", "epsilon", "delta", "releases", "spent epsilon", "spent delta", "used")
    sheet = Sheet(columns, [_budget_row(each) for each in found], frozenset(range(1, 7)))
    show({"budgets": [dataclasses.asdict(each) for each in found]}, sheet, as_json=as_json)


@budgets.command("get", epilog="Example:  gsh budgets get web")
def get_budget(
    context: typer.Context,
    name: Name,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Show a budget: its limit, what is spent, and what remains."""
    with connected(*_place(context, service, key_file), retries) as client:
        _show_budget(client.budgets[name], as_json=as_json)


@budgets.command(
    "put", epilog='Example:  gsh budgets put web --epsilon 1 --delta 1e-5 --description "page views, all users"'
)
def put_budget(
    context: typer.Context,
    name: Name,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="X", help="ε that all releases together may reach.")],
    delta: Annotated[float, typer.Option("--delta", metavar="X", help="δ that they may reach at that ε.")],
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="Which data, which users.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why a limit is changed.")] = "",
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="TEXT", help="Whose records are protected together, as user.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="ID", help='A budget that is charged too; "" removes it.')
    ] = None,
    renews: Annotated[
        Renews | None, typer.Option("--renews", help="A budget for each week, month, quarter or year.")
    ] = None,
    closes_after: Annotated[
        int | None, typer.Option("--closes-after", metavar="DAYS", help="When a period that has ended is closed.")
    ] = None,
    most_sigma: Annotated[
        float | None,
        typer.Option("--most-sigma", metavar="X", help="The largest σ calibrated to what remains."),
    ] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Make a budget, or change its limit with a reason. What is not given stays as it is."""
    with connected(*_place(context, service, key_file), retries) as client:
        made = client.budgets.put(
            name,
            epsilon=epsilon,
            delta=delta,
            description=description,
            reason=reason,
            privacy_unit=unit,
            parent=parent,
            renews=renews,
            closes_after=closes_after,
            most_sigma=most_sigma,
        )
    _show_budget(made, as_json=as_json)


@releases.callback(invoke_without_command=True, epilog="Example:  gsh releases --budget web")
def list_releases(
    context: typer.Context,
    budget: Annotated[str | None, typer.Option("--budget", metavar="ID", help="Only those of one budget.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The most to list.")] = 20,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """List the releases that budgets have paid for, the newest first, or get one again."""
    if context.invoked_subcommand is not None:
        return
    with connected(service, key_file, retries) as client:
        found = list(islice(client.releases.list(budget=budget), limit))
    rows = [[each.key, each.state, each.budget, str(each.entry), each.at, each.description] for each in found]
    sheet = Sheet(("release", "state", "budget", "entry", "at", "description"), rows, frozenset({3}))
    show({"releases": [_release_document(each) for each in found]}, sheet, as_json=as_json)


@releases.command("get", epilog="Example:  gsh releases get web-2026-W46 -o private.parquet")
def get_release(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The name of the release, as gsh releases lists it.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The private table; or FILE.zip, with all tables of a release of several. - is standard output.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Which table of a release of several.")
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--certificate", metavar="FILE", help="The certificate, with the ledger's record.")
    ] = None,
    output_format: Annotated[
        AnswerName | None, typer.Option("--format", help="The format of the output, if its name does not say it.")
    ] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Get a release again: its private table or tables, its certificate, or what the ledger says about it."""
    Pipes(output=output, certificate=certificate)
    if as_json and PIPE in (output, certificate):
        raise Refusal(Code.INVALID, "--json: must be omitted with -", "standard output has the content then")
    if table is not None and output is None:
        raise Refusal(Code.INVALID, "--table: needs --output", "such as -o private.parquet")
    into = None if output is None else answer_named(output, output_format, "--format")
    with connected(*_place(context, service, key_file), retries) as client:
        found = client.releases[key]
        if output is not None and into is not None:
            if found.stored is not None:  # else the service says why there is no answer
                _check_table(_tables_of(found, found.stored.media_type), into, table)
            with written(output, force=force) as sink:
                sink.write(found.answer(into, table))
        if certificate is not None:
            with written(certificate, force=force) as file:
                file.write(found.certificate.to_json(indent=2).encode() + b"\n")
    if PIPE in (output, certificate):
        return
    document = _release_document(found)
    shown = {name: value for name, value in document.items() if value not in (None, "", [])}
    rows = [[name, value if isinstance(value, str) else json.dumps(value)] for name, value in shown.items()]
    show(document, Sheet(("release", ""), rows), as_json=as_json)


def _tables_of(release: "RecordedRelease[Any]", media_type: str) -> list[str]:
    """The names of the tables of a release of several. Only an archive or a JSON answer may have them."""
    from gsh.client.errors import NoCertificate  # noqa: PLC0415 - loads the client

    if media_type not in (ZIP, JSON):
        return []
    try:
        return [name for name in release.certificate.described if name]
    except NoCertificate:  # a release of version 0.1, which is one table
        return []


def _check_table(names: list[str], into: "Format | Literal['zip']", table: str | None) -> None:
    """Refuse a format or a table that the release does not have."""
    if not names:
        if table is not None:
            raise Refusal(Code.INVALID, "--table: must be omitted: the release is one table", "remove it")
        if into == "zip":
            raise Refusal(Code.INVALID, "--output: the release is one table", "such as -o private.parquet")
        return
    listed = f"the release has the tables {', '.join(names)}"
    if table is None and into != "zip":
        raise Refusal(Code.INVALID, listed, "add --table NAME for one of them, or -o FILE.zip for all")
    if table is not None and table not in names:
        raise Refusal(Code.INVALID, f"--table: must be one of them: {listed}", "check the name")
    if table is not None and into == "zip":
        raise Refusal(Code.INVALID, "--table: must be omitted with zip, which has all tables", "such as -o table.csv")


def _place(context: typer.Context, service: str | None, key_file: str | None) -> tuple[str | None, str | None]:
    """The service of the command, or the one given before it: gsh budgets --service URL get web."""
    before = context.parent.params if context.parent is not None else {}
    return service or before.get("service"), key_file or before.get("key_file")


def _budget_row(budget: "Budget") -> list[str]:
    limit, spent = budget.limit, budget.spent
    numbers = [number(limit.epsilon), number(limit.delta), str(spent.releases)]
    return [budget.id, *numbers, _or_infinite(spent.epsilon), number(spent.delta, 4), f"{budget.used:.1%}"]


def _or_infinite(epsilon: float | None) -> str:
    return "∞" if epsilon is None else number(epsilon, 4)


def _show_budget(budget: "Budget", *, as_json: bool) -> None:
    limit, spent, rest = budget.limit, budget.spent, budget.remaining
    rows = [
        ["description", budget.description],
        ["unit", _unit(budget)],
        ["limit", f"epsilon {number(limit.epsilon)}, delta {number(limit.delta)}"],
        ["spent", f"epsilon {_or_infinite(spent.epsilon)}, delta {number(spent.delta, 4)}"],
        ["releases", str(spent.releases)],
        ["used", f"{budget.used:.1%}"],
        ["remaining", f"mu_squared {number(rest.mu_squared, 4)}, hazard {number(rest.hazard, 4)}"],
    ]
    if budget.more is not None:
        like = "last" if spent.releases or budget.periods else "typical"
        rows.insert(6, ["more", f"{budget.more} like the {like} release"])
    if budget.promise is not None:
        rows.insert(3, ["promise", _promise(budget)])
    rows += [[f"period {each.id}", f"used {each.used:.1%}"] for each in budget.periods or ()]
    rows += [[f"also charged: {each.id}", _ancestor(each)] for each in budget.ancestors or ()]
    show(dataclasses.asdict(budget), Sheet(("budget", budget.id), rows), as_json=as_json)


def _promise(budget: "Budget") -> str:
    promise = budget.promise
    return "none yet" if promise is None else f"epsilon {number(promise.epsilon)}, delta {number(promise.delta, 4)}"


def _unit(budget: "Budget") -> str:
    return budget.privacy_unit if budget.period is None else f"{budget.privacy_unit} in one {budget.period}"


def _ancestor(budget: "Budget") -> str:
    return f"used {budget.used:.1%}, promise {_promise(budget)} for one {_unit(budget)}"


def _release_document(release: "RecordedRelease[Any]") -> dict[str, Any]:
    """The fields of the service's answer."""
    fields: dict[str, Any] = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    fields["answer"] = fields.pop("stored")
    del fields["_releases"]
    for name in ("answer", "committed", "by"):
        fields[name] = None if fields[name] is None else dataclasses.asdict(fields[name])
    return fields | {"labels": list(release.labels)}
