"""Guesses at a stored request are counted before they are answered, and never block the client that paid for long."""

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from app.ledger.charges import Charge
from app.ledger.errors import KeyReused, TooManyComparisons
from app.ledger.opening import open_ledger
from app.ledger.repeats import BURST, SECONDS
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.examples import AT, charge, paid

LATER = "2026-11-16T12:00:06Z"
MUCH_LATER = "2026-11-16T13:00:00Z"
STRANGER = "another access key"


@pytest.fixture(autouse=True)
def web(ledger: Ledger) -> None:
    ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid(), b"the stored answer")


def outcome(ledger: Ledger, asked: Charge, at: str = AT, *, charging: bool = False) -> object:
    """The outcome for a client: the bytes, or the kind of refusal."""
    try:
        if charging:
            return charge(ledger, asked, at=at)
        return b"".join(ledger.content(ledger.recall(asked, at)))
    except (KeyReused, TooManyComparisons) as error:
        return type(error)


@pytest.mark.parametrize("charging", [False, True])
def test_five_guesses_are_compared_and_the_rest_are_not_even_if_right(ledger: Ledger, charging: bool) -> None:
    guesses = [paid(request=f"guess {number}") for number in range(20)]

    told = [outcome(ledger, guess, charging=charging) for guess in guesses]

    assert told == [KeyReused] * BURST + [TooManyComparisons] * 15
    assert outcome(ledger, paid(), charging=charging) is TooManyComparisons


@pytest.mark.parametrize("charging", [False, True])
def test_the_request_of_another_client_is_never_compared_even_if_right(ledger: Ledger, charging: bool) -> None:
    """Otherwise clients that share a budget could find out what the others posted, one guess at a time."""
    guesses = [paid(request=f"guess {number}", client=STRANGER) for number in range(20)]

    told = [outcome(ledger, guess, charging=charging) for guess in [*guesses, paid(client=STRANGER)]]

    assert told == [KeyReused] * 21
    with pytest.raises(KeyReused):
        ledger.check(paid(client=STRANGER), AT)
    with pytest.raises(KeyReused):
        ledger.recall_same_bytes(paid(client=STRANGER), AT)


def test_the_same_content_in_other_bytes_is_the_same_request(ledger: Ledger) -> None:
    charge(ledger, replace(paid(key="content"), content="c"), b"an answer")
    again = replace(paid(key="content", request="other bytes"), content="c")

    assert outcome(ledger, again) == b"an answer"
    assert outcome(ledger, again, charging=True) == b"an answer"
    assert ledger.recall_same_bytes(again, AT) is None
    assert outcome(ledger, replace(again, content="another")) is KeyReused
    assert outcome(ledger, replace(again, content="")) is KeyReused


def test_the_client_that_paid_is_answered_while_another_guesses(ledger: Ledger) -> None:
    for number in range(50):
        outcome(ledger, paid(request=f"guess {number}", client=STRANGER))

    assert outcome(ledger, paid()) == b"the stored answer"


def test_refusals_do_not_make_the_wait_longer(ledger: Ledger) -> None:
    """One attempt is allowed again every six seconds, however many were refused."""
    for number in range(300):
        outcome(ledger, paid(request=f"guess {number}"))

    with pytest.raises(TooManyComparisons) as refused:
        ledger.recall(paid(), AT)
    assert refused.value.seconds == SECONDS
    assert outcome(ledger, paid(), LATER) == b"the stored answer"
    assert outcome(ledger, paid(request="another guess"), LATER) is KeyReused
    assert outcome(ledger, paid(), LATER) is TooManyComparisons
    assert outcome(ledger, paid(), MUCH_LATER) == b"the stored answer"


def test_the_same_request_is_answered_any_number_of_times(ledger: Ledger) -> None:
    assert {outcome(ledger, paid()) for _ in range(5 * BURST)} == {b"the stored answer"}


def test_each_idempotency_key_has_counts_of_its_own(ledger: Ledger) -> None:
    charge(ledger, paid(key="second"), b"another answer")
    for number in range(20):
        outcome(ledger, paid(request=f"guess {number}"))

    assert outcome(ledger, paid(key="second")) == b"another answer"


def test_a_clock_that_is_set_back_makes_no_wait_longer(ledger: Ledger) -> None:
    for number in range(20):
        outcome(ledger, paid(request=f"guess {number}"), MUCH_LATER)

    assert outcome(ledger, paid(), AT) is TooManyComparisons
    with pytest.raises(TooManyComparisons) as refused:
        ledger.recall(paid(), AT)
    assert refused.value.seconds <= SECONDS


def test_a_count_survives_the_refusal_and_the_process(ledger: Ledger, ledger_url: str) -> None:
    for number in range(BURST):
        outcome(ledger, paid(request=f"guess {number}"))

    with closing(open_ledger(ledger_url, "a secret for tests")) as another:
        assert outcome(another, paid()) is TooManyComparisons


def test_racing_guesses_share_one_count(ledger: Ledger, ledger_url: str) -> None:
    """Each has its own connection, like a process."""
    gate, told = threading.Barrier(24), []

    def guess(number: int) -> None:
        with closing(open_ledger(ledger_url, "a secret for tests")) as mine:
            gate.wait()
            told.append(outcome(mine, paid(request=f"guess {number}"), charging=number % 3 == 0))

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert told.count(KeyReused) == BURST
    assert told.count(TooManyComparisons) == 24 - BURST


def test_the_client_is_stored_as_a_keyed_hash_alone(ledger: Ledger) -> None:
    (entry,) = ledger.history("web", None, 1)

    assert "owner" not in entry.payload
    assert "client" not in entry.shown
    assert entry.details["client"] == ledger.secret.fingerprint(b"client", b"owner")
