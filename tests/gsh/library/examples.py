"""Mechanisms for the tests of the front door: each as people may write it, with numpy, and in plain numbers."""

import numpy as np

import gsh
from gsh.accounting import mechanism as core
from gsh.accounting.sensitivity import Box

__all__ = ["COLUMNS", "PAIRS", "RELATIVE"]

COLUMNS = gsh.Aggregates(
    names=["likes", "shares"],
    covariance=np.array([[40000, 5000], [5000, 10000]]),
    sensitivity=gsh.box(lower=np.zeros(2), upper=[1, 1]),
)
RELATIVE = gsh.RelativeAggregates(
    names=["likes", "shares"],
    relative_covariance=[[1, 0], [0, 0.25]],
    sensitivity=gsh.box(lower=[0, 0], upper=[1, 1]),
)
_CORE_COLUMNS = core.Aggregates(
    names=("likes", "shares"),
    covariance=((40000.0, 5000.0), (5000.0, 10000.0)),
    sensitivity=Box((0.0, 0.0), (1.0, 1.0)),
)

PAIRS: dict[str, tuple[gsh.Mechanism, core.Mechanism]] = {
    "counts": (
        gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228),
        core.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228),
    ),
    "tau of zero": (
        gsh.Mechanism(c_u=np.int32(7), tau=np.uint8(0), tau_star=np.float32(60.5), sigma=np.int64(10)),
        core.Mechanism(c_u=7, tau=0, tau_star=60.5, sigma=10),
    ),
    "columns": (
        gsh.Mechanism(c_u=100, tau_star=1400, sigma=200, aggregates=COLUMNS),
        core.Mechanism(c_u=100, tau=1, tau_star=1400, sigma=200, aggregates=_CORE_COLUMNS),
    ),
    "mu_0": (
        gsh.Mechanism(c_u=100, tau=5, tau_star=1400, sigma=200, mu_0=0.01),
        core.Mechanism(c_u=100, tau=5, tau_star=1400, sigma=200, mu_0=0.01),
    ),
}
