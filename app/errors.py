"""Why the service refuses or stops work. These errors know no HTTP."""

__all__ = ["Busy", "DeadlinePassed", "InvalidRequest", "LimitExceeded", "MissingIdempotencyKey", "TooLarge"]


class Busy(Exception):
    """The service has no room for this request now; a later one may succeed."""


class DeadlinePassed(Exception):
    """The work took longer than is allowed. The same request would take as long again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class _AtPointer(Exception):
    """``pointer`` is a JSON Pointer into the body of the request."""

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(pointer, detail)
        self.pointer = pointer
        self.detail = detail


class InvalidRequest(_AtPointer):
    """A request with a field or a part that does not fit the rest of it."""


class LimitExceeded(_AtPointer):
    """A well-formed request that asks for more than the service is set up to do."""


class TooLarge(Exception):
    """The work needs more memory than a worker process may take. The same request would need as much again."""


class MissingIdempotencyKey(Exception):
    """A release charged to a budget needs an idempotency key, so a retry is not charged again."""
