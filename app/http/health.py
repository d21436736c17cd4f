"""GET /healthz, /readyz, /version and /metrics: the service about itself."""

import platform
from typing import Annotated

import flint
from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field
from starlette.exceptions import HTTPException

from app.http.auth import PUBLIC
from app.http.json_route import DeclaredRoute
from app.http.problems import PROBLEMS, Problem
from app.http.services import Services, services_of
from app.ledger.errors import LedgerUnavailable
from app.schemas.strict import Strict
from app.version import VERSION
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.case_study import PRINTED

__all__ = ["router"]


class Health(Strict):
    """The process answers."""

    status: str = Field(title="Status", description="Always ok.", examples=["ok"])


class Readiness(Strict):
    """The service can do its work."""

    status: str = Field(title="Status", description="Always ok.", examples=["ok"])
    ledger: str = Field(title="Ledger", description="ok if the ledger answers, or not asked.", examples=["ok"])


class Version(Strict):
    """The versions of the service and of its arithmetic."""

    service: str = Field(title="Service", description="The version of this service.", examples=[VERSION])
    python: str = Field(title="Python", description="The version of Python.", examples=["3.11.7"])
    flint: str = Field(title="FLINT", description="The version of the ball arithmetic.", examples=["3.6.0"])


router = APIRouter(
    tags=["service"], responses={status: PROBLEMS[status] for status in (422, 500)}, route_class=DeclaredRoute
)

# The δ of the paper's mechanism at ε = 0.349, rounded up from 60 digits: the arithmetic must give exactly this.
_KNOWN_DELTA = 1.003103848512688e-05


@router.get("/healthz", operation_id="healthz", summary="Is the process alive?", dependencies=[PUBLIC])
async def healthz() -> Health:
    """Answers as long as the process can answer at all."""
    return Health(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Is the service ready?",
    dependencies=[PUBLIC],
    responses={503: {"model": Problem, "description": "The arithmetic is wrong, or the ledger does not answer."}},
)
async def readyz(
    request: Request,
    ledger: Annotated[
        bool, Query(title="Ledger", description="Whether to ask the ledger. Without it, accounting is ready.")
    ] = True,
) -> Readiness:
    """Evaluates a known point of the case study, and answers only if the result is right to the last bit.

    It also asks the ledger, at most once a second, and waits for its answer for a second at most.
    """
    if at_epsilon(EXACT, PRINTED, 0.349).delta != _KNOWN_DELTA:
        raise HTTPException(503)
    if not ledger:
        return Readiness(status="ok", ledger="not asked")
    fault = await _ledger_fault(services_of(request))
    if fault is not None:
        raise LedgerUnavailable(fault)
    return Readiness(status="ok", ledger="ok")


@router.get("/version", operation_id="version", summary="Which version is this?", dependencies=[PUBLIC])
async def version() -> Version:
    """The versions of the service and its arithmetic, to cite with a result."""
    return Version(service=VERSION, python=platform.python_version(), flint=flint.__FLINT_VERSION__)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="Metrics for Prometheus",
    dependencies=[PUBLIC],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text format."}},
)
async def metrics(request: Request) -> Response:
    """Requests and latency by route and status, the cache, the ledger, and how much of the budgets is used."""
    services = services_of(request)
    if await _ledger_fault(services) is None:
        standings = await services.budget_watch.standings()
        services.metrics.show_budgets(standings, by_name=services.settings.budgets_in_metrics)
    return Response(services.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


async def _ledger_fault(services: Services) -> str | None:
    """Why the ledger does not answer, if it does not. The metrics show it too."""
    fault = await services.ledger_probe.fault()
    services.metrics.show_ledger(is_up=fault is None)
    return fault
