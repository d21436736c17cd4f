"""Parcels go from worker to worker through the service, which does not open them."""

import pickle
from multiprocessing import Pipe
from threading import Thread
from typing import Any

import pytest

from app.service.parcels import Parcel, receive, send

built: list[int] = []


class Large:
    """Counts how often it is built from a pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _build, ()


def _build() -> Large:
    built.append(1)
    return Large()


def sent(*items: Any) -> list[Any]:
    """The items on the other side of a pipe."""
    here, there = Pipe()
    thread = Thread(target=send, args=(here, *items))
    thread.start()
    received = receive(there)
    thread.join()
    here.close()
    there.close()
    return received


def test_a_parcel_is_built_when_it_is_opened_and_not_on_its_way() -> None:
    built.clear()
    (first,) = sent(Parcel([Large()]))
    (second,) = sent(first)

    assert built == []
    assert isinstance(second.open()[0], Large)
    assert built == [1]


def test_the_process_that_made_a_parcel_can_open_it() -> None:
    value = object()

    assert Parcel(value).open() is value


@pytest.mark.parametrize("length", [0, 1, 2**16, 2**16 + 1, 10**7])
def test_bytes_of_any_length_arrive(length: int) -> None:
    content = b"x" * length
    bare, parcel, nested = sent(content, Parcel(content), {"parcel": Parcel(content)})

    assert bare == parcel.open() == nested["parcel"].open() == content


def test_a_value_that_cannot_be_pickled_is_an_error_in_the_sender() -> None:
    here, there = Pipe()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        send(here, Parcel(lambda: None))
    here.close()
    there.close()
