"""Methods that are written once, as operations, and belong to the blocking and to the asynchronous client.

The mode of the object decides what a call gives: ``Blocking`` the result, ``Awaiting`` something to await. Type
checkers see the difference, and neither class repeats a line of the other.
"""

import functools
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from gsh.client.calls import Operation

if TYPE_CHECKING:
    from gsh.client.requests import Retries

__all__ = [
    "Awaiting",
    "Blocking",
    "Bound",
    "Collection",
    "Driver",
    "Mode",
    "Overloaded",
    "Page",
    "fetched",
    "listing",
    "operation",
]

T = TypeVar("T")
P = ParamSpec("P")
B_co = TypeVar("B_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)


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
    """A method: a generator of calls, run by the client. Of a class it is the generator, a part for another one."""

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
    """An attribute that is asked for when it is read, each time."""

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
