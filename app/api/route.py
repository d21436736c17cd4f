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


__all__ = ["JsonRoute"]


class JsonRoute(APIRoute):
    """For endpoints ``async def endpoint(request, body: SomeModel) -> SomeModel``."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        endpoint = self.endpoint
        model: type[BaseModel] = inspect.get_annotations(endpoint, eval_str=True)["body"].__origin__

        async def handle(request: Request) -> Response:
            content = await request.body()
            try:
                body = model.model_validate_json(content)
            except ValidationError as error:
                found = error.errors(include_url=False, include_input=False)
                raise RequestValidationError([each | {"loc": ("body", *each["loc"])} for each in found]) from None
            answer: BaseModel = await endpoint(request, body)
            return Response(answer.model_dump_json(), media_type="application/json")

        return handle
