"""gsh survey: noisy numbers of users in public bins, and the bounds that they suggest."""

from contextlib import ExitStack
from typing import Annotated

import typer

import gsh
from gsh.cli import options
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, paying
from gsh.cli.files import written
from gsh.cli.output import AsJson, line, note, show, working

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh survey events.parquet --user user_id --by url --epsilon 1 --delta 1e-6")
def survey(
    data: options.EventsPath,
    user: options.User,
    by: options.By,
    epsilon: options.Epsilon,
    delta: options.Delta,
    c_u: options.SurveyedC_U = None,
    sums: options.Sums = None,
    events: options.NumberOfEvents = None,
    means: options.Means = None,
    public_keys: options.PublicKeys = None,
    units: options.Units = None,
    weights: options.Weights = None,
    tau: options.Tau = None,
    types: options.ColumnTypes = None,
    expected_users: options.ExpectedUsers = None,
    survey_share: options.SurveyPart = None,
    unit: options.PrivacyUnit = None,
    budget: options.PaidBy = None,
    period: options.OfPeriod = None,
    once: options.Once = None,
    description: options.Description = None,
    labels: options.Labels = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    memory: options.Memory = None,
    output: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="The same as a page, without external requests.")
    ] = None,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """Count users in public bins with noise, and suggest C_u and clips: a release of its own, which costs privacy.

    (ε, δ) is the target of the publication to come. gsh publish --c-u survey makes both in one release for less.
    """
    arguments = options.planned(user, by, sums, events, means, units, None, types)
    del arguments["caps"]
    arguments |= {"c_u": "survey" if c_u is None else options.c_u_of(c_u), "tau": 1 if tau is None else tau}
    arguments |= {"weights": options.columns_of(sums, None, weights)["weights"], "epsilon": epsilon, "delta": delta}
    arguments |= {"expected_users": expected_users, "survey": options.survey_part(survey_share)}
    arguments |= {"public_keys": public_keys, "privacy_unit": unit}
    with ExitStack() as stack:
        paid = {"budget": budget, "period": period, "once": once, "description": description, "labels": labels}
        arguments |= stack.enter_context(paying(paid, service, key_file, retries))
        with working("Counting"):
            found = gsh.survey(data, memory_limit=memory, **arguments)
    if output is not None:
        with written(output, force=force) as file:
            file.write(found.to_html().encode())
    _report(found, as_json=as_json)


def _report(found: "gsh.Survey", *, as_json: bool) -> None:
    if as_json:
        show({**found.to_dict(), "certificate": found.certificate.to_dict(), **options.replay_of(found)}, as_json=True)
        return
    from gsh.results.budget_use import payer_in_words  # noqa: PLC0415

    for each in repr(found).splitlines():
        line(each)
    payer = payer_in_words(found.certificate, found.budget_use)
    note(f"gsh: {f'replayed: released on {found.released_at}; ' if found.is_replayed else ''}{payer}")
