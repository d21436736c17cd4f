"""The URL case study of the paper as JSON, for examples."""

from typing import Any

from gsh.accounting import case_study
from gsh.accounting.mechanism import Mechanism

__all__ = ["CASE_STUDY", "OUTLINE", "PAPER", "WHOLE"]


def _json(mechanism: Mechanism) -> dict[str, Any]:
    return {name: getattr(mechanism, name) for name in ("c_u", "tau", "tau_star", "sigma")}


CASE_STUDY = _json(case_study.CASE_STUDY)
"""The smallest σ and τ* that meet the target, as /calibrate finds them."""

OUTLINE = {"c_u": case_study.C_U, "tau": case_study.TAU}
"""The mechanism without noise and threshold."""

WHOLE = _json(case_study.WHOLE)
"""Both rounded up to whole numbers."""

PAPER = _json(case_study.PRINTED)
"""The paper's own σ and τ*. They are rounded, and miss 10⁻⁵ by 0.3 %."""
