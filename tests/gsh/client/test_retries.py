"""When a request is sent again, and how long the client waits: by hand, without a network and without a clock."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gsh
from gsh.client import Busy, Retries, ServiceError, TooManyAttempts, Unreachable
from gsh.client.operations import Answer, Body, Call, Failure, Outcome, Pause
from gsh.client.requests import with_retries

SAFE = Call("GET", "/version", is_safe=True)
UNSAFE = Call("POST", "/release", is_safe=False)
ONE_PASS = Call("POST", "/release", is_safe=True, body=Body("text/csv", lambda: b"", is_repeatable=False))
FINE = Answer(200, {}, pa.py_buffer(b"{}"))
BROKEN = Failure("the connection broke")


def refused(status: int, retry_after: str | None = None) -> Answer:
    name = {429: "too-many-attempts", 503: "busy"}.get(status, "invalid-request")
    problem = f'{{"type": "/problems/{name}", "detail": "no", "errors": []}}'.encode()
    headers = {"content-type": "application/problem+json"}
    if retry_after is not None:
        headers["retry-after"] = retry_after
    return Answer(status, headers, pa.py_buffer(problem))


class Clock:
    """It stands still but for the pauses, and for the time that each call takes."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(outcomes: list[Outcome], call: Call = SAFE, each_takes: float = 0.0, **settings: float) -> list[float]:
    """The pauses of a call with these outcomes. It ends as the last outcome that it received says."""
    clock = Clock()
    steps = with_retries(Retries(clock=clock, **settings), call)  # type: ignore[arg-type]
    paused: list[float] = []
    received = iter(outcomes)
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                paused.append(step.seconds)
                clock.now += step.seconds
                step = steps.send(None)
            else:
                assert step is call
                clock.now += each_takes
                step = steps.send(next(received))
    except (StopIteration, ServiceError):
        assert next(received, None) is None
    return paused


@pytest.mark.parametrize("outcome", [BROKEN, refused(429), refused(503)])
def test_what_may_pass_is_tried_again(outcome: Outcome) -> None:
    assert len(waits([outcome, outcome, FINE])) == 2


@pytest.mark.parametrize("outcome", [Failure("settings", is_final=True), *map(refused, (400, 409, 422, 500, 502))])
def test_what_stays_is_not_tried_again(outcome: Outcome) -> None:
    assert waits([outcome]) == []


@pytest.mark.parametrize("call", [UNSAFE, ONE_PASS])
@pytest.mark.parametrize("outcome", [BROKEN, refused(429), refused(503, "1")])
def test_what_could_release_twice_is_not_tried_again(outcome: Outcome, call: Call) -> None:
    assert waits([outcome], call) == []


def test_waits_are_random_and_their_bounds_double() -> None:
    found = [waits([BROKEN] * 6 + [FINE], first=1.0, longest=5.0) for _ in range(300)]

    for attempt, most in enumerate([1, 2, 4, 5, 5, 5]):
        column = [each[attempt] for each in found]
        assert all(0 <= wait <= most for wait in column)
        # Full jitter: the lowest and the highest third are both there, but for a chance of 2·(2/3)^300.
        assert min(column) < most / 3
        assert max(column) > most * 2 / 3


def test_retry_after_is_honoured_as_a_number_and_as_a_date() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    number, date = waits([refused(503, "7"), refused(429, then), FINE], first=0.0, most=2)

    assert number == 7
    assert 40 < date <= 50


