"""Reads answers: their content, or their error. If the bytes are wrong in any way, the error is ``UnexpectedAnswer``.

The server may be another program, and a proxy may change its answers. So everything is checked before it
is used: the digest, if the service states one; the syntax, the depth and the types of JSON; every buffer of a table.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

import pyarrow as pa

from gsh.client import errors
from gsh.client.errors import OF_THE_LIBRARY, ServiceError, UnexpectedAnswer
from gsh.client.operations import Answer, Failure
from gsh.documents import object_in
from gsh.errors import Error, renamed_pointer
from gsh.wire import Json

__all__ = [
    "Contradiction",
    "Renames",
    "check_digest",
    "check_sha256",
    "decoded",
    "error_of",
    "understood",
    "unexpected",
    "waiting",
]

T = TypeVar("T")

_OF_PYTHON = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
_FAULTS = (*_OF_PYTHON, pa.ArrowException, Error)
"""What reading can raise."""
_NOT_OF_THE_SERVICE = "is not one of the service: check the URL and the proxies"
_DIGEST = re.compile(r"(?:\A|,)\s*sha-256\s*=\s*:([^:,]*):")


class Contradiction(Exception):
    """An answer that can be read, and is not what was asked for. Its text says how, and quotes nothing of it."""


def understood(answer: Answer, read: Callable[[], T]) -> T:
    """What is read from an answer, or one error. The cause is not kept: it may quote the answer."""
    what = _NOT_OF_THE_SERVICE
    try:
        return read()
    except Contradiction as found:
        what = f"is not what was asked for: {found}"
    except _FAULTS:
        pass
    raise unexpected(answer, what)


def decoded(answer: Answer, decode: Callable[[Json], T]) -> T:
    """What the JSON object of an answer says."""
    return understood(answer, lambda: decode(object_in(answer.content.to_pybytes())))


def check_digest(answer: Answer) -> None:
    """The content must have the SHA-256 that the service states.  [RFC 9530, Repr-Digest]"""
    found = _DIGEST.search(answer.headers.get("repr-digest", ""))
    if found is None:
        return
    stated = b""
    with suppress(binascii.Error, ValueError):
        stated = base64.b64decode(found[1], validate=True)
    check_sha256(answer, stated.hex())


def check_sha256(answer: Answer, stated: str) -> None:
    """The content must have this SHA-256."""
    if answer.sha256 != stated:
        raise unexpected(answer, "is damaged: its SHA-256 is not the one that the service states")


def unexpected(
    answer: Answer,
    what: str = _NOT_OF_THE_SERVICE,
    retry_after: float | None = None,
) -> UnexpectedAnswer:
    """The error of an answer that cannot be used. It quotes nothing of it."""
    detail = f"the answer, of status {answer.status}, {what}"
    return UnexpectedAnswer("", detail, status=answer.status, retry_after=retry_after)


Renames: TypeAlias = Sequence[tuple[str, str]]
"""Starts of pointers of the HTTP contract, and what the call of the client has in their place."""

_ABOUT_GROUPS = re.compile(r"(/tables/\d+)?/(groups|table|key_columns|count_column|public_keys)(/|\Z)")
_PARAMETERS = {"Idempotency-Key": "once"}


def _kinds(kind: type[ServiceError]) -> Iterator[tuple[str, type[ServiceError]]]:
    """The kinds of problem with their classes: ``budget-exceeded`` is ``BudgetExceeded``, unless the class says it."""
    for each in kind.__subclasses__():
        yield vars(each).get("problem_kind") or re.sub(r"(?<!^)(?=[A-Z])", "-", each.__name__).lower(), each
        yield from _kinds(each)


_KINDS = dict(_kinds(ServiceError))


def error_of(outcome: Answer | Failure, renames: Renames = (), retry_after: float | None = None) -> ServiceError:
    """The error that an outcome is, with the names that the call of the client has."""
    if isinstance(outcome, Failure) and outcome.is_answered:
        return errors.UnexpectedAnswer("", f"the answer is not one of the service: {outcome.reason}")
    if isinstance(outcome, Failure):
        return errors.Unreachable("", f"no answer of the service: {outcome.reason}")
    if not outcome.headers.get("content-type", "").startswith("application/problem+json"):
        return unexpected(outcome, retry_after=retry_after)
    try:
        return decoded(outcome, lambda problem: _error(outcome, problem, renames, retry_after))
    except errors.UnexpectedAnswer as error:
        error.retry_after = retry_after
        return error


def waiting(answer: Answer) -> errors.AwaitsApproval:
    """The error of a request that is stored, and not done before another access key has approved it."""

    def found(document: Json) -> errors.AwaitsApproval:
        name = document["id"]
        if not isinstance(name, str):
            raise TypeError
        detail = f"another access key must approve it first: the request has the id {name}"
        return errors.AwaitsApproval("", detail, status=answer.status, problem=document)

    return decoded(answer, found)


def _error(outcome: Answer, problem: Json, renames: Renames, retry_after: float | None) -> ServiceError:
    """The error of a problem document. An error of Python if the document is not as the contract has it."""
    if not str(problem["type"]).startswith("/problems/"):
        raise ValueError
    kind = _KINDS.get(str(problem["type"]).removeprefix("/problems/"), ServiceError)
    detail = problem.get("detail", "")
    places = ServiceError("", detail, problem=problem).errors
    texts = [text for place in places for text in (place.name, place.detail)]
    if not all(isinstance(text, str) for text in (detail, problem.get("request_id") or "", *texts)):
        raise TypeError
    pointer = next((place.name for place in places if place.kind == "pointer"), "")
    if kind is errors.InvalidRequest and _ABOUT_GROUPS.match(pointer):
        kind = errors.InvalidTable
    # The errors of the library state the bound of one parameter.
    if issubclass(kind, OF_THE_LIBRARY) and places:
        pointer = pointer or _PARAMETERS.get(places[0].name, places[0].name)
        detail = places[0].detail
    error = kind(
        renamed_pointer(pointer, *renames), detail, status=outcome.status, problem=problem, retry_after=retry_after
    )
    for name in error.further & problem.keys():
        getattr(error, name)  # of the type that it must have
    return error
