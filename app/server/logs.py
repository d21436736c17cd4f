"""Logs: one JSON object per line. A line never has a body or the message of an exception.

Of the headers it has only the id of the request and its place in a trace, if they are well-formed.
"""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from app.http.request_ids import log_fields

__all__ = ["JsonFormatter", "log_config"]

_OF_REQUESTS = ("method", "route", "status", "seconds")
_OF_HEADS = ("at", "budget", "entries", "head", "access_keys", "seal", "checkpoint")
_EXTRAS = (*_OF_REQUESTS, *_OF_HEADS)


class JsonFormatter(logging.Formatter):
    """An exception is logged as its type and its frames. Its message could contain posted data."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= log_fields()
        line |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["exception"] = record.exc_info[0].__qualname__
            line["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False)


def log_config(level: str) -> dict[str, Any]:
    """The configuration for uvicorn and for us: JSON to standard output."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "app.server.logs.JsonFormatter"}},
        "handlers": {"stdout": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stdout"}},
        "root": {"handlers": ["stdout"], "level": level.upper()},
        "loggers": {"uvicorn": {"level": level.upper()}, "uvicorn.access": {"level": "CRITICAL"}},
    }
