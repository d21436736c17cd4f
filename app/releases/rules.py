"""What an operator allows clients to release: the least noise, the most (ε, δ), and whether a budget must pay."""

from dataclasses import dataclass

from app.errors import InvalidRequest, LimitExceeded
from gsh.accounting.composition import Release, Spent, fits

__all__ = ["ReleaseRules"]


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The bounds on one release. A budget bounds many, but only for clients that name one."""

    require_budget: bool = False
    least_sigma: float | None = None
    most: tuple[float, float] | None = None
    """An ε, and the most δ that a release may have there."""

    def check(self, release: Release, budget: str | None, *, is_exempt: bool) -> None:
        """Refuse a release that breaks a rule. No rule applies to an exempt client."""
        if is_exempt:
            return
        if self.require_budget and budget is None:
            raise InvalidRequest("/budget", "is required: a budget must pay for every release (GSH_REQUIRE_BUDGET)")
        if self.least_sigma is not None and release.sigma < self.least_sigma:
            raise LimitExceeded("/mechanism/sigma", f"must be at least {self.least_sigma:g} (GSH_LEAST_SIGMA)")
        if self.most is not None and not fits(Spent(releases=1, only=release), *self.most):
            epsilon, delta = self.most
            raise LimitExceeded(
                "/mechanism",
                f"must have a δ of at most {delta:g} at ε = {epsilon:g} (GSH_MOST_EPSILON, GSH_MOST_DELTA)",
            )
