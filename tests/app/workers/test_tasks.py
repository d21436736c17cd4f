"""Objects over the pipe between the service and a worker."""

import pickle
from multiprocessing import Pipe
from threading import Thread
from typing import Any

import pytest

from app.workers.tasks import receive, send


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


@pytest.mark.parametrize("length", [0, 1, 2**16, 2**16 + 1, 10**7])
def test_bytes_of_any_length_arrive(length: int) -> None:
    content = b"x" * length

    assert sent(content, {"nested": content}, None) == [content, {"nested": content}, None]


def test_an_object_that_cannot_be_pickled_is_an_error_of_the_sender() -> None:
    here, there = Pipe()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        send(here, lambda: None)
    here.close()
    there.close()
