"""The names inside uvicorn that the service depends on, beyond the documented interface.

``BoundedProtocol`` extends uvicorn's protocol, and web workers are forked (app/server/serving.py). Any version of
uvicorn may change these names, so service/requirements.txt caps the version. tests/app/http/test_uvicorn_internals.py
fails if a name or a signature changes, or if the service uses a name that is not listed here. To raise the cap, read
uvicorn's changes, and run that test and those of tests/app/server.
"""

from multiprocessing.process import BaseProcess

from uvicorn import _subprocess
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

__all__ = ["METHODS", "STATE", "STATUS_LINE", "HttpToolsProtocol", "start_workers_as"]

METHODS: dict[type, dict[str, list[str]]] = {
    HttpToolsProtocol: {
        "__init__": ["config", "server_state", "app_state", "_loop"],
        "connection_made": ["transport"],
        "connection_lost": ["exc"],
        "data_received": ["data"],
        "eof_received": [],
        "on_message_begin": [],
        "on_headers_complete": [],
        "on_body": ["body"],
        "on_message_complete": [],
        "on_response_complete": [],
        "pause_writing": [],
        "resume_writing": [],
    },
    FlowControl: {"resume_reading": []},
}
"""The methods that are overridden or called, with their parameters."""

STATE: dict[type, set[str]] = {
    HttpToolsProtocol: {
        "app_state",
        "connections",
        "cycle",
        "flow",
        "headers",
        "loop",
        "parser",
        "pipeline",
        "timeout_keep_alive_task",
        "transport",
        "url",
    },
    RequestResponseCycle: {
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "response_complete",
        "scope",
        "transport",
    },
    FlowControl: {"read_paused"},
}
"""The attributes that are read or set."""


def start_workers_as(process: type[BaseProcess]) -> None:
    """Let uvicorn start its web workers as such processes: it calls ``spawn.Process(target=…, kwargs=…)``."""
    _subprocess.spawn = type("Context", (), {"Process": process})  # type: ignore[assignment]
