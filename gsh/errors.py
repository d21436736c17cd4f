"""Errors of the library. Every error names a parameter and the bound that it must keep.

Error
├── AccountingError          gsh/accounting/errors.py
│   ├── InvalidParameter     a value outside the theorem's hypotheses
│   └── InfeasibleTarget     no value of the free parameter meets the target
└── ReleaseError             gsh/histogram/errors.py
    ├── InvalidGroups        group keys, counts or values that the mechanism is not defined for
    └── TooManyGroups        more groups than the limits allow
"""

__all__ = ["Error"]


class Error(Exception):
    """The base of all errors that the library raises on purpose.

    ``pointer`` names the parameter (``aggregates/covariance``) and ``detail`` states the bound. Neither contains data.
    """

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(pointer, detail)
        self.pointer = pointer
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.pointer.removeprefix('/')}: {self.detail}"
