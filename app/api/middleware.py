"""The layer around every route: security headers, limits on bodies, and an answer at shutdown.

One middleware does all three, because each further one takes a twentieth of the time of a cached answer.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.bodies import Body
from app.api.page_headers import COMMON_HEADERS
from app.api.problems import problem_response

__all__ = ["SAFE_HEADERS", "GuardMiddleware"]

# For responses that are not pages. Pages have their own policy, which allows their scripts.
SAFE_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    *((name.lower().encode(), value.encode()) for name, value in COMMON_HEADERS.items()),
]
_CLOSE = (b"connection", b"close")


class GuardMiddleware:
    """Adds security headers to responses that are not pages, and answers 503 to a request that a shutdown cuts off.

    The service has no WebSockets: a request for one gets 404.

    A refusal before the end of the body closes the connection, so the rest of the body is not read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        length, wants_websocket = _announced(scope)
        body = scope["body"] = Body(receive, length)
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if not started:
                started = True
                headers = message.get("headers", [])
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers = [*headers, *SAFE_HEADERS]
                if message["status"] >= 400 and not body.complete:
                    headers = [*headers, _CLOSE]
                message = {**message, "headers": headers}
            await send(message)

        try:
            if wants_websocket:
                return await problem_response(404)(scope, receive, guarded)
            return await self._app(scope, body, guarded)
        except asyncio.CancelledError:
            if not started:
                await problem_response(503, headers={"Retry-After": "1"})(scope, receive, guarded)
            raise
        finally:
            body.release()


def _announced(scope: Scope) -> tuple[int | None, bool]:
    """The length of the body by the headers, or None if they do not say it; and whether they ask for a WebSocket."""
    length: int | None = 0
    wants_websocket = False
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = int(value[:19]) if value.isdigit() else None  # with more digits it is too long anyway
        elif name == b"transfer-encoding":
            length = None
        elif name == b"upgrade":
            wants_websocket = value.lower() == b"websocket"
    return length, wants_websocket
