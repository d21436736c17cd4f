"""Content negotiation: the form of an answer that the header Accept prefers.  [RFC 9110, section 12.5.1]"""

from collections.abc import Iterator, Sequence

from fastapi import Request

__all__ = ["preferred"]

_MOST_ACCEPT = 1000  # characters of Accept that are read; a longer one would stall the event loop
_ANYTHING = "*/*"


def preferred(request: Request, offered: Sequence[str]) -> str | None:
    """The offered media type with the highest weight, the earlier one of two equals; None if none is acceptable.

    The most specific range decides on a media type: ``text/html`` before ``text/*`` before ``*/*``. Without Accept, the
    first is preferred.
    """
    accept = ",".join(request.headers.getlist("accept"))
    if not accept.strip():
        return offered[0]
    weights: dict[str, float] = {}
    for media_range, weight in _ranges(accept):
        weights[media_range] = max(weight, weights.get(media_range, 0.0))
    weighed = {media_type: _weight_of(media_type, weights) for media_type in offered}
    best = max(offered, key=weighed.__getitem__)  # the first of equals
    return best if weighed[best] > 0 else None


def _weight_of(media_type: str, weights: dict[str, float]) -> float:
    whole_type = media_type.partition("/")[0] + "/*"
    for media_range in (media_type, whole_type, _ANYTHING):
        if media_range in weights:
            return weights[media_range]
    return 0.0


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Each media range with its weight. Parameters other than q are ignored: no form has any."""
    if len(accept) > _MOST_ACCEPT:
        accept = accept[:_MOST_ACCEPT].rpartition(",")[0]  # half a range could be another range
    for accepted in accept.lower().split(","):
        media_range, *parameters = (part.strip() for part in accepted.split(";"))
        yield media_range, _weight(parameters)


def _weight(parameters: list[str]) -> float:
    """The weight q, 1 if there is none, and 0 if it is not a number from 0 to 1."""
    given = [each.removeprefix("q=") for each in parameters if each.startswith("q=")]
    try:
        weight = float(given[0]) if given else 1.0
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
