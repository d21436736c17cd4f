"""Sixteen threads that compute at different precisions get the results of one thread.

``flint.ctx.prec`` is one global: whoever sets it without the lock changes everybody's results.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flint import ctx

from gsh.accounting import theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.case_study import CASE_STUDY
from gsh.accounting.column_costs import mu_0
from gsh.accounting.curve_cache import CurveCache
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics import balls
from gsh.accounting.sensitivity import Box, L2Norm
from tests import reference
from tests.gsh.accounting.draws import mechanism_of

THREADS = 16

HILBERT = tuple(tuple(1.0 / (i + j + 1) for j in range(5)) for i in range(5))

Job = Callable[[], object]


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Let threads change places within one evaluation, not only between evaluations."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _jobs() -> list[Job]:
    """Work of every kind, from 80 bits to thousands."""
    jobs: list[Job] = [
        lambda: at_delta(EXACT, CASE_STUDY, 1e-5),
        lambda: at_delta(ADD_DELTAS, CASE_STUDY, 3e-5),
        lambda: calibrate(EXACT, Draft(3, 1, None, None), Target(1.0, 1e-6)),
        lambda: calibrate(ADD_DELTAS, Draft(None, 1, 200.0, 20.0), Target(1.0, 1e-6)),
        lambda: mu_0(HILBERT, Box((-1.0,) * 5, (1.0,) * 5)),
        lambda: mu_0(HILBERT, L2Norm(1.0)),
    ]
    jobs += [
        lambda sigma=sigma: at_epsilon(EXACT, Mechanism(c_u=1, tau=1, tau_star=1 + 9 * sigma, sigma=sigma), 0.0)  # type: ignore[misc]
        for sigma in (1e20, 1e50, 1e100, 1e200)
    ]
    jobs += [
        lambda case=case: at_epsilon(ADD_DELTAS, mechanism_of(case), case.epsilon)  # type: ignore[misc]
        for case in reference.CASES[::2]
    ]
    jobs += [
        lambda case=case: theorem.evaluate(mechanism_of(case), case.epsilon)  # type: ignore[misc]
        for case in reference.CASES[::9]
    ]
    return jobs


def test_the_jobs_need_different_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test below would prove nothing."""
    settled_at = set()
    at_precision = balls.at_precision
    for job in _jobs():
        used: list[int] = []

        def spy(bits: int, compute: Job, used: list[int] = used) -> object:
            used.append(bits)
            return at_precision(bits, compute)

        with monkeypatch.context() as patch:
            patch.setattr(balls, "at_precision", spy)
            job()
        settled_at.add(max(used))

    assert settled_at >= {80, 160, 320, 640, 1280}


@pytest.mark.usefixtures("eager_switching")
def test_sixteen_threads_agree_with_one() -> None:
    """Each thread does all the jobs, from another starting point, all at once."""
    jobs = _jobs()
    alone = [job() for job in jobs]
    barrier = threading.Barrier(THREADS)

    def work(thread: int) -> list[object]:
        first = thread * len(jobs) // THREADS
        barrier.wait()
        done = [job() for job in jobs[first:] + jobs[:first]]
        return done[len(jobs) - first :] + done[: len(jobs) - first]

    before = ctx.prec
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(work, range(THREADS)))

    assert all(results == alone for results in together)
    assert ctx.prec == before


@pytest.mark.usefixtures("eager_switching")
def test_one_cache_serves_sixteen_threads() -> None:
    """Shared, and too small for all points, so that points come and go meanwhile."""
    cache = CurveCache(8)
    mechanisms = [Mechanism(c_u=c_u, tau=1, tau_star=40.0, sigma=4.0) for c_u in range(1, 17)]
    alone = [at_epsilon(EXACT, mechanism, 1.0) for mechanism in mechanisms]
    barrier = threading.Barrier(THREADS)

    def work(thread: int) -> bool:
        barrier.wait()
        order = [(thread + k) % len(mechanisms) for k in range(5 * len(mechanisms))]
        return all(cache.point(EXACT, mechanisms[k], "epsilon", 1.0) == alone[k] for k in order)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))
    assert cache.hits + cache.misses == THREADS * 5 * len(mechanisms)
