"""Endpoints for releases that another engine makes: open and commit one, or charge a budget for it.

POST /releases, POST /releases/{key}/survey, POST /releases/{key}/commit, POST /budgets/{id}/charges.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.posted import check_columns
from app.budgets.budget_route import BudgetInPath, BudgetRoute
from app.errors import InvalidRequest, LimitExceeded
from app.http.auth import access_of, needs
from app.http.headers import KEY_HEADER, PAID_HEADERS, USED_HEADER, paid_headers
from app.http.json_route import Encoded, JsonRoute, slimmed
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, COMMIT_PROBLEMS, PROBLEMS, SURVEY_PROBLEMS
from app.http.services import services_of
from app.http.workload import RequestWorkers
from app.ledger.clock import now
from app.ledger.releases import ChosenBounds, Commit
from app.ledger.renewing import named_period
from app.releases.answer_formats import table_names
from app.releases.bounds import Bounds
from app.releases.made_elsewhere import ChargedRelease, OpenedRelease, check_bounds, chosen_certificate
from app.releases.recorded import open_answer, shown
from app.releases.release_route import (
    OPENED,
    RELEASE_NOT_FOUND,
    OpenReleaseInPath,
    ReleaseRoute,
    RequestClient,
    bounds_of,
    releases_of,
    visible_release,
)
from app.releases.schemas.releases import (
    CHARGE_EXAMPLES,
    COMMIT_EXAMPLES,
    OPEN_EXAMPLES,
    SURVEYED_EXAMPLES,
    ChargeIn,
    ChargeOut,
    CommitIn,
    MadeElsewhereIn,
    OpenIn,
    OpenOut,
    ReleaseOut,
    SurveyedIn,
)
from app.workers.work_bounds import AT_ONCE

__all__ = ["router"]

_SURVEY_WORK = 10 * AT_ONCE
"""More than the event loop does: the costs of tables are computed exactly."""

router = APIRouter(prefix="/releases", tags=["releases"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)
_charges = APIRouter(prefix="/budgets", tags=["budgets"], route_class=BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)
_named = APIRouter(
    prefix="/releases", tags=["releases"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=ReleaseRoute
)


@router.post(
    "",
    operation_id="openRelease",
    summary="Open a release that another engine makes",
    status_code=201,
    dependencies=[needs("release")],
    responses=BUDGET_PROBLEMS
    | {201: {"headers": USED_HEADER}}
    | {200: {"model": OpenOut, "description": "The release was opened before.", "headers": PAID_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": OPENED}]},
)
async def open_release(request: Request, body: Annotated[OpenIn, Body(openapi_examples=OPEN_EXAMPLES)]) -> OpenOut:
    """For engines that add the noise themselves, such as Spark: charged once, with a seed that every retry gets again.

    Draw all noise from the seed, publish the output once, and commit its digest. The commit erases the seed. Who has
    the seed can remove the noise: keep it as secret as the raw data, and never log it.
    """
    client = RequestClient(request)
    budget = named_period(body.budget, body.period)
    posted = OpenedRelease(budget, body, _workers(request), bounds_of(request, client))
    with _in_list():
        outcome = await releases_of(request).make(posted, client, budget=budget)
    status = 201 if outcome.earlier is None else 200
    content = b"".join(outcome.answer.chunks())
    return Encoded(content, status, paid_headers(outcome.replayed_at, outcome.use))  # type: ignore[return-value]


@_named.post(
    "/{key}/survey",
    operation_id="surveyRelease",
    summary="Record the bounds that an open release chose from its survey",
    dependencies=[needs("release")],
    responses=RELEASE_NOT_FOUND | SURVEY_PROBLEMS,
)
async def survey_release(
    request: Request, key: OpenReleaseInPath, body: Annotated[SurveyedIn, Body(openapi_examples=SURVEYED_EXAMPLES)]
) -> OpenOut:
    """For a release that was opened with a `survey`: the digest of its noisy histograms, and the tables with the bounds
    that were chosen from them. They cost what was charged for them. Draw nothing with these bounds before.

    The same content again changes nothing, so that a job that starts again gets the same bounds; other content is 409.
    The answer has the certificate with the chosen bounds, and no seed.
    """
    release = await visible_release(request, key)
    services, access = services_of(request), access_of(request.scope)
    most_work = services.settings.max_work
    work = check_columns(most_work, body.mechanism, body.tables)
    certificate = await services.made(request, work + _SURVEY_WORK, chosen_certificate, release.notes.certificate, body)
    made = ChosenBounds(body.digest, certificate, body.provenance.model_dump_json(), now())
    client = None if access.is_admin else access.client
    recorded = await services.ledger_pool.ask(lambda ledger: ledger.record_survey(key, made, access.by, client))
    return Encoded(open_answer(recorded, None))  # type: ignore[return-value]


@_named.post(
    "/{key}/commit",
    operation_id="commitRelease",
    summary="Commit what another engine has published",
    dependencies=[needs("release")],
    responses=RELEASE_NOT_FOUND | COMMIT_PROBLEMS,
)
async def commit_release(
    request: Request, key: OpenReleaseInPath, body: Annotated[CommitIn, Body(openapi_examples=COMMIT_EXAMPLES)]
) -> ReleaseOut:
    """Records the digest of the output, and erases the seed for ever. The same digest again changes nothing.

    Only the client that opened the release may commit it, or an access key with the scope admin as well.
    """
    release = await visible_release(request, key)
    contents = None
    if body.contents is not None:
        names = await table_names(request, release) or [""]
        if sorted(body.contents) != sorted(names):
            raise InvalidRequest("/contents", "must have the tables of the release; the only table has the empty name")
        contents = json.dumps({name: body.contents[name].model_dump(mode="json") for name in names})
    access, made = access_of(request.scope), Commit(body.digest, body.rows, now(), contents)
    client = None if access.is_admin else access.client
    pool = services_of(request).ledger_pool
    return shown(await pool.ask(lambda ledger: ledger.commit(key, made, access.by, client)))


@_charges.post(
    "/{id}/charges",
    operation_id="chargeBudget",
    summary="Charge a budget for a release that is made elsewhere",
    dependencies=[needs("release", budget="id")],
    responses=BUDGET_PROBLEMS | {200: {"headers": PAID_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": "weekly-2026-46"}]},
)
async def charge(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    body: Annotated[ChargeIn, Body(openapi_examples=CHARGE_EXAMPLES)],
) -> ChargeOut:
    """For platforms that add the noise in their own engine: charge first, and release only after the charge.

    The same idempotency key and content get the same answer, and are charged once. An engine that retries its tasks
    opens a release instead: POST /releases.
    """
    client = RequestClient(request)
    budget = named_period(id, body.period)
    posted = ChargedRelease(budget, body, _workers(request), bounds_of(request, client), request.state.content)
    with _in_list():
        outcome = await releases_of(request).make(posted, client, budget=budget)
    content = b"".join(outcome.answer.chunks())
    return Encoded(content, headers=paid_headers(outcome.replayed_at, outcome.use))  # type: ignore[return-value]


@slimmed.register
def _(body: MadeElsewhereIn, most_work: int) -> MadeElsewhereIn:
    check_bounds(body, Bounds(most_work))
    return body


def _workers(request: Request) -> RequestWorkers:
    return RequestWorkers(request, services_of(request).accounting)


@contextmanager
def _in_list() -> Iterator[None]:
    """A table of these requests is a mechanism with a name: its fields are directly in the list."""
    try:
        yield
    except LimitExceeded as error:
        pointer = re.sub(r"^(/tables/\d+)/mechanism", r"\1", error.pointer)
        raise LimitExceeded(pointer, error.detail) from None


router.routes.extend([*_named.routes, *_charges.routes])
