"""Permission belongs to the matched route: no spelling of a path gets past it, and an undeclared route is refused."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pytest
from fastapi.routing import APIRoute
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route

from app.http.auth import PUBLIC, needs
from app.ledger.access.access_keys import AccessKey
from app.ledger.errors import AwaitsApproval
from app.ledger.state import By, Entry
from app.main import create_app
from app.settings import Settings
from gsh.accounting.budget_limits import Limit
from gsh.wire import mechanism_from_json
from tests.app.client import CASE_STUDY, Client, Json
from tests.app.http.test_access import AT, Guarded
from tests.app.releases.certificates import complete
from tests.gsh.histogram.uploads import as_bytes

pytestmark = pytest.mark.slow

SPELLINGS = {
    "as it is": "{}",
    "line feed": "{}%0A",
    "two line feeds": "{}%0A%0A",
    "carriage return": "{}%0D",
    "both": "{}%0D%0A",
    "tab": "{}%09",
    "vertical tab": "{}%0B",
    "form feed": "{}%0C",
    "NUL": "{}%00",
    "next line": "{}%C2%85",
    "line separator": "{}%E2%80%A8",
    "paragraph separator": "{}%E2%80%A9",
    "file separator": "{}%1C",
    "trailing slash": "{}/",
    "leading slash": "/{}",
    "encoded slash": "%2F{}",
    "dot": "/.{}",
    "dots": "/x/..{}",
    "encoded dots": "/x/%2E%2E{}",
    "parameter": "{};x",
    "upper case": "{upper}",
    "question mark": "{}%3F",
    "fragment": "{}%23",
    "space": "{}%20",
    "full width": "{}%EF%BC%8F",
}
RELEASE: Json = {"mechanism": CASE_STUDY, "budget": "web", "groups": {"keys": ["a"], "counts": [70000]}}
BODIES: dict[tuple[str, str], Json] = {
    ("POST", "/release"): RELEASE,
    ("POST", "/budgets/{id}/charges"): {"mechanism": CASE_STUDY},
    ("POST", "/budgets/{id}/preview"): {"mechanism": CASE_STUDY},
    ("PUT", "/budgets/{id}"): {"epsilon": 50, "delta": 0.5, "reason": "a test"},
    ("POST", "/access-keys"): {"scopes": ["release"], "budgets": ["web"]},
    ("POST", "/access-keys/{id}/rotate"): {},
    ("POST", "/approvals/{id}/approve"): {"reason": "a test"},
    ("POST", "/approvals/{id}/refuse"): {"reason": "a test"},
    ("POST", "/releases"): {"mechanism": CASE_STUDY, "budget": "web"},
    ("POST", "/releases/{key}/commit"): {"digest": "a" * 64},
    ("POST", "/releases/{key}/survey"): {"digest": "a" * 64, "mechanism": CASE_STUDY},
    ("POST", "/releases/verify"): complete(CASE_STUDY).to_dict(),
    ("POST", "/account/exact"): {"mechanism": CASE_STUDY, "epsilon": 1},
    ("POST", "/account/engine"): {
        "noise": {"kind": "laplace", "scale": 10},
        "c_u": 5,
        "threshold": 150,
        "epsilon": 1,
    },
    ("POST", "/account/add-deltas"): {"mechanism": CASE_STUDY, "epsilon": 1},
    ("POST", "/calibrate"): {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6},
    ("POST", "/utility"): {"mechanism": CASE_STUDY, "sizes": [20000]},
    ("POST", "/compare"): {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6},
    ("POST", "/intervals"): {"mechanism": CASE_STUDY, "counts": [70000]},
    ("POST", "/bound"): {"dialect": "duckdb", "source": "views", "user": "user_id", "by": ["url"], "c_u": 3},
}


BOUNDARY = "------form"
KEY = "4f1c2a9b"
LISTS = {"/budgets", "/releases", "/access-keys", "/approvals"}
APPROVAL = "0" * 16


def body_of(method: str, path: str) -> bytes:
    """A body that the route accepts from a client with access."""
    if path != "/release/table":
        return json.dumps(BODIES.get((method, path), {})).encode()
    table = as_bytes("arrow", pa.table({"url": ["a"], "users": [70000]}))
    request = json.dumps(
        {"mechanism": CASE_STUDY, "budget": "web", "count_column": "users", "key_columns": ["url"]}
    ).encode()
    parts = ((b"request", request), (b"table", table))
    named = b'--%b\r\nContent-Disposition: form-data; name="%b"; filename="%b"\r\n\r\n%b\r\n'
    ended = b"--%b--\r\n" % BOUNDARY.encode()
    return b"".join(named % (BOUNDARY.encode(), name, name, content) for name, content in parts) + ended


class Answer(NamedTuple):
    status: int
    body: bytes


class Vault(Guarded):
    """A service in which every route that can need an access key needs one."""

    def __init__(self, place: str) -> None:
        super().__init__(place, account_keys=True)

    def ask_raw(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send this request line as it is. An HTTP client would normalise it."""
        sent: list[dict[str, Any]] = []
        is_form = body.startswith(f"--{BOUNDARY}".encode())
        kind = f"multipart/form-data; boundary={BOUNDARY}" if is_form else "application/json"
        fields = {"host": "localhost", "content-type": kind, "content-length": str(len(body))} | headers
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(target),
            "raw_path": target.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }

        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            return await asyncio.Future()  # the client stays

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return Answer(sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]))

    def make_releases(self) -> None:
        """One that is made and one that is open, while there is no access key."""
        charged = mechanism_from_json(CASE_STUDY)
        fixed = {"mu_squared": charged.mu_squared, "hazard": charged.hazard}
        surveyed = {"survey": {"sigma": 1000}, "after_survey": fixed}
        for path, key, further in (("/release", "made", {}), ("/releases", "open", surveyed)):
            body = BODIES["POST", path] | further
            made = self.request("POST", path, json=body, headers={"idempotency-key": key})
            assert made.is_success

    def ask_for_approval(self) -> str:
        """The id of a change that waits for another access key."""
        put: Any = {"at": AT, "by": By("3f9a1c07", ""), "client": "another", "reason": "a test"}
        put |= {"settings": {"approval": "limits"}}
        self.change(lambda ledger: ledger.put_budget("gated", Limit(1.0, 1e-4), "", **put))
        with pytest.raises(AwaitsApproval) as found:
            self.change(lambda ledger: ledger.put_budget("gated", Limit(2.0, 1e-4), "", **put))
        return found.value.approval.id

    def entries(self) -> list[Entry]:
        found: list[Entry] = self.app.state.services.ledger_pool._work(lambda ledger: ledger.history("web", None, 10))
        return found

    def refusals(self) -> float:
        return sum(value for name, value in self.metrics().items() if name.startswith("gsh_access_refusals_total"))


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(str(tmp_path / "ledger.sqlite3"))
    made.make_releases()
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def guarded_routes() -> list[APIRoute]:
    return [route for route in create_app(Settings()).routes if isinstance(route, APIRoute) and route.needs.scopes]


