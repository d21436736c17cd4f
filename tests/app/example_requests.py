"""Sends an example of the OpenAPI document, with the budget and the release that it needs."""

import uuid
from collections.abc import Callable
from typing import Any

import httpx

from gsh.wire import mechanism_from_json

__all__ = ["NEEDS_KEY", "ask_example"]

BUDGET = "examples"
NEEDS_KEY = ("/access-keys", "/approvals")
"""Examples for these paths need an access key of the scope admin."""


def ask_example(
    request: Callable[..., httpx.Response], method: str, path: str, body: Any
) -> tuple[httpx.Response, str]:
    """The answer to an example, and the status that it must have."""
    key, label = str(uuid.uuid4()), f"{method.upper()} {path}"
    for name in (BUDGET, "web", "company"):  # the others are named in examples
        request("PUT", f"/budgets/{name}", json={"epsilon": 2, "delta": 1e-3, "reason": "examples"})
    opened = {"mechanism": {"c_u": 1, "sigma": 50}, "budget": BUDGET}
    made = opened | {"mechanism": {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 50}}
    made |= {"groups": {"keys": ["a"], "counts": [9000]}}
    if path.endswith("/survey"):
        chosen = mechanism_from_json(body["mechanism"])
        fixed = {"mu_squared": chosen.mu_squared, "hazard": chosen.hazard}
        surveyed = opened | {"mechanism": body["mechanism"], "survey": {"sigma": 1000}, "after_survey": fixed}
        request("POST", "/releases", json=surveyed, headers={"idempotency-key": key})
    elif path.endswith("/commit"):
        request("POST", "/releases", json=opened, headers={"idempotency-key": key})
    elif "{key}" in path:
        request("POST", "/release", json=made, headers={"idempotency-key": key})
    if path.startswith("/access-keys/"):
        known = request("POST", "/access-keys", json={"scopes": ["account"]}).json()["id"]
        return request(method, path.replace("{id}", known), json=body), "201"
    if path.startswith("/approvals/"):
        return request(method, path.replace("{id}", _waiting(request)), json=body), "200"
    is_new = label == "POST /releases" or path.endswith("/charges") or (label == "POST /release" and "budget" in body)
    named = path.replace("{id}", f"new-{key}" if method.upper() == "PUT" else BUDGET).replace("{key}", key)
    headers = {"idempotency-key": key} if is_new else {}
    answer = request(method, named.replace("{name}", "busy"), json=body, headers=headers)
    return answer, "201" if label in {"POST /releases", "POST /access-keys"} else "200"


def _waiting(request: Callable[..., httpx.Response]) -> str:
    """The id of a change that another access key has asked for."""
    key = request("POST", "/access-keys", json={"scopes": ["admin"]}).json()["key"]
    headers, name = {"authorization": f"Bearer {key}"}, f"new-{uuid.uuid4()}"
    for epsilon in (1, 2):
        body = {"epsilon": epsilon, "delta": 1e-3, "approval": "limits", "reason": "examples"}
        answer = request("PUT", f"/budgets/{name}", json=body, headers=headers)
    return str(answer.json()["id"])
