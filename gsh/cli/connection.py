"""The service that a command talks to: its URL, the access key, and a progress bar while a table goes there."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import gsh
from gsh.cli.errors import Code, Refusal
from gsh.cli.output import note, progress_bar

if TYPE_CHECKING:
    import httpx
    from rich.progress import Progress, TaskID

__all__ = ["KeyFile", "RetryCount", "ServiceUrl", "connected", "need_service", "paying", "place_of"]

ServiceUrl: TypeAlias = Annotated[
    str | None, typer.Option("--service", metavar="URL", help="The service; GSH_URL if not given.")
]
KeyFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--key-file", metavar="FILE", help="A file with the access key; else GSH_KEY, if there is one."),
]
RetryCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--retries",
        metavar="N",
        min=0,
        help="How often to try again, within two minutes, if the service is busy or away; else as often as fits.",
    ),
]


@contextmanager
def connected(url: str | None, key_file: str | None, retries: int | None) -> Iterator["gsh.Client"]:
    """A client of the service. The access key is never an argument, which other users of the machine could see."""
    found = url or os.environ.get("GSH_URL")
    if not found:
        raise Refusal(Code.INVALID, "--service: is missing", "give the URL of the service, or set GSH_URL")
    key = None if key_file is None else Path(key_file).read_text("ascii", "replace").strip()
    options: dict[str, Any] = {} if retries is None else {"retries": retries}
    with (
        _waits_shown(),
        _progress() as sending,
        gsh.Client(found, key=key, event_hooks={"request": [sending]}, **options) as made,
    ):
        yield made


@contextmanager
def paying(
    paid: Mapping[str, Any], url: str | None, key_file: str | None, retries: int | None
) -> Iterator[dict[str, Any]]:
    """Who pays, as arguments of ``publish``: a service, if it or a budget is named. Else nobody."""
    given = {name: value for name, value in paid.items() if value is not None}
    if url is None and "budget" not in given:
        need_service(given)
        yield {}
        return
    with connected(url, key_file, retries) as client:
        yield {"service": client, **given}


def need_service(given: Iterable[str]) -> None:
    """Refuse, without a service, arguments that only a service can take."""
    for name in given:
        option = "label" if name == "labels" else name.replace("_", "-")
        raise Refusal(Code.INVALID, f"--{option}: needs a service", "add --budget ID and --service URL")


class _Notes(logging.Handler):
    """Says on standard error why the client waits."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"gsh: {record.getMessage()}")


@contextmanager
def _waits_shown() -> Iterator[None]:
    log, handler = logging.getLogger("gsh.client"), _Notes()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


@contextmanager
def _progress() -> Iterator[Any]:
    """A hook that shows how much of a long body is sent. Nothing without a terminal."""
    with progress_bar("Download", "TransferSpeed") as bar:
        if bar is None:
            yield lambda _request: None
            return

        def sending(request: "httpx.Request") -> None:
            import httpx  # noqa: PLC0415

            if isinstance(request.stream, httpx.SyncByteStream):
                request.stream = _counted(request.stream, bar, bar.add_task("Sending", total=None))

        yield sending


def _counted(stream: "httpx.SyncByteStream", bar: "Progress", task: "TaskID") -> "httpx.SyncByteStream":
    """The same bytes. The bar moves when a part was taken."""
    import httpx  # noqa: PLC0415

    class Counted(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for chunk in stream:
                yield chunk
                bar.update(task, advance=len(chunk))
            bar.update(task, description="Sent; waiting for the answer")

        def close(self) -> None:
            stream.close()

    return Counted()


def place_of(context: typer.Context, service: str | None, key_file: str | None) -> tuple[str | None, str | None]:
    """The service of the command, or the one given before it: gsh budgets --service URL get web."""
    before = context.parent.params if context.parent is not None else {}
    return service or before.get("service"), key_file or before.get("key_file")
