"""gsh account, gsh calibrate and gsh compare: what a mechanism costs, and which one a target needs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gsh
from gsh.cli import options
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected
from gsh.cli.errors import Code, Refusal
from gsh.cli.output import AsJson, Sheet, number, show

if TYPE_CHECKING:
    from gsh.accounting.mechanism import AnyMechanism
    from gsh.client import BudgetCalibration

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh account --c-u 51914 --tau-star 13948 --sigma 2228 --epsilon 0.1,0.349")
def account(
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="LIST", help="ε at which to compute δ; several with commas.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="LIST", help="δ at which to compute the smallest ε.")
    ] = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    mu_0: options.Mu0 = None,
    mechanism: options.MechanismFile = None,
    survey_sigma: options.SurveySigmas = None,
    accounting: options.Accounting = "exact",
    as_json: AsJson = False,
) -> None:
    """What a mechanism costs: the smallest δ at ε, or the smallest ε at δ.

    The tables of a certificate cost it together.
    """
    if (epsilon is None) == (delta is None):
        raise Refusal(Code.INVALID, "give exactly one of --epsilon and --delta", "such as --epsilon 1")
    tables = options.mechanisms_of(mechanism, c_u, tau, tau_star, sigma, mu_0)
    used = tables.get("", tables)
    compute = gsh.exact if accounting == "exact" else gsh.add_deltas
    with options.survey_of(survey_sigma) as survey:
        if epsilon is not None:
            points = compute(used, epsilon=options.numbers("--epsilon", epsilon), survey=survey)
        else:
            points = compute(used, delta=options.numbers("--delta", delta or ""), survey=survey)
    document = {
        "accounting": accounting,
        **_released(tables),
        **({} if survey is None else {"survey": _survey_written(survey)}),
        "mu": points[0].mu,
        "points": [_without(asdict(point), "accounting", "mu") for point in points],
    }
    columns = ("epsilon", "delta", "delta_gaussian", "delta_infinite", "binding")
    rows = [[*(number(getattr(point, name)) for name in columns[:4]), point.binding] for point in points]
    show(document, Sheet(columns, rows, frozenset(range(4))), as_json=as_json)


@commands.command(epilog="Example:  gsh calibrate --c-u 51914 --epsilon 0.349 --delta 1e-5 --json > mechanism.json")
def calibrate(
    epsilon: Annotated[float | None, typer.Option("--epsilon", metavar="X", help="ε of the target.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", metavar="X", help="δ of the target.")] = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    mu_0: options.Mu0 = None,
    sums: options.Sums = None,
    caps: options.Caps = None,
    weights: options.Weights = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="ID", help="In place of a target: what remains of a budget.")
    ] = None,
    releases: Annotated[
        int,
        typer.Option("--releases", metavar="N", min=1, help="So many equal releases fit the target, or the budget."),
    ] = 1,
    most_sigma: Annotated[
        float | None, typer.Option("--most-sigma", metavar="X", help="With --budget: refuse a larger σ.")
    ] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    survey_share: options.SurveyShares = None,
    survey_sigma: options.SurveySigmas = None,
    accounting: options.Accounting = "exact",
    as_json: AsJson = False,
) -> None:
    """The mechanism that a target needs: the smallest noise and threshold, or the largest C_u.

    Leave out what to solve for: --sigma and --tau-star, one of them, or --c-u. Each --sum gets noise with the same
    share of μ² as the count.

    With a survey, a noisy histogram over the users is published first. The answer has its noise. Ask again with the
    --c-u that it suggests: what the mechanism may cost does not depend on --c-u.

    --budget and --releases ask a service.
    """
    draft: dict[str, Any] = {"c_u": c_u, "tau": 1 if tau is None else tau, "tau_star": tau_star, "sigma": sigma}
    draft |= {"mu_0": mu_0 or 0.0, **options.columns_of(sums, caps, weights)}
    if budget is not None or releases > 1:
        if survey_share or survey_sigma or accounting != "exact":
            what = "--budget and --releases: must be omitted with a survey, and with --accounting"
            raise Refusal(Code.INVALID, what, "give --epsilon and --delta")
        aim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "releases": releases, "most_sigma": most_sigma}
        with connected(service, key_file, retries) as client:
            _show_shared(client.budgets.calibrate(budget, **aim, **draft), as_json=as_json)
        return
    for option, value in (("--epsilon", epsilon), ("--delta", delta)):
        if value is None:
            raise Refusal(Code.INVALID, f"{option}: is missing", "give --epsilon and --delta, or --budget")
    if most_sigma is not None:
        raise Refusal(Code.INVALID, "--most-sigma: needs --budget", "give --sigma to choose the noise")
    assert epsilon is not None
    assert delta is not None
    with options.survey_of(survey_sigma, survey_share) as survey:
        found = gsh.calibrate(
            epsilon=epsilon,
            delta=delta,
            accounting=accounting,
            survey=survey,
            **draft,
        )
    document = {
        "accounting": accounting,
        "mechanism": _written(found.mechanism),
        "epsilon": found.privacy.epsilon,
        "delta": found.privacy.delta,
        "largest_sigma": found.largest_sigma,
        "solved": list(found.solved),
        **_surveyed(found.survey),
    }
    show(document, _parameters(found), *_columns(found.mechanism), as_json=as_json)


@commands.command(epilog="Example:  gsh compare --c-u 51914 --epsilon 0.349 --delta 1e-5")
def compare(
    c_u: options.GivenC_U,
    epsilon: options.Epsilon,
    delta: options.Delta,
    tau: options.Tau = None,
    mu_0: options.Mu0 = None,
    sums: options.Sums = None,
    caps: options.Caps = None,
    weights: options.Weights = None,
    as_json: AsJson = False,
) -> None:
    """The noise and the threshold that each accounting asks for the same target."""
    columns = options.columns_of(sums, caps, weights)
    chosen = 1 if tau is None else tau
    found = gsh.compare(c_u=c_u, epsilon=epsilon, delta=delta, tau=chosen, mu_0=mu_0 or 0.0, **columns)
    document = {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "accountings": [{"accounting": name, "price": _price(price)} for name, price in found.items()],
        "without_caps": _price(found.without_caps),
    }
    rows = [[name, *_shown(price)] for name, price in found.items()]
    rows += [["without caps", *_shown(found.without_caps)]] if found.without_caps is not None else []
    heads = ("accounting", "sigma", "tau_star", "sigma ratio", "tau_star ratio")
    show(document, Sheet(heads, rows, frozenset(range(1, 5))), as_json=as_json)


def _show_shared(found: "BudgetCalibration", *, as_json: bool) -> None:
    """The mechanism of one of several releases, or of what remains of a budget."""
    mechanism = found.mechanism
    document = {
        "mechanism": _written(mechanism),
        "solved": list(found.solved),
        "budget": found.budget,
        "releases": found.releases,
        "epsilon": found.epsilon,
        "delta": found.delta,
    }
    names = ("c_u", "tau", "tau_star", "sigma")
    rows = [[name, number(getattr(mechanism, name)), "solved" if name in found.solved else ""] for name in names]
    after = "spent after it" if found.releases == 1 else f"spent after all {found.releases}"
    rows += [["epsilon", number(found.epsilon), after], ["delta", number(found.delta), after]]
    show(document, Sheet(("parameter", "value", ""), rows, frozenset({1})), *_columns(mechanism), as_json=as_json)


def _parameters(found: "gsh.Calibration") -> Sheet:
    """Each parameter with its value, and whether it was solved for."""
    mechanism, privacy = found.mechanism, found.privacy
    values: dict[str, float | None] = {
        "c_u": mechanism.c_u,
        "tau": mechanism.tau,
        "tau_star": mechanism.tau_star,
        "sigma": mechanism.sigma,
    }
    if found.solved == ("sigma",):
        values["largest_sigma"] = found.largest_sigma
    values |= {"epsilon": privacy.epsilon, "delta": privacy.delta, "mu": privacy.mu}
    rows = [[name, number(value), "solved" if name in found.solved else ""] for name, value in values.items()]
    if found.survey is not None:
        rows += [["survey sigma", number(noise.sigma), ""] for noise in found.survey.survey]
    return Sheet(("parameter", "value", ""), rows, frozenset({1}))


def _columns(mechanism: "gsh.Mechanism") -> list[Sheet]:
    """The noise on each further column."""
    columns = mechanism.aggregates
    if columns is None:
        return []
    rows = [
        [name, number(math.sqrt(row[j]))]
        for j, (name, row) in enumerate(zip(columns.names, columns.covariance, strict=True))
    ]
    return [Sheet(("column", "standard deviation"), rows, frozenset({1}))]


def _surveyed(plan: "gsh.SurveyPlan | None") -> dict[str, Any]:
    """What is fixed before a survey, if there is one."""
    from gsh.wire import after_survey_to_json  # noqa: PLC0415 - loads numpy

    if plan is None:
        return {}
    return {"survey": _survey_written(plan.survey), "after_survey": after_survey_to_json(plan)}


def _survey_written(survey: "Sequence[gsh.SurveyNoise]") -> Any:
    from gsh.wire import survey_to_json  # noqa: PLC0415 - loads numpy

    return survey_to_json(survey)


def _price(price: "gsh.Price | None") -> dict[str, Any] | None:
    if price is None:
        return None
    return {
        "mechanism": _written(price.mechanism),
        "delta": price.privacy.delta,
        "delta_gaussian": price.privacy.delta_gaussian,
        "delta_infinite": price.privacy.delta_infinite,
        "least_sigma": price.least_sigma,
        "sigma_ratio": price.sigma_ratio,
        "tau_star_ratio": price.tau_star_ratio,
        "column_ratios": list(price.column_ratios),
    }


def _shown(price: "gsh.Price | None") -> list[str]:
    if price is None:
        return ["cannot meet the target", "", "", ""]
    numbers_shown = (price.mechanism.sigma, price.mechanism.tau_star, price.sigma_ratio, price.tau_star_ratio)
    return [number(value, 8) for value in numbers_shown[:2]] + [f"{value:.5f}" for value in numbers_shown[2:]]


def _released(tables: "Mapping[str, AnyMechanism]") -> dict[str, Any]:
    """What is released: a mechanism, or the tables with theirs."""
    from gsh.wire import tables_to_json  # noqa: PLC0415 - loads numpy

    return {"mechanism": _written(tables[""])} if "" in tables else {"tables": tables_to_json(tables)}


def _written(mechanism: "AnyMechanism") -> dict[str, Any]:
    from gsh.wire import mechanism_to_json  # noqa: PLC0415 - loads numpy

    return mechanism_to_json(mechanism)


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
