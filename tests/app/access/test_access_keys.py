"""/access-keys over HTTP: made once, rotated, revoked and listed; bound to patterns; and the history of all of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.budgets.test_budgets import LIMIT
from tests.app.client import CASE_STUDY, Json, problem_errors
from tests.app.http.test_access import PAID, Guarded


class Office(Guarded):
    """A service with an administrator."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.admin = self.make_key("admin")

    def fresh(self, method: str, path: str, key: str | None, body: Json | None = None, **headers: str) -> Any:
        """The same after a second, in which the access keys are read again."""
        self.app.state.services.authorizer._keys._loaded_at = float("-inf")
        return self.ask(method, path, key, body, **headers)

    def made(self, key: str, **body: Any) -> Json:
        answer = self.fresh("POST", "/access-keys", key, body)
        assert answer.status_code == 201, answer.text
        document: Json = answer.json()
        return document

    def history(self, key: str | None = None) -> list[Json]:
        found: list[Json] = self.fresh("GET", "/access-keys/history", key or self.admin).json()["entries"]
        return found


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def test_an_access_key_is_shown_once_and_then_only_described(office: Office) -> None:
    made = office.made(office.admin, scopes=["release"], budgets=["web"], note="weekly", expires_at="2900-01-31")
    listed = office.fresh("GET", "/access-keys", office.admin)

    assert office.fresh("GET", "/budgets/web", made["key"]).status_code == 200
    assert made["key"] not in listed.text
    shown = {each["id"]: each for each in listed.json()["access_keys"]}[made["id"]]
    assert shown == {name: value for name, value in made.items() if name != "key"}
    assert (shown["state"], shown["expires_at"]) == ("active", "2900-01-31T00:00:00Z")
    assert (shown["scopes"], shown["budgets"], shown["note"]) == (["release"], ["web"], "weekly")


def test_a_rotated_key_ends_after_its_overlap_and_cannot_be_rotated_again(office: Office) -> None:
    old = office.made(office.admin, scopes=["release"])
    path = f"/access-keys/{old['id']}/rotate"

    new = office.fresh("POST", path, office.admin, {"overlap_seconds": 0})

    assert new.status_code == 201
    assert new.headers["cache-control"] == "no-store"
    problem_errors(office.fresh("GET", "/budgets", old["key"]), 401, "key-required")
    assert office.fresh("GET", "/budgets", new.json()["key"]).status_code == 200
    problem_errors(office.fresh("POST", path, office.admin, {}), 409, "access-key-ended")
    listed = {each["id"]: each for each in office.fresh("GET", "/access-keys", office.admin).json()["access_keys"]}
    assert (listed[old["id"]]["state"], listed[old["id"]]["replaced_by"]) == ("expired", new.json()["id"])


def test_a_revoked_key_is_refused_and_stays_revoked(office: Office) -> None:
    made = office.made(office.admin, scopes=["release"])
    path = f"/access-keys/{made['id']}"

    first, again = (office.fresh("DELETE", path, office.admin).json() for _ in range(2))

    assert first == again
    assert (first["state"], first["revoked_at"] is None) == ("revoked", False)
    problem_errors(office.fresh("GET", "/budgets", made["key"]), 401, "key-required")
    assert [each["kind"] for each in office.history()] == ["revoked", "made", "made", "began"]
    problem_errors(office.fresh("DELETE", "/access-keys/00000000", office.admin), 404, "unknown-access-key")