PROTECTED = [(method, route.path) for route in guarded_routes() for method in sorted(route.methods)]


def test_there_are_routes_to_protect() -> None:
    assert {("POST", "/release"), ("POST", "/release/table"), ("GET", "/budgets")} <= set(PROTECTED)
    assert set(BODIES) <= set(PROTECTED)


def named(path: str) -> str:
    """A path of a budget, a release or an access key that exists, or of a request for an approval."""
    path = path.replace("{id}", APPROVAL) if path.startswith("/approvals") else path
    return path.replace("{id}", KEY if path.startswith("/access-keys") else "web").replace(
        "{key}", "open" if path.endswith(("/commit", "/survey")) else "made"
    )


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


SITUATIONS: dict[str, Callable[[Vault], dict[str, str]]] = {
    "no key": lambda vault: {"authorization": vault.make_key("release")[:0]},
    "wrong key": lambda vault: bearer(vault.make_key("release") + "x"),
    "no scope": lambda vault: bearer(vault.make_key()),
    "other budget": lambda vault: bearer(vault.make_key("release", "admin", budgets=("ads",))),
    "foreign Host": lambda _vault: {"host": "evil.example"},
    "foreign Origin": lambda _vault: {"origin": "http://evil.example"},
    "forwarded": lambda _vault: {"x-forwarded-for": "192.0.2.1"},
}
"""Each puts a service in some situation, and gives the headers of a client that must not be let in."""


