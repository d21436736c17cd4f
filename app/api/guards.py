"""What stands before every route: a limit on bodies, and an answer for requests that are cut off."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem_response

__all__ = ["BodyLimitMiddleware", "CutOffMiddleware"]


class BodyLimitMiddleware:
    """413 for a body that says it is too long, before it is read, and for one that turns out to be.

    Starlette's own middleware answers in plain text where a route does not read its body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._max_bytes):
            return await problem_response(413)(scope, receive, send)
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413)
            return message

        return await self._app(scope, limited, send)


class CutOffMiddleware:
    """503 for a request that is cancelled because the service shuts down before it is done."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not started:
                await problem_response(503, headers={"Retry-After": "1"})(scope, receive, send)
            raise
