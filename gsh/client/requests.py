"""Requests: how they are written, and when they are sent again: never if that could release or charge twice.

A request is repeated if it is safe (``Call.is_safe``) and its body can be read again, after a connection that failed
and after 429 and 503. The wait is random between 0 and a bound that doubles, which is called full jitter, and comes on
top of what ``Retry-After`` asks. The time is bounded, and the number of attempts too if it is given.
"""

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from gsh.client.decoding import Renames, check_digest, error_of, waiting
from gsh.client.operations import MOST_BYTES, Answer, Body, Bound, Call, Failure, Method, Operation, Outcome, Pause
from gsh.errors import InvalidParameter
from gsh.histogram.file_formats import JSON

__all__ = ["Retries", "ask", "checked_name", "json_call", "once_headers", "part", "with_retries"]

_STATUSES = (429, 503)
_ACCEPTED = 202
"""A request is stored, and waits for an approval."""
_NOTICED = 1.0
"""Seconds. A shorter wait is not logged."""
_random = secrets.SystemRandom()
_log = logging.getLogger("gsh.client")


@dataclass(frozen=True, slots=True)
class Retries:
    """When a client tries again: until ``seconds`` after the first failure, at most ``most`` more times if it is given.

    The longest random wait is ``first`` seconds after the first attempt, and doubles up to ``longest``. The last
    attempt begins when the time is over.
    """

    most: int | None = None
    seconds: float = 120.0
    first: float = 0.25
    longest: float = 20.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        for name in ("most", "seconds", "first", "longest"):
            value = getattr(self, name)
            if not (name == "most" and value is None) and not value >= 0:
                raise InvalidParameter(f"retries/{name}", "must be at least 0")
        if self.most is None and not self.first * self.longest > 0:
            raise InvalidParameter("retries/most", "must be given if first or longest is 0: nothing else ends them")

    @property
    def are_on(self) -> bool:
        """Whether anything is tried again."""
        return self.most != 0 and self.seconds > 0

    def wait(self, attempt: int, asked: float, left: float) -> float | None:
        """The wait after an attempt, counted from 0; None if it was the last one.

        ``asked``: the seconds that the service asks for. ``left``: those until the time is over.
        """
        if (self.most is not None and attempt >= self.most) or asked > left or left <= 0:
            return None
        return min(left, asked + _random.uniform(0.0, min(self.longest, self.first * 2.0 ** min(attempt, 60))))


def with_retries(retries: Retries, call: Call, renames: Renames = ()) -> Operation[Answer]:
    """The successful answer of a call, after repetitions if it may be repeated. Else the error of the last outcome."""
    attempt, end = 0, None
    while True:
        outcome = yield call
        assert isinstance(outcome, Answer | Failure)
        if isinstance(outcome, Answer) and outcome.status == _ACCEPTED:
            raise waiting(outcome)
        if isinstance(outcome, Answer) and outcome.is_success:
            return outcome
        now = retries.clock()
        end = now + retries.seconds if end is None else end
        asked = _retry_after(outcome)
        wait = retries.wait(attempt, asked or 0.0, end - now)
        if wait is None or not (call.may_be_repeated and _passes(outcome)):
            raise error_of(outcome, renames, asked)
        if wait >= _NOTICED:
            _log.warning("%s; trying again in %.0f s (%.0f s left)", error_of(outcome), wait, end - now)
        yield Pause(wait)
        attempt += 1


def _passes(outcome: Outcome) -> bool:
    """Whether another attempt may end better."""
    return not outcome.is_final if isinstance(outcome, Failure) else outcome.status in _STATUSES


def _retry_after(outcome: Outcome) -> float | None:
    """The seconds that ``Retry-After`` asks to wait, as a number or as a date.  [RFC 9110, section 10.2.3]"""
    header = "" if isinstance(outcome, Failure) else outcome.headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        then = parsedate_to_datetime(header)
    except (ValueError, ArithmeticError, LookupError, TypeError):  # a server may say anything
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,255}")


def ask(bound: Bound[Any], call: Call, renames: Renames = ()) -> Operation[Answer]:
    """The successful answer of a call."""
    answer = yield from with_retries(bound._driver.retries, call, renames)
    check_digest(answer)
    return answer


def json_call(
    method: Method,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    is_safe: bool | None = None,
    query: Mapping[str, object] | None = None,
    once: str | None = None,
    accept: str = JSON,
    most_bytes: int = MOST_BYTES,
) -> Call:
    """A call with or without a JSON body. A POST is safe if it has ``once``, or if the caller says so."""
    written = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    return Call(
        method,
        path,
        is_safe=method != "POST" or once is not None if is_safe is None else is_safe,
        query=tuple(_pairs(query or {})),
        headers={"Accept": accept} | once_headers(once),
        body=None if written is None else Body(JSON, lambda: written),
        most_bytes=most_bytes,
    )


def once_headers(once: str | None) -> dict[str, str]:
    """The header with the idempotency key."""
    if once is None:
        return {}
    return {"Idempotency-Key": checked_name("once", once)}


def checked_name(pointer: str, name: object) -> str:
    """The name of a release or of a budget."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in {".", ".."}:
        raise InvalidParameter(pointer, "must be 1 to 255 letters, digits and the characters . _ ~ : and -")
    return name


def part(pointer: str, name: str) -> str:
    """A name as one part of a path."""
    if not isinstance(name, str) or not name or name in {".", ".."}:
        raise InvalidParameter(pointer, "must not be empty")
    return quote(name, safe="")


def _pairs(query: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                yield name, _written(each)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
