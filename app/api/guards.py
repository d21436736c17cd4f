"""What stands before every route: a limit on bodies, an answer for requests that are cut off, and safe headers."""

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import ContentTooLarge, problem_response, too_large_response

__all__ = ["BodyLimitMiddleware", "CutOffMiddleware", "HeadersMiddleware"]

# For what is no page: pages have a policy of their own, which lets their scripts run.
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]


class BodyLimitMiddleware:
    """413 for a body that says it is too long, before it is read, and for one that turns out to be.

    Starlette's own middleware answers in plain text where a route does not read its body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, exceptions: Mapping[str, int]) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._exceptions = exceptions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        most = self._exceptions.get(path, self._max_bytes)
        too_large = ContentTooLarge(most, "; larger tables go to /release/table" if path == "/release" else "")
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > most):
            return await too_large_response(too_large)(scope, receive, send)
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise too_large
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


class HeadersMiddleware:
    """Headers that keep a browser from taking an answer, an error say, for a page, unless it has them already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", [])
                if not any(name == b"content-security-policy" for name, _ in headers):
                    message = {**message, "headers": [*headers, *_HEADERS]}
            await send(message)

        return await self._app(scope, receive, guarded)
