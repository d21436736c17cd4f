"""Operations: what a client can do, written once for the blocking and the asynchronous client, without a network.

An operation is a generator. It yields the next step, a ``Call`` or a ``Pause``, and receives the outcome. It does
no input or output itself: a ``Driver`` does. The mode of an object decides what its methods give: ``Blocking`` the
result, ``Awaiting`` something to await. Type checkers see the difference.
"""

import functools
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

import pyarrow as pa

from gsh.results.budget_use import BudgetUse

if TYPE_CHECKING:
    from gsh.client.requests import Retries

__all__ = [
    "MOST_BYTES",
    "MOST_TABLE_BYTES",
    "Answer",
    "Awaiting",
    "Blocking",
    "Body",
    "Bound",
    "Call",
    "Collection",
    "Driver",
    "Failure",
    "Method",
    "Mode",
    "Operation",
    "Outcome",
    "Overloaded",
    "Page",
    "Pause",
    "fetched",
    "listing",
    "operation",
]

T = TypeVar("T")
P = ParamSpec("P")
B_co = TypeVar("B_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)

MOST_BYTES = 1 << 28
"""The longest answer in JSON or text. The service takes a quarter of it as groups in JSON."""
MOST_TABLE_BYTES = 1 << 36
"""The longest answer that is a table."""

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, as a whole or in chunks. ``content`` starts it again, unless it can be read only once."""

    media_type: str
    content: Callable[[], bytes | Iterator[bytes]]
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``is_safe``: it may be sent twice, because the service then does the same, or charges once."""

    method: Method
    path: str
    is_safe: bool
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    most_bytes: int = MOST_BYTES
    """The longest answer that is read."""

    @property
    def may_be_repeated(self) -> bool:
        return self.is_safe and (self.body is None or self.body.is_repeatable)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next call."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that has arrived completely."""

    status: int
    headers: Mapping[str, str]
    """By names in small letters."""
    content: pa.Buffer
    sha256: str = ""
    """Of the content, in hexadecimal digits."""
    unload: Callable[[], None] = lambda: None
    """Gives the memory of a mapped content back: what is read later is read from its file again."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_replayed(self) -> bool:
        return self.headers.get("idempotency-replayed") == "true"

    @property
    def released_at(self) -> str | None:
        """When a replayed release was made."""
        return self.headers.get("idempotency-released-at")

    @property
    def budget_use(self) -> BudgetUse | None:
        """What a release used of its budget, if the service says it."""
        return BudgetUse.of_header(self.headers.get("budget-used"))


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: the connection could not be made, broke, or was too slow. ``reason`` quotes nothing that was sent."""

    reason: str
    is_final: bool = False
    """Whether another attempt would fail in the same way: a setting is wrong."""
    is_answered: bool = False
    """Whether there was an answer, which cannot be used."""


Outcome: TypeAlias = Answer | Failure
Operation: TypeAlias = Generator[Call | Pause, Outcome | None, T]


class Mode:
    """How results come."""


class Blocking(Mode):
    """Calls return results."""


class Awaiting(Mode):
    """Calls return coroutines."""


M = TypeVar("M", bound=Mode)
M_co = TypeVar("M_co", bound=Mode, covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list, and where the next part begins; None at the end."""

    items: tuple[T, ...]
    next: str | None


class Driver(Protocol[M_co]):
    """Runs operations: a client."""

    retries: "Retries"

    @abstractmethod
    def run(self, steps: Operation[Any], /) -> Any: ...
    @abstractmethod
    def pages(self, page: Callable[[str | None], Operation[Page[Any]]], /) -> Any: ...


class Bound(Generic[M]):
    """An object with operations, bound to the client that runs them."""

    @property
    @abstractmethod
    def _driver(self) -> Driver[M]: ...


class Collection(Bound[M]):
    """The objects of one kind that a service has."""

    def __init__(self, driver: Driver[M]) -> None:
        self._client = driver

    @property
    def _driver(self) -> Driver[M]:
        return self._client


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that the client runs. Read from the class, it is the generator itself, for use in another operation."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self._steps = steps
        functools.update_wrapper(self, steps)  # type: ignore[arg-type]

    @overload
    def __get__(self, bound: None, owner: type) -> Callable[Concatenate[Any, P], Operation[T]]: ...
    @overload
    def __get__(self, bound: Bound[Blocking], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, bound: Bound[Awaiting], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, bound: Bound[Any] | None, owner: type) -> Any:
        return self._steps if bound is None else _method(bound, self._steps)


class Overloaded(Generic[B_co, A_co]):
    """A method whose result depends on its arguments: the types of the two kinds of call are given."""

    def __init__(self, steps: Callable[..., Operation[Any]]) -> None:
        self._steps = steps
        functools.update_wrapper(self, steps)  # type: ignore[arg-type]

    @overload
    def __get__(self, bound: None, owner: type) -> Callable[..., Operation[Any]]: ...
    @overload
    def __get__(self, bound: Bound[Blocking], owner: type) -> B_co: ...
    @overload
    def __get__(self, bound: Bound[Awaiting], owner: type) -> A_co: ...
    def __get__(self, bound: Bound[Any] | None, owner: type) -> Any:
        return self._steps if bound is None else _method(bound, self._steps)


class fetched(Generic[T]):  # noqa: N801 - a decorator
    """An attribute that is fetched from the service each time it is read."""

    def __init__(self, steps: Callable[[Any], Operation[T]]) -> None:
        self._steps = steps
        functools.update_wrapper(self, steps)  # type: ignore[arg-type]

    @overload
    def __get__(self, bound: None, owner: type) -> "fetched[T]": ...
    @overload
    def __get__(self, bound: Bound[Blocking], owner: type) -> T: ...
    @overload
    def __get__(self, bound: Bound[Awaiting], owner: type) -> Coroutine[Any, Any, T]: ...
    def __get__(self, bound: Bound[Any] | None, owner: type) -> Any:
        return self if bound is None else bound._driver.run(self._steps(bound))


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that gives a list item by item. A page is asked for when its first item is wanted."""

    def __init__(self, page: Callable[Concatenate[Any, str | None, P], Operation[Page[T]]]) -> None:
        self._page = page
        functools.update_wrapper(self, page)  # type: ignore[arg-type]

    @overload
    def __get__(self, bound: None, owner: type) -> "listing[P, T]": ...
    @overload
    def __get__(self, bound: Bound[Blocking], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, bound: Bound[Awaiting], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, bound: Bound[Any] | None, owner: type) -> Any:
        if bound is None:
            return self
        page = self._page

        @functools.wraps(page)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return bound._driver.pages(lambda start: page(bound, start, *args, **kwargs))

        return call


def _method(bound: Bound[Any], steps: Callable[..., Operation[Any]]) -> Callable[..., Any]:
    @functools.wraps(steps)
    def call(*args: Any, **kwargs: Any) -> Any:
        return bound._driver.run(steps(bound, *args, **kwargs))

    return call