@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_spelling_of_a_path_avoids_access_control(vault: Vault, situation: str) -> None:
    headers = SITUATIONS[situation](vault) | {"idempotency-key": "1"}
    for method, path in PROTECTED:
        check_spellings(vault, situation, headers, method, path)


def check_spellings(vault: Vault, situation: str, headers: dict[str, str], method: str, path: str) -> None:
    target = named(path)
    # A client with an access key of another budget sees lists without the others, and no release of the others.
    sees_its_own = situation == "other budget" and method == "GET" and path in LISTS
    sees_none = situation == "other budget" and path.startswith(("/releases/", "/access-keys", "/approvals"))
    before, counted, refused = vault.entries(), vault.refusals(), 0
    for spelling in SPELLINGS.values():
        answer = vault.ask_raw(method, spelling.format(target, upper=target.upper()), body_of(method, path), headers)
        if sees_its_own and answer.status == 200:
            (listed, *_) = json.loads(answer.body).values()
            assert all(each["budgets"] == ["ads"] for each in listed) if path == "/access-keys" else listed == []
        elif sees_none and answer.status == 200:
            assert json.loads(answer.body) == {"made_here": False, "differences": []}
        elif answer.status not in {404, 405} and not (sees_none and answer.status == 422):
            assert answer.status in {401, 403, 429}, (spelling, answer)
            refused += 1

    assert refused >= 1 or sees_its_own or sees_none, (method, path)
    assert vault.refusals() == counted + refused, (method, path)
    assert vault.entries() == before, (method, path)


@pytest.mark.parametrize(("method", "path"), PROTECTED)
def test_the_right_access_key_reaches_every_route(vault: Vault, method: str, path: str) -> None:
    headers = {"authorization": f"Bearer {vault.make_key('account', 'release', 'admin')}", "idempotency-key": "1"}
    vault.change(lambda ledger: ledger.keys.add(AccessKey(KEY, "", frozenset(), frozenset(), "", AT)))
    target = named(path).replace(APPROVAL, vault.ask_for_approval())
    answer = vault.ask_raw(method, target, body_of(method, path), headers)

    is_made = method == "POST" and path in {"/releases", "/access-keys", "/access-keys/{id}/rotate"}
    assert answer.status == (201 if is_made else 200)


@pytest.mark.parametrize("character", [chr(code) for code in (0, 9, 10, 11, 12, 13, 28, 127, 133, 8232, 8233)])
def test_a_path_with_a_control_character_is_404(vault: Vault, character: str) -> None:
    for path in ("/healthz", "/budgets", "/release", "/web/main.js"):
        assert vault.ask_raw("GET", path + character, b"", {}).status == 404


def declares(route: BaseRoute) -> bool:
    return getattr(route, "needs", None) is not None


def test_every_route_declares_its_scopes_or_is_public() -> None:
    routes = create_app(Settings()).routes

    assert [route for route in routes if not declares(route)] == []
    assert {type(route).__mro__[-3] for route in routes} <= {BaseRoute, Route, Mount}


async def undeclared() -> str:
    return "reached"


@pytest.mark.parametrize("dependencies", [[], [PUBLIC, needs("release")]], ids=["none", "two"])
def test_a_route_that_declares_no_scopes_is_refused(dependencies: list[Any]) -> None:
    app = create_app(Settings())
    app.get("/new", dependencies=dependencies)(undeclared)

    (route,) = [route for route in app.routes if getattr(route, "path", "") == "/new"]
    assert not declares(route)
    response = Client(app).get("/new")
    assert (response.status_code, response.json()["type"]) == (403, "/problems/not-allowed")
    assert Client(app).metrics()['gsh_access_refusals_total{reason="undeclared"}'] == 1


def test_routes_of_other_kinds_are_refused_too() -> None:
    app = create_app(Settings())
    app.mount("/files", PlainTextResponse("reached"))
    app.add_route("/plain", lambda _request: PlainTextResponse("reached"))

    for path in ("/files/x", "/plain"):
        assert Client(app).get(path).status_code == 403


def test_a_declared_route_is_reached() -> None:
    app = create_app(Settings())
    app.get("/new", dependencies=[PUBLIC])(undeclared)

    assert Client(app).get("/new").json() == "reached"
