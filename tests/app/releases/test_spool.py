"""Files of releases are read, written and closed in threads, never on the event loop."""

import asyncio
import io
import threading
from collections.abc import Callable
from typing import Any

from app.releases.spool import SharedFile, chunks_of, spool


class Watched(io.BytesIO):
    """Remembers the threads in which it was used."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.threads: set[str] = set()

    def _watched(self, method: Callable[..., Any], *args: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        return method(*args)

    def read(self, *args: Any) -> bytes:
        return self._watched(super().read, *args)  # type: ignore[no-any-return]

    def seek(self, *args: Any) -> int:
        return self._watched(super().seek, *args)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._watched(super().close)


async def joined(shared: SharedFile) -> bytes:
    return b"".join([chunk async for chunk in chunks_of(shared)])


def test_an_answer_is_read_in_threads_and_closed_at_its_end() -> None:
    content = bytes(range(256)) * 10_000
    file = Watched(content)
    file.seek(100)
    file.threads.clear()

    assert asyncio.run(joined(SharedFile(file))) == content
    assert file.closed
    assert all(name.startswith("release-files") for name in file.threads)


def test_an_answer_is_closed_before_its_last_chunk_is_sent() -> None:
    shared = spool()
    shared.file.write(b"x" * 3 * 10**6)

    async def closed_at_each_chunk() -> list[bool]:
        return [shared.file.closed async for _ in chunks_of(shared)]

    assert asyncio.run(closed_at_each_chunk()) == [False, False, True]


def test_an_answer_that_is_not_read_to_its_end_is_closed() -> None:
    shared = spool()
    shared.file.write(b"x" * 10**7)

    async def read_one() -> None:
        chunks = chunks_of(shared)
        assert await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]

    asyncio.run(read_one())

    assert shared.file.closed
