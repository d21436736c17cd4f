"""A slow reference that shares no code with the service: the paper's formulas in 150-digit arithmetic.

precision   the private mpmath context and the rounding of its reals to doubles
cases       the parameters the service is compared at
zcdp        the conversion of zCDP to (ε, δ): Canonne, Kamath, Steinke, arXiv 2004.00010
composition several releases together
joint       several tables in one release
two_stages  a survey, and tables that are chosen from it
utility     what a mechanism publishes of groups of given sizes
paper       [KKWZ]: Karrer, Kifer, Wilkins, Zhang, arXiv 2202.01100, Theorems 2.2, 4.1 and 5.4
"""

from . import composition, joint, two_stages
from .cases import CASES, LARGE_CASES, Case
from .paper import Term, add_deltas, delta, delta_gaussian, delta_infinite, gaussian, t1, t2, t3
from .precision import DIGITS, mp, round_up
from .zcdp import zcdp

__all__ = [
    "CASES",
    "DIGITS",
    "LARGE_CASES",
    "Case",
    "Term",
    "add_deltas",
    "composition",
    "delta",
    "delta_gaussian",
    "delta_infinite",
    "gaussian",
    "joint",
    "mp",
    "round_up",
    "t1",
    "t2",
    "t3",
    "two_stages",
    "zcdp",
]
