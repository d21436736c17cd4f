"""The form of /release/table: its request is checked while the table arrives, and no byte is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from starlette.exceptions import HTTPException

from app.releases.spool import SharedFile
from app.releases.uploads import Form

SCOPE: Any = {"headers": [(b"content-type", b"multipart/form-data; boundary=x")]}
PART = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n'
REQUEST = PART % b"request" + b"{}\r\n" + PART % b"table"
END = b"\r\n--x--\r\n"


Check = Callable[[bytes], Coroutine[Any, Any, Any]]


class Upload(NamedTuple):
    checked: Any
    table: SharedFile


async def receive_upload(scope: Any, body: AsyncIterator[bytes], most: int, check: Check) -> Upload:
    """Both parts of the form, one after the other."""
    form = Form(scope, body, most)
    try:
        return Upload(await form.request(check), (await form.tables())[0])
    finally:
        form.stop()


def table_of(upload: Upload) -> bytes:
    with upload.table as file:
        file.seek(0)
        return file.read()


@pytest.mark.parametrize("chunks", [1, 3, 100])
def test_chunks_that_arrive_during_the_check_are_kept_in_order(chunks: int) -> None:
    """Up to a megabyte is read ahead; the rest waits."""
    table = [bytes([number]) * 20_000 for number in range(chunks)]
    arrived = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal arrived
        for chunk in (REQUEST, *table, END):
            arrived += 1
            yield chunk

    async def receive() -> tuple[Upload, int]:
        done = asyncio.Event()

        async def check(request: bytes) -> str:
            assert request == b"{}"
            await done.wait()
            return "checked"

        upload = asyncio.ensure_future(receive_upload(SCOPE, body(), 100, check))
        before = -1
        while before < arrived:
            before = arrived
            for _ in range(10):
                await asyncio.sleep(0)
        done.set()
        return await upload, before

    upload, before = asyncio.run(receive())

    assert upload.checked == "checked"
    assert table_of(upload) == b"".join(table)
    assert before == min(chunks + 2, 1 + -(-(2**20) // 20_000))


def test_a_client_that_hangs_up_ends_the_check() -> None:
    """A check can take long, and nobody waits for it any more."""
    ended: list[bool] = []

    async def body() -> AsyncIterator[bytes]:
        yield REQUEST + b"a part of a table"
        raise HTTPException(400)

    async def check(_request: bytes) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(HTTPException):
        asyncio.run(receive_upload(SCOPE, body(), 100, check))

    assert ended == [True]


def test_an_error_of_the_check_ends_the_upload() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield REQUEST
        while True:
            yield b"a table without an end"

    async def check(_request: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(receive_upload(SCOPE, body(), 100, check))
