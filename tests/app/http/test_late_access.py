"""An access key that is revoked, or expires, while the body of a request is on its way."""

import http.client
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from app.http.auth import Attempts
from app.ledger.access.access_keys import new_key
from app.ledger.opening import open_ledger
from gsh.accounting.budget_limits import Limit
from tests.app.budgets.test_budgets import LIMIT, SECRET
from tests.app.client import CASE_STUDY, Json, problem_errors
from tests.app.http.test_access import AT, PAID, RELEASE, Guarded
from tests.app.process import Service

BOUNDARY = "x"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
CSV = {"count_column": "users", "key_columns": ["url"], "csv_types": {"url": "string", "users": "int64"}}


def form(request: Json) -> bytes:
    parts = {"request": json.dumps(request), "table": "url,users\na.org,70000\n"}
    texts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{parts[name]}\r\n' for name in parts
    ]
    return f"{''.join(texts)}--{BOUNDARY}--\r\n".encode()


TABLE = {"mechanism": CASE_STUDY, **CSV}
BODIES = {
    "POST /release": json.dumps(RELEASE).encode(),
    "POST /release paid": json.dumps(PAID).encode(),
    "POST /release dry": json.dumps(PAID | {"dry_run": True}).encode(),
    "POST /release/table": form(TABLE),
    "POST /release/table paid": form(TABLE | {"budget": "web"}),
    "POST /release/table dry": form(TABLE | {"budget": "web", "dry_run": True}),
    "POST /budgets/web/charges": json.dumps({"mechanism": CASE_STUDY}).encode(),
    "POST /releases": json.dumps({"mechanism": CASE_STUDY, "budget": "web"}).encode(),
    "POST /releases/open/commit": json.dumps({"digest": "0" * 64, "rows": 1}).encode(),
    "PUT /budgets/web": json.dumps(LIMIT | {"epsilon": 2, "reason": "a test"}).encode(),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One service for all tests, with a release that is open."""
    made = Guarded(str(tmp_path_factory.mktemp("late") / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


@pytest.fixture(autouse=True)
def without_failures(guarded: Guarded) -> None:
    """Too many failures of one address would be 429. Here each test is the first one."""
    guarded.app.state.services.authorizer._unknown_keys = Attempts()


@pytest.fixture(scope="module")
def reader(guarded: Guarded) -> str:
    """An access key with a release that stays open."""
    key = guarded.make_key("release", "admin")
    opened = {"mechanism": CASE_STUDY, "budget": "web"}
    assert guarded.ask("POST", "/releases", key, opened, **{"idempotency-key": "open"}).status_code == 201
    return key


def slowly(guarded: Guarded, operation: str, key: str, meanwhile: Callable[[], object]) -> httpx.Response:
    """The answer to a request, if something happens before the last bytes of its body."""
    method, path, *_ = operation.split()
    body = BODIES[operation]

    async def arriving() -> AsyncIterator[bytes]:
        yield body[:-10]
        meanwhile()
        yield body[-10:]

    headers = {"authorization": f"Bearer {key}", "content-type": FORM if "table" in path else "application/json"}
    if operation.endswith("paid") or path in {"/releases", "/budgets/web/charges"}:
        headers["idempotency-key"] = "late"
    return guarded.together(lambda http: http.request(method, path, content=arriving(), headers=headers))


@pytest.mark.parametrize("operation", BODIES)
@pytest.mark.parametrize("expires", [False, True])
def test_an_access_key_that_ends_during_the_body_gets_nothing(
    guarded: Guarded, reader: str, operation: str, expires: bool
) -> None:
    key = guarded.make_key("release", "admin", expires_at="2026-11-16T13:00:00Z" if expires else None)
    guarded.set_clock(AT)
    before = [guarded.ask("GET", path, reader).json() for path in ("/budgets/web", "/releases")]

    def end() -> None:
        guarded.set_clock("2026-11-16T13:00:00Z") if expires else guarded.revoke(key)

    problem_errors(slowly(guarded, operation, key, end), 401, "key-required")

    assert [guarded.ask("GET", path, reader).json() for path in ("/budgets/web", "/releases")] == before


def test_a_stored_answer_is_not_shown_to_a_revoked_key(guarded: Guarded, reader: str) -> None:
    guarded.set_clock(AT)
    key, paid = guarded.make_key("release"), "POST /release/table paid"
    assert slowly(guarded, paid, key, lambda: None).status_code == 200

    problem_errors(slowly(guarded, paid, key, lambda: guarded.revoke(key)), 401, "key-required")


def test_a_real_upload_ends_with_the_access_key(tmp_path: Path) -> None:
    """The key is revoked by another process. The service notices it within a second: it is asked until it does."""
    place = str(tmp_path / "ledger.sqlite3")
    ledger = open_ledger(place, SECRET)
    ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    key, kept = new_key(frozenset({"release"}), frozenset({"web"}), "", AT)
    other, another = new_key(frozenset({"release"}), frozenset(), "", AT)
    for each in (kept, another):
        ledger.keys.add(each)
    body = BODIES["POST /release/table paid"]
    with Service(temporary=tmp_path, ledger=place, ledger_secret=SECRET) as service:
        upload = http.client.HTTPConnection(service.url.removeprefix("http://"))
        upload.putrequest("POST", "/release/table")
        for name, value in {"Authorization": f"Bearer {key}", "Content-Type": FORM, "Idempotency-Key": "late"}.items():
            upload.putheader(name, value)
        upload.putheader("Content-Length", str(len(body)))
        upload.endheaders(body[:-10])
        bearer = {"authorization": f"Bearer {key}"}
        assert httpx.get(f"{service.url}/budgets/web", headers=bearer).status_code == 200
        assert ledger.keys.revoke(kept.id, AT)
        while httpx.get(f"{service.url}/budgets/web", headers=bearer).status_code == 200:
            pass
        upload.send(body[-10:])

        assert upload.getresponse().status == 401
        upload.close()
        left = httpx.get(f"{service.url}/budgets/web", headers={"authorization": f"Bearer {other}"}).json()
        assert left["spent"]["releases"] == 0
    ledger.close()
