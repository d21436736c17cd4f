"""What a release used of the budget that paid for it, as people want to know it."""

import re
from dataclasses import dataclass

from gsh.certificate import Certificate

__all__ = ["BudgetUse", "payer_in_words"]

_HEADER = re.compile(r'"([^"\\]{1,255})";of=([0-9]{1,20});more=([0-9]{1,20});used=([0-9.e+-]{1,24})')


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What a release used of the budget that paid for it, and what is left of it, when the answer was sent."""

    budget: str
    of: int
    """So many releases like this one are the whole budget."""
    more: int
    """So many more like it fit."""
    used: float
    """The used share of the budget, with this release."""

    @property
    def share(self) -> str:
        """In words, next to the name of the budget."""
        return f"1/{self.of} of it, {self.more} more like this"

    def __str__(self) -> str:
        return f"1/{self.of} of budget {self.budget}, {self.more} more like this"

    @classmethod
    def of_header(cls, header: str | None) -> "BudgetUse | None":
        """That of the header ``Budget-Used``; None if there is none, or one that is not understood."""
        found = None if header is None else _HEADER.fullmatch(header)
        if found is None:
            return None
        try:
            return cls(found[1], int(found[2]), int(found[3]), float(found[4]))
        except ValueError:
            return None


def payer_in_words(certificate: Certificate, use: BudgetUse | None) -> str:
    """Which budget paid for a release, and what it used of it, as far as that is known."""
    if certificate.budget is None:
        return "nothing keeps count of it"
    return f"paid by the budget {certificate.budget.id}" + ("" if use is None else f": {use.share}")
