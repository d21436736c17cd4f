"""Signals that end a program: its exit code says which one it was."""

import signal

import pytest

from gsh.library.whole_files import ended_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stays_what_it_is_if_an_engine_makes_an_interrupt_of_it(number: signal.Signals) -> None:
    """DuckDB raises KeyboardInterrupt for whatever is raised inside a query: 130 would be Ctrl-C."""

    def query() -> None:
        try:
            signal.raise_signal(number)
        except SystemExit:
            raise KeyboardInterrupt from None

    with pytest.raises(SystemExit) as ended, ended_by_signals():
        query()

    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_interrupt_stays_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        raise KeyboardInterrupt
