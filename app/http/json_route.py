"""Routes that declare what they need, and routes that read their body themselves: bytes to model, model to bytes.

FastAPI's general handler decodes the body to Python objects, solves dependencies, keeps exit stacks and validates the
answer again. That takes longer than to certify a δ, so a JsonRoute does none of it.
"""

import functools
import inspect
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.auth import Requirement
from app.http.bodies import BodyLimit
from app.http.json_text import repeated_member
from app.http.problems.errors import REPEATED, InvalidBody
from app.http.services import services_of
from app.http.workload import in_pool
from app.schemas.strict import Strict
from app.workers.pool import WorkerPool

__all__ = [
    "SHORT_BYTES",
    "DeclaredRoute",
    "Encoded",
    "JsonRoute",
    "PathRoute",
    "content_type",
    "encoded",
    "parsed",
    "received",
    "slimmed",
]

M = TypeVar("M", bound=Strict)

SHORT_BYTES = 16 * 1024
"""A body up to here is read on the event loop, in a few milliseconds."""


class DeclaredRoute(APIRoute):
    """A route that declares what it needs, and how large a body it takes, for the dispatcher."""

    body_limit = BodyLimit()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app: ASGIApp = AsyncExitStackMiddleware(self.app)  # FastAPI's general handler asks for it
        declared = [each.call for each in self.dependant.dependencies if isinstance(each.call, Requirement)]
        self.needs = declared[0] if len(declared) == 1 else None


class Encoded(NamedTuple):
    """A JSON answer with a status or headers of its own."""

    content: bytes
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


class JsonRoute(DeclaredRoute):
    """For endpoints ``async def endpoint(request, body: Annotated[SomeModel, …]) -> SomeModel``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = self.serve
        self._model: type[Strict] = inspect.get_annotations(self.endpoint)["body"].__origin__

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if content_type(scope) != b"application/json":
            raise HTTPException(415)
        request, content = Request(scope, receive), await _content(receive)
        await services_of(request).authorizer.enter_again(scope)
        answer = await self.answer(request, content)
        body, status, given = Encoded(answer) if isinstance(answer, bytes) else answer
        further = [(name.lower().encode(), value.encode()) for name, value in given.items()]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *further]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def answer(self, request: Request, content: bytes) -> bytes | Encoded:
        return encoded(
            await self.endpoint(
                request, await _parsed_body(request, self._model, content, services_of(request).accounting)
            )
        )


def encoded(answer: BaseModel | bytes | Encoded) -> bytes | Encoded:
    """The answer of an endpoint as bytes."""
    return answer if isinstance(answer, bytes | Encoded) else answer.model_dump_json().encode()


async def _parsed_body(request: Request, model: type[M], content: bytes, pool: WorkerPool) -> M:
    """The body. A worker reads a long one: a hundred thousand errors would stall all other requests."""
    if len(content) <= SHORT_BYTES:
        return parsed(model, content)
    return await in_pool(request, pool, _slimmed, model, content, services_of(request).settings.max_work)


def _slimmed(model: type[M], content: bytes, most_work: int) -> M:
    return slimmed(parsed(model, content), most_work)  # type: ignore[return-value]


@functools.singledispatch
def slimmed(body: Strict, _most_work: int) -> Strict:
    """What a worker sends back of a long body that it has parsed, after a check of the bound on work.

    An endpoint registers a function for its own body.
    """
    return body


def parsed(model: type[M], content: bytes) -> M:
    """The body as a model, or an error that keeps nothing of the body."""
    try:
        body = model.model_validate_json(content)
        repeated = repeated_member(content)
        if repeated is None:
            return body
        found: list[Any] = [{"type": REPEATED, "loc": repeated}]
    except ValidationError as error:
        found = list(error.errors(include_url=False, include_input=False))
    # Outside of the handler: there it would keep pydantic's error, and with it the body.
    raise InvalidBody.of(found, has_groups="groups" in model.model_fields)


async def received(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it arrives."""
    more = True
    while more:
        chunk, more = await _chunk(receive)
        yield chunk


async def _content(receive: Receive) -> bytes:
    """The whole body. It nearly always comes in one piece."""
    content, more = await _chunk(receive)
    return b"".join([content, *[chunk async for chunk in received(receive)]]) if more else content


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of the body, and whether there is more."""
    message: Message = await receive()
    if message["type"] == "http.disconnect":
        raise HTTPException(400)  # the client has gone, so this is not a 5xx in the metrics
    return message.get("body", b""), message.get("more_body", False)


def content_type(scope: Scope) -> bytes:
    """The media type of the body, in lower case and without parameters."""
    header: bytes = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return header.partition(b";")[0].strip().lower()


class PathRoute(JsonRoute):
    """For endpoints ``async def endpoint(request, name, body)``."""

    parameter = ""
    """The name of the parameter in the path."""
    parameter_type: TypeAdapter[str]
    """What it must be."""

    async def answer(self, request: Request, content: bytes) -> bytes | Encoded:
        try:
            name = self.parameter_type.validate_python(request.path_params[self.parameter])
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise RequestValidationError([each | {"loc": ("path", self.parameter)} for each in found]) from None
        request.state.content = content  # a charge that is sent again is recognised by its bytes
        body = await _parsed_body(request, self._model, content, services_of(request).accounting)
        return encoded(await self.endpoint(request, name, body))