def test_the_first_access_key_is_not_made_over_http(tmp_path: Path) -> None:
    """Else anyone who reaches an open service could lock out all others."""
    service = Guarded(str(tmp_path / "ledger.sqlite3"))

    refused = service.request("POST", "/access-keys", json={"scopes": ["admin"]})

    problem_errors(refused, 403, "not-allowed")
    assert "gsh keys create" in refused.json()["detail"]
    assert service.get("/access-keys").json() == {"access_keys": []}
    service.app.state.services.ledger_pool.close()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["all"]}, "/scopes/0"),
        ({"scopes": ["release"], "budgets": ["web ads"]}, "/budgets/0"),
        ({"scopes": ["release"], "budgets": ["[a-z]"]}, "/budgets/0"),
        ({"scopes": ["release"], "expires_at": "yesterday"}, "/expires_at"),
        ({"scopes": ["release"], "expires_at": "2020-01-01"}, "/expires_at"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_made(office: Office, body: Json, pointer: str) -> None:
    assert pointer in problem_errors(office.fresh("POST", "/access-keys", office.admin, body), 422, "invalid-request")
    assert len(office.history()) == 2


def test_a_pattern_opens_the_budgets_that_it_is_for_and_no_others(office: Office) -> None:
    for name in ("team-a-views", "team-b-views"):
        assert office.fresh("PUT", f"/budgets/{name}", office.admin, LIMIT).status_code == 200
    team = office.made(office.admin, scopes=["release", "admin"], budgets=["team-a-*"])["key"]

    listed = office.fresh("GET", "/budgets", team).json()["budgets"]

    assert [each["id"] for each in listed] == ["team-a-views"]
    assert office.fresh("PUT", "/budgets/team-a-clicks", team, LIMIT).status_code == 200
    problem_errors(office.fresh("PUT", "/budgets/team-b-clicks", team, LIMIT), 403, "not-allowed")
    paid = {"idempotency-key": "1"}
    assert office.fresh("POST", "/release", team, PAID | {"budget": "team-a-views"}, **paid).status_code == 200
    refused = office.fresh("POST", "/release", team, PAID | {"budget": "team-b-views"}, **paid)
    problem_errors(refused, 403, "not-allowed")
    releases = office.fresh("GET", "/releases", team).json()["releases"]
    assert [each["budget"] for each in releases] == ["team-a-views"]
    other = office.made(office.admin, scopes=["release"], budgets=["team-c-*"])["key"]
    assert office.fresh("GET", "/releases", other).json()["releases"] == []


def test_a_bound_administrator_makes_and_sees_bound_keys_alone(office: Office) -> None:
    team = office.made(office.admin, scopes=["admin"], budgets=["team-a-*"])
    member = office.made(team["key"], scopes=["release"], budgets=["team-a-views"])

    for budgets in ([], ["web"], ["team-*"], ["*"], ["team-a-x", "web@*"]):
        body: Json = {"scopes": ["release"], "budgets": budgets}
        refused = office.fresh("POST", "/access-keys", team["key"], body)
        (pointer,) = problem_errors(refused, 422, "invalid-request")
        assert pointer.startswith("/budgets")
    listed = office.fresh("GET", "/access-keys", team["key"]).json()["access_keys"]
    assert {each["id"] for each in listed} == {team["id"], member["id"]}
    admin = office.admin.split("_")[1]
    problem_errors(office.fresh("DELETE", f"/access-keys/{admin}", team["key"]), 404, "unknown-access-key")
    rotated = office.fresh("POST", f"/access-keys/{admin}/rotate", team["key"], {})
    problem_errors(rotated, 404, "unknown-access-key")
    problem_errors(office.fresh("GET", "/access-keys/history", team["key"]), 403, "not-allowed")


def test_an_auditor_reads_everything_and_changes_nothing(office: Office) -> None:
    job = office.made(office.admin, scopes=["release"])["key"]
    assert office.fresh("POST", "/release", job, PAID, **{"idempotency-key": "46"}).status_code == 200
    auditor = office.made(office.admin, scopes=["audit"])["key"]
    before = office.fresh("GET", "/budgets/web", auditor).json()

    for path in ("/budgets", "/budgets/web/charges", "/budgets/web/verify", "/releases/46/answer", "/access-keys"):
        assert office.fresh("GET", path, auditor).status_code == 200, path
    assert office.fresh("POST", "/budgets/web/preview", auditor, {"mechanism": CASE_STUDY}).status_code == 200
    for method, path, body in (
        ("PUT", "/budgets/web", LIMIT),
        ("POST", "/release", PAID),
        ("POST", "/budgets/web/charges", {"mechanism": CASE_STUDY}),
        ("POST", "/access-keys", {"scopes": ["admin"]}),
        ("POST", f"/access-keys/{auditor.split('_')[1]}/rotate", {}),
        ("DELETE", f"/access-keys/{job.split('_')[1]}", None),
    ):
        problem_errors(office.fresh(method, path, auditor, body), 403, "not-allowed")
    assert office.fresh("GET", "/budgets/web", auditor).json() == before


def test_the_history_says_who_made_rotated_and_revoked_a_key_and_who_read_an_answer(office: Office) -> None:
    job = office.made(office.admin, scopes=["release"], note="weekly job")
    once = {"idempotency-key": "46"}
    for _ in range(2):  # the second time, the answer is read again
        assert office.fresh("POST", "/release", job["key"], PAID, **once).status_code == 200
    office.fresh("GET", "/releases/46/answer", job["key"])
    office.fresh("DELETE", f"/access-keys/{job['id']}", office.admin)

    revoked, read, replayed, made, _, began = office.history()

    admin = {"id": office.admin.split("_")[1], "note": "weekly job"}
    assert (revoked["kind"], revoked["key"], revoked["by"]) == ("revoked", job["id"], admin)
    for each in (read, replayed):
        assert (each["kind"], each["release"], each["budget"]) == ("read", "46", "web")
        assert each["by"] == {"id": job["id"], "note": "weekly job"}
    assert (made["kind"], made["by"], made["scopes"]) == ("made", admin, ["release"])
    assert (began["kind"], began["keys"]) == ("began", [])
    page = office.fresh("GET", "/access-keys/history?limit=2&before=6", office.admin).json()
    assert [each["number"] for each in page["entries"]] == [5, 4]
    assert page["before"] == 4
    assert office.change(lambda ledger: ledger.keys.verify()).fault is None
