"""A route for one JSON body: bytes to model, model to bytes, and nothing in between.

FastAPI's general handler decodes the body to Python objects, solves dependencies, keeps exit stacks and validates the
answer again. None of that is used here, and it takes longer than a certified δ.
"""

import inspect
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

__all__ = ["JsonRoute"]


class JsonRoute(APIRoute):
    """For endpoints ``async def endpoint(request, body: Annotated[SomeModel, …]) -> SomeModel``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        endpoint = self.endpoint
        model: type[BaseModel] = inspect.get_annotations(endpoint)["body"].__origin__

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if not _is_json(scope):
                raise HTTPException(415)
            content = await _body(receive)
            try:
                body = model.model_validate_json(content)
            except ValidationError as error:
                raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None
            answer: BaseModel = await endpoint(Request(scope, receive), body)
            encoded = answer.model_dump_json().encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(encoded))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": encoded})

        self.app = serve


async def _body(receive: Receive) -> bytes:
    chunks = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400)  # nobody is left to read it, but it is not our fault
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def _is_json(scope: Scope) -> bool:
    header = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return header.partition(b";")[0].strip().lower() == b"application/json"
