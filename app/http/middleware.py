"""The layer around every route: request ids, security headers, limits on bodies, and an answer if all else fails.

One middleware does all of it, because each further one takes a twentieth of the time of a cached answer.
"""

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.bodies import Body, CompressedBody
from app.http.headers import COMMON_HEADERS
from app.http.problems import problem_response
from app.http.request_ids import begin_request

__all__ = ["SAFE_HEADERS", "GuardMiddleware"]

# For responses that are not pages. Pages have their own policy, which allows their scripts.
SAFE_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    *((name.lower().encode(), value.encode()) for name, value in COMMON_HEADERS.items()),
]
_CLOSE = (b"connection", b"close")
_NO_STORE = (b"cache-control", b"no-store")
_FURTHER = {b"transfer-encoding", b"content-encoding", b"upgrade", b"x-request-id", b"traceparent"}


class GuardMiddleware:
    """Adds the request's id, and security headers to responses that are not pages.

    Answers of routes that need an access key, and those of no route, must not be stored.

    Answers 503 to a request that a shutdown cuts off, and 500 after an error that nobody expects.

    The service has no WebSockets: a request for one gets 404.

    A refusal before the end of the body closes the connection, so the rest of the body is not read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        length, wants_websocket, codings, name = _announced(scope)
        body = CompressedBody(receive, length, codings) if codings else Body(receive, length)
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if not started:
                started = True
                headers = [*message.get("headers", ()), (b"x-request-id", name)]
                for field, _ in headers:
                    if field == b"content-security-policy":
                        break
                else:
                    headers += SAFE_HEADERS
                if scope["method"] != "POST" and _is_guarded(scope):  # browsers keep no answer to a POST
                    headers = [each for each in headers if each[0] != b"cache-control"] + [_NO_STORE]
                if message["status"] >= 400 and not body.complete:
                    headers.append(_CLOSE)
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
        except Exception:
            if not started:
                await problem_response(500)(scope, receive, guarded)
            raise  # to the server, which logs it
        finally:
            body.release()


def _is_guarded(scope: Scope) -> bool:
    """Whether the route needs an access key: then no browser may keep its answer for the next person."""
    needs = getattr(scope.get("route"), "needs", None)
    return needs is None or bool(needs.scopes)


def _announced(scope: Scope) -> tuple[int | None, bool, Sequence[bytes], bytes]:
    """What the headers say before any route is known.

    The length of the body, None if they do not say it; whether they ask for a WebSocket; how the body is compressed;
    and the id of the request.
    """
    length: int | None = 0
    wants_websocket = False
    codings: Sequence[bytes] = ()
    asked: bytes | None = None
    trace_parent: bytes | None = None
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = int(value[:19]) if value.isdigit() else None  # with more digits it is too long anyway
        elif name not in _FURTHER:  # most headers: one comparison is faster than five
            continue
        elif name == b"content-encoding":
            codings = [*codings, value]
        elif name == b"transfer-encoding":
            length = None
        elif name == b"upgrade":
            wants_websocket = value.lower() == b"websocket"
        elif name == b"x-request-id":
            asked = value if asked is None else b""  # a repeated header is ignored
        else:
            trace_parent = value if trace_parent is None else b""
    return length, wants_websocket, codings, begin_request(asked, trace_parent)
