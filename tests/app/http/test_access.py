"""Access control: access keys with scopes and budgets; only loopback without them; a limit on failures."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from app import keys
from app.http.auth import READS_BUDGETS, Access, Attempts, access_of, network_of
from app.ledger.access.access_keys import hash_of, new_key
from app.ledger.access.scopes import SCOPES
from app.ledger.store import Ledger
from app.main import create_app
from app.places import Places
from app.settings import Settings
from tests.app.budgets.test_budgets import LIMIT, SECRET, Bank
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.app.process import Service, run_command

T = TypeVar("T")
AT = "2026-11-16T12:00:00Z"

GROUPS = {"keys": ["a"], "counts": [70000]}
RELEASE: Json = {"mechanism": CASE_STUDY, "groups": GROUPS}
LARGE: Json = RELEASE | {"groups": {"keys": ["k" * 70_000], "counts": [70000]}}
PAID: Json = RELEASE | {"budget": "web"}
PROTECTED = [
    ("POST", "/release"),
    ("POST", "/release/table"),
    ("GET", "/budgets"),
    ("GET", "/budgets/web"),
    ("PUT", "/budgets/web"),
    ("POST", "/budgets/web/preview"),
    ("POST", "/budgets/web/charges"),
    ("GET", "/budgets/web/charges"),
    ("GET", "/budgets/web/verify"),
    ("GET", "/budgets/web/bundle"),
    ("GET", "/releases"),
    ("POST", "/releases"),
    ("POST", "/releases/verify"),
    ("GET", "/releases/weekly"),
    ("GET", "/releases/weekly/certificate"),
    ("GET", "/releases/weekly/answer"),
    ("POST", "/releases/weekly/commit"),
    ("POST", "/releases/weekly/survey"),
    ("GET", "/access-keys"),
    ("POST", "/access-keys"),
    ("GET", "/access-keys/history"),
    ("DELETE", "/access-keys/4f1c2a9b"),
    ("POST", "/access-keys/4f1c2a9b/rotate"),
    ("GET", "/approvals"),
    ("GET", "/approvals/0000000000000000"),
    ("POST", "/approvals/0000000000000000/approve"),
    ("POST", "/approvals/0000000000000000/refuse"),
]
OPEN = [
    ("POST", f"/{path}")
    for path in (
        "account/exact",
        "account/add-deltas",
        "account/engine",
        "bound",
        "calibrate",
        "compare",
        "intervals",
        "utility",
    )
]


class Guarded(Bank):
    """A service with a budget and access keys."""

    def make_key(self, *scopes: str, budgets: tuple[str, ...] = (), expires_at: str | None = None) -> str:
        key, kept = new_key(frozenset(scopes), frozenset(budgets), "weekly job", AT, expires_at)
        self.change(lambda ledger: ledger.keys.add(kept))
        return key

    def revoke(self, key: str) -> None:
        name = key.split("_")[1]
        self.change(lambda ledger: ledger.keys.revoke(name, AT))

    def change(self, work: Callable[[Ledger], T]) -> T:
        """Change the access keys, and let a second pass."""
        result: T = self.app.state.services.ledger_pool._work(work)
        self.app.state.services.authorizer._keys._loaded_at = float("-inf")
        return result

    def set_clock(self, at: str) -> None:
        self.app.state.services.authorizer._clock = lambda: at

    def ask(self, method: str, path: str, key: str | None, body: Json | None = None, **headers: str) -> httpx.Response:
        sent = headers if key is None else headers | {"authorization": f"Bearer {key}"}
        return self.request(method, path, json=body, headers=sent)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


@pytest.mark.parametrize(("method", "path"), PROTECTED)
def test_after_the_first_access_key_releases_and_budgets_need_one(guarded: Guarded, method: str, path: str) -> None:
    guarded.make_key("account")

    refused = guarded.ask(method, path, None, {})
    problem_errors(refused, 401, "key-required")
    assert refused.headers["www-authenticate"] == "Bearer"
    problem_errors(guarded.ask(method, path, "gsh_00000000_wrong", {}), 401, "key-required")


@pytest.mark.parametrize(("method", "path"), PROTECTED)
@pytest.mark.parametrize("scope", SCOPES)
def test_each_scope_allows_only_its_own_operations(guarded: Guarded, method: str, path: str, scope: str) -> None:
    key = guarded.make_key(scope)
    reads, are_keys = method == "GET" or path.endswith(("/preview", "/verify")), path.startswith("/access-keys")
    decides = path.endswith(("/approve", "/refuse"))
    opens = {
        "account": False,
        "admin": are_keys or decides or method == "PUT" or (reads and not path.endswith("/answer")),
        "audit": reads,
        "release": method != "PUT" and not are_keys and not decides,
    }[scope]

    status = guarded.ask(method, path, key, {}).status_code

    assert (status not in {401, 403}) == opens


def named(path: str) -> str:
    name = {"/access-keys": "4f1c2a9b", "/approvals": "0" * 16}.get(path[: path.find("/", 1)], "web")
    return path.replace("{id}", name).replace("{key}", "weekly")


def test_every_documented_operation_that_may_refuse_is_tried_here(guarded: Guarded) -> None:
    document = guarded.get("/openapi.json").json()
    declared = {
        (method.upper(), named(path))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "401" in operation["responses"]
    }

    assert declared == set(PROTECTED) | set(OPEN)


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_accounting_is_open_unless_it_is_set_to_need_a_key(guarded: Guarded, method: str, path: str) -> None:
    key = guarded.make_key("account")
    assert guarded.ask(method, path, None, {}).status_code == 422

    settings = guarded.app.state.services.settings
    closed = Client(ledger=settings.ledger, ledger_secret=SECRET, account_keys=True)

    problem_errors(closed.request(method, path, json={}), 401, "key-required")
    assert closed.request(method, path, json={}, headers={"authorization": f"bearer {key}"}).status_code == 422
    closed.app.state.services.ledger_pool.close()


def test_a_budget_in_calibrate_needs_a_key_too(guarded: Guarded) -> None:
    bound = guarded.make_key("release", budgets=("ads",))
    body: Json = {"mechanism": {"c_u": 3, "tau": 1}, "budget": "web"}

    problem_errors(guarded.ask("POST", "/calibrate", None, body), 401, "key-required")
    problem_errors(guarded.ask("POST", "/calibrate", bound, body), 403, "not-allowed")
    assert guarded.ask("POST", "/calibrate", guarded.make_key("release"), body).status_code == 200


def test_a_bound_key_sees_and_charges_its_own_budgets_only(guarded: Guarded) -> None:
    guarded.put("ads", LIMIT)
    key = guarded.make_key("release", budgets=("web",))

    listed = guarded.ask("GET", "/budgets", key).json()["budgets"]
    assert [budget["id"] for budget in listed] == ["web"]
    assert guarded.ask("GET", "/budgets/web", key).status_code == 200
    problem_errors(guarded.ask("GET", "/budgets/ads", key), 403, "not-allowed")
    assert guarded.ask("POST", "/release", key, PAID, **{"idempotency-key": "1"}).status_code == 200
    for body in (RELEASE, LARGE):
        problem_errors(guarded.ask("POST", "/release", key, body), 403, "not-allowed")
        elsewhere = body | {"budget": "ads"}
        refused = guarded.ask("POST", "/release", key, elsewhere, **{"idempotency-key": "2"})
        problem_errors(refused, 403, "not-allowed")


def test_a_bound_key_must_charge_for_tables_too(guarded: Guarded) -> None:
    key = guarded.make_key("release", budgets=("web",))
    request = {"mechanism": CASE_STUDY, "count_column": "users", "key_columns": ["url"]}
    files = {"request": (None, json.dumps(request)), "table": ("t", b"x")}
    response = guarded.request("POST", "/release/table", files=files, headers={"authorization": f"Bearer {key}"})

    problem_errors(response, 403, "not-allowed")


def test_a_revoked_key_is_refused_and_others_are_not(guarded: Guarded) -> None:
    key, other = guarded.make_key("release"), guarded.make_key("release")
    guarded.revoke(key)

    problem_errors(guarded.ask("GET", "/budgets", key), 401, "key-required")
    assert guarded.ask("GET", "/budgets", other).status_code == 200


def test_an_expired_key_is_refused_and_counted_and_does_not_open_the_service(guarded: Guarded) -> None:
    key = guarded.make_key("release", expires_at="2026-11-16T13:00:00Z")
    guarded.set_clock("2026-11-16T12:59:59Z")
    assert guarded.ask("GET", "/budgets", key).status_code == 200

    guarded.set_clock("2026-11-16T13:00:00Z")
    refused = guarded.ask("GET", "/budgets", key)

    problem_errors(refused, 401, "key-required")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "expired" in refused.json()["detail"]
    problem_errors(guarded.ask("GET", "/budgets", None), 401, "key-required")
    assert guarded.metrics()['gsh_access_refusals_total{reason="expired"}'] == 1


def test_a_rotated_key_works_until_its_overlap_ends_and_the_new_one_goes_on(guarded: Guarded) -> None:
    old = guarded.make_key("release", budgets=("web",))
    name, until = old.split("_")[1], "2026-11-16T13:00:00Z"
    rotated = guarded.change(lambda ledger: ledger.keys.rotate(name, AT, until))
    assert rotated is not None

    for at, status in ((AT, 200), (until, 401)):
        guarded.set_clock(at)
        assert guarded.ask("GET", "/budgets/web", old).status_code == status
        assert guarded.ask("GET", "/budgets/web", rotated[0]).status_code == 200
    problem_errors(guarded.ask("GET", "/budgets/ads", rotated[0]), 403, "not-allowed")


def test_an_expiry_removed_from_the_database_opens_nothing(guarded: Guarded) -> None:
    key = guarded.make_key("release", expires_at="2026-11-16T13:00:00Z")

    def tamper(ledger: Ledger) -> None:
        with ledger._connections.transaction() as execute:
            execute("UPDATE access_keys SET expires_at = NULL")

    guarded.change(tamper)

    problem_errors(guarded.ask("GET", "/budgets", key), 401, "key-required")
    assert guarded.metrics()['gsh_access_refusals_total{reason="seal"}'] == 1


def test_after_the_last_access_key_is_revoked_an_access_key_is_still_needed(guarded: Guarded) -> None:
    """Also on this machine: to revoke an access key must never open the service."""
    key = guarded.make_key("release")
    guarded.revoke(key)

    problem_errors(guarded.ask("GET", "/budgets", None), 401, "key-required")
    problem_errors(guarded.ask("GET", "/budgets", key), 401, "key-required")
    assert guarded.ask("GET", "/budgets", guarded.make_key("release")).status_code == 200


@contextmanager
def from_address(address: str, app: object) -> Iterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(address, 1234))  # type: ignore[arg-type]
    yield httpx.AsyncClient(transport=transport, base_url="http://localhost")


def ask_from(address: str, client: Client, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async def send(_http: httpx.AsyncClient) -> httpx.Response:
        with from_address(address, client.app) as http:
            async with http:
                return await http.request(method, path, headers=headers)

    return client.together(send)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("127.0.0.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("192.0.2.1", 403),
        ("::ffff:192.0.2.1", 403),
        ("", 403),
    ],
)
def test_without_access_keys_only_this_machine_is_served(guarded: Guarded, address: str, status: int) -> None:
    assert ask_from(address, guarded, "/budgets").status_code == status
    assert ask_from(address, guarded, "/healthz").status_code == 200


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8000", "ledger.localhost", "127.0.0.1", "127.8.9.1:8000", "[::1]", "[::1]:8000"],
)
def test_without_access_keys_a_loopback_host_name_is_accepted(guarded: Guarded, host: str) -> None:
    assert ask_from("127.0.0.1", guarded, "/budgets", host=host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "localhost.evil.example", "evillocalhost", "127.0.0.1.evil.example"),
        *("192.0.2.1:8000", "[2001:db8::1]:8000", "localhost:", "localhost:x", "::1", "[::1", "[localhost]", ""),
    ],
)
def test_without_access_keys_a_foreign_host_name_is_refused(guarded: Guarded, host: str) -> None:
    """DNS rebinding: the name of a page resolves to 127.0.0.1, so its script sends requests from this machine."""
    refused = ask_from("127.0.0.1", guarded, "/budgets", host=host)

    problem_errors(refused, 403, "not-allowed")
    assert "Host" in refused.json()["detail"]
    assert guarded.metrics()['gsh_access_refusals_total{reason="host"}'] == 1


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:8000", 200), ("https://LOCALHOST:8000", 200)]
    + [
        (other, 403)
        for other in ("http://evil.example", "http://localhost:9000", "http://127.0.0.1:8000", "null", "http://[")
    ],
)
def test_without_access_keys_a_page_of_another_site_is_refused(guarded: Guarded, origin: str, status: int) -> None:
    """A browser on this machine sends requests for any page, and names the page in Origin."""
    answer = ask_from("127.0.0.1", guarded, "/budgets", host="localhost:8000", origin=origin)

    assert answer.status_code == status
    if status == 403:
        problem_errors(answer, 403, "not-allowed")
        assert "Origin" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("site", "mode", "destination", "status"),
    [
        (None, None, None, 200),
        ("none", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("cross-site", "navigate", "document", 200),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "no-cors", "script", 403),
        ("same-origin, none", "cors", "empty", 403),
        ("", "", "", 403),
    ],
)
def test_without_access_keys_a_page_of_another_site_can_load_nothing(
    guarded: Guarded, site: str | None, mode: str | None, destination: str | None, status: int
) -> None:
    """An image or a script has no Origin. A person may follow a link, and curl says nothing about sites."""
    sent = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination}
    headers = {name: value for name, value in sent.items() if value is not None}

    answer = ask_from("127.0.0.1", guarded, "/budgets", host="localhost:8000", **headers)

    assert answer.status_code == status
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    if status == 403:
        problem_errors(answer, 403, "not-allowed")
        assert "Sec-Fetch-Site" in answer.json()["detail"]
        assert guarded.metrics()['gsh_access_refusals_total{reason="site"}'] == 1


def test_without_access_keys_a_form_of_another_site_is_not_a_link(guarded: Guarded) -> None:
    """Also if an old browser sends no Origin with it."""
    sent = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = ask_from("127.0.0.1", guarded, "/budgets/web/preview", host="localhost:8000", method="POST", **sent)

    problem_errors(answer, 403, "not-allowed")


def test_without_access_keys_pages_can_be_opened_from_everywhere(guarded: Guarded) -> None:
    for site in ("cross-site", "same-site", "none"):
        answer = ask_from("127.0.0.1", guarded, "/", host="localhost:8000", **{"sec-fetch-site": site})
        assert answer.status_code == 200


def test_with_an_access_key_host_and_origin_do_not_matter(guarded: Guarded) -> None:
    """No browser adds an access key by itself."""
    headers = {"authorization": f"Bearer {guarded.make_key('release')}", "host": "a.example", "origin": "http://b"}

    assert ask_from("192.0.2.1", guarded, "/budgets", **headers).status_code == 200


def test_without_access_keys_open_access_serves_other_machines(tmp_path: Path) -> None:
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"), open_access=True)

    assert ask_from("192.0.2.1", client, "/budgets", host="service.example").status_code == 200
    client.app.state.services.ledger_pool.close()


def test_wrong_keys_are_counted_and_slowed_down_by_address(guarded: Guarded) -> None:
    guarded.make_key("release")
    wrong = {"authorization": "Bearer gsh_00000000_wrong"}
    statuses = [ask_from("192.0.2.1", guarded, "/budgets", **wrong).status_code for _ in range(12)]

    assert statuses == [401] * 10 + [429] * 2
    slowed = ask_from("192.0.2.1", guarded, "/budgets", **wrong)
    problem_errors(slowed, 429, "too-many-attempts")
    assert 1 <= int(slowed.headers["retry-after"]) <= 7
    problem_errors(ask_from("192.0.2.2", guarded, "/budgets", **wrong), 401, "key-required")
    metrics = guarded.metrics()
    assert metrics['gsh_access_refusals_total{reason="unknown"}'] == 11
    assert metrics['gsh_access_refusals_total{reason="rate"}'] == 3


def test_wrong_keys_do_not_lock_out_a_right_one_from_the_same_address(guarded: Guarded) -> None:
    """Clients behind one proxy share an address, and must not lock each other out."""
    right = {"authorization": f"Bearer {guarded.make_key('release')}"}
    wrong = {"authorization": "Bearer gsh_00000000_wrong"}
    for _ in range(20):
        ask_from("192.0.2.1", guarded, "/budgets", **wrong)

    assert ask_from("192.0.2.1", guarded, "/budgets", **right).status_code == 200
    problem_errors(ask_from("192.0.2.1", guarded, "/budgets"), 401, "key-required")


def test_forwarded_addresses_do_not_evade_the_limit_on_wrong_keys(tmp_path: Path) -> None:
    """A client can write any address into a header, but cannot choose the address of its connection."""
    place = tmp_path / "ledger.sqlite3"
    assert keys_command(place, "create", "--scope", "release").returncode == 0
    with Service(temporary=tmp_path, ledger=str(place)) as service:
        statuses = [
            httpx.get(
                f"{service.url}/budgets",
                headers={"authorization": "Bearer wrong", "x-forwarded-for": f"192.0.2.{number}"},
            ).status_code
            for number in range(12)
        ]

    assert statuses == [401] * 10 + [429] * 2


@pytest.mark.parametrize("name", ["x-forwarded-for", "x-real-ip", "forwarded", "via", "x-forwarded-host"])
def test_without_access_keys_a_proxy_that_names_its_client_is_refused(guarded: Guarded, name: str) -> None:
    refused = ask_from("127.0.0.1", guarded, "/budgets", **{name: "192.0.2.1"})

    problem_errors(refused, 403, "not-allowed")
    assert ask_from("127.0.0.1", guarded, "/budgets", **{"x-forwarded-for": "127.0.0.1, ::1"}).status_code == 200


def test_a_full_admission_queue_is_503(guarded: Guarded) -> None:
    """Access keys are read from the ledger, and its queue may be full."""
    guarded.make_key("release")
    guarded.app.state.services.ledger_pool._admitting._places = Places(0)

    busy = guarded.ask("GET", "/budgets", "any")
    problem_errors(busy, 503, "busy")
    assert busy.headers["retry-after"] == "1"
    assert busy.headers["x-content-type-options"] == "nosniff"


def test_two_access_keys_in_one_request_are_refused(guarded: Guarded) -> None:
    """A proxy may have checked the other one."""
    key = f"Bearer {guarded.make_key('release')}"
    headers = [("authorization", key), ("authorization", "Bearer wrong")]

    for sent in (headers, headers[::-1]):
        problem_errors(guarded.request("GET", "/budgets", headers=sent), 401, "key-required")
    padded = {"authorization": key.encode() + b"\xa0"}
    problem_errors(guarded.request("GET", "/budgets", headers=padded), 401, "key-required")


def test_a_network_of_ipv6_shares_its_attempts(guarded: Guarded) -> None:
    """One machine can use all addresses of its /64."""
    guarded.make_key("release")
    wrong = {"authorization": "Bearer gsh_00000000_wrong"}
    statuses = [ask_from(f"2001:db8::{n:x}", guarded, "/budgets", **wrong).status_code for n in range(1, 13)]

    assert statuses == [401] * 10 + [429] * 2
    problem_errors(ask_from("2001:db8:0:1::1", guarded, "/budgets", **wrong), 401, "key-required")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network


def test_attempts_are_allowed_again_with_time_and_memory_is_bounded() -> None:
    clock = [0.0]
    attempts = Attempts(clock=lambda: clock[0])
    for _ in range(10):
        assert attempts.wait("a") == 0
        attempts.failed("a")
    assert attempts.wait("a") == 6
    assert attempts.wait("b") == 0
    clock[0] = 6.0
    assert attempts.wait("a") == 0
    for number in range(20_000):
        attempts.failed(str(number))
    assert len(attempts._until) == 10_000


def test_attempts_may_be_fewer_and_slower() -> None:
    attempts = Attempts(burst=2, seconds=60.0, clock=lambda: 0.0)
    attempts.failed("a")
    assert attempts.wait("a") == 0
    attempts.failed("a")
    assert attempts.wait("a") == 60


def access_from(address: str, guarded: Guarded, **headers: str) -> Access:
    """The access that the authorizer gives to a request that reads budgets."""
    encoded = [(name.encode(), value.encode()) for name, value in ({"host": "localhost"} | headers).items()]
    scope = {"type": "http", "client": (address, 1234), "headers": encoded}
    return guarded.together(lambda _http: guarded.app.state.services.authorizer.admit(scope, READS_BUDGETS))


def test_access_has_the_client_its_scopes_and_its_budgets(guarded: Guarded) -> None:
    """The client is the access key's id, or the address. Without access keys it has all scopes."""
    assert access_from("127.0.0.1", guarded) == Access(frozenset(), "127.0.0.1", frozenset(SCOPES))
    key = guarded.make_key("release", "account", budgets=("web",))

    with_key = access_from("192.0.2.1", guarded, authorization=f"Bearer {key}")
    name, scopes = key.split("_")[1], frozenset({"release", "account"})
    assert with_key == Access(frozenset({"web"}), name, scopes, name, "weekly job")
    with pytest.raises(KeyError):  # a request that the authorizer has not seen has no access
        access_of({"type": "http", "client": ("127.0.0.1", 1)})


