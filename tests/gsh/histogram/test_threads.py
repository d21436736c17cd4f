"""Many threads at once: the same bits give the same numbers as alone, also in ball arithmetic."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import L2Norm
from gsh.histogram.entropy import operating_system
from gsh.histogram.noise import Noise
from tests.gsh.histogram.recorded import Recorded, awkward_words

pytestmark = pytest.mark.slow

AGGREGATES = Aggregates(names=("a", "b"), covariance=((400.0, 150.0), (150.0, 100.0)), sensitivity=L2Norm(1.0))
MECHANISM = Mechanism(c_u=3, tau=1, tau_star=1000.0, sigma=20.0, aggregates=AGGREGATES)
COUNTS, VALUES = np.full(200, 1000), np.full((200, 2), 0.1)


def noisy(seed: int) -> tuple[list[bool], list[float], list[list[float]]]:
    """Most of these draws are beyond the table, so balls decide them at 128 bits or more."""
    added = Noise(MECHANISM).add(COUNTS, VALUES, Recorded(str(seed), awkward_words()))
    return added.kept.tolist(), added.counts.tolist(), added.values.tolist()


def test_threads_do_not_disturb_each_other() -> None:
    """While noise is drawn, other threads account at other precisions."""
    alone = [noisy(seed) for seed in range(8)]
    account = at_epsilon(EXACT, MECHANISM, 0.5)
    with ThreadPoolExecutor(8) as pool:
        accounts = [pool.submit(at_epsilon, EXACT, MECHANISM, 0.5) for _ in range(50)]
        together = list(pool.map(noisy, range(8)))
        accounts += [pool.submit(at_epsilon, EXACT, MECHANISM, 0.5) for _ in range(50)]

    assert together == alone
    assert {future.result() for future in accounts} == {account}


def test_threads_that_draw_from_the_operating_system_never_repeat_each_other() -> None:
    noise = Noise(MECHANISM)
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: noise.add(COUNTS, VALUES, operating_system).counts.tobytes(), range(16)))

    assert len(set(drawn)) == 16
