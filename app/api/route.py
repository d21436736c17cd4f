"""A route for one JSON body: bytes to model, model to bytes, and nothing in between.

FastAPI's general handler decodes the body to Python objects, solves dependencies and validates the answer again.
None of that is used here, and it takes longer than a certified δ.
"""

import inspect
from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

__all__ = ["JsonRoute"]


class JsonRoute(APIRoute):
    """For endpoints ``async def endpoint(request, body: Annotated[SomeModel, …]) -> SomeModel``."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        endpoint = self.endpoint
        model: type[BaseModel] = inspect.get_annotations(endpoint)["body"].__origin__

        async def handle(request: Request) -> Response:
            if not _is_json(request.scope):
                raise HTTPException(415)
            try:
                content = await request.body()
            except ClientDisconnect:
                raise HTTPException(400) from None  # nobody is left to read it, but it is not our fault
            try:
                body = model.model_validate_json(content)
            except ValidationError as error:
                raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None
            answer: BaseModel = await endpoint(request, body)
            return Response(answer.model_dump_json(), media_type="application/json")

        return handle


def _is_json(scope: Scope) -> bool:
    header = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return header.partition(b";")[0].strip().lower() == b"application/json"