@pytest.mark.parametrize("said", ["", "soon", "-3", "²", "Tue, 99 Nov 2026 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_is_ignored(said: str) -> None:
    assert waits([refused(503, said), FINE], first=0.0, most=1) == [0.0]


def test_a_date_in_the_past_means_now() -> None:
    assert waits([refused(503, "Tue, 17 Nov 1998 00:00:00 GMT"), FINE], first=0.0, most=1) == [0.0]


def test_a_wait_that_is_too_long_is_not_begun() -> None:
    assert waits([refused(503, "120"), FINE], first=0.0, most=1, seconds=120.0) == [120.0]
    assert waits([refused(503, "121")], first=0.0, most=1, seconds=120.0) == []


def waits_of_a_service_that_stays_away(outcome: Outcome, **settings: float) -> list[float]:
    """The pauses until the client gives up, if calls take no time."""
    clock, paused = Clock(), []
    steps = with_retries(Retries(clock=clock, **settings), SAFE)  # type: ignore[arg-type]
    next(steps)
    with suppress(ServiceError):
        while True:
            pause = steps.send(outcome)
            assert isinstance(pause, Pause)
            paused.append(pause.seconds)
            clock.now += pause.seconds
            assert steps.send(None) is SAFE
    return paused


@pytest.mark.parametrize("outcome", [BROKEN, refused(503), refused(503, "0")])
def test_the_client_tries_again_until_the_time_is_over(outcome: Outcome) -> None:
    """The last attempt begins 120 seconds after the first failure, and not earlier."""
    for _ in range(20):
        assert sum(waits_of_a_service_that_stays_away(outcome)) == pytest.approx(120)


def test_a_service_that_asks_for_more_than_is_left_gets_no_further_attempt() -> None:
    for _ in range(20):
        assert 120 - 7 < sum(waits_of_a_service_that_stays_away(refused(503, "7"))) < 120.001


def test_the_number_of_attempts_is_bounded_only_if_it_is_given() -> None:
    assert len(waits_of_a_service_that_stays_away(BROKEN, seconds=10_000)) > 300
    assert len(waits_of_a_service_that_stays_away(BROKEN, seconds=10_000, most=7)) == 7
    for name in ("first", "longest"):
        with pytest.raises(gsh.InvalidParameter, match="retries/most: must be given if first or longest is 0"):
            Retries(**{name: 0.0})


def test_the_time_begins_with_the_first_failure() -> None:
    """A long upload that breaks is sent again at least once."""
    assert len(waits([BROKEN, BROKEN], first=0.0, most=9, each_takes=3600.0)) == 1
    assert len(waits([BROKEN] * 5, first=0.0, most=9, each_takes=31.0)) == 4


def test_a_wait_that_people_notice_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    waits([refused(503, "7"), BROKEN, FINE], first=0.5)

    assert caplog.messages == ["no; trying again in 7 s (120 s left)"]


OUTCOMES = st.sampled_from([BROKEN, refused(429), refused(503), refused(503, "3"), refused(422), FINE])


@given(st.lists(OUTCOMES, min_size=30, max_size=30), st.integers(0, 8), st.floats(0, 60), st.floats(0, 10))
def test_the_number_and_the_time_are_bounded(
    outcomes: list[Outcome], most: int, seconds: float, each_takes: float
) -> None:
    clock, calls, last_call = Clock(), 0, each_takes
    steps = with_retries(Retries(most=most, seconds=seconds, clock=clock), SAFE)
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                clock.now += step.seconds
                step = steps.send(None)
            else:
                last_call = clock.now - 1000.0
                clock.now += each_takes
                step = steps.send(outcomes[calls])
                calls += 1
    except (StopIteration, ServiceError):
        calls += 1
    assert 1 <= calls <= most + 1
    assert last_call <= seconds + each_takes + 1e-6


def last_error(outcome: Outcome) -> ServiceError:
    steps = with_retries(Retries(most=0), SAFE)
    next(steps)
    with pytest.raises(ServiceError) as caught:
        steps.send(outcome)
    return caught.value


def test_the_last_outcome_is_the_error() -> None:
    assert isinstance(last_error(BROKEN), Unreachable)
    assert isinstance(last_error(refused(503, "2")), Busy)
    assert isinstance(last_error(refused(429, "9")), TooManyAttempts)
    assert last_error(refused(429, "9")).retry_after == 9


@pytest.mark.parametrize("name", ["most", "seconds", "first", "longest"])
def test_a_patience_that_is_none_is_refused(name: str) -> None:
    for value in (-1, float("nan")):
        with pytest.raises(gsh.InvalidParameter, match=f"retries/{name}: must be at least 0"):
            Retries(**{name: value})  # type: ignore[arg-type]
