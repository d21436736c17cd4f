"""gsh budgets: limits, what is spent of them, what would fit, and their histories."""

import dataclasses
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from gsh.cli import options
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected, place_of
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import written
from gsh.cli.output import AsJson, Sheet, number, show

if TYPE_CHECKING:
    from gsh.client import Budget, Entry
    from gsh.client.records import Cost

__all__ = ["commands"]

commands = typer.Typer()
budgets = typer.Typer()
commands.add_typer(budgets, name="budgets")

Renews: TypeAlias = Literal["week", "month", "quarter", "year"]
Periods: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
Approvals: TypeAlias = Literal["none", "limits", "releases"]
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
    with connected(*place_of(context, service, key_file), retries) as client:
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
    period: Annotated[
        Periods | None, typer.Option("--period", help="If it protects the records of one unit in one period only.")
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
    approval: Annotated[
        Approvals | None, typer.Option("--approval", help="What waits until another access key approves it.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="FILE",
            help="A typical release, as JSON: noise and thresholds share the budget in its proportion.",
        ),
    ] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Make a budget, or change its limit with a reason. What is not given stays as it is."""
    with connected(*place_of(context, service, key_file), retries) as client:
        made = client.budgets.put(
            name,
            epsilon=epsilon,
            delta=delta,
            description=description,
            reason=reason,
            privacy_unit=unit,
            period=period,
            parent=parent,
            renews=renews,
            closes_after=closes_after,
            most_sigma=most_sigma,
            approval=approval,
            mechanism=None if mechanism is None else options.release_of(mechanism, None, None, None, None),
        )
    _show_budget(made, as_json=as_json)


@budgets.command(epilog="Example:  gsh budgets preview web --mechanism mechanism.json --times 4")
def preview(
    context: typer.Context,
    name: Name,
    mechanism: options.MechanismFile = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    period: options.OfPeriod = None,
    times: Annotated[int, typer.Option("--times", metavar="N", min=1, max=1000, help="So many equal releases.")] = 1,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Whether releases would fit, and what would remain. Nothing is charged.

    The mechanism of a certificate with several tables is one release of them.
    """
    planned = options.release_of(mechanism, c_u, tau, tau_star, sigma)
    if isinstance(planned, Mapping) and times > 1:
        raise Refusal(Code.INVALID, "--times: must be omitted with several tables", "more says how many more fit")
    with connected(*place_of(context, service, key_file), retries) as client:
        plan: Any = planned if isinstance(planned, Mapping) else [planned] * times
        found = client.budgets.preview(name, plan, period=period)
    rows = [
        ["fits", "yes" if found.fits else f"no: {found.shortage.detail if found.shortage else ''}"],
        ["fitting", f"{found.fitting} of {times}"],
        ["more", f"{found.more} like it, counted from now"],
        ["asked", _point(found.asked)],
        ["spent after it", _point(found.after)],
        ["used after it", f"{found.used:.1%}"],
    ]
    show(dataclasses.asdict(found), Sheet(("preview", name), rows), as_json=as_json)


@budgets.command(epilog="Example:  gsh budgets charge web --once presto-2026-W46 --c-u 16 --tau-star 9000 --sigma 1500")
def charge(
    context: typer.Context,
    name: Name,
    once: Annotated[str, typer.Option("--once", metavar="NAME", help="A name for the release: it is charged once.")],
    period: options.OfPeriod = None,
    mechanism: options.MechanismFile = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    epsilon: options.StatedEpsilon = None,
    delta: options.StatedDelta = None,
    description: options.Description = None,
    labels: options.Labels = None,
    about: options.About = None,
    unprotected: options.Unprotected = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Charge a budget for a release that another engine makes. Release only after it.

    The same --once with the same mechanism is charged once.
    """
    released = options.release_of(mechanism, c_u, tau, tau_star, sigma)
    stated: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "description": description, "labels": labels}
    stated |= {"unprotected": options.unprotected_of(unprotected), "about": options.about_of(about)}
    given: Any = {name: value for name, value in stated.items() if value is not None}
    with connected(*place_of(context, service, key_file), retries) as client:
        made = client.budgets.charge(name, released, once=once, period=period, **given)
    rows = [["budget", made.budget], ["release", once], ["entry", str(made.number)], ["spent", _point(made.spent)]]
    if made.is_replayed:
        rows.insert(0, ["replayed", f"charged on {made.at}, nothing was charged now"])
    show(dataclasses.asdict(made), Sheet(("charged", ""), rows), as_json=as_json)


@budgets.command(epilog="Example:  gsh budgets history web --limit 5")
def history(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The most entries to show.")] = 20,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """The entries of a budget's history, the latest first: charges, and changes of the limit with their reasons."""
    with connected(*place_of(context, service, key_file), retries) as client:
        found = list(islice(client.budgets.history(name), limit))
    document = [dataclasses.asdict(each) | {"details": each.details.to_dict()} for each in found]
    rows = [[str(each.number), each.at, each.kind, _said(each), each.hash[:16]] for each in found]
    sheet = Sheet(("entry", "at", "kind", "", "hash"), rows, frozenset({0}))
    show({"budget": name, "entries": document}, sheet, as_json=as_json)


@budgets.command(epilog="Example:  gsh budgets verify web")
def verify(
    context: typer.Context,
    name: Name,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> int:
    """Whether the history of a budget is as it was recorded. Note its head in another place."""
    with connected(*place_of(context, service, key_file), retries) as client:
        found = client.budgets.verify(name)
    fault = found.fault
    state = "intact" if fault is None else f"FAULT: entry {fault.number} {fault.detail}"
    rows = [["history", state], ["entries", str(found.entries)], ["head", found.head]]
    show(dataclasses.asdict(found), Sheet(("budget", name), rows), as_json=as_json)
    return 0 if found.intact else Code.OTHER


@budgets.command(epilog="Example:  gsh budgets bundle web -o web-bundle.zip --force")
def bundle(
    context: typer.Context,
    name: Name,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write the zip archive here.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file, if it is there.")] = False,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Everything for an auditor, in one archive: histories, certificates, verification and heads.

    Its periods, ancestors and descendants are in it too. The same ledger gives the same bytes.
    """
    with connected(*place_of(context, service, key_file), retries) as client:
        content = client.budgets.bundle(name)
    with written(output, force=force) as file:
        file.write(content)
    show({"budget": name, "output": output, "bytes": len(content)}, as_json=as_json)


def _budget_row(budget: "Budget") -> list[str]:
    limit, spent = budget.limit, budget.spent
    numbers = [number(limit.epsilon), number(limit.delta), str(spent.releases)]
    return [budget.id, *numbers, _or_infinite(spent.epsilon), number(spent.delta, 4), f"{budget.used:.1%}"]


def _or_infinite(epsilon: float | None) -> str:
    return "∞" if epsilon is None else number(epsilon, 4)


def _point(cost: "Cost") -> str:
    return f"epsilon {_or_infinite(cost.epsilon)}, delta {number(cost.delta, 4)}"


def _said(entry: "Entry") -> str:
    """What an entry is about, in words."""
    details = entry.details.to_dict()
    name = details.get("idempotency_key") or details.get("through", {}).get("key")
    limit = f"epsilon {number(details['epsilon'])}, delta {number(details['delta'])}" if "epsilon" in details else ""
    changes = [f"{each['field']} {each['before']} → {each['after']}" for each in details.get("changes", ())]
    said = (name, "; ".join(changes) or limit, details.get("reason"))
    return ", ".join(str(each) for each in said if each)


def _show_budget(budget: "Budget", *, as_json: bool) -> None:
    limit, spent, rest = budget.limit, budget.spent, budget.remaining
    rows = [
        ["description", budget.description],
        ["unit", _unit(budget)],
        ["limit", f"epsilon {number(limit.epsilon)}, delta {number(limit.delta)}"],
        ["spent", _point(spent)],
        ["releases", str(spent.releases)],
        ["used", f"{budget.used:.1%}"],
        ["remaining", f"mu_squared {number(rest.mu_squared, 4)}, hazard {number(rest.hazard, 4)}"],
    ]
    if budget.more is not None:
        like = "last" if spent.releases or budget.periods else "typical"
        rows.insert(6, ["more", f"{budget.more} like the {like} release"])
    if budget.shortage is not None:
        rows.insert(7, ["short", f"{budget.shortage.budget}: {budget.shortage.detail}"])
    if budget.days_left is not None:
        rows.insert(6, ["days left", f"{budget.days_left:.0f} at the rate of the last 28 days"])
    if budget.approval != "none":
        rows.insert(3, ["approval", f"{budget.approval} wait for a second access key"])
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
