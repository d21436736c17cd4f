"""The parameters of a URL: unknown ones are refused, as unknown fields of a body are."""

from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute
from starlette.types import Scope

from app.api.problems import InvalidQuery
from app.api.validation_errors import is_plain

__all__ = ["check_query"]


def check_query(scope: Scope, route: BaseRoute) -> None:
    """Refuse parameters that an operation does not have. Pages are not checked: they keep their state in the query."""
    if not scope["query_string"] or not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    known = {parameter.alias for parameter in route.dependant.query_params}
    unknown = [name for name in QueryParams(scope["query_string"]) if name not in known]
    if all(is_plain(name) for name in unknown):
        faults = [(name, "is not a parameter of this operation") for name in unknown]
    else:
        faults = [("", "has a parameter that is not part of this operation")]
    if faults:
        raise InvalidQuery(*faults)
