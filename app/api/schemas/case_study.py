"""The URL case study of the paper, for examples: 51914 URLs per user at most, and (ε, δ) = (0.349, 10⁻⁵)."""

from typing import Any

__all__ = ["CASE_STUDY", "PAPER"]

CASE_STUDY: dict[str, Any] = {"c_u": 51914, "tau": 1, "tau_star": 13951.051328063842, "sigma": 2228.482632459166}
"""The smallest σ and τ* that meet the target, as /calibrate finds them."""

PAPER: dict[str, Any] = {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}
"""The paper's own σ and τ*. They are rounded, and miss 10⁻⁵ by 0.3 %."""
