"""The measure for the HTTP benchmark: a FastAPI POST with the same body model that does nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounting.schemas.account import ExactRequest
from app.http.metrics import Metrics
from app.http.protocol import ConnectionBounds
from app.settings import Settings
from gsh.accounting.curve_cache import CurveCache


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, ConnectionBounds]]:
    """What the service's protocol asks for. uvicorn's own does not."""
    usual = Settings()
    metrics = Metrics(CurveCache(1))
    yield {
        "connection_bounds": ConnectionBounds(
            usual.max_head_bytes, usual.head_seconds, usual.body_seconds, usual.max_connections, metrics
        )
    }


app = FastAPI(lifespan=lifespan)


@app.post("/noop")
async def noop(body: ExactRequest) -> dict[str, str]:  # noqa: ARG001
    return {}