def test_the_search_for_access_keys_creates_no_ledger(tmp_path: Path) -> None:
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"))

    assert client.post("/release", RELEASE).status_code == 200
    assert list(tmp_path.iterdir()) == []


def test_accounting_touches_no_database(tmp_path: Path) -> None:
    app = create_app(Settings(ledger=str(tmp_path / "missing" / "ledger.sqlite3")))

    assert Client(app).point(CASE_STUDY, 0.349)["delta"] == 1.003103848512688e-05


def keys_command(place: Path, *arguments: str, **others: str) -> subprocess.CompletedProcess[str]:
    return run_command("app.keys", *arguments, ledger=str(place), **others)


@pytest.mark.slow
def test_a_command_creates_lists_and_revokes_access_keys_and_stores_hashes(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    made = keys_command(place, "create", "--scope", "release", "--scope", "admin", "--budget", "web", "--note", "job")
    key = made.stdout.strip()
    name = key.split("_")[1]

    assert made.returncode == 0
    assert key not in made.stderr
    listed = keys_command(place, "list").stdout
    assert listed.startswith(f"{name}  active  made ")
    assert listed.endswith("admin,release  web  job\n")
    assert key not in listed
    assert keys_command(place, "revoke", name).returncode == 0
    assert "revoked" in keys_command(place, "list").stdout
    assert keys_command(place, "revoke", name).returncode == 1
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.split("_", 2)[2].encode() not in everything
    assert hash_of(key).encode() in everything


ADMIN = ["create", "--scope", "admin"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["create"],
        ["create", "--scope", "all"],
        [*ADMIN, "--budget", "a b"],
        [],
        *(
            [*ADMIN, "--expires", when]
            for when in ("2020-01-31", "soon", "0999-01-01", "3000-01-01", "0001-01-01T00:00+14")
        ),
        *(["rotate", "x", "--overlap", overlap] for overlap in ("7", "-1d", "7w", "99999d", "")),
        ["rotate", "x", "--expires", "2020-01-31"],
        ["rotate"],
    ],
)
def test_a_wrong_command_creates_no_access_key(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSH_LEDGER", str(tmp_path / "ledger.sqlite3"))

    assert keys.main(arguments) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_command_rotates_an_access_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GSH_LEDGER", str(tmp_path / "ledger.sqlite3"))

    def ran(*arguments: str) -> tuple[int, str, str]:
        return keys.main(arguments), *capsys.readouterr()

    year = datetime.now(UTC).year + 1
    _, old, said = ran(*ADMIN, "--note", "job", "--expires", f"{year}-01-31T01:00+01:00")
    name, expiry = old.split("_")[1], f"{year}-01-31T00:00:00Z"
    assert f"expires at {expiry}" in said
    assert ran("list")[1].startswith(f"{name}  active until {expiry}  made ")

    code, new, said = ran("rotate", name, "--overlap", "0")
    other = new.split("_")[1]

    assert code == 0
    assert new.strip() not in said
    first, second = ran("list")[1].splitlines()
    if name not in first[:8]:  # made in the same second: the ids decide the order
        first, second = second, first
    assert first.startswith(f"{name}  expired ")
    assert f"replaced by {other}  admin  all budgets  job" in first
    assert f"  replaces {name}  admin  all budgets  job" in second
    assert ran("rotate", name)[0] == 1  # it has expired
    last = ran("rotate", other)[1].split("_")[1]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT")
    assert f"{other}  active until {tomorrow}" in ran("list")[1]
    assert ran("rotate", other)[0] == 1  # it was replaced
    assert ran("rotate", last, "--overlap", "7d")[0] == 0


@pytest.mark.slow
def test_the_keys_command_prints_why_the_ledger_cannot_be_opened(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    assert keys_command(place, "create", "--scope", "release").returncode == 0

    for settings, reason in (
        ({"ledger_secret": "short-value"}, "GSH_LEDGER_SECRET: "),
        ({"ledger_secret": SECRET}, "The ledger cannot be opened: the ledger was made with another secret"),
    ):
        refused = keys_command(place, "list", **settings)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(reason)
        assert len(refused.stderr.splitlines()) == 1
        assert "short-value" not in refused.stderr


@pytest.mark.slow
def test_with_an_unavailable_ledger_the_service_does_not_listen_on_other_addresses(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    assert keys_command(place, "create", "--scope", "release").returncode == 0
    refused = run_command("app", host="0.0.0.0", port="0", ledger=str(place), ledger_secret=SECRET)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("GSH_LEDGER: ")
    assert refused.stderr.endswith(": the ledger was made with another secret\n")
    assert "no key" not in refused.stderr


@pytest.mark.slow
def test_the_reason_for_an_unavailable_ledger_is_logged_and_not_in_answers(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    assert keys_command(place, "create", "--scope", "release").returncode == 0
    with Service(temporary=tmp_path, ledger=str(place), ledger_secret=SECRET) as service:
        answer = service.get("/budgets")
        service.stop()

    problem_errors(answer, 503, "ledger-unavailable")
    assert "secret" not in answer.text
    reasons = [line["message"] for line in service.log if line["logger"] == "app.ledger"]
    assert (
        reasons == ["the ledger is unavailable: the ledger was made with another secret"] * 2
    )  # at start, and at the request
    assert SECRET not in service.output


@pytest.mark.slow
def test_other_addresses_are_refused_at_start_until_a_key_exists(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    refused = run_command("app", host="0.0.0.0", port="0", ledger=str(place))

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("GSH_HOST: ")
    assert len(refused.stderr.splitlines()) == 1
    key = keys_command(place, "create", "--scope", "release").stdout.strip()
    with Service(
        temporary=tmp_path, host="0.0.0.0", ledger=str(place), log_level="debug", access_log="true"
    ) as service:
        url = service.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/budgets").status_code == 401
        assert httpx.get(f"{url}/budgets", headers={"authorization": f"Bearer {key}"}).status_code == 200
        service.stop()
    assert key not in service.output + service.errors
    assert keys_command(place, "revoke", key.split("_")[1]).returncode == 0
    with Service(temporary=tmp_path, host="0.0.0.0", ledger=str(place)) as service:
        assert httpx.get(service.url.replace("0.0.0.0", "127.0.0.1") + "/budgets").status_code == 401
    with Service(temporary=tmp_path, host="0.0.0.0", open_access="true") as service:
        assert httpx.get(service.url.replace("0.0.0.0", "127.0.0.1") + "/budgets").status_code == 200


def test_guesses_at_a_paid_request_are_slowed_down_and_those_of_another_client_are_not_compared(
    guarded: Guarded,
) -> None:
    """Whether two requests are the same tells the posted counts to a client that tries them all."""
    owner, guesser = guarded.make_key("release"), guarded.make_key("release")
    key = {"idempotency-key": "weekly-46"}
    first = guarded.ask("POST", "/release", owner, PAID, **key)
    assert first.status_code == 200

    guesses = [PAID | {"groups": {"keys": ["a"], "counts": [count]}} for count in range(6)]
    for guess in [*guesses, PAID]:  # wrong or right, nothing is compared
        problem_errors(guarded.ask("POST", "/release", guesser, guess, **key), 422, "key-reused")
    for guess in guesses[:5]:
        problem_errors(guarded.ask("POST", "/release", owner, guess, **key), 422, "key-reused")
    for guess in (guesses[5], PAID):
        refused = guarded.ask("POST", "/release", owner, guess, **key)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert 'gsh_access_refusals_total{reason="reuse"} 2.0' in guarded.get("/metrics").text
    assert guarded.ask("GET", "/releases/weekly-46/answer", guesser).content == first.content


def test_a_rotated_access_key_is_the_same_client(guarded: Guarded) -> None:
    owner = guarded.make_key("release")
    first = guarded.ask("POST", "/release", owner, PAID, **{"idempotency-key": "weekly-46"})
    made = guarded.change(lambda ledger: ledger.keys.rotate(owner.split("_")[1], AT, "2099-01-01T00:00:00Z"))
    assert made is not None
    rotated, _ = made

    again = guarded.ask("POST", "/release", rotated, PAID, **{"idempotency-key": "weekly-46"})

    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"


def test_keys_that_the_service_did_not_seal_are_not_accepted_but_logged_and_counted(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """They were inserted into the database, or their scope was changed there."""
    honest, altered, mine = guarded.make_key("admin"), guarded.make_key("release"), "gsh_mine_of_my_own_making"
    services = guarded.app.state.services

    def tamper(ledger: Ledger) -> None:
        row = ("mine", hash_of(mine), "admin", "", "", "2026-11-16T12:00:00Z", None, None, None)
        with ledger._connections.transaction() as execute:
            execute(ledger._sql.add_key, row)
            execute(f"UPDATE access_keys SET scopes = 'admin' WHERE id = '{altered.split('_')[1]}'")

    services.ledger_pool._work(tamper)
    services.authorizer._keys._loaded_at = float("-inf")

    for key in (altered, mine, mine):
        problem_errors(guarded.ask("GET", "/budgets", key), 401, "key-required")
        services.authorizer._keys._loaded_at = float("-inf")
    assert guarded.ask("GET", "/budgets", honest).status_code == 200
    assert [message for message in caplog.messages if "sealed" in message] == [
        "access keys are not as they were sealed, and not accepted: run python -m app.verify"
    ]
    assert 'gsh_access_refusals_total{reason="seal"} 3.0' in guarded.get("/metrics").text


def test_an_access_key_is_still_needed_after_all_are_deleted_from_the_database(guarded: Guarded) -> None:
    guarded.make_key("admin")
    services = guarded.app.state.services

    def tamper(ledger: Ledger) -> None:
        with ledger._connections.transaction() as execute:
            execute("DELETE FROM access_keys")

    services.ledger_pool._work(tamper)
    services.authorizer._keys._loaded_at = float("-inf")

    problem_errors(guarded.ask("GET", "/budgets", None), 401, "key-required")


def test_a_history_names_releases_and_shows_no_keyed_hash(guarded: Guarded) -> None:
    release, admin = guarded.make_key("release"), guarded.make_key("admin")
    guarded.ask("POST", "/budgets/web/charges", release, {"mechanism": CASE_STUDY}, **{"idempotency-key": "job-7"})

    for key in (release, admin):
        details: Json = guarded.ask("GET", "/budgets/web/charges", key).json()["entries"][0]["details"]
        assert details["idempotency_key"] == "job-7"
        assert details["by"] == {"id": release.split("_")[1], "note": "weekly job"}
        assert not {"request", "content_hash", "client"} & details.keys()
