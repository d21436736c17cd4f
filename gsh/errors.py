"""Errors of the library. Every error names a parameter and the bound that it must keep.

Error
├── AccountingError
│   ├── InvalidParameter     a value that the theorem does not allow
│   └── InfeasibleTarget     no value of the omitted parameters meets the target
├── EventsError              events that cannot be read, or whose sums are too large
└── ReleaseError
    ├── InvalidGroups        group keys, counts or values that cannot be released
    └── TooManyGroups        more groups, or more bytes of them, than the limits allow
"""

__all__ = ["Error"]


class Error(Exception):
    """The base of all errors that the library raises on purpose.

    ``pointer`` names the parameter (``tau_star``) and ``detail`` states the bound. Neither contains data.
    """

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(pointer, detail)
        self.pointer = pointer
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.pointer.removeprefix('/')}: {self.detail}"
