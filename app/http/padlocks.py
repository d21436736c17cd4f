"""Which operations need an access key now: Swagger UI shows a padlock at each of them, and at no other.

The contract says where a key can be needed. Whether it is depends on this service: on its first access key, and on its
settings.
"""

from typing import Any

from fastapi import FastAPI

from app.http.json_route import DeclaredRoute

__all__ = ["with_padlocks"]

_Json = dict[str, Any]


def with_padlocks(app: FastAPI, document: _Json, *, keys_made: bool, account_keys: bool) -> _Json:
    """The document with a security requirement only where a request without an access key is refused now."""
    scopes = {
        route.operation_id: frozenset() if route.needs is None else route.needs.scopes
        for route in app.routes
        if isinstance(route, DeclaredRoute)
    }

    def locked(operation: _Json) -> _Json:
        open_one = {name: value for name, value in operation.items() if name != "security"}
        needed = scopes[operation["operationId"]]
        if not keys_made or not needed:
            return open_one
        if needed != {"account"} or account_keys:
            return open_one | {"security": [{"accessKey": []}]}
        # Accounting is open. But a body that names a budget, which can be unknown, needs the access key of the budget.
        return operation if "404" in operation["responses"] else open_one

    paths = {
        path: {method: locked(operation) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
    }
    components = document["components"]
    if not any("security" in each for operations in paths.values() for each in operations.values()):
        components = {name: value for name, value in components.items() if name != "securitySchemes"}
    return document | {"paths": paths, "components": components}
