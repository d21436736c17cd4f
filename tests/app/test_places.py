"""A bound on how many of something there are at once."""

import pytest

from app.errors import Busy
from app.places import Places


def test_a_place_is_free_again_however_its_use_ends() -> None:
    places = Places(1)
    with pytest.raises(InterruptedError), places.taken():
        raise InterruptedError

    with places.taken(), pytest.raises(Busy), places.taken():
        pass
    with places.taken():
        pass
