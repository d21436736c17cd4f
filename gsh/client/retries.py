"""When a request is sent again: never if that could release or charge twice.

A request is repeated if it is safe (``Call.is_safe``) and its body can be read again, after a connection that failed
and after 429 and 503. The wait is random between 0 and a bound that doubles, which is called full jitter, and comes on
top of what ``Retry-After`` asks. Both the number of attempts and the time are bounded.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from gsh.client.calls import Answer, Call, Failure, Operation, Outcome, Pause
from gsh.client.problems import Renames, error_of
from gsh.errors import InvalidParameter

__all__ = ["Retries", "patiently"]

_STATUSES = (429, 503)
_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class Retries:
    """How patient a client is: at most ``most`` further attempts, begun within ``seconds`` of the first one.

    The longest random wait is ``first`` seconds after the first attempt, and doubles up to ``longest``.
    """

    most: int = 6
    seconds: float = 120.0
    first: float = 0.25
    longest: float = 20.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        for name in ("most", "seconds", "first", "longest"):
            if not getattr(self, name) >= 0:
                raise InvalidParameter(f"retries/{name}", "must be at least 0")

    def wait(self, attempt: int, asked: float) -> float:
        """The wait after an attempt, counted from 0, if the service asks for so many seconds."""
        return asked + _random.uniform(0.0, min(self.longest, self.first * 2.0 ** min(attempt, 60)))


def patiently(retries: Retries, call: Call, renames: Renames = ()) -> Operation[Answer]:
    """The successful answer of a call, after repetitions if it may be repeated. Else the error of the last outcome."""
    begin = retries.clock()
    attempt = 0
    while True:
        outcome = yield call
        assert isinstance(outcome, Answer | Failure)
        if isinstance(outcome, Answer) and outcome.is_success:
            return outcome
        asked = _retry_after(outcome)
        wait = retries.wait(attempt, asked or 0.0)
        is_last = attempt >= retries.most or retries.clock() + wait - begin > retries.seconds
        if is_last or not (call.may_be_repeated and _passes(outcome)):
            break
        yield Pause(wait)
        attempt += 1
    raise error_of(outcome, renames, asked)


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
