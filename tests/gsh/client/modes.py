"""The same test for both clients: ``outcome`` is what a call gives, blocking or awaited."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Literal

import gsh
from gsh.client import Retries

__all__ = ["MODES", "Mode", "outcome"]

Mode = Literal["blocking", "async"]
MODES: tuple[Mode, ...] = ("blocking", "async")


def outcome(mode: Mode, url: str, call: Callable[[Any], Any], retries: Retries, **options: Any) -> Any:
    """The result of a call of a new client. A list is read to its end."""
    if mode == "blocking":
        with gsh.Client(url, retries=retries, **options) as client:
            found = call(client)
            return list(found) if hasattr(found, "__next__") else found

    async def run() -> Any:
        async with gsh.AsyncClient(url, retries=retries, **options) as client:
            found = call(client)
            if isinstance(found, AsyncIterator):
                return [item async for item in found]
            assert isinstance(found, Coroutine)
            return await found

    return asyncio.run(run())
