"""A client of the service in this process, and the check that every problem document must pass."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings
from gsh.accounting.case_study import PRINTED

__all__ = ["CASE_STUDY", "Client", "Json", "problem_errors"]

Json = dict[str, Any]
T = TypeVar("T")

CASE_STUDY: Json = {name: int(getattr(PRINTED, name)) for name in ("c_u", "tau", "tau_star", "sigma")}
"""The paper's URL case study."""


class Client:
    """Each request has its own event loop. ``together`` is for requests that must share one."""

    def __init__(self, app: FastAPI | None = None, **settings: Any) -> None:
        self.app = app or create_app(Settings(**settings))

    def together(self, scenario: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
        async def run() -> T:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                return await scenario(http)

        return asyncio.run(run())

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.together(lambda http: http.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Json | bytes) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, content=content, headers={"content-type": "application/json"})

    def answer(self, path: str, body: Json) -> Json:
        """The document of a request that must succeed."""
        response = self.post(path, body)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        document: Json = response.json()
        return document

    def point(self, mechanism: Json, epsilon: float, accounting: str = "exact") -> Json:
        """The one point of the privacy curve at ε."""
        (point,) = self.answer(f"/account/{accounting}", {"mechanism": mechanism, "epsilon": epsilon})["points"]
        document: Json = point
        return document

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name and labels."""
        samples = (line.rpartition(" ") for line in self.get("/metrics").text.splitlines() if line[:1] != "#")
        return {name: float(value) for name, _, value in samples}


def problem_errors(response: httpx.Response, status: int, kind: str) -> dict[str, str]:
    """The details of a response by place. It must be a problem document of this status and type.

    A place is a pointer into the body, or «header …» or «parameter …».
    """
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    own = {"release"} if kind == "key-reused" else set()
    assert set(problem) - own == {"type", "title", "status", "detail", "errors", "request_id"}
    assert problem["request_id"] == response.headers["x-request-id"]
    assert (problem["type"], problem["status"]) == (f"/problems/{kind}", status)
    assert problem["title"]
    assert problem["detail"]
    return dict(map(_placed, problem["errors"]))


def _placed(error: Json) -> tuple[str, str]:
    assert error["detail"]
    ((place, name),) = ((each, value) for each, value in error.items() if each != "detail")
    assert place in {"pointer", "header", "parameter"}
    return name if place == "pointer" else f"{place} {name}", error["detail"]
